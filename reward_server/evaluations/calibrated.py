"""Shows a reward on the scale of a calibration, beside the reward itself, which never changes.

A calibration speaks of the plain reward of one scoring version. Asked for together with anything that makes another
reward it is refused, and so is one of another version: before scoring, and once more for the version that scored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from reward_server.coordination.idempotency import Body
from reward_server.errors import ConfigurationError, FieldProblem, InvalidRewardConfig
from reward_server.reward_models.calibration import Calibration, CalibrationShelf
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.scored import Scored
from reward_server.telemetry.logs import get_logger
from trainer_client import wire

log = get_logger(__name__)

UNKNOWN = "There is no such calibration; GET /calibrations lists them."
NOT_PLAIN = "A calibration goes with the plain reward: leave out everything else of reward_config."


class Calibrator:
    """The calibrations of this server, as requests use them."""

    def __init__(self, shelf: CalibrationShelf) -> None:
        self._shelf = shelf

    async def fetch(self, wanted: Iterable[wire.RewardConfig | None]) -> None:
        """Read what requests name, off the loop, so that looking it up later is a matter of memory."""
        names = {config.calibration for config in wanted if config is not None} - {None}
        if names:
            await asyncio.to_thread(lambda: [self._find(name) for name in names if name is not None])

    def check(self, config: RewardConfig, scoring_version: str) -> None:
        """What is wrong with asking for the calibration of a config, before any work.

        Raises:
            InvalidRewardConfig: it is unknown, or the config makes another reward than the calibrated one.
            CalibrationMismatch: it was fitted for another scoring version or another reward.
        """
        if config.calibration is None:
            return
        calibration = self._found(config.calibration)
        if not config.is_plain:
            raise _refused(NOT_PLAIN)
        calibration.check_for(scoring_version)
        calibration.map_of("reward")

    def shown(self, config: wire.RewardConfig | None, scored: Scored) -> Body:
        """What the metadata of an evaluation says of its calibration; nothing where none was asked for."""
        if config is None or config.calibration is None:
            return {}
        calibration = self._found(config.calibration)
        calibration.check_for(scored.scoring_version)
        return {"calibrated": calibration.apply(scored.reward), "calibration_id": calibration.id}

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


def _refused(message: str) -> InvalidRewardConfig:
    return InvalidRewardConfig(errors=[FieldProblem(("reward_config", "calibration"), message)])
