"""The `learner` command.

What goes wrong on the outside (no server, a bad file, a busy folder) is one line and exit status 2, never a
traceback. Heavy libraries are loaded by the commands that need them.
"""

from learner.cli.main import main
from learner.cli.options import INTERRUPTED
from learner.presets import demo_file

__all__ = ["INTERRUPTED", "demo_file", "main"]
