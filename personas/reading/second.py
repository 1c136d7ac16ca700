"""The second reading of commitments that cost the agent: whether one that a turn may make is *made*.

The first look at a sentence compares vectors: it finds what a sentence may be about, in any words, but hardly tells a
promise from one that is refused, asked about or put off. So a commitment on which a cap or a deduction rests is read
again, together with the author's examples and with what was said around it, by a model that sees both texts at once.
What is heard, answered and credited stays with the first look.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from personas.case.compiled import CompiledCase, CompiledCommitment
from personas.reading.acts import Act, Reading, Sentence, Stance

MAY_MAKE = 0.2
"""Only a sentence that proposes or informs with this probability is read again."""
AT_MOST = 4
"""Of a passage, so many commitments are read again: the likeliest; of those that are as likely, the most alike."""
PASSAGE_WORDS = 42
"""Sentences that follow each other are read again together up to so many words."""
SHARPNESS, FIRST_WEIGHT, SHIFT = 5.4, 0.81, 6.4
"""How both readings make one probability: the weights of their log odds, and what is added (decision 20)."""
DOUBTFUL = 0.5
"""Below this, what else the words may make is not asked: the answer would not be binding anyway."""
FIRST_LEAST, FIRST_MOST = 0.001, 0.999
_NO_SPEECH = (Act.UNREADABLE, Act.META)
OWN_WORD = (Stance.ASSERTED, Stance.NONE, Stance.OTHER)
"""Stances of a sentence that is the agent's own word to the persona."""


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
    second: SecondReader,
    case: CompiledCase,
    lines: Sequence[str],
    readings: Sequence[Reading],
    negative: Collection[str] = (),
) -> list[Reading]:
    """The readings, with a `binding` probability for the commitments that cost; blocking.

    Args:
        second: who reads again.
        case: whose commitments.
        lines: what the persona said before each turn.
        readings: of the turns, as the first look gives them.
        negative: the commitments whose authors' examples are negative ("Nobody will hear of this").
    """
    by_id = {commitment.id: commitment for commitment in case.commitments}
    looks = {
        passage: _likeliest(passage, reading.sentences)
        for number, (line, reading) in enumerate(zip(lines, readings, strict=True))
        for passage in _passages(number, line, reading.sentences)
    }
    costly = [(passage, name) for passage, look in looks.items() for name in look if by_id[name].costs]
    odds = _asked(second, by_id, looks, costly)
    # What the words make more surely is not this one: it is asked only where this one might bind.
    rivals = dict.fromkeys(passage for (passage, _), total in odds.items() if total > _log_odds(DOUBTFUL))
    odds |= _asked(
        second,
        by_id,
        looks,
        [(passage, name) for passage in rivals for name in looks[passage] if (passage, name) not in odds],
    )
    binding: dict[tuple[int, int], dict[str, float]] = {}
    for passage, name in costly:
        among = [odds[passage, other] for other in looks[passage] if (passage, other) in odds]
        place = _nearest(passage, name, readings[passage.turn].sentences)
        sentence = readings[passage.turn].sentences[place]
        own_word = sentence.stance in OWN_WORD or (sentence.stance is Stance.NEGATED and name in negative)
        share = _share(odds[passage, name], among) if own_word else 0.0
        binding.setdefault((passage.turn, place), {})[name] = round(share, 4)
    return [
        Reading(
            tuple(_again(sentence, binding.get((turn, place), {})) for place, sentence in enumerate(reading.sentences))
        )
        for turn, reading in enumerate(readings)
    ]


def _asked(
    second: SecondReader,
    by_id: Mapping[str, CompiledCommitment],
    looks: Mapping[_Passage, Mapping[str, float]],
    asked: Sequence[tuple[_Passage, str]],
) -> dict[tuple[_Passage, str], float]:
    """The log odds of both readings that a passage makes a commitment."""
    answers = second.made([Put(by_id[name], passage.line, passage.said) for passage, name in asked])
    return {
        (passage, name): _both(looks[passage][name], answer)
        for (passage, name), answer in zip(asked, answers, strict=True)
    }


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


def _likeliest(passage: _Passage, sentences: Sequence[Sentence]) -> dict[str, float]:
    """The commitments that a passage may make by the first look, with how likely its likeliest sentence does."""
    best: dict[str, tuple[float, int]] = {}
    for number in passage.numbers:
        for place, candidate in enumerate(sentences[number].commitments):
            best[candidate.id] = max((candidate.confidence, -place), best.get(candidate.id, (-1.0, 0)))
    ranked = sorted(best.items(), key=lambda item: item[1], reverse=True)
    return {name: first for name, (first, _) in ranked[:AT_MOST]}


def _nearest(passage: _Passage, name: str, sentences: Sequence[Sentence]) -> int:
    """The sentence of a passage that is likeliest to make a commitment by the first look."""
    places = {
        number: (candidate.confidence, -place)
        for number in passage.numbers
        for place, candidate in enumerate(sentences[number].commitments)
        if candidate.id == name
    }
    return max(places, key=lambda number: places[number])


def _both(first: float, log_odds: float) -> float:
    return SHARPNESS * log_odds + FIRST_WEIGHT * _log_odds(min(FIRST_MOST, max(FIRST_LEAST, first))) + SHIFT


def _log_odds(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


def _share(own: float, among: Sequence[float]) -> float:
    """The softmax of log odds over the commitments that words may make, and none of them."""
    most = max(0.0, *among)
    return math.exp(own - most) / math.fsum(math.exp(each - most) for each in (0.0, *among))


def _again(sentence: Sentence, binding: Mapping[str, float]) -> Sentence:
    """A sentence with what it binds to; what is unlikely by both readings is left out."""
    if not sentence.commitments:
        return sentence
    commitments = (replace(each, binding=binding.get(each.id)) for each in sentence.commitments)
    kept = (each for each in commitments if max(each.confidence, each.binding or 0.0) >= FIRST_LEAST)
    return replace(sentence, commitments=tuple(kept))
