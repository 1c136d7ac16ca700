"""Fitting that a job asks for, in a process of its own: `python -m reward_server.fitting.process`."""
