"""Aligns a client's `messages` with the episode's own log.

The log is the authority: the persona's opening, then agent and persona lines in turn, so its length
is always odd. `align` says whether the messages bring one new agent message, repeat a turn that was
answered already, or do not fit. The form is told by the number of messages, never by their roles.
Pure: no store, no clock.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reward_server.errors import HistoryMismatch, NoNewMessage, TooManyMessages
from reward_server.transcripts.spoken import said

# `developer` is the newer name of the same thing in OpenAI's chat format.
_PREAMBLE_ROLES = frozenset({"system", "developer"})


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One message, of the log or of a client."""

    role: str
    content: str
    tool_calls: tuple[dict[str, Any], ...] | None = None


@dataclass(frozen=True, slots=True)
class NewTurn:
    """The messages bring one new agent message."""

    message: HistoryLine
    positioned: bool
    """Whether earlier messages came along: then sending it again is a retry, not a repetition."""


@dataclass(frozen=True, slots=True)
class AnsweredTurn:
    """The messages are a history up to and including an agent message that was answered."""

    turn: int


def align(messages: Sequence[HistoryLine], log: Sequence[HistoryLine]) -> NewTurn | AnsweredTurn:
    """Return the turn that these messages ask for; raises `NoNewMessage`, `TooManyMessages` or `HistoryMismatch`."""
    sent = without_preamble(messages)
    if not sent:
        raise NoNewMessage
    if len(sent) == 1:
        return NewTurn(sent[0], positioned=False)
    if len(sent) == len(log) + 1 and _is_prefix(log, sent):
        return NewTurn(sent[-1], positioned=True)
    if len(sent) == 2 and _echoes(sent[0], log[-1]):
        return NewTurn(sent[1], positioned=True)
    if len(sent) <= len(log):
        return _within_log(sent, log, messages)
    if _is_prefix(log, sent):
        raise TooManyMessages
    raise _mismatch(messages, log)


def without_preamble(messages: Sequence[HistoryLine]) -> Sequence[HistoryLine]:
    """The messages after the leading system messages."""
    start = 0
    while start < len(messages) and messages[start].role in _PREAMBLE_ROLES:
        start += 1
    return messages[start:]


def _mismatch(messages: Sequence[HistoryLine], log: Sequence[HistoryLine]) -> HistoryMismatch:
    """Names the first message that is not the log's, and where it is another line of it, what was probably left out."""
    sent = without_preamble(messages)
    differs = (at for at, line in enumerate(sent) if at >= len(log) or not _echoes(line, log[at]))
    place = next(differs, len(sent) - 1)
    told = f"messages[{place + len(messages) - len(sent)}] differs from the episode's log."
    if place == 0 and any(_echoes(sent[0], line) for line in log[1:]):
        told += " The messages before it are missing: send all of them, or the new one alone."
    return HistoryMismatch(told)


def _within_log(
    sent: Sequence[HistoryLine], log: Sequence[HistoryLine], messages: Sequence[HistoryLine]
) -> AnsweredTurn:
    if not _is_prefix(sent, log):
        raise _mismatch(messages, log)
    if len(sent) % 2:
        raise NoNewMessage
    # The prefix is read leniently, but the message that is being retried has to be the same action:
    # another action at an answered turn would be a fork of the conversation.
    if _calls(sent[-1]) != _calls(log[len(sent) - 1]):
        raise HistoryMismatch
    return AnsweredTurn(turn=len(sent) // 2)


def _is_prefix(shorter: Sequence[HistoryLine], longer: Sequence[HistoryLine]) -> bool:
    return len(shorter) <= len(longer) and all(_echoes(a, b) for a, b in zip(shorter, longer, strict=False))


def _echoes(one: HistoryLine, other: HistoryLine) -> bool:
    """Equal content; tool calls are compared only where both sides give some."""
    # Chat templates leave the reasoning of earlier turns out of a history.
    if one.content != other.content and said(one.content) != said(other.content):
        return False
    return not (one.tool_calls and other.tool_calls) or _calls(one) == _calls(other)


def _calls(line: HistoryLine) -> list[tuple[str, str]]:
    """Name and input of each call in a comparable form; `type` is derived from the name and ignored."""
    return [(call["name"], json.dumps(call["input"], sort_keys=True)) for call in line.tool_calls or ()]
