"""The local judge: the text encoder compares the agent's sentences with an author's exemplars.

The best sentence counts, unless it is closer to a counter-exemplar or was said before the facts that the
criterion takes as `given`. It reads whole sentences that are addressed to the persona, in the agent's own words;
lists of keywords, machine text, talk about scoring, what the persona said or would say, and formulas that stand in
several turns are not compared.
"""

from __future__ import annotations

from personas.reading.matcher import Matcher
from reward_server.judges.base import NOT_MET, Case, Finding, Verdict, cite, verdict
from scenarios.schema import Criterion, SimilarCheck


class LocalJudge:
    """Decides the checks that compare meaning."""

    name = "local"
    kinds = frozenset({"similar"})

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher

    @property
    def version(self) -> str:
        """Follows the encoder, whose vectors decide."""
        return f"2/{self._matcher.version}"

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        """The verdict on one criterion; blocking, because the matcher may run a model."""
        check = criterion.check.similar
        return verdict(self, criterion, self._similar(case, check, _known_from(case, criterion)) if check else NOT_MET)

    def _similar(self, case: Case, check: SimilarCheck, known_from: int) -> Finding:
        turns = {"first": case.record.turns[:1], "last": case.record.turns[-1:], "any": case.record.turns}[check.where]
        numbered = [(turn.turn, own_sentence) for turn in turns if turn.turn >= known_from for own_sentence in turn.own]
        if not numbered:
            return NOT_MET
        texts = [sentence for _, sentence in numbered]
        likeness = self._matcher.cosine(texts, check.exemplars).max(axis=1)
        if check.against:
            unlikeness = self._matcher.cosine(texts, check.against).max(axis=1)
            likeness[unlikeness > likeness] = 0.0
        best = int(likeness.argmax())  # the first of equals, so the evidence is always the same
        value = (float(likeness[best]) - check.floor) / (check.full - check.floor)
        turn, sentence = numbered[best]
        return Finding(value, (cite(case.transcript, turn, "agent", sentence),))


def _known_from(case: Case, criterion: Criterion) -> int:
    """The turn that found out the last of what the criterion takes as given: what is said before it is a guess."""
    elicited = case.record.elicited
    needs = ((need,) if isinstance(need, str) else need for need in criterion.given)
    turns = ([elicited[fact].turn for fact in need if fact in elicited] for need in needs)
    return max((min(turn) for turn in turns if turn), default=0)
