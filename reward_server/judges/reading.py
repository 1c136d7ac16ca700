"""Reads what a language model answered about a transcript, and believes none of it unchecked.

A verdict counts only with the right id, an agent turn that exists, and a quote that stands in that turn.
Anything else is a typed failure. The number is computed elsewhere; a model never gives one.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from personas.text.wording import plain, tokens
from reward_server.judges.base import MAX_QUOTE, Evidence
from reward_server.llm.base import FailureKind, LlmFailed
from reward_server.transcripts.transcript import Transcript

MAX_TEXT = 4_000
"""Characters of a reason or a quote beyond which an answer is not worth reading."""
LEAST_WORDS, LEAST_LETTERS = 3, 8
"""Of a quote that is not the whole turn: a single common word stands in every text and proves nothing."""
_EDGES = " \t\n\"'.…*`"


class _Strict(BaseModel):
    """No coercion: "true", 1 and "yes" are not `true`. Bounds are checked in code, so that each has its own failure."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class CriterionAnswer(_Strict):
    """One question answered. The evidence comes before the decision, because models write in this order."""

    id: str
    reason: str
    turn: int | None
    quote: str
    met: bool


class JudgeAnswer(_Strict):
    """The answers to all questions."""

    verdicts: list[CriterionAnswer]


class PairAnswer(_Strict):
    """Which of two conversations is better."""

    reason: str
    better: Literal["X", "Y", "neither"]
    turn: int | None
    quote: str


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """One question answered, and checked."""

    met: bool
    evidence: Evidence | None
    """Of a met one, always."""
    reason: str = field(repr=False)


def read_answers(answer: JudgeAnswer, ids: Sequence[str], transcript: Transcript) -> list[CheckedAnswer]:
    """The answers in the order of `ids`; `LlmFailed` says what is wrong with them."""
    by_id = {verdict.id: verdict for verdict in answer.verdicts}
    if len(by_id) != len(answer.verdicts) or set(by_id) != set(ids):
        raise LlmFailed(FailureKind.WRONG_IDS)
    return [_read(by_id[criterion_id], transcript) for criterion_id in ids]


def _read(given: CriterionAnswer, transcript: Transcript) -> CheckedAnswer:
    _bounded(given.reason, given.quote)
    evidence = evidence_for(transcript, given.turn, given.quote) if given.met else None
    return CheckedAnswer(given.met, evidence, given.reason)


def read_pair(answer: PairAnswer, shown: tuple[Transcript, Transcript]) -> Literal["X", "Y", "neither"]:
    """The label of the better one, if its agent said what is quoted; `LlmFailed` otherwise."""
    _bounded(answer.reason, answer.quote)
    if answer.better != "neither":
        evidence_for(shown["XY".index(answer.better)], answer.turn, answer.quote)
    return answer.better


def _bounded(*texts: str) -> None:
    if any(len(text) > MAX_TEXT for text in texts):
        raise LlmFailed(FailureKind.TOO_LARGE)


def evidence_for(transcript: Transcript, turn: int | None, quote: str) -> Evidence:
    """The quote as it stands in that agent turn; `LlmFailed` where there is no such turn or no such words."""
    if turn is not None and not 1 <= turn <= len(transcript.turns):
        raise LlmFailed(FailureKind.OUT_OF_RANGE)
    agent_text = "" if turn is None else transcript.turns[turn - 1].agent
    passage = find_quote(agent_text, quote)
    if turn is None or passage is None:
        raise LlmFailed(FailureKind.FOREIGN_QUOTE)
    return Evidence(turn, "agent", passage[:MAX_QUOTE])


def find_quote(spoken: str, quote: str) -> str | None:
    """The literal passage of `said` that the quote means; spaces, case and curly quotes may differ."""
    text, places = _folded(spoken)
    wanted = _folded(quote)[0].strip(_EDGES)
    start = text.find(wanted) if wanted else -1
    while start >= 0 and not _whole_words(text, start, start + len(wanted)):
        start = text.find(wanted, start + 1)
    if start < 0 or not (_weighty(wanted) or wanted == text.strip(_EDGES)):
        return None
    return spoken[places[start] : places[start + len(wanted) - 1] + 1]


def _folded(text: str) -> tuple[str, list[int]]:
    """Lower case, plain quotes, single spaces, nothing invisible; and for each character the place it comes from.

    Models write what they read: a word without the zero-width characters, ligatures or loose accents in it.
    """
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(plain(text)):
        for folded in character.casefold() if character.isascii() else _read_as(character):
            read = " " if folded.isspace() else folded
            if read == " " and characters[-1:] == [" "]:
                continue
            characters.append(read)
            places.append(place)
    return "".join(characters), places


@lru_cache(maxsize=4096)
def _read_as(character: str) -> str:
    """A character in its compatibility form, without accents and without what cannot be seen."""
    decomposed = unicodedata.normalize("NFKD", character).casefold()
    return "".join(char for char in decomposed if unicodedata.category(char) not in {"Mn", "Cf"})


def _whole_words(text: str, start: int, end: int) -> bool:
    """True if a passage neither begins nor ends inside a word."""
    opens = start == 0 or not (text[start - 1].isalnum() and text[start].isalnum())
    closes = end == len(text) or not (text[end - 1].isalnum() and text[end].isalnum())
    return opens and closes


def _weighty(quote: str) -> bool:
    words = tokens(quote)
    return len(words) >= LEAST_WORDS and sum(map(len, words)) >= LEAST_LETTERS
