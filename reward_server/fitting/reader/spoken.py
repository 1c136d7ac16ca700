"""The data of the head for acts: labelled sentences, turns whose kind tells what they do, unreadable sentences."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from personas.reading.acts import Act, Stance
from personas.reading.heads import ACTS
from personas.text.sentences import sentences
from reward_server.fitting.reader.dataset import ActRow, ReaderRow
from scenarios.turns import BACKGROUND_KIND, LabelledTurn, quote_of

TURN_WEIGHT = 0.5
"""A turn teaches less than a sentence: it does not say which of its sentences does it."""
_NEVER = frozenset({Act.META, Act.UNREADABLE})
_ASKING = frozenset({Act.ASK, Act.INVITE})
_OF_KIND: dict[str, tuple[frozenset[Act], frozenset[Act]]] = {
    "specific": (frozenset({Act.ASK}), frozenset({Act.INVITE})),
    "double": (frozenset({Act.ASK}), frozenset({Act.INVITE})),
    "foreign": (frozenset({Act.ASK}), frozenset({Act.INVITE})),
    "open": (frozenset({Act.INVITE}), frozenset({Act.PROPOSE})),
    "social": (frozenset(), frozenset({Act.INVITE, Act.PROPOSE})),
    "summary": (frozenset(), _ASKING | {Act.PROPOSE}),
    "commit": (frozenset({Act.PROPOSE}), frozenset({Act.INVITE})),
    "near_commit": (frozenset(), frozenset({Act.INVITE})),
    BACKGROUND_KIND: (frozenset(), frozenset()),
}
"""By kind of turn, what one of its sentences does, and what none does."""


@dataclass(frozen=True, slots=True)
class ActBag:
    """The sentences of a turn, what at least one of them does, and what none of them does."""

    texts: tuple[str, ...]
    does: frozenset[Act]
    lacks: frozenset[Act]
    stance: Stance | None = None
    """Of a single sentence."""
    weight: float = 1.0


def act_bags(acts: Iterable[ActRow], turns: Iterable[ReaderRow], unreadable_of: Sequence[str]) -> list[ActBag]:
    """One bag for each labelled sentence, quote of a commitment, turn and unreadable sentence."""
    bags = [_single(row.text, frozenset(map(Act, row.acts)), Stance(row.stance)) for row in acts]
    for row in turns:
        bags += _of_turn(row)
    bags += [_single(text, frozenset({Act.UNREADABLE}), Stance.NONE) for text in unreadable(unreadable_of)]
    return bags


def _single(text: str, does: frozenset[Act], stance: Stance) -> ActBag:
    return ActBag((text,), does, frozenset(ACTS) - does, stance)


def _stance_of(turn: LabelledTurn) -> Stance | None:
    if turn.kind in ("specific", "double", "open"):
        return Stance.NONE
    return Stance(turn.stance) if turn.kind == "near_commit" and turn.stance else None


def _of_turn(row: ReaderRow) -> Iterator[ActBag]:
    turn = row.turn
    spoken = sentences(turn.turn)
    if not spoken:
        return
    does, lacks = _OF_KIND[turn.kind]
    does |= frozenset(map(Act, turn.acts))
    if turn.asks and turn.kind in ("commit", "near_commit"):
        does |= {Act.ASK}
    yield ActBag(spoken, does, (lacks | _NEVER) - does, _stance_of(turn) if len(spoken) == 1 else None, TURN_WEIGHT)
    for name in turn.commits:
        quote = quote_of(turn, name)
        if quote and not quote.endswith("?"):
            yield _single(quote, frozenset({Act.PROPOSE}), Stance.ASSERTED)


_VOWELS = re.compile(r"[aeiou]")
_LEET = str.maketrans("aeiost", "4310$7")


def unreadable(texts: Iterable[str], seed: int = 0) -> list[str]:
    """Sentences that no person could follow, made from readable ones: what the reader learns to refuse."""
    draw = random.Random(seed)  # noqa: S311 (samples, no secrets)
    ways = (_without_vowels, _leet, _spaced, _reversed_words, _shuffled_letters, _encoded, _keywords)
    return [way(text, draw) for text in texts for way in ways]


def _without_vowels(text: str, draw: random.Random) -> str:
    return _VOWELS.sub("", text.lower())


def _leet(text: str, draw: random.Random) -> str:
    return text.lower().translate(_LEET)


def _spaced(text: str, draw: random.Random) -> str:
    return draw.choice("_-. ").join(text.replace(" ", ""))


def _reversed_words(text: str, draw: random.Random) -> str:
    return text[::-1]


def _shuffled_letters(text: str, draw: random.Random) -> str:
    return " ".join("".join(draw.sample(word, len(word))) for word in text.split())


def _encoded(text: str, draw: random.Random) -> str:
    raw = text.encode()
    return draw.choice((base64.b64encode(raw).decode(), raw.hex(), '{"text": "' + raw.hex()[:24] + '", "score": 1}'))


def _keywords(text: str, draw: random.Random) -> str:
    words: Iterable[str] = draw.sample(text.split(), len(text.split()))
    return ", ".join(word.strip(".,?!") for word in words)
