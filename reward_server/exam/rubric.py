"""The exam of a rubric without a persona: do the author's logs come out in the order of their grades, above empty talk?

What no judge here can decide is said; where it leaves too little of the rubric, nothing is compared. If nothing at all
could be scored, the rubric has not passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.scorer import Scorer
from scenarios.exam_logs import Log, empty_talk
from scenarios.library import SealedScenario
from trainer_client.wire import Message

MOST_FOR_NOTHING = 0.4
OPENING = "Hello, I have a problem and I hope that you can help me."


@dataclass(frozen=True)
class RubricExam:
    """How a rubric did."""

    name: str
    lines: tuple[str, ...] = field(repr=False)
    """Rewards, as they are printed."""
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    is_proven: bool = False
    """Logs of differing grades were scored."""
    unscorable: tuple[str, ...] = ()
    """Why not one conversation has a reward, if no judge could give one: then nothing is known of the rubric."""

    @property
    def passed(self) -> bool:
        """Whether something was scored, and nothing failed."""
        return not self.failures and not self.unscorable

    def to_json(self) -> dict[str, Any]:
        """As `check --json` prints it."""
        failures = [*self.unscorable, *self.failures]
        return {"rubric": self.name, "passed": self.passed, "failures": failures, "notes": [*self.notes]}


async def examine_rubric(rubric: SealedScenario, logs: Sequence[Log], scorer: Scorer) -> RubricExam:
    """Score the logs and empty talk, and say what is wrong."""
    lent = scorer.lend(rubric) if rubric.digest else rubric
    talks = empty_talk(lent.secrets.rubric, _opening(logs))
    scored = await scorer.score(
        [_request(lent, scorer, talk) for talk in (*(log.messages for log in logs), *talks.values())]
    )
    unscorable = _unscorable(scored)
    if unscorable:
        return RubricExam(lent.card.name, (), tuple(_unscored(scored)), (), unscorable=unscorable)
    for_logs, for_nothing = scored[: len(logs)], dict(zip(talks, scored[len(logs) :], strict=True))
    lines = [
        f"log of line {log.number}, grade {log.grade:g}: {_told(each)}"
        for log, each in zip(logs, for_logs, strict=True)
    ]
    lines += [f"{name}: {_told(each)}" for name, each in for_nothing.items()]
    failures = [*_disorder(logs, for_logs), *_paid_for_nothing(for_nothing), *_unscored(for_logs)]
    proven = {log.grade for log, each in zip(logs, for_logs, strict=True) if isinstance(each, Scored)}
    return RubricExam(
        lent.card.name, tuple(lines), tuple(failures), tuple(_notes(logs, scored)), is_proven=len(proven) > 1
    )


def _request(rubric: SealedScenario, scorer: Scorer, messages: Sequence[dict[str, Any]]) -> ScoreRequest:
    names = rubric.collection, rubric.card.slug
    transcript = scorer.read(*names, [Message.model_validate(each) for each in messages], "assistant")
    return ScoreRequest(*names, transcript, lent=rubric)


def _opening(logs: Sequence[Log]) -> str:
    said = [each for log in logs for each in log.messages[:1] if each.get("role") == "user"]
    return str(said[0].get("content") or OPENING) if said else OPENING


def _told(outcome: Scored | Unscored) -> str:
    if isinstance(outcome, Unscored):
        return "no reward"
    capped = f", capped by {', '.join(outcome.capped_by)}" if outcome.capped_by else ""
    return f"{outcome.reward:.3f}{capped}"


def _disorder(logs: Sequence[Log], outcomes: Sequence[Scored | Unscored]) -> Iterator[str]:
    known = [(log, each) for log, each in zip(logs, outcomes, strict=True) if isinstance(each, Scored)]
    for (one, first), (other, second) in combinations(known, 2):
        if one.grade == other.grade:
            continue
        (better, high), (worse, low) = ((one, first), (other, second))[:: 1 if one.grade > other.grade else -1]
        # Where a criterion could not be decided, two logs may be alike for want of it.
        alike = high.reward == low.reward and bool(high.abstained)
        if high.reward <= low.reward and not alike:
            yield (
                f"the log of line {better.number} is better than that of line {worse.number}, and its reward is not "
                f"({high.reward:.3f}, {low.reward:.3f}): change what earns, or the grades"
            )


def _paid_for_nothing(outcomes: dict[str, Scored | Unscored]) -> Iterator[str]:
    for name, each in outcomes.items():
        if isinstance(each, Scored) and each.reward > MOST_FOR_NOTHING:
            yield f"{name} earns {each.reward:.3f}: give fewer points for words and length alone"


def _unscored(outcomes: Sequence[Scored | Unscored]) -> Iterator[str]:
    failed = {each.message for each in outcomes if isinstance(each, Unscored) and each.code != "judge_failed"}
    yield from sorted(failed)


def _unscorable(outcomes: Sequence[Scored | Unscored]) -> tuple[str, ...]:
    """The reasons why no judge gave a single reward; none if one did."""
    if any(isinstance(each, Scored) for each in outcomes):
        return ()
    reasons = {each.message for each in outcomes if isinstance(each, Unscored) and each.code == "judge_failed"}
    return tuple(f"nothing can be scored: {reason}" for reason in sorted(reasons))


def _notes(logs: Sequence[Log], outcomes: Sequence[Scored | Unscored]) -> Iterator[str]:
    if len({log.grade for log in logs}) < 2:
        yield "write logs of differing quality beside it (<slug>.logs.jsonl): without them nothing shows that it works"
    undecided = sorted({name for each in outcomes if isinstance(each, Scored) for name in each.abstained})
    if undecided:
        yield f"set up a model to decide {', '.join(undecided)}; until then they count for nothing (docs/providers.md)"
    yield from sorted({each.message for each in outcomes if isinstance(each, Unscored) and each.code == "judge_failed"})
