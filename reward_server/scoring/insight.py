"""Explains a reward: what the persona understood, what opened and what did not, who decided what.

For people with full score access. Scrubbed by construction unless names are asked for: facts and commitments are told
by what was said of them in the conversation, never by their ids, and criteria by their dimension, what they are worth
and the words of the conversation that decided them, never by what they say. With names (for whoever has the scenario
on disk) ids and the author's notes come along. It decides nothing itself: all of it was found by replay and judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from personas.case.compiled import CompiledCase, CompiledTopic
from personas.case.schema import Tier, all_hold
from personas.hearing.types import AskedTopic, HeardCommitment
from personas.reading.acts import Sentence
from personas.replay.replayer import Record, TurnRecord
from reward_server.judges.base import Evidence, Verdict
from reward_server.scoring.config import read_config
from reward_server.scoring.private_half import PrivateHalf, half_of
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored
from reward_server.scoring.scorer import Scorer
from reward_server.scoring.variant import heard_in
from reward_server.store.records import JsonObject
from reward_server.transcripts.transcript import SpokenMessage
from scenarios.library import SealedScenario, Vault
from scenarios.schema import Criterion
from trainer_client.wire import Role

UNTOLD = "a fact that is not told yet"
COMMITMENT = "a commitment"
_TOLD_OPEN = "told"


@dataclass(frozen=True, slots=True)
class MeaningInsight:
    """Something that a sentence may be about, with the probability that it is."""

    name: str
    probability: float
    outcome: str
    """`told`, or why not; of a commitment, how it counts."""
    quote: str
    counts: bool


@dataclass(frozen=True, slots=True)
class SentenceInsight:
    """A sentence, and what it does."""

    text: str
    acts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TurnInsight:
    """One agent turn as the persona understood it."""

    turn: int
    sentences: tuple[SentenceInsight, ...]
    asked: tuple[MeaningInsight, ...]
    commitments: tuple[MeaningInsight, ...]
    opened: tuple[str, ...]
    """What the turn earned, in the words of the persona."""
    rapport: float
    manners: tuple[str, ...]
    """What the persona noticed of the agent's conduct."""


@dataclass(frozen=True, slots=True)
class CriterionInsight:
    """A criterion and its verdict."""

    name: str
    """Dimension and place in it, in the order of the rubric: `D1_Rapport.2`. It tells nothing of what it asks."""
    dimension: str
    family: str
    worth: str
    """`earns`, `costs` or `caps`."""
    status: str
    value: float | None
    judge: str
    evidence: tuple[Evidence, ...]
    about: str | None = None
    """The author's note, where names are shown."""


@dataclass(frozen=True, slots=True)
class Insight:
    """All of it."""

    reward: float
    scoring_version: str
    turns: Mapping[int, TurnInsight]
    decided: tuple[CriterionInsight, ...]
    capped_by: tuple[str, ...]
    coverage: float
    """Share of the points in play that was decided."""
    quotes: Mapping[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)
    """(party, turn) -> what judges cited there."""


class Insights:
    """Explains conversations."""

    def __init__(self, scorer: Scorer, vault: Vault) -> None:
        self._scorer = scorer
        self._vault = vault

    def private_half(self, collection: str, scenario: str) -> PrivateHalf:
        """The half that the scenario's author wrote; for whoever has it on disk."""
        return half_of(self._vault.open(collection, scenario))

    async def of(
        self,
        collection: str,
        scenario: str,
        messages: Sequence[SpokenMessage],
        agent_role: Role,
        config: JsonObject | None,
        *,
        lab_id: str,
        named: bool,
    ) -> Insight:
        """The reasons for the reward of a conversation, by the judges of this moment.

        Raises:
            LabsError: as scoring does.
        """
        transcript = await self._scorer.read_off_the_loop(collection, scenario, messages, agent_role)
        request = ScoreRequest(collection, scenario, transcript, read_config(config), lab_id)
        scored, record = await self._scorer.explained(request)
        return insight_of(heard_in(self._vault, collection, scenario, transcript), scored, record, named=named)


def insight_of(scenario: SealedScenario, scored: Scored, record: Record, *, named: bool) -> Insight:
    """Put a scored conversation into words."""
    verdicts = {verdict.criterion_id: verdict for verdict in scored.verdicts}
    decided = tuple(
        _decided(name, criterion, verdicts[criterion.id], named=named)
        for name, criterion in _numbered(scenario.secrets.rubric.criteria)
        if criterion.id in verdicts
    )
    teller = _Teller(scenario.case, record, named=named)
    return Insight(
        reward=scored.reward,
        scoring_version=scored.scoring_version,
        turns={turn.turn: teller.of(turn) for turn in record.turns},
        decided=decided,
        capped_by=scored.capped_by,
        coverage=scored.coverage,
        quotes=_quotes(decided),
    )


def _numbered(criteria: Sequence[Criterion]) -> Iterator[tuple[str, Criterion]]:
    counts: Counter[str] = Counter()
    for criterion in criteria:
        counts[criterion.dimension] += 1
        yield f"{criterion.dimension}.{counts[criterion.dimension]}", criterion


