"""The local judge: the text encoder compares the agent's sentences with an author's exemplars.

The best sentence counts, unless it is closer to a counter-exemplar or was said before the facts that the
criterion takes as `given`. It reads whole sentences that are addressed to the persona; lists of keywords,
machine text and talk about scoring are not compared.
"""

from __future__ import annotations

from collections.abc import Sequence

from personas.acts import Kind
from personas.matcher import Matcher
from personas.replay import TurnRecord
from personas.wording import normal
from reward_server.judges.base import NOT_MET, Case, Finding, Verdict, cite, verdict
from scenarios.schema import Criterion, SimilarCheck

_COMPARED = frozenset({Kind.STATEMENT, Kind.QUESTION})


class LocalJudge:
    """Decides the checks that compare meaning."""

    name = "local"
    kinds = frozenset({"similar"})

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    @property
    def version(self) -> str:
        """Follows the encoder, whose vectors decide."""
        return f"1/{self._matcher.version}"

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        """The verdict on one criterion; blocking, because the matcher may run a model."""
        check = criterion.check.similar
        return verdict(self, criterion, self._similar(case, check, _known_from(case, criterion)) if check else NOT_MET)

    def _similar(self, case: Case, check: SimilarCheck, known_from: int) -> Finding:
        turns = {"first": case.record.turns[:1], "last": case.record.turns[-1:], "any": case.record.turns}[check.where]
        first = _first_said(case.record.turns)
        said = [(turn.turn, each) for turn in turns for each in sentences(turn) if first[normal(each)] >= known_from]
        if not said:
            return NOT_MET
        texts = [sentence for _, sentence in said]
        likeness = self._matcher.cosine(texts, check.exemplars).max(axis=1)
        if check.against:
            unlikeness = self._matcher.cosine(texts, check.against).max(axis=1)
            likeness[unlikeness > likeness] = 0.0
        best = int(likeness.argmax())  # the first of equals, so the evidence is always the same
        value = (float(likeness[best]) - check.floor) / (check.full - check.floor)
        turn, sentence = said[best]
        return Finding(value, (cite(case.transcript, turn, "agent", sentence),))


def _known_from(case: Case, criterion: Criterion) -> int:
    """The turn that found out the last of what the criterion takes as given: what is said before it is a guess."""
    return max((case.record.elicited[f].turn for f in criterion.given if f in case.record.elicited), default=0)


def _first_said(turns: Sequence[TurnRecord]) -> dict[str, int]:
    """The turn in which each sentence was first said: repeating one later says nothing new."""
    first: dict[str, int] = {}
    for turn in turns:
        for sentence in sentences(turn):
            first.setdefault(normal(sentence), turn.turn)
    return first


def sentences(turn: TurnRecord) -> Sequence[str]:
    """The sentences of an agent turn that are compared."""
    reading = turn.hearing.reading
    return () if reading.garbled or reading.meta else [s.text for s in reading.sentences if s.kind in _COMPARED]
