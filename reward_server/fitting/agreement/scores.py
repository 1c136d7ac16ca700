"""Has judges score conversations, each through the server's own scorer: as it would be served, never on a side path.

`rubric` is the scenario's rubric reward. A judge of whole conversations (`reward_model`, a plug-in) is heard alone, as
a composite of one part. A judge of criteria (`state`, `rule`, `local`, `llm`) is what its own verdicts earn of the
points that it decides; it has no score where no criterion of the scenario asks it. Failures never become scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from pydantic import ValidationError

from reward_server.errors import InvalidRequest, LabsError
from reward_server.fitting.agreement.read import ConversationSide
from reward_server.judges.base import VerdictStatus
from reward_server.reward_models.reliability import Floats
from reward_server.scoring.compose import RUBRIC
from reward_server.scoring.config import RewardConfig, read_config
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.scorer import Scorer
from reward_server.transcripts.transcript import Transcript
from scenarios.library import Vault
from scenarios.spelling import meant
from trainer_client.wire import Message

BATCH = 48


@dataclass(frozen=True)
class MeasuredJudges:
    """The judges that are measured: those of criteria, the rubric among them, and those of whole conversations."""

    criteria: tuple[str, ...]
    conversation: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return self.criteria + self.conversation

    @property
    def passes(self) -> int:
        """The number of times every conversation is scored."""
        return bool(self.criteria) + len(self.conversation)


@dataclass(frozen=True, eq=False)
class JudgeScores:
    """Scores of n conversations, NaN where a judge has none."""

    scores: Mapping[str, Floats]
    """(n,) by judge."""
    uncertainty: Mapping[str, Floats]
    """(n,) by judge; NaN where it is not known."""
    failures: dict[str, int]
    """By judge and code, as `judge: code`."""


class AgreementScorer:
    """One scorer and the judges that are measured."""

    def __init__(self, scorer: Scorer, vault: Vault, judges: MeasuredJudges, on_scored: Callable[[int], None]) -> None:
        self._scorer = scorer
        self._vault = vault
        self._judges = judges
        self._on_scored = on_scored

    def check(self, sides: Sequence[ConversationSide]) -> None:
        """Refuse, before any work, conversations that cannot be read and judges that are not here."""
        for name in self._judges.conversation:
            self._scorer.check(_alone(name))
        for number, side in enumerate(sides, 1):
            try:
                self._request(side, RewardConfig())
            except LabsError as error:
                raise InvalidRequest(f"conversation {number}: {error.message}") from None

    async def give(self, sides: Sequence[ConversationSide]) -> JudgeScores:
        """The scores of all judges."""
        empty = [{name: np.full(len(sides), np.nan) for name in self._judges.names} for _ in range(2)]
        given = JudgeScores(empty[0], empty[1], {})
        for name in self._judges.conversation:
            await self._pass(sides, (name,), _alone(name), given)
        if self._judges.criteria:
            await self._pass(sides, self._judges.criteria, _alone(RUBRIC), given)
        return given

    async def _pass(
        self, sides: Sequence[ConversationSide], names: tuple[str, ...], config: RewardConfig, given: JudgeScores
    ) -> None:
        """Score every conversation once, and write down what it says of the named judges."""
        for start in range(0, len(sides), BATCH):
            part = sides[start : start + BATCH]
            outcomes = await self._outcomes(part, config)
            for index, (side, outcome) in enumerate(zip(part, outcomes, strict=True), start):
                for name in names:
                    if isinstance(outcome, Unscored):
                        failure = f"{name}: {outcome.code}"
                        given.failures[failure] = given.failures.get(failure, 0) + 1
                    else:
                        given.scores[name][index], given.uncertainty[name][index] = self._value(name, side, outcome)
            self._on_scored(len(part))

    async def _outcomes(self, part: Sequence[ConversationSide], config: RewardConfig) -> list[Scored | Unscored]:
        """One per conversation; one that an attack made too long to be read is a failure like any other."""
        requests = [self._attempt(side, config) for side in part]
        scored = iter(await self._scorer.score([request for request in requests if isinstance(request, ScoreRequest)]))
        return [next(scored) if isinstance(request, ScoreRequest) else request for request in requests]

    def _attempt(self, side: ConversationSide, config: RewardConfig) -> ScoreRequest | Unscored:
        try:
            return self._request(side, config)
        except LabsError as error:
            return Unscored(error)

    def _request(self, side: ConversationSide, config: RewardConfig) -> ScoreRequest:
        return ScoreRequest(side.collection or "", side.scenario or "", transcript_of(self._scorer, side), config)

    def _value(self, name: str, side: ConversationSide, scored: Scored) -> tuple[float, float]:
        """The score of a judge, and its doubt where it knows it."""
        doubt = float("nan") if scored.uncertainty is None else scored.uncertainty
        if name == RUBRIC or name in self._judges.conversation:
            return scored.reward, doubt
        points = {
            criterion.id: criterion.points
            for criterion in self._vault.open(side.collection or "", side.scenario or "").secrets.rubric.criteria
        }
        own = [
            verdict
            for verdict in scored.verdicts
            if verdict.judge == name and verdict.status is not VerdictStatus.ABSTAINED
        ]
        most = fsum(points[verdict.criterion_id] for verdict in own if points[verdict.criterion_id] > 0)
        if most <= 0:
            return float("nan"), float("nan")
        earned = fsum(points[verdict.criterion_id] * (verdict.value or 0.0) for verdict in own) / most
        known = [
            (points[verdict.criterion_id] / most * verdict.spread) ** 2 for verdict in own if verdict.spread is not None
        ]
        return min(1.0, max(0.0, earned)), float(np.sqrt(fsum(known))) if known else float("nan")


def require_scenarios(sides: Sequence[ConversationSide], vault: Vault) -> None:
    """Refuse conversations of scenarios that are not here, before anything slow is loaded (`InvalidRequest`)."""
    known = set(vault.names())
    for number, side in enumerate(sides, 1):
        if (side.collection, side.scenario) not in known:
            name = f"{side.collection}/{side.scenario}"
            told = f"conversation {number}: there is no scenario {name} here."
            raise InvalidRequest(told + meant(name, (f"{collection}/{slug}" for collection, slug in known)))


def transcript_of(scorer: Scorer, side: ConversationSide) -> Transcript:
    """The conversation as the API would read it; `InvalidRequest` names the field that is wrong."""
    try:
        messages = [Message.model_validate(dict(message)) for message in side.messages]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InvalidRequest(f"message field {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return scorer.read(side.collection or "", side.scenario or "", messages, "assistant")


def _alone(name: str) -> RewardConfig:
    return read_config({"composite": {"combine": "weighted_sum", "parts": [{"judge": name}]}})


def attacked(side: ConversationSide, text: str) -> ConversationSide:
    """The same conversation with a text appended to every agent turn."""
    messages = tuple(
        {**message, "content": f"{message.get('content', '')} {text}"}
        if message.get("role") == "assistant"
        else message
        for message in side.messages
    )
    return ConversationSide(side.collection, side.scenario, messages)
