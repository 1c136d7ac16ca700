"""The web console at /console: the pages that people read, play, label and run everything on.

Server-rendered. It adds no rule of its own: a page calls the services that the API's routes call, and lets in whoever
may make the call of the API that it stands for (`routing`).
"""
