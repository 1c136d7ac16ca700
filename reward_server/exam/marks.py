"""Scores plays of the exam through the server's own scorer, and keeps what an author wants to know.

Plays of one scenario are one batch; a play that cannot be scored stops the exam, for it is a defect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from personas.reading.matcher import Matcher
from personas.reading.reader import Reader
from personas.replay.replayer import Record, replay
from reward_server.exam.play import Play
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer
from reward_server.transcripts.transcript import ToolUse
from scenarios.library import SealedScenario
from trainer_client.wire import Message


@dataclass(frozen=True)
class PlayScore:
    """The score of one play, with what it was decided from. Private."""

    reward: float
    values: Mapping[str, float | None] = field(repr=False)
    """Criterion -> how far it was met in [0, 1]; None where no judge could decide."""
    evidence: Mapping[str, str] = field(repr=False)
    """Criterion -> where it was met: `turn n: quote`."""
    flags: tuple[str, ...]
    """Names of the gates that closed."""
    record: Record = field(repr=False)
    calls: tuple[tuple[int, ToolUse], ...] = field(default=(), repr=False)
    """Every tool call, with its turn."""


class PlayScorer:
    """Scores plays of one scenario as one batch."""

    def __init__(self, scorer: Scorer, reader: Reader, matcher: Matcher) -> None:
        self.scorer = scorer
        self._reader = reader
        self._matcher = matcher

    async def mark(self, scenario: SealedScenario, plays: Sequence[Play]) -> list[PlayScore]:
        """One mark per play, in order."""
        collection, slug, cap = scenario.collection, scenario.card.slug, scenario.card.max_turns
        messages = [[Message.model_validate(message) for message in play.messages] for play in plays]
        transcripts = [self.scorer.read(collection, slug, each, "assistant") for each in messages]
        requests = [ScoreRequest(collection, slug, transcript) for transcript in transcripts]
        scored = [or_raise(outcome) for outcome in await self.scorer.score(requests)]
        marks: list[PlayScore] = []
        for transcript, outcome in zip(transcripts, scored, strict=True):
            cited = {v.criterion_id: [f"turn {e.turn}: {e.quote}" for e in v.evidence] for v in outcome.verdicts}
            marks.append(
                PlayScore(
                    reward=outcome.reward,
                    values={v.criterion_id: v.value for v in outcome.verdicts},
                    evidence={name: "; ".join(places) for name, places in cited.items()},
                    flags=outcome.flags,
                    record=replay(
                        scenario.case,
                        transcript.opening,
                        transcript.exchanges(),
                        self._reader,
                        self._matcher,
                        cap,
                    ),
                    calls=tuple((n, use) for n, turn in enumerate(transcript.turns, 1) for use in turn.uses),
                )
            )
        return marks
