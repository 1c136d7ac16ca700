"""Scores the conversations of a group against each other by asking a language model, once for each of two orders.

RULER (the relative listwise judge of the ART project): all members of a group stand in one prompt, what they have
in common is told once, and each gets a score in [0, 1] that means something inside this group alone. So a group
is never split, a score is never kept, and a group that does not fit into one prompt is refused. The second order
is the reverse of the first, and the two are averaged, so that a preference for a place cancels out; the first is
drawn from what the members say, not from how they were sent. Every member stands under an id made for that one
prompt. An answer that does not score each id exactly once, with a number in [0, 1], is asked for once more; a
failure stays a failure.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import structlog
from pydantic import BaseModel, ConfigDict, Field

from personas.reading.reader import Reader
from reward_server.judges.asking import ORDERS, ask_and_read, no_answer, together
from reward_server.judges.prompt import EVIDENCE_RULES, data_line, system_text, turns_of, user_text
from reward_server.judges.rendering import as_shown
from reward_server.llm.base import Answer, FailureKind, LanguageModel, LlmFailed, Question
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario
from scenarios.schema import Criterion

MAX_GROUP = 400_000
"""Characters of all conversations of a group; about 100,000 tokens."""
MAX_SAID = 2 * MAX_GROUP
"""Characters of all different turns of its agents that are read."""
TOKENS_A_MEMBER = 160
TOKENS_TO_SPARE = 512
BEGINNING = "beginning"

RULES = f"""\
You compare several conversations that agents had with the same person, called the persona, in the same situation, \
and give each a score from 0 to 1. The scores are relative: they say how the conversations of this group compare with \
each other, and nothing else.

{EVIDENCE_RULES}

Each conversation stands between marks of its own that carry its id. Where all begin alike, that part is shown once, \
as `conversation {BEGINNING}`, which has no score, and each of the others goes on from there.

- A conversation whose agent achieves what matters scores clearly higher than one whose agent does not; partial \
progress earns partial credit; a small difference in conduct is a small difference in score.
- Conversations that are equally good get the same score. Length, politeness formulas and the order in which you see \
them count for nothing.
- What counts against an agent lowers its score; after a failure it scores below every conversation without one.
- `scores` has every id exactly once, each with a `reason` of at most 30 words and a `score` from 0 to 1."""

log = structlog.get_logger(__name__)


class ScoredMember(BaseModel):
    """The score of one member."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    id: str
    reason: str = Field(repr=False)
    score: Annotated[float, Field(strict=True)]


