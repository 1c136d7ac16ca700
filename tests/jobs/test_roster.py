"""Who is listed as a judge, and whether it says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from reward_server.errors import InvalidRequest
from reward_server.fitting.agreement.roster import NO, PER_ANSWER, WHOLE, YES, RosterEntry, chosen, seats
from reward_server.judges.base import Case
from reward_server.judges.estimate import Estimate
from reward_server.judges.plugins import NO_PLUGINS
from reward_server.reward_models.serving import UnusableJudge
from tests.judges.asked_model import a_judge, good
from tests.scoring.builders import WordMatcher


@dataclass(frozen=True)
class Whole:
    """A plug-in that judges whole conversations."""

    name: str = "politeness"
    version: str = "1"

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        return [Estimate(0.5)] * len(cases)


@dataclass(frozen=True)
class Learned(Whole):
    """A reward model."""

    states_uncertainty: bool = True


def listed(samples: int = 1, whole: Whole | UnusableJudge | None = None, *, llm: bool = False) -> dict[str, str]:
    judges: dict[str, Any] = {} if whole is None else {whole.name: whole}
    guests = SimpleNamespace(
        plugins=NO_PLUGINS, asked=(a_judge(good, samples),) if llm else (), conversation_judges=lambda: judges
    )
    scorer = SimpleNamespace(scoring_version="sv_0123456789ab")
    engine: Any = SimpleNamespace(guests=guests, matcher=WordMatcher(), scorer=scorer)
    return {seat.name: seat.uncertainty for seat in seats(engine, samples)}


def test_a_judge_that_is_near_is_named() -> None:
    with pytest.raises(
        InvalidRequest, match=r"no judge 'rubrics' here: there are rubric, rule\. Did you mean rubric\?"
    ):
        chosen([RosterEntry("rubric", "1", WHOLE, NO), RosterEntry("rule", "1", "rule", NO)], ["rubrics"])


def test_exact_judges_state_none_and_so_does_the_rubric_they_decide() -> None:
    assert listed() == dict.fromkeys(("rubric", "state", "rule", "local"), NO)


def test_a_language_model_states_one_if_it_is_asked_more_than_once() -> None:
    assert (listed(1, llm=True)["llm"], listed(1, llm=True)["rubric"]) == (NO, NO)
    assert (listed(3, llm=True)["llm"], listed(3, llm=True)["rubric"]) == (YES, PER_ANSWER)


@pytest.mark.parametrize(
    ("judge", "stated"),
    [
        (Whole(), PER_ANSWER),
        (Learned("reward_model"), YES),
        (Learned("reward_model", states_uncertainty=False), NO),
        (UnusableJudge("rm_0123456789ab"), NO),
    ],
)
def test_a_learned_model_is_known_beforehand_and_a_plug_in_is_not(judge: Any, stated: str) -> None:
    assert listed(whole=judge)[judge.name] == stated
