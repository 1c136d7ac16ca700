"""Doors for other stacks, one module each: translate, call the services behind /evaluate and /episodes, translate back.

No rule of scoring lives here, so a transcript has one reward through every door. What could not be scored is an error
of the request, in the status that the client of that door retries or reports; it is never a number.
"""
