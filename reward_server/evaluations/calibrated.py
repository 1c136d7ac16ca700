"""Shows a reward on the scale of a calibration, beside the reward itself, which never changes.

A calibration belongs to what made the rewards it was fitted on. One of a scoring version speaks of the plain reward:
where that is the rubric's in every scenario, it holds for as long as the rubric's part of the version does, whichever
reward model is active; else for that version alone. One of a reward model speaks of the reward that this model makes
alone, while it is active. One that maps rewards by the names of their judges speaks of the parts of a composite of the
same judges, each under the caps that hold for the reward. All else is refused: before scoring, and once more for the
version that scored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from reward_server.auth.idempotency import Body
from reward_server.errors import CalibrationMismatch, ConfigurationError, FieldProblem, InvalidRewardConfig
from reward_server.judges.estimate import REWARD_MODEL
from reward_server.logs.logger import get_logger
from reward_server.reward_models.calibration import Calibration, CalibrationShelf
from reward_server.scoring.compose import RUBRIC
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.lineage import Lineage
from reward_server.scoring.scored import Scored
from reward_server.scoring.version import rubric_version
from trainer_client import wire

log = get_logger(__name__)

UNKNOWN = "There is no such calibration; GET /calibrations lists them."
NOT_PLAIN = "A calibration applies to the plain reward: leave out all other fields of reward_config."
NOT_THE_MODEL = (
    "This calibration is for a learned model: ask for the reward of reward_model alone, with reward_config.composite "
    "and nothing else."
)
NOT_THE_PARTS = (
    "This calibration is for the parts of a composite: leave out all fields of reward_config except composite."
)


class Calibrator:
    """The calibrations of this server, as requests use them."""

    def __init__(self, shelf: CalibrationShelf, lineage: Lineage) -> None:
        self._shelf = shelf
        self._lineage = lineage

    async def fetch(self, wanted: Iterable[wire.RewardConfig | None]) -> None:
        """Read what requests name, off the loop, so that looking it up later is a matter of memory."""
        names = {config.calibration for config in wanted if config is not None} - {None}
        if names:
            await asyncio.to_thread(lambda: [self._find(name) for name in names if name is not None])

    def check(self, collection: str, scenario: str, config: RewardConfig, scoring_version: str) -> None:
        """Refuse a calibration that cannot be had for a config, before any work; the scenario exists.

        Raises:
            InvalidRewardConfig: it is unknown, or the config makes another reward than the calibrated one.
            CalibrationMismatch: it was fitted for another scoring version, reward model or reward.
        """
        if config.calibration is None:
            return
        calibration = self._found(config.calibration)
        heard = self._lineage.heard(collection, scenario, config)
        if calibration.is_of_parts:
            if not replace(config, composite=None).is_plain:
                raise _refused(NOT_THE_PARTS)
            _require_names(calibration, heard)
        elif calibration.is_of_a_model:
            if heard != (REWARD_MODEL,) or not replace(config, composite=None).is_plain:
                raise _refused(NOT_THE_MODEL)
        elif not config.is_plain:
            raise _refused(NOT_PLAIN)
        self.check_makers(calibration, scoring_version)

    def check_makers(self, calibration: Calibration, scoring_version: str) -> None:
        """Refuse a calibration whose rewards are made by other judges now, whatever a request asks for.

        Raises:
            CalibrationMismatch: it was fitted for another scoring version or reward model.
        """
        if calibration.is_of_parts:
            self._require_makers(calibration, scoring_version, _active(self._lineage.active_model()))
        elif calibration.is_of_a_model:
            _require(calibration, _active(self._lineage.active_model()))
        else:
            self._require_version(calibration, scoring_version)

    def shown(self, config: wire.RewardConfig | None, scored: Scored) -> Body:
        """The calibration of an evaluation, for its metadata; nothing where none was asked for.

        Raises:
            CalibrationMismatch: another model was activated since it was checked.
        """
        if config is None or config.calibration is None:
            return {}
        calibration = self._found(config.calibration)
        maker = _maker(self._lineage.model_of(scored.scoring_version))
        if calibration.is_of_parts:
            parts = _under_caps(scored)
            _require_names(calibration, parts)
            self._require_makers(calibration, scored.scoring_version, maker)
            return {"calibrated": _mapped(calibration, parts), "calibration_id": calibration.id}
        if calibration.is_of_a_model:
            _require(calibration, maker)
        else:
            self._require_version(calibration, scored.scoring_version)
        return {"calibrated": calibration.apply(scored.reward), "calibration_id": calibration.id}

    def _require_makers(self, calibration: Calibration, scoring_version: str, learned: _ServedRewardModel) -> None:
        """Of parts: the model alone for its own, the rubric's part of the version for the rubric's, else all of it."""
        if calibration.is_of_a_model:
            if calibration.names != (REWARD_MODEL,):
                raise CalibrationMismatch(
                    f"This calibration was fitted for the reward model {calibration.belongs_to} and maps "
                    f"{', '.join(calibration.names)}: such rewards belong to a scoring version (--for sv_…)."
                )
            _require(calibration, learned)
        elif calibration.names != (RUBRIC,) or rubric_version(calibration.belongs_to) != rubric_version(
            scoring_version
        ):
            _require_whole_version(calibration, scoring_version)

    def _require_version(self, calibration: Calibration, scoring_version: str) -> None:
        if not (self._lineage.rubric_is_plain and _is_of_the_rubric(calibration, scoring_version)):
            _require_whole_version(calibration, scoring_version)

    def _found(self, name: str) -> Calibration:
        calibration = self._find(name)
        if calibration is None:
            raise _refused(UNKNOWN)
        return calibration

    def _find(self, name: str) -> Calibration | None:
        """A damaged file is as good as none for a lab; the operator's log says which one it is."""
        try:
            return self._shelf.find(name)
        except ConfigurationError:
            log.warning("calibration_damaged", calibration=name)
            return None


