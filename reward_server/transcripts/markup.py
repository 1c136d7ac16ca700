"""Formats that no person writes: chat templates, lines that pose as another speaker, keys of a JSON verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator

from personas.text.memory import remembered
from personas.text.plain import plain
from reward_server.transcripts.transcript import Turn

_FORMATS = re.compile(
    r"<\|?/?(?:im_start|im_end|system|endoftext|start_header_id|end_header_id|eot_id)\|?>|\[/?(?:INST|SYSTEM)\]"
    r"|</?(?:verdict|score|reward|transcript|evaluation|rubric|system)>"
    r"""|["'](?:criteria_met|criterion_id|score|reward|verdict|met|passed|final_score)["']\s*:"""
    r"|\bcriteria_met ?[=:]|^[^\S\n]*(?:SYSTEM|(?i:assistant|human))\s*:\s+\S+(?: \S+){2}",
    re.MULTILINE,
)
"""Chat templates, markup and JSON of verdicts, and lines that pose as other speakers of a chat log."""


def tool_texts(turn: Turn) -> Iterator[str]:
    """All that an agent can write into tool calls, names of fields too; a loop, so that no depth is too deep."""
    waiting: list[object] = [dict(use.input) for use in turn.uses]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend((*one, *one.values()))
        elif isinstance(one, list):
            waiting.extend(one)
        elif isinstance(one, str):
            yield one


@remembered(8192, longest=10_000)
def has_markup(text: str) -> bool:
    """True if a text holds the format of a chat template, of another speaker or of a verdict."""
    return bool(_FORMATS.search(plain(text)))
