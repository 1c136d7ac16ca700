"""Keywords and regular expressions in what the agent said: what the rule judge decides by looking for words.

What earns is looked for in sentences of the agent's own that are addressed to the other side; lists of words, machine
text and what the other side said before are none, so that reciting a keyword does not earn it. What costs, or must not
be said, is looked for in everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from personas.replay.replayer import TurnRecord
from personas.text.plain import plain
from personas.text.wording import normal
from reward_server.judges.base import NOT_MET, Case, Evidence, Finding, cite
from scenarios.schema import Criterion
from scenarios.texts import KeywordCheck, RegexCheck, Where, compiled

MAX_EVIDENCE = 6


@dataclass(frozen=True, slots=True)
class _Said:
    """A piece of what the agent said, as it is searched."""

    turn: int
    text: str


def keyword_finding(case: Case, criterion: Criterion, check: KeywordCheck) -> Finding:
    """Find out if the words are there, and those that must not be there are not."""
    turns = _turns(case, check.where)
    sought, everything = _sought(turns, criterion), _all_of(turns)
    if not sought or _places(everything, check.none):
        return NOT_MET
    places_by_word = {word: _places(sought, (word,)) for word in (*check.any, *check.all)}
    if not all(places_by_word[word] for word in check.all):
        return NOT_MET
    if check.any and sum(bool(places_by_word[word]) for word in check.any) < check.at_least:
        return NOT_MET
    if check.at_most is not None and len(_places(everything, (*check.any, *check.all))) > check.at_most:
        return NOT_MET
    return Finding(1.0, _cited(case, [place for places in places_by_word.values() for place in places] or sought[:1]))


def regex_finding(case: Case, criterion: Criterion, check: RegexCheck) -> Finding:
    """Find out if the pattern is found as often as it should be."""
    turns = _turns(case, check.where)
    sought = _sought(turns, criterion)
    if not sought:
        return NOT_MET
    pattern = compiled(check.pattern, ignore_case=check.ignore_case)
    matches = [sentence for sentence in sought for _ in pattern.finditer(sentence.text)]
    most = len(matches)
    if check.at_most is not None and criterion.points > 0:
        # What must not be said too often counts wherever it is said.
        most = sum(1 for sentence in _all_of(turns) for _ in pattern.finditer(sentence.text))
    if len(matches) < check.at_least or (check.at_most is not None and most > check.at_most):
        return NOT_MET
    return Finding(1.0, _cited(case, matches or sought[:1]))


def _turns(case: Case, where: Where) -> Sequence[TurnRecord]:
    return {"first": case.record.turns[:1], "last": case.record.turns[-1:], "any": case.record.turns}[where]


def _sought(turns: Iterable[TurnRecord], criterion: Criterion) -> list[_Said]:
    """The sentences that count for the criterion: the agent's own if it earns, all that it said if it costs."""
    if criterion.points <= 0:
        return _all_of(turns)
    return [_Said(turn.turn, plain(sentence)) for turn in turns for sentence in turn.own]


def _all_of(turns: Iterable[TurnRecord]) -> list[_Said]:
    texts = (_Said(turn.turn, plain(turn.agent_text)) for turn in turns)
    return [sentence for sentence in texts if sentence.text]


def _places(texts: Iterable[_Said], words: Iterable[str]) -> list[_Said]:
    """Every time that one of the words is said, as a whole word or phrase."""
    wanted = [normal(plain(word)) for word in words]
    return [
        sentence
        for sentence in texts
        for text in (normal(sentence.text),)
        for word in wanted
        for _ in range(_count(text, word))
    ]


def _count(text: str, word: str) -> int:
    """The number of times a word stands in a text, both with a space around every word; a space may belong to two."""
    count, start = 0, text.find(word)
    while start >= 0:
        count, start = count + 1, text.find(word, start + len(word) - 1)
    return count


def _cited(case: Case, places: Sequence[_Said]) -> tuple[Evidence, ...]:
    distinct = list(dict.fromkeys(places))[:MAX_EVIDENCE]
    return tuple(cite(case.transcript, place.turn, "agent", place.text) for place in distinct)