class GroupAnswer(BaseModel):
    """The scores of a whole group."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    scores: list[ScoredMember]


class GroupJudge(Protocol):
    """Puts relative scores on the members of a group."""

    async def relative(
        self, scenario: SealedScenario, criteria: Sequence[Criterion], group: Mapping[str, Transcript], lab_id: str
    ) -> Mapping[str, float]:
        """By digest, scores in [0, 1] that compare inside this group alone; independent of the order of `group`.

        Raises:
            JudgeFailed: no scores can be given; of kind `too_large` when the group does not fit into one question.
            BudgetExhausted: the lab may not spend more today.
            BodyTooLarge: a conversation is nested too deep to be written, or far too long.
        """


class LlmGroupJudge:
    """The group judge on a language model. It remembers nothing."""

    def __init__(self, model: LanguageModel, reader: Reader | None = None) -> None:
        self._model = model
        self._reader = reader
        self._secret = secrets.token_bytes(32)

    async def relative(
        self, scenario: SealedScenario, criteria: Sequence[Criterion], group: Mapping[str, Transcript], lab_id: str
    ) -> Mapping[str, float]:
        """The mean of two orders; see `GroupJudge`."""
        order = shuffled(group)
        try:
            matter = await asyncio.to_thread(_read_matter, scenario, criteria, group, lab_id, self._reader)
            forth, back = await together([self._ask(matter, shown) for shown in (order, order[::-1])])
        except LlmFailed as failure:
            kind = failure.kind.value
            log.warning("judge_failed", scenario=scenario.name, provider=self._model.name, kind=kind)
            raise no_answer(failure) from None
        return {digest: (forth[digest] + back[digest]) / 2 for digest in order}

    async def _ask(self, matter: _Matter, order: Sequence[str]) -> Mapping[str, float]:
        """The scores of one order by digest; asked once more if the model made a mistake."""

        def put(mistake: FailureKind | None) -> tuple[Question, Callable[[Answer], Mapping[str, float]]]:
            ids = self._ids(matter, order, mistake)
            digests = {own: digest for digest, own in ids.items()}
            return self._question(matter, ids, mistake), lambda answer: _read(answer.parsed, digests)

        return await ask_and_read(self._model, put, lab_id=matter.lab_id, sample=0)

    def _question(self, matter: _Matter, ids: Mapping[str, str], mistake: FailureKind | None) -> Question:
        """The members in the order of `ids`, which has an id for each digest."""
        labelled = {own: matter.rests[digest] for digest, own in ids.items()}
        shown = {BEGINNING: matter.shared, **labelled} if matter.shared else labelled
        tokens = TOKENS_TO_SPARE + TOKENS_A_MEMBER * len(ids)
        return Question(
            system=matter.system,
            user=user_text(shown, self._secret, mistake),
            schema=GroupAnswer,
            max_tokens=2 * tokens if mistake is FailureKind.TRUNCATED else tokens,
            temperature=0.0,
            seed=0,
            together=ORDERS,
        )

    def _ids(self, matter: _Matter, order: Sequence[str], mistake: FailureKind | None) -> Mapping[str, str]:
        """Ids in the order of one question; they tell no places, and nobody can write them into a conversation."""
        salt = json.dumps([*order, mistake])

        def keyed(digest: str) -> str:
            return hmac.new(self._secret, f"{salt}\0{digest}".encode(), hashlib.sha256).hexdigest()

        # Numbered in a hashed order, so that no two can be alike.
        numbered = {digest: f"m{keyed(digest)[:4]}{n:02d}" for n, digest in enumerate(sorted(order, key=keyed))}
        return {digest: numbered[digest] for digest in order}


@dataclass(frozen=True, slots=True, repr=False)
class _Matter:
    """The subject of a question, whatever the order."""

    system: str
    shared: str
    """How all conversations begin; empty where they do not."""
    rests: Mapping[str, str]
    """How each goes on, by digest."""
    lab_id: str


def digest_of(transcript: Transcript) -> str:
    """Names what was said and done; equal for transcripts that scoring reads as equal."""
    return hashlib.sha256(json.dumps(turns_of(transcript), sort_keys=True).encode()).hexdigest()


def shuffled(digests: Mapping[str, object]) -> list[str]:
    """The digests in an order that depends on the group as a whole, and not on how it was sent.

    Sorted by a hash that is seeded with all of them: whoever writes one member cannot choose its place.
    """
    seed = "".join(sorted(digests))
    return sorted(digests, key=lambda digest: hashlib.sha256(f"{seed}|{digest}".encode()).digest())


def _read_matter(
    scenario: SealedScenario,
    criteria: Sequence[Criterion],
    group: Mapping[str, Transcript],
    lab_id: str,
    reader: Reader | None,
) -> _Matter:
    """The group as a model is shown it; `LlmFailed` where it is too large."""
    agent_texts = {turn.agent for transcript in group.values() for turn in transcript.turns}
    if sum(map(len, agent_texts)) > MAX_SAID:
        raise LlmFailed(FailureKind.TOO_LARGE)
    system = system_text(RULES, scenario.card, "What matters:", _items(criteria))
    _matter(system, group, lab_id)  # what does not fit into a question is refused before it is read
    shown = {digest: as_shown(transcript, scenario.case, reader) for digest, transcript in group.items()}
    return _matter(system, shown, lab_id)


def _matter(system: str, group: Mapping[str, Transcript], lab_id: str) -> _Matter:
    told = {digest: turns_of(transcript) for digest, transcript in group.items()}
    common = _common([[data_line([turn]) for turn in turns] for turns in told.values()])
    shared = data_line(next(iter(told.values()))[:common]) if common else ""
    rests = {digest: data_line(turns[common:]) for digest, turns in told.items()}
    if len(shared) + sum(map(len, rests.values())) > MAX_GROUP:
        raise LlmFailed(FailureKind.TOO_LARGE)
    return _Matter(system, shared, rests, lab_id)


def _common(conversations: Sequence[Sequence[str]]) -> int:
    """With how many turns all begin that are equal as they are written: 1 and `true` are equal, but not the same."""
    columns = zip(*conversations, strict=False)
    return next(
        (n for n, turns in enumerate(columns) if any(turn != turns[0] for turn in turns)), min(map(len, conversations))
    )


def _items(criteria: Sequence[Criterion]) -> list[dict[str, str]]:
    """The criteria and their direction, as the model is shown them; ids, points and weights stay here."""
    return [
        {
            "counts": "failure" if criterion.cap is not None else "for" if criterion.points > 0 else "against",
            "what": criterion.about,
        }
        for criterion in criteria
    ]


def _read(parsed: BaseModel, digests: Mapping[str, str]) -> dict[str, float]:
    """Scores by digest; `LlmFailed` unless each id has exactly one, finite and in [0, 1]."""
    if not isinstance(parsed, GroupAnswer):
        raise LlmFailed(FailureKind.MALFORMED)
    if sorted(member.id for member in parsed.scores) != sorted(digests):
        raise LlmFailed(FailureKind.WRONG_IDS)
    if not all(math.isfinite(member.score) for member in parsed.scores):
        raise LlmFailed(FailureKind.NOT_FINITE)
    if not all(0.0 <= member.score <= 1.0 for member in parsed.scores):
        raise LlmFailed(FailureKind.OUT_OF_RANGE)
    return {digests[member.id]: member.score for member in parsed.scores}
