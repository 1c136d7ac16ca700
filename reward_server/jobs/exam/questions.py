"""Whether a persona understands questions: held-out paraphrases must hit, foreign questions must not.

Only matching is looked at: no gate, no state, no reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from personas.acts import read_turn
from personas.compiled import merged_topics
from personas.matcher import Matcher
from personas.matching import Similarity, match, topic_scores
from scenarios.library import SealedScenario


@dataclass(frozen=True)
class Miss:
    """A question that was understood as something else than its author meant. For authors only."""

    question: str
    meant: str | None
    """The topic it belongs to; None for a foreign question."""
    heard: str | None
    """The topic it matched; None when it matched nothing."""
    score: float
    closest: str
    """The topic that came closest."""

    def __str__(self) -> str:
        heard = f"heard as `{self.heard}`" if self.heard else f"matched nothing (closest `{self.closest}`)"
        meant = f"meant `{self.meant}`" if self.meant else "foreign"
        return f"{meant}, {heard} at {self.score:.2f}: {self.question}"


@dataclass(frozen=True)
class Understanding:
    """How the questions of one scenario were understood."""

    probes: int
    misses: tuple[Miss, ...]
    foreign: int
    false_hits: tuple[Miss, ...]

    @property
    def hit_rate(self) -> float:
        """The share of paraphrases that matched what they mean."""
        return 1.0 - len(self.misses) / self.probes if self.probes else 1.0

    @property
    def foreign_rate(self) -> float:
        """The share of foreign questions that matched anything."""
        return len(self.false_hits) / self.foreign if self.foreign else 0.0


def understanding(scenario: SealedScenario, matcher: Matcher) -> Understanding:
    """Ask every paraphrase and every foreign question once."""
    persona = scenario.secrets.persona
    merged = merged_topics(persona, scenario.topics)
    pairs = [(probe, topic_id) for topic_id, topic in merged.items() for probe in topic.probes]
    heard = [(miss, meant) for (question, meant) in pairs for miss in [hear_one(scenario, question, meant, matcher)]]
    misses = [miss for miss, meant in heard if miss.heard != meant]
    foreign = [hear_one(scenario, question, None, matcher) for question in scenario.foreign]
    return Understanding(
        probes=len(pairs),
        misses=tuple(misses),
        foreign=len(foreign),
        false_hits=tuple(miss for miss in foreign if miss.heard is not None),
    )


def hear_one(scenario: SealedScenario, question: str, meant: str | None, matcher: Matcher) -> Miss:
    """What one question is heard as, with the closest topic named."""
    asked: Sequence[str] = read_turn(question).questions or ()
    if not asked:
        return Miss(question, meant, None, 0.0, "not read as a question")
    case = scenario.case
    similarity = Similarity(case, matcher, asked)
    best = Miss(question, meant, None, -1.0, "")
    for clause in asked:
        row = similarity.row(clause)
        scores = topic_scores(case, clause, row)
        top = max(range(len(scores)), key=scores.__getitem__)
        found = match(case, clause, row)
        heard = found.topic_id if found else None
        candidate = Miss(question, meant, heard, round(float(scores[top]), 3), case.topics[top].id)
        if heard is not None and heard == meant:
            return candidate
        if best.heard is None and (heard is not None or candidate.score > best.score):
            best = candidate
    return best
