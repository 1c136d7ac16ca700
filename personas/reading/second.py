"""The second reading of commitments: whether one that a turn may make is *made*.

The first look at a sentence compares vectors: it finds what a sentence may be about, in any words, but hardly tells a
promise from one that is refused, asked about or put off. So what it finds is read again, together with the author's
examples and with what was said around it, by a model that sees both texts at once. Only what may be a commitment is
read twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from personas.case.compiled import CompiledCase, CompiledCommitment
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence

MAY_MAKE = 0.2
"""Only a sentence that proposes or informs with this probability is read again."""
AT_MOST = 4
"""Of a passage, so many commitments are read again: the likeliest; of those that are as likely, the most alike."""
PASSAGE_WORDS = 42
"""Sentences that follow each other are read again together up to so many words."""
SHARPNESS, FIRST_WEIGHT, SHIFT = 5.4, 0.81, 6.4
"""How both readings make one probability: the weights of their log odds, and what is added.

Chosen so that the thresholds of `personas.hearing.hear` mean what they mean for one reading (decision 20)."""
FIRST_LEAST, FIRST_MOST = 0.001, 0.999
_NO_SPEECH = (Act.UNREADABLE, Act.META)


@dataclass(frozen=True, slots=True)
class Put:
    """A question to the second reader: do these words, after that line, make the commitment?"""

    commitment: CompiledCommitment
    line: str
    said: str


class SecondReader(Protocol):
    """Decides whether commitments are made."""

    @property
    def version(self) -> str:
        """Identifies everything an answer depends on besides the texts; part of the scoring version."""

    @property
    def held_bytes(self) -> int:
        """What it remembers takes."""

    def made(self, puts: Sequence[Put]) -> list[float]:
        """The log odds of each. Blocking: a model runs."""


@dataclass(frozen=True, slots=True)
class _Passage:
    """Sentences of a turn that are read again together, and what stood before them."""

    turn: int
    numbers: tuple[int, ...]
    line: str
    said: str


def read_again(
    second: SecondReader, case: CompiledCase, lines: Sequence[str], readings: Sequence[Reading]
) -> list[Reading]:
    """The readings with the probabilities of both readings for their commitments; blocking.

    Args:
        second: who reads again.
        case: whose commitments.
        lines: what the persona said before each turn.
        readings: of the turns, as the first look gives them.
    """
    by_id = {commitment.id: commitment for commitment in case.commitments}
    asked: list[tuple[_Passage, str, float]] = []
    for number, (line, reading) in enumerate(zip(lines, readings, strict=True)):
        for passage in _passages(number, line, reading.sentences):
            asked += [(passage, name, first) for name, first in _likeliest(passage, reading.sentences)]
    answers = second.made([Put(by_id[name], passage.line, passage.said) for passage, name, _ in asked])
    # The passage makes it as a whole. Its sentence that is nearest to it has the whole probability, others their share.
    likely: dict[tuple[int, int], dict[str, float]] = {}
    for (passage, name, first), log_odds in zip(asked, answers, strict=True):
        for place in passage.numbers:
            likely.setdefault((passage.turn, place), {})[name] = _both(first, log_odds) / max(first, FIRST_LEAST)
    return [
        Reading(
            tuple(_again(sentence, likely.get((turn, place), {})) for place, sentence in enumerate(reading.sentences))
        )
        for turn, reading in enumerate(readings)
    ]


def _passages(turn: int, line: str, sentences: Sequence[Sentence]) -> Iterator[_Passage]:
    """The readable sentences of a turn in runs; before each stands what was said last."""
    run: list[int] = []
    words = 0
    before = line
    for number, sentence in enumerate(sentences):
        if sentence.does(*_NO_SPEECH):
            continue
        length = len(sentence.text.split())
        if run and words + length > PASSAGE_WORDS:
            text = " ".join(sentences[place].text for place in run)
            yield _Passage(turn, tuple(run), before, text)
            run, words, before = [], 0, text
        run.append(number)
        words += length
    if run:
        yield _Passage(turn, tuple(run), before, " ".join(sentences[place].text for place in run))


def _likeliest(passage: _Passage, sentences: Sequence[Sentence]) -> list[tuple[str, float]]:
    """The commitments that a passage may make by the first look, with how likely its likeliest sentence does."""
    best: dict[str, tuple[float, int]] = {}
    for number in passage.numbers:
        for place, candidate in enumerate(sentences[number].commitments):
            best[candidate.id] = max((candidate.confidence, -place), best.get(candidate.id, (-1.0, 0)))
    ranked = sorted(best.items(), key=lambda item: item[1], reverse=True)
    return [(name, first) for name, (first, _) in ranked[:AT_MOST]]


def _both(first: float, log_odds: float) -> float:
    held = min(FIRST_MOST, max(FIRST_LEAST, first))
    total = SHARPNESS * log_odds + FIRST_WEIGHT * math.log(held / (1.0 - held)) + SHIFT
    return 1.0 / (1.0 + math.exp(-total))


def _again(sentence: Sentence, times: Mapping[str, float]) -> Sentence:
    """A sentence with the probabilities of both readings, which are so many times those of the first."""
    if not sentence.commitments:
        return sentence
    # What was not read again is too unlikely.
    read = (commitment for commitment in sentence.commitments if commitment.id in times)
    again = [
        ReadCandidate(candidate.id, round(max(candidate.confidence, FIRST_LEAST) * times[candidate.id], 4))
        for candidate in read
    ]
    return replace(sentence, commitments=tuple(sorted(again, key=lambda candidate: -candidate.confidence)))
