"""Lineage of a reward: which judges a request hears, and which of them stand behind a scoring version.

Calibrations speak of rewards that were made by the rubric alone or by one learned model alone; this says which of the
two a request asks for. Reads the private half of scenarios, and gives nothing of it away but names of judges.
"""

from __future__ import annotations

from functools import cached_property

from reward_server.judges.estimate import REWARD_MODEL
from reward_server.scoring.compose import RUBRIC_ALONE, composite_of
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.estimates import TakeSnapshot, id_of_model
from reward_server.scoring.version import guests_digest
from scenarios.library import Vault


class Lineage:
    """The judges of one server, as far as they tell rewards apart."""

    def __init__(self, vault: Vault, judges: TakeSnapshot) -> None:
        self._vault = vault
        self._judges = judges
        self._models: dict[str, str] = {}
        """Models that were seen active, by the part of the scoring version they made."""

    def heard(self, collection: str, scenario: str, config: RewardConfig) -> tuple[str, ...]:
        """The judges that make up the reward of a request about a scenario that exists."""
        if config.composite is not None:
            return config.composite.judges
        return self._own(collection, scenario)

    @cached_property
    def rubric_is_plain(self) -> bool:
        """True if, in every scenario, whoever asks for nothing else gets the rubric's own reward."""
        return all(self._own(*names) == RUBRIC_ALONE.judges for names in self._vault.names())

    def active_model(self) -> str | None:
        """The id of the reward model that is active at this moment."""
        judges = self._judges()
        if REWARD_MODEL not in judges:
            return None
        model_id = id_of_model(judges[REWARD_MODEL])
        self._models[guests_digest({name: judge.version for name, judge in judges.items()})] = model_id
        return model_id

    def model_of(self, scoring_version: str) -> str | None:
        """The reward model behind a scoring version, if it was asked for while that one was active."""
        return self._models.get(scoring_version.rpartition("_")[2])

    def _own(self, collection: str, scenario: str) -> tuple[str, ...]:
        reward = self._vault.open(collection, scenario).secrets.reward
        return RUBRIC_ALONE.judges if reward is None else composite_of(reward).judges
