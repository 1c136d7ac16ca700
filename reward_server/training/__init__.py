"""Runs of the bundled learner: the public face of `/training-runs`, and the work behind it.

The learner is a program of its own, `python -m learner`, and is never imported. A run is a durable job with the run's
id: whoever runs jobs takes it, and takes it again where another stopped.
"""
