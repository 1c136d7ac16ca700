"""Keeps secrets and conversation text out of the logs, whoever logs them by mistake.

Two nets: fields whose name says that they hold such a thing, and text that looks like a credential, wherever it
turns up (an event name, a traceback, a nested value). This is a safety net for slips: the rule is
still that text of users and scenarios is not logged at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

REDACTED = "[redacted]"
MAX_DEPTH = 8

PRIVATE_FIELDS = frozenset(
    (
        "agent_content",
        "anchor",
        "answer",
        "api_key",
        "authorization",
        "body",
        "case",
        "content",
        "cookie",
        "credentials",
        "criteria",
        "criterion",
        "database_url",
        "denials",
        "description",
        "evidence",
        "exemplars",
        "fact",
        "facts",
        "headers",
        "initial_observation",
        "input",
        "key_text",
        "messages",
        "messages_a",
        "messages_b",
        "metadata",
        "observation",
        "opening",
        "output",
        "password",
        "pepper",
        "persona_line",
        "persona_state",
        "prompt",
        "query",
        "question",
        "quote",
        "rationale",
        "reply",
        "rubric",
        "secret",
        "secrets",
        "sentence",
        "set_cookie",
        "text",
        "token",
        "tool_calls",
        "transcript",
        "verdict",
        "verdicts",
        "verdicts_a",
        "verdicts_b",
        "weight",
        "weights",
        "wording",
    )
)
_CREDENTIALS = (
    (re.compile(r"lab_[A-Za-z0-9]+_[A-Za-z0-9_-]{8,}"), f"lab_{REDACTED}"),
    # A JSON Web Token: its head always begins so.
    (re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), REDACTED),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{6,}"), rf"\1 {REDACTED}"),
    (re.compile(r"\b(sk|pk|rk)-[A-Za-z0-9_-]{16,}"), rf"\1-{REDACTED}"),
    (re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"), REDACTED),
)


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: the event without what must not be logged."""
    for name, value in event.items():
        event[name] = REDACTED if _is_private(name) else _clean(value, MAX_DEPTH)
    return event


def clean_text(text: str) -> str:
    """The text without credentials."""
    for pattern, replacement in _CREDENTIALS:
        text = pattern.sub(replacement, text)
    return text


def _is_private(name: object) -> bool:
    return isinstance(name, str) and name.lower().replace("-", "_") in PRIVATE_FIELDS


def _clean(value: Any, depth: int) -> Any:
    if isinstance(value, (bool, int, float, type(None))):
        return value
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        return _clean_container(value, depth)
    return REDACTED if isinstance(value, bytes) else clean_text(str(value))


def _clean_container(value: Any, depth: int) -> Any:
    if depth == 0:
        return REDACTED
    if isinstance(value, Mapping):
        return {key: REDACTED if _is_private(key) else _clean(inner, depth - 1) for key, inner in value.items()}
    return [_clean(inner, depth - 1) for inner in value]
