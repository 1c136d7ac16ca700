"""A tuned encoder between its training and the end of the run that asked for it: the costly part of fine-tuning.

Fine-tuning itself begins anew where it was interrupted in the middle, with the same result.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

from reward_server.reward_models.finetune import Tuned

WEIGHTS, NUMBERS = "encoder.safetensors", "tuned.json"


class TunedWeights:
    """A folder for the weights of one run; `key` says of which."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key

    def keep(self, tuned: Tuned) -> None:
        """Keep them until the run is finished."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / WEIGHTS).write_bytes(tuned.weights)
        numbers = {name: value for name, value in asdict(tuned).items() if name != "weights"}
        # Written last and in one step: without it the weights do not count.
        draft = self._folder / f"{NUMBERS}.new"
        draft.write_text(json.dumps({"key": self._key, **numbers}))
        os.replace(draft, self._folder / NUMBERS)

    def restore(self) -> Tuned | None:
        """What was kept of this very run, or None."""
        try:
            numbers = json.loads((self._folder / NUMBERS).read_text())
            weights = (self._folder / WEIGHTS).read_bytes()
        except (OSError, ValueError):
            return None
        return Tuned(weights=weights, **numbers) if numbers.pop("key") == self._key else None