def _decided(name: str, criterion: Criterion, verdict: Verdict, *, named: bool) -> CriterionInsight:
    worth = "caps" if criterion.cap is not None else "earns" if criterion.points > 0 else "costs"
    return CriterionInsight(
        name=name,
        dimension=criterion.dimension,
        family=criterion.family.value,
        worth=worth,
        status=verdict.status.value,
        value=verdict.value,
        judge=verdict.judge,
        evidence=verdict.evidence,
        about=criterion.about if named else None,
    )


def _quotes(decided: Sequence[CriterionInsight]) -> dict[tuple[str, int], tuple[str, ...]]:
    criteria_by_quote: dict[tuple[str, int], dict[str, None]] = {}
    for verdict in decided:
        for evidence in verdict.evidence:
            criteria_by_quote.setdefault((evidence.role, evidence.turn), {})[evidence.quote] = None
    return {place: tuple(quotes) for place, quotes in criteria_by_quote.items()}


class _Teller:
    """Tells of the turns of one record."""

    def __init__(self, case: CompiledCase, record: Record, *, named: bool) -> None:
        self._case = case
        self._record = record
        self._named = named

    def of(self, turn: TurnRecord) -> TurnInsight:
        """One turn."""
        hearing = turn.hearing
        return TurnInsight(
            turn=turn.turn,
            sentences=tuple(_read(sentence) for sentence in hearing.reading.sentences),
            asked=tuple(self._asked(turn, question) for question in hearing.asked),
            commitments=tuple(self._commitment(turn, commitment) for commitment in hearing.commitments),
            # Where the transcript ends with the agent, the answer that it earned has not been said: nor is it here.
            opened=tuple(self._record.elicited[topic].quote for topic in turn.disclosed if turn.persona_text),
            rapport=hearing.rapport,
            manners=_manners(turn),
        )

    def _asked(self, turn: TurnRecord, asked: AskedTopic) -> MeaningInsight:
        told = asked.topic_id in turn.disclosed
        outcome = _TOLD_OPEN if told else self._why_not(turn, asked)
        return MeaningInsight(self._topic(turn, asked.topic_id), asked.confidence, outcome, asked.question, told)

    def _topic(self, turn: TurnRecord, topic_id: str) -> str:
        if self._named:
            return topic_id.replace("_", " ")
        spoken = self._record.spoken.get(topic_id)
        if spoken is None or spoken > turn.turn:
            return UNTOLD
        return "what it said at the start" if spoken == 0 else f"what it told in turn {spoken}"

    def _why_not(self, turn: TurnRecord, asked: AskedTopic) -> str:
        """The reason why a question earned nothing, by the conditions that the persona goes by."""
        topic = self._case.by_id.get(asked.topic_id)
        spoken = self._record.spoken.get(asked.topic_id)
        if spoken is not None and spoken < turn.turn:
            return "told before"
        if topic is None:
            return "beside the matter"
        if asked.open:
            return "told of its own accord" if topic.tier is Tier.VOLUNTEERED else "open, but not told in this turn"
        return self._closed(topic, turn)

    def _closed(self, topic: CompiledTopic, turn: TurnRecord) -> str:
        if topic.tier is Tier.UNKNOWN:
            return "the persona does not know it"
        if topic.tier is Tier.RAPPORT and turn.hearing.rapport < topic.gate.rapport:
            needed = f": {turn.hearing.rapport:.1f} of {topic.gate.rapport:.1f}" if self._named else ""
            return f"not enough trust{needed}"
        topics_before = {name for name, when in self._record.spoken.items() if when < turn.turn}
        if not all_hold(topic.gate.requires, topics_before):
            return "something else has to be said first"
        return "too early in the talk" if turn.turn <= topic.gate.after_turn else "not told"

    def _commitment(self, turn: TurnRecord, heard: HeardCommitment) -> MeaningInsight:
        commitment = next(
            (one for one in self._record.commitments.get(heard.commitment_id, ()) if one.turn == turn.turn), None
        )
        clear = commitment is not None and commitment.clear
        outcome = "too early" if heard.early else "counts" if clear else "not clear, or not in the agent's own words"
        if not heard.binding:
            outcome += ", not binding"
        name = heard.commitment_id.replace("_", " ") if self._named else COMMITMENT
        return MeaningInsight(name, heard.confidence, outcome, heard.quote, clear and not heard.early)


def _read(sentence: Sentence) -> SentenceInsight:
    return SentenceInsight(sentence.text, tuple(sorted(act.value for act in sentence.acts)))


def _manners(turn: TurnRecord) -> tuple[str, ...]:
    hearing = turn.hearing
    seen = {
        "empathy": turn.empathy,
        "open question": turn.open_question,
        "rude": hearing.rude,
        "question upon question": hearing.interrogation,
        "off topic": hearing.off_topic,
        "repeats itself": bool(turn.repeated),
        "not clear": hearing.unclear,
        "takes its leave": hearing.farewell,
    }
    return tuple(name for name, is_seen in seen.items() if is_seen)