class _ServedRewardModel(NamedTuple):
    """The reward model that a request meets, and how to speak of it."""

    model: str | None
    told: str


def _active(model: str | None) -> _ServedRewardModel:
    """Before scoring."""
    return _ServedRewardModel(model, f"{model or 'no reward model'} is active")


def _maker(model: str | None) -> _ServedRewardModel:
    """Behind a reward that was made: after the check another than the active one can only be new. None: unknown."""
    return _ServedRewardModel(model, f"{model or 'another one'} was activated while this request was answered")


def _require(calibration: Calibration, learned: _ServedRewardModel) -> None:
    if calibration.belongs_to != learned.model:
        raise CalibrationMismatch(
            f"This calibration was fitted for the reward model {calibration.belongs_to}, and {learned.told}: "
            "activate that model, or fit another one with ./labs calibrate."
        )


def _is_of_the_rubric(calibration: Calibration, scoring_version: str) -> bool:
    return rubric_version(calibration.belongs_to) == rubric_version(scoring_version)


def _require_whole_version(calibration: Calibration, scoring_version: str) -> None:
    if calibration.belongs_to != scoring_version:
        raise CalibrationMismatch(
            f"This calibration was fitted for {calibration.belongs_to}, and rewards are now made by {scoring_version}: "
            "fit another one with ./labs calibrate."
        )


def _require_names(calibration: Calibration, heard: Collection[str]) -> None:
    if set(calibration.names) != set(heard):
        raise CalibrationMismatch(
            f"This calibration maps {', '.join(calibration.names)}; the reward asked for is made by "
            f"{', '.join(sorted(heard))}: ask for a reward_config.composite of just the judges that it maps."
        )


def _under_caps(scored: Scored) -> dict[str, float]:
    """The reward that each judge's part alone would have given."""
    caps = (*scored.caps, *(gate.cap for gate in scored.gates))
    return {name: min(value, *caps, 1.0) for name, value in (scored.parts or {RUBRIC: scored.reward}).items()}


def _mapped(calibration: Calibration, parts: Mapping[str, float]) -> Body:
    mapped: Body = {"rewards": {name: calibration.apply(value, name) for name, value in parts.items()}}
    if calibration.combination is not None:
        mapped["combined"] = calibration.combined(parts)
    return mapped


def _refused(message: str) -> InvalidRewardConfig:
    return InvalidRewardConfig(errors=[FieldProblem(("reward_config", "calibration"), message)])
