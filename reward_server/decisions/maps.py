"""Maps of a decision model's probabilities, one for each kind of question, fitted on labelled answers.

The probabilities of a vendor are calibrated for its own data, and "no" or "none of these" has another prior in every
model. Both are mended by two numbers a kind: log-probabilities are multiplied by a slope (one over the temperature of
Guo et al. 2017), and the answer that says nothing gets a bias (Platt 1999). A file belongs to one version of a model
and is part of the version of whatever is decided with it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from reward_server.decisions.questions import NO, AnswerProbabilities, Typed
from reward_server.errors import ConfigurationError

NULL = frozenset({NO, "none"})
"""The answers that say that there is nothing."""
LEAST = 1e-6
"""What stands for a probability of 0, which has no logarithm."""
FOLDER = "decisions"
"""Of the data folder."""


class KindMap(BaseModel):
    """The map of one kind of question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slope: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    bias: Annotated[float, Field(allow_inf_nan=False)]
    n: int = Field(ge=1)
    """Answers that it was fitted on."""

    def apply(self, given: AnswerProbabilities) -> AnswerProbabilities:
        """The calibrated probabilities."""
        scores = {
            label: self.slope * math.log(max(p, LEAST)) + (self.bias if label in NULL else 0.0)
            for label, p in given.probabilities.items()
        }
        highest = max(scores.values())
        weights = {label: math.exp(score - highest) for label, score in scores.items()}
        total = math.fsum(weights.values())
        return AnswerProbabilities({label: weight / total for label, weight in weights.items()})


class DecisionMaps(BaseModel):
    """All maps of one version of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model_version: str
    kinds: dict[str, KindMap] = Field(min_length=1)

    @property
    def id(self) -> str:
        """`dec_` and 12 hex digits of what it holds."""
        return "dec_" + hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]

    def apply(
        self, questions: Mapping[str, Typed], found: Mapping[str, AnswerProbabilities]
    ) -> Mapping[str, AnswerProbabilities]:
        """The answers, those of a kind that has a map calibrated."""
        return {
            name: self.kinds[kind].apply(each) if (kind := questions[name].kind) in self.kinds else each
            for name, each in found.items()
        }


def path_of(folder: Path, model_version: str) -> Path:
    """The file of the maps of a version of a model."""
    return folder / f"{hashlib.sha256(model_version.encode()).hexdigest()[:16]}.json"


def load_maps(folder: Path, model_version: str) -> DecisionMaps | None:
    """The maps of this version; None where nobody has fitted any.

    Raises:
        ConfigurationError: the file is damaged, or holds those of another version.
    """
    path = path_of(folder, model_version)
    if not path.is_file():
        return None
    try:
        maps = DecisionMaps.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        maps = None
    if maps is None or maps.model_version != model_version:
        raise ConfigurationError(f"{path} is damaged: fit it again with ./labs calibrate --decisions, or delete it")
    return maps


def save_maps(maps: DecisionMaps, folder: Path) -> Path:
    """Write them; those of the same version are replaced, never left half."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(folder, maps.model_version)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(maps.model_dump(), indent=1) + "\n", encoding="utf-8")
    new.replace(path)
    return path
