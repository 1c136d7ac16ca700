"""The name of this program for whoever runs it: `./labs` in a checkout, `labs` where it is installed as that.

Texts are written with `./labs`. What the command prints, and what errors say, goes through `as_called`: the operator
of a server types its name as whoever started the server did.
"""

from __future__ import annotations

import sys
from pathlib import Path

IN_A_CHECKOUT = "./labs"
INSTALLED = "labs"


def called() -> str:
    """The name to type."""
    return INSTALLED if Path(sys.argv[0]).name == INSTALLED else IN_A_CHECKOUT


def as_called(text: str) -> str:
    """The text with commands as they can be typed here."""
    return text.replace(f"{IN_A_CHECKOUT} ", f"{called()} ")
