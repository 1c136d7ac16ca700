"""Calibrations as frozen artefacts: maps from a raw reward to a calibrated or rescaled one, with where they come from.

An artefact belongs to one scoring version or reward model and is never refitted in place: its id is a hash of its
content, checked whenever it is read. Every map is monotone. There is no warm-up in which a map is the identity: a
calibration exists only when it was fitted on enough rows. Fitting is in `calibration_fit`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from reward_server.errors import (
    CalibrationMismatch,
    CalibrationNotFound,
    ConfigurationError,
    InvalidRequest,
    JudgeFailed,
)
from reward_server.logs.logger import get_logger
from reward_server.ownership import of_lab
from reward_server.reward_models.reliability import Floats
from scenarios.spelling import OF_IDS, meant

Method = Literal["temperature", "isotonic", "z_score", "min_max", "percentile"]
SCALING = frozenset({"z_score", "min_max", "percentile"})
"""Methods that know no labels: they move and stretch rewards, and say nothing of how good they are."""
DEFAULT_REWARD = "reward"

CalibrationId = Annotated[str, StringConstraints(pattern=r"^cal_[0-9a-f]{12}$")]
OWNER = r"sv_[0-9a-f]{12}(_[0-9a-f]{8})?|rm_[0-9a-f]{12}"
Owner = Annotated[str, StringConstraints(pattern=f"^({OWNER})$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Number = Annotated[float, Field(allow_inf_nan=False)]
log = get_logger(__name__)
_ID = re.compile(r"cal_[0-9a-f]{12}")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Error(_Frozen):
    """An expected calibration error with its 95 % interval."""

    value: Number
    low: Number
    high: Number


class PiecewiseLinear(_Frozen):
    """Straight lines between knots, constant beyond the first and the last one."""

    shape: Literal["line"] = "line"
    x: tuple[Number, ...] = Field(min_length=2)
    y: tuple[Number, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _monotone(self) -> Self:
        if len(self.x) != len(self.y):
            raise ValueError("x and y differ in length")
        if any(a >= b for a, b in zip(self.x, self.x[1:], strict=False)):
            raise ValueError("x must rise")
        if any(a > b for a, b in zip(self.y, self.y[1:], strict=False)):
            raise ValueError("y must not fall")
        return self

    def apply(self, values: Floats) -> Floats:
        """(n,) to (n,)."""
        return np.interp(values, self.x, self.y)


class Logistic(_Frozen):
    """The chance of winning against a reward at the pivot: sigmoid((r - pivot) / temperature)."""

    shape: Literal["logistic"] = "logistic"
    pivot: Number
    temperature: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]

    def apply(self, values: Floats) -> Floats:
        """(n,) to (n,)."""
        chances: Floats = 0.5 * (1.0 + np.tanh((values - self.pivot) / (2.0 * self.temperature)))
        return chances


class RewardMap(_Frozen):
    """The map of one named reward."""

    name: Name
    curve: PiecewiseLinear | Logistic = Field(discriminator="shape")
    ece_before: Error | None = None
    ece_after: Error | None = None
    """Cross-fitted: every row mapped by a curve that has not seen its dialogue."""


class Combination(_Frozen):
    """One number of several calibrated rewards: weights are not negative and add up to 1."""

    weights: dict[Name, Annotated[float, Field(ge=0.0, le=1.0)]]
    ece_after: Error


class Calibration(_Frozen):
    """An artefact. `created` is no part of what it is, so fitting the same again gives the same id."""

    id: CalibrationId
    format: Literal[1] = 1
    method: Method
    belongs_to: Owner
    """The scoring version or reward model whose rewards were fitted."""
    n: int = Field(ge=1)
    """Rows or pairs it was fitted on."""
    data_hash: str
    range: tuple[Number, Number]
    """What calibrated numbers lie in."""
    maps: tuple[RewardMap, ...] = Field(min_length=1)
    combination: Combination | None = None
    created: datetime

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        names = [each.name for each in self.maps]
        if len(set(names)) != len(names):
            raise ValueError("two maps have the same name")
        if self.combination is not None and set(self.combination.weights) != set(names):
            raise ValueError("the combination and the maps have different names")
        if self.id != content_id(self.model_dump(mode="json")):
            raise ValueError("the content is not the one that its id names")
        return self

    @property
    def is_scaling(self) -> bool:
        """True if it only rescales."""
        return self.method in SCALING

    @property
    def names(self) -> tuple[str, ...]:
        """The rewards it maps, in alphabetical order."""
        return tuple(sorted(each.name for each in self.maps))

    @property
    def is_of_parts(self) -> bool:
        """True if it maps rewards by the names of their judges, and not the one reward that evaluations answer with."""
        return DEFAULT_REWARD not in self.names

    def map_of(self, name: str) -> RewardMap:
        """The map of a named reward.

        Raises:
            CalibrationMismatch: it was fitted for other rewards.
        """
        for each in self.maps:
            if each.name == name:
                return each
        raise CalibrationMismatch(f"This calibration maps {', '.join(self.names)}; it has no map of {name}.")

    def apply(self, value: float, name: str = DEFAULT_REWARD) -> float:
        """One reward, calibrated, rounded to 4 decimals.

        Raises:
            CalibrationMismatch: it was fitted for other rewards.
            JudgeFailed: the value is not a number.
        """
        if not math.isfinite(value):
            raise JudgeFailed
        return round(float(self.map_of(name).curve.apply(np.array([value]))[0]), 4)

    def combined(self, values: Mapping[str, float]) -> float:
        """The joint combination of all named rewards, rounded to 4 decimals.

        Raises:
            CalibrationMismatch: it has no combination, or the names are not those it was fitted for.
        """
        if self.combination is None or set(values) != set(self.combination.weights):
            raise CalibrationMismatch("This calibration combines other rewards.")
        weights = self.combination.weights
        return round(math.fsum(weights[name] * self.apply(value, name) for name, value in values.items()), 4)

    @property
    def is_of_a_model(self) -> bool:
        """True if it was fitted on the rewards of one learned model; else on those of a scoring version."""
        return self.belongs_to.startswith("rm_")


def content_id(content: Mapping[str, object]) -> str:
    """`cal_` and 12 hex digits of everything but the id and the time."""
    bare = {name: value for name, value in content.items() if name not in ("id", "created") and value is not None}
    text = json.dumps(bare, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "cal_" + hashlib.sha256(text.encode()).hexdigest()[:12]


def sealed(
    *,
    method: Method,
    belongs_to: str,
    n: int,
    data_hash: str,
    span: tuple[float, float],
    maps: tuple[RewardMap, ...],
    combination: Combination | None,
    created: datetime,
) -> Calibration:
    """The artefact with the id of its content."""
    draft = Calibration.model_construct(
        id="", method=method, belongs_to=belongs_to, n=n, data_hash=data_hash, range=span, maps=maps,
        combination=combination, created=created,
    )  # fmt: skip
    content = draft.model_dump(mode="json")
    return Calibration.model_validate_json(json.dumps(content | {"id": content_id(content)}))


def save(calibration: Calibration, folder: Path) -> Path:
    """Write `<id>.json`; what is there already stays as it is. Never leaves half a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{calibration.id}.json"
    if path.exists():
        load(path)
        return path
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, suffix=".new", delete=False) as stream:
        stream.write(calibration.model_dump_json(indent=1, exclude_none=True) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    Path(stream.name).replace(path)
    return path


def take_away(calibration_id: str, folder: Path) -> None:
    """Delete a calibration and its diagram; a damaged one, too.

    Raises:
        InvalidRequest: there is none of that id.
    """
    path = folder / f"{calibration_id}.json"
    if _ID.fullmatch(calibration_id) is None or not path.is_file():
        known = sorted(each.stem for each in folder.glob("cal_*.json"))
        told = f"There is no calibration {calibration_id} in {folder}: {', '.join(known) or 'none'}."
        raise InvalidRequest(told + meant(calibration_id, known, OF_IDS))
    path.unlink()
    path.with_suffix(".png").unlink(missing_ok=True)


def load(path: Path) -> Calibration:
    """Read an artefact; reading it twice gives equal ones.

    Raises:
        ConfigurationError: it is missing, damaged, or its content is not what its id says.
    """
    try:
        calibration = Calibration.model_validate_json(path.read_bytes())
    except OSError:
        raise ConfigurationError(f"The calibration {path.stem} cannot be read.") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(f"The calibration {path.stem} is damaged: {where} {first['msg']}".rstrip()) from None
    if calibration.id != path.stem:
        raise ConfigurationError(f"The file {path.name} holds the calibration {calibration.id}.")
    return calibration


class CalibrationShelf:
    """The calibrations of a folder; files may come and go while the server runs. Blocking, but each is read once.

    Those in the folder itself are shared by all labs; `labs/LAB` in it holds a lab's own, which no other lab sees.
    """

    def __init__(self, folder: Path, whose: Callable[[], str] = lambda: "") -> None:
        self._folder = folder
        self._whose = whose
        self._read: dict[Path, Calibration] = {}

    def find(self, calibration_id: str) -> Calibration | None:
        """The one with that id, or None; a damaged one raises `ConfigurationError`."""
        if _ID.fullmatch(calibration_id) is None:
            return None
        for folder in self._folders():
            path = folder / f"{calibration_id}.json"
            if not path.exists():
                self._read.pop(path, None)
                continue
            # The name is a hash of the content, so a file that was read need not be read again.
            if path not in self._read:
                self._read[path] = load(path)
            return self._read[path]
        return None

    def all(self) -> list[Calibration]:
        """All that can be used, newest first; damaged files are left out."""
        found = []
        for name in sorted({path.stem for folder in self._folders() for path in folder.glob("cal_*.json")}):
            try:
                calibration = self.find(name)
            except ConfigurationError:
                log.warning("calibration_damaged", calibration=name)
                continue
            if calibration is not None:
                found.append(calibration)
        return sorted(found, key=lambda each: (each.created, each.id), reverse=True)

    def delete(self, calibration_id: str) -> Calibration:
        """Delete a calibration of the lab's own; `CalibrationNotFound` where it has none of that id."""
        own = of_lab(self._folder, self._whose())
        found = self.find(calibration_id)
        if own is None or found is None or not (own / f"{calibration_id}.json").is_file():
            raise CalibrationNotFound
        take_away(calibration_id, own)
        return found

    def _folders(self) -> list[Path]:
        own = of_lab(self._folder, self._whose())
        return [*([] if own is None else [own]), self._folder]
