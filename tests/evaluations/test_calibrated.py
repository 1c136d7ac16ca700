"""Which rewards a calibration may be used for: those of what it was fitted on, whatever else has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from reward_server.errors import CalibrationMismatch, InvalidRewardConfig
from reward_server.evaluations.calibrated import Calibrator
from reward_server.fitting.calibration.calibration_fit import LabelledRows, fit
from reward_server.judges.base import Case
from reward_server.judges.estimate import REWARD_MODEL, ConversationJudge, Estimate
from reward_server.reward_models.calibration import CalibrationShelf, save
from reward_server.scoring.compose import ScoringComposite, ScoringCompositePart
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.lineage import Lineage
from reward_server.scoring.scored import Scored
from reward_server.scoring.version import guests_digest
from scenarios.library import Vault
from scenarios.schema import CompositeReward
from tests.scoring.builders import COLLECTION, SCENARIO, a_scenario
from trainer_client import wire

RUBRIC = "sv_0123456789ab"
MODEL, OTHER = "rm_aaaaaaaaaaaa", "rm_bbbbbbbbbbbb"
BY_MODEL = ScoringComposite("weighted_sum", (ScoringCompositePart(REWARD_MODEL),))


@dataclass(frozen=True)
class Learned:
    """Stands for a reward model: known by its version."""

    version: str
    name: str = REWARD_MODEL

    def estimate(self, cases: Sequence[Case]) -> Sequence[Estimate]:
        return [Estimate(0.5)] * len(cases)


class Desk:
    """A calibrator, a folder of calibrations, and the judges that are active."""

    def __init__(self, folder: Path, own_reward: str | None = None) -> None:
        self._folder = folder
        scenario = a_scenario()
        if own_reward is not None:
            reward = CompositeReward.model_validate({"combine": "min", "parts": [{"judge": own_reward}]})
            scenario = replace(scenario, secrets=scenario.secrets.model_copy(update={"reward": reward}))
        self.judges: dict[str, ConversationJudge] = {}
        lineage = Lineage(Vault({(COLLECTION, SCENARIO): (scenario,)}), lambda: dict(self.judges))
        self.calibrator = Calibrator(CalibrationShelf(folder), lineage)

    @property
    def version(self) -> str:
        versions = {name: judge.version for name, judge in self.judges.items()}
        return f"{RUBRIC}_{guests_digest(versions)}" if versions else RUBRIC

    def activate(self, model: str | None) -> None:
        self.judges = {} if model is None else {REWARD_MODEL: Learned(f"{model}/bf16")}

    def fitted(self, owner: str) -> str:
        rewards = LabelledRows({"reward": np.linspace(0.0, 1.0, 40)}, None, tuple(map(str, range(40))))
        calibration = fit(rewards, "min_max", owner, datetime(2026, 1, 1, tzinfo=UTC))
        save(calibration, self._folder)
        return calibration.id

    def use(self, calibration: str, composite: ScoringComposite | None = None, scored_by: str | None = None) -> float:
        """Ask for it now; the reward is made by the present version unless told otherwise."""
        config = RewardConfig(composite=composite, calibration=calibration)
        self.calibrator.check(COLLECTION, SCENARIO, config, self.version)
        made = Scored(0.25, {}, (), (), (), (), 1.0, {}, scoring_version=scored_by or self.version)
        shown = self.calibrator.shown(wire.RewardConfig(calibration=calibration), made)
        found: float = shown["calibrated"]
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("fitted_with", [None, MODEL])
@pytest.mark.parametrize("active", [None, MODEL, OTHER])
def test_the_rubrics_survives_every_activation(desk: Desk, fitted_with: str | None, active: str | None) -> None:
    desk.activate(fitted_with)
    calibration = desk.fitted(desk.version)
    desk.activate(active)
    assert desk.use(calibration) == 0.25


def test_another_rubrics_is_refused_by_name(desk: Desk) -> None:
    desk.activate(MODEL)
    with pytest.raises(CalibrationMismatch, match=f"sv_ba9876543210_00000000.*{desk.version}"):
        desk.use(desk.fitted("sv_ba9876543210_00000000"))


def test_where_a_scenario_hears_the_model_itself_the_plain_reward_is_of_one_version_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, own_reward=REWARD_MODEL)
    desk.activate(MODEL)
    calibration = desk.fitted(desk.version)
    assert desk.use(calibration) == 0.25
    desk.activate(OTHER)
    with pytest.raises(CalibrationMismatch):
        desk.use(calibration)


def test_a_models_is_used_while_it_is_active(desk: Desk) -> None:
    calibration = desk.fitted(MODEL)
    desk.activate(MODEL)
    assert desk.use(calibration, BY_MODEL) == 0.25
    for active, named in ((OTHER, OTHER), (None, "no reward model")):
        desk.activate(active)
        with pytest.raises(CalibrationMismatch, match=f"{MODEL}, and {named} is active"):
            desk.use(calibration, BY_MODEL)


def test_a_models_goes_with_its_own_reward_where_a_scenario_asks_for_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path, own_reward=REWARD_MODEL)
    desk.activate(MODEL)
    assert desk.use(desk.fitted(MODEL)) == 0.25


def test_a_models_is_refused_for_other_rewards(desk: Desk) -> None:
    desk.activate(MODEL)
    for composite in (
        None,
        ScoringComposite("min", (ScoringCompositePart("rubric"), ScoringCompositePart(REWARD_MODEL))),
    ):
        with pytest.raises(InvalidRewardConfig):
            desk.use(desk.fitted(MODEL), composite)


def test_a_model_that_was_activated_after_the_check_gets_no_calibrated_number(desk: Desk) -> None:
    """Told as what happened, whether or not anybody asked for the other one's rewards before."""
    calibration = desk.fitted(MODEL)
    desk.activate(OTHER)
    other = desk.version
    desk.activate(MODEL)
    with pytest.raises(CalibrationMismatch, match=f"{MODEL}, and another one was activated while"):
        desk.use(calibration, BY_MODEL, scored_by=other)
    desk.activate(OTHER)
    with pytest.raises(CalibrationMismatch, match=f"{OTHER} is active"):
        desk.use(calibration, BY_MODEL)
    desk.activate(MODEL)
    with pytest.raises(CalibrationMismatch, match=f"{MODEL}, and {OTHER} was activated while"):
        desk.use(calibration, BY_MODEL, scored_by=other)
