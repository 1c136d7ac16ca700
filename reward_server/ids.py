"""Public identifiers: a short prefix that says what it is, and 24 unguessable characters.

The characters are lower-case letters and digits (base 32 of 120 random bits), so an identifier is
safe in a URL, in a file name and when read aloud. Uniqueness rests on chance alone.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import secrets
from enum import StrEnum

_LENGTH = 24
_CHARACTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8
"""One for each value of a byte; each of the 32 stands for as many values as the others."""
_MADE_AT_ONCE = 128
_ready: list[str] = []
"""Tokens that nobody has been given yet."""
# Two processes must not give out the same ones.
os.register_at_fork(after_in_child=_ready.clear)


class IdPrefix(StrEnum):
    """The prefix that tells what an identifier names."""

    EPISODE = "ep"
    EVALUATION = "ev"
    REQUEST = "req"
    COMPARISON = "cmp"
    AUDIT = "aud"
    FILE = "file"
    JOB = "job"
    PREFERENCE = "pref"
    LABEL = "lbl"
    WEBHOOK = "wh"
    MESSAGE = "msg"
    AGENT = "agent"
    SESSION = "sess"
    CALL = "call"
    TRAINING_RUN = "run"


_PATTERN = re.compile(rf"({'|'.join(IdPrefix)})_[a-z2-7]{{24}}")


_LAB_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def is_lab_id(text: str) -> bool:
    """True if a lab may be called so; safe as the name of a folder."""
    return _LAB_ID.fullmatch(text) is not None


def random_token(length: int = _LENGTH) -> str:
    """So many characters of base 32, each from a random byte of its own."""
    return secrets.token_bytes(length).translate(_CHARACTERS).decode("ascii")


def new_token() -> str:
    """24 unguessable characters of base 32, for what is named anew in each request.

    Made many at a time: to ask the system for random bytes lets other threads in, and waits for them.
    """
    try:
        return _ready.pop()
    except IndexError:
        made = random_token(_LENGTH * _MADE_AT_ONCE)
        first, *others = (made[start : start + _LENGTH] for start in range(0, len(made), _LENGTH))
        _ready.extend(others)
        return first


def new_id(prefix: IdPrefix) -> str:
    """A fresh identifier, such as `ep_k3v…`."""
    return f"{prefix}_{new_token()}"


def derived_id(prefix: IdPrefix, *parts: str) -> str:
    """The identifier that always belongs to these parts; as hard to guess as the hardest of them."""
    digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=_LENGTH * 5 // 8)
    return f"{prefix}_{base64.b32encode(digest.digest()).decode().lower()}"


def new_episode_id() -> str:
    """`ep_…`."""
    return new_id(IdPrefix.EPISODE)


def new_evaluation_id() -> str:
    """`ev_…`."""
    return new_id(IdPrefix.EVALUATION)


def new_request_id() -> str:
    """`req_…`."""
    return new_id(IdPrefix.REQUEST)


def new_comparison_id() -> str:
    """`cmp_…`."""
    return new_id(IdPrefix.COMPARISON)


def new_preference_id() -> str:
    """`pref_…`."""
    return new_id(IdPrefix.PREFERENCE)


def new_label_id() -> str:
    """`lbl_…`."""
    return new_id(IdPrefix.LABEL)


def is_id(text: str, prefix: IdPrefix) -> bool:
    """True if this could be an identifier of that kind: a cheap check before a query."""
    return text.startswith(f"{prefix}_") and _PATTERN.fullmatch(text) is not None
