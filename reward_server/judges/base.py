"""The interface of judges: they decide criteria about a transcript and show their evidence.

A judge decides, abstains or fails; it never guesses. A verdict that earns or costs anything cites what
was said, in which turn, by whom. Judges put no number on a conversation: that is `scoring`'s arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from personas.replay.replayer import Record
from personas.text.plain import plain
from personas.text.sentences import sentences
from reward_server.errors import JudgeFailed, LabsError
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario
from scenarios.schema import Criterion

__all__ = [
    "Case",
    "ComputedJudge",
    "Evidence",
    "Judge",
    "JudgeFailed",
    "Outcome",
    "RemoteJudge",
    "Verdict",
    "VerdictStatus",
]

Party = Literal["agent", "persona"]
MAX_QUOTE = 300


class VerdictStatus(StrEnum):
    """The decision of a verdict. For a penalty, `met` means that the bad thing happened."""

    MET = "met"
    PARTIAL = "partial"
    UNMET = "unmet"
    ABSTAINED = "abstained"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in the transcript that a verdict rests on; turn 0 is the opening."""

    turn: int
    role: Party
    quote: str = field(repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """A criterion decided, or not. Private: its repr shows only the status."""

    criterion_id: str
    status: VerdictStatus
    value: float | None
    """How far it is met, 0 to 1; None when abstained."""
    evidence: tuple[Evidence, ...]
    judge: str
    judge_version: str
    spread: float | None = None
    """Standard deviation of `value`, by samples of the judge; None where it is not known, never 0 for that."""
    probability: float | None = None
    """How likely the judge finds it met, where it decides by a probability."""

    def __repr__(self) -> str:
        return f"<Verdict: {self.status}>"

    def to_json(self) -> dict[str, Any]:
        """A plain dict of JSON types, for the operator's record."""
        return {
            "criterion_id": self.criterion_id,
            "status": self.status.value,
            "value": self.value,
            "evidence": [{"turn": e.turn, "role": e.role, "quote": e.quote} for e in self.evidence],
            "judge": self.judge,
            "judge_version": self.judge_version,
            **({} if self.spread is None else {"spread": self.spread}),
            **({} if self.probability is None else {"probability": self.probability}),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Case:
    """One transcript to be judged, with what replaying it brought to light."""

    scenario: SealedScenario
    transcript: Transcript
    record: Record
    lab_id: str = "offline"
    """Who pays for what is asked about it."""

    def __repr__(self) -> str:
        return f"<Case: {self.scenario.name}, {len(self.transcript.turns)} turns>"


class Judge(Protocol):
    """Base of all judges."""

    @property
    def name(self) -> str:
        """Names it in verdicts: `state`, `rule`, `local`, `llm`, …"""

    @property
    def version(self) -> str:
        """Changes whenever its verdicts may; part of the scoring version."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of checks it decides."""


class ComputedJudge(Judge, Protocol):
    """Decides by computing: exact, repeatable, blocking; it runs in the scoring threads."""

    def decide(self, case: Case, criterion: Criterion) -> Verdict:
        """The verdict on one criterion of one of its kinds."""


Outcome = tuple[Verdict, ...] | LabsError
"""What asking about one case came to: verdicts, or why there are none (the judge failed, the budget is spent, …)."""


class RemoteJudge(Judge, Protocol):
    """Decides by asking someone over a network; a batch at a time, and each case may fail alone."""

    async def decide(self, cases: Sequence[tuple[Case, Sequence[Criterion]]]) -> Sequence[Outcome]:
        """Per case the verdicts in the order of its criteria, or the failure; raising fails all of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check, before it is put into a verdict."""

    value: float
    evidence: tuple[Evidence, ...] = ()


NOT_MET = Finding(0.0)


def verdict(judge: Judge, criterion: Criterion, finding: Finding) -> Verdict:
    """The verdict that a finding amounts to."""
    value = round(min(1.0, max(0.0, finding.value)), 4)
    status = VerdictStatus.MET if value == 1.0 else VerdictStatus.PARTIAL if value > 0 else VerdictStatus.UNMET
    evidence = finding.evidence if value > 0 else ()
    return Verdict(criterion.id, status, value, evidence, judge.name, judge.version)


def cite(transcript: Transcript, turn: int, role: Party, wanted: str) -> Evidence:
    """Evidence whose quote occurs in the transcript: the wanted words, else the beginning of the message."""
    text, words = _as_read(transcript.said_by(role, turn)), _as_read(wanted)
    return Evidence(turn, role, (words if words and words in text else text)[:MAX_QUOTE].strip())


def occurs(transcript: Transcript, evidence: Iterable[Evidence]) -> bool:
    """True if every sentence of every quote stands where it is said to, in plain form."""
    return all(_stands_in(e.quote, _as_read(transcript.said_by(e.role, e.turn))) for e in evidence)


def _stands_in(quote: str, text: str) -> bool:
    return _as_read(quote) in text or all(_as_read(sentence) in text for sentence in sentences(quote) or (quote,))


def _as_read(text: str) -> str:
    """The text in plain form, on one line."""
    return " ".join(plain(text).split())
