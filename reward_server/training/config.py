"""A run's configuration: what may be in one that comes over HTTP, and the TOML file that the learner reads.

Keys and values are the learner's business, which checks them itself. Here is only what reaches beyond the run: paths
and addresses. A run reads an uploaded file, a model below the operator's folder, and the server that it belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from reward_server.auth.scopes import Scope
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.ids import IdPrefix, is_id
from reward_server.store.records import JsonObject

FILES = (("data", "file"), ("rollout", "prompts"))
"""Keys whose value is the id of an uploaded file."""
MODEL = ("model", "path")
SCRIPT = ("warmup", "script")
ELSEWHERE = "Not available in a run of the server; start the learner yourself for this."
REFUSED: Mapping[tuple[str, str], str] = {
    ("server", "url"): "A run plays against the server that it was started on; leave this out.",
    ("generator", "url"): ELSEWHERE,
    ("log", "wandb"): ELSEWHERE,
}
Place = tuple[str, str]


@dataclass(frozen=True)
class Scenarios:
    """A scenario that a configuration names, or all of a collection (None)."""

    collection: str
    scenario: str | None


def at(place: Place, message: str) -> InvalidRequest:
    """The error of a key of the configuration."""
    loc = ("config", *place)
    return InvalidRequest(f"{'.'.join(loc)}: {message}", [FieldProblem(loc, message)])


def require_inside(config: JsonObject, models: Path | None) -> None:
    """Refuse what reaches beyond the run; `InvalidRequest` names the key."""
    for place, why in REFUSED.items():
        if _get(config, place) is not None:
            raise at(place, why)
    script = _get(config, SCRIPT)
    if isinstance(script, str) and ("/" in script or "\\" in script or script.endswith(".json")):
        raise at(SCRIPT, "Takes the name of a script that comes with the learner, not a path.")
    model = _get(config, MODEL)
    if model is not None:
        model_folder(model, models)
    named = [place for place in FILES if _get(config, place) is not None]
    for place in named:
        if not is_id(str(_get(config, place)), IdPrefix.FILE):
            raise at(place, "Takes the id of an uploaded file (POST /files).")
    if len(named) > 1:
        raise at(named[1], "A run reads one file; leave out data.file or rollout.prompts.")


def model_folder(name: object, models: Path | None) -> Path:
    """The folder of a model that a configuration names; `InvalidRequest` where there is none of this name."""
    if models is None:
        raise at(MODEL, "No models to start from; the operator names a folder of them in LABS_TRAINING_MODELS.")
    inside = PurePosixPath(str(name))
    if inside.is_absolute() or ".." in inside.parts or not isinstance(name, str) or not (models / inside).is_dir():
        raise at(MODEL, "There is no such model; give a folder below the one that LABS_TRAINING_MODELS names.")
    return (models / inside).absolute()


def file_of(config: JsonObject) -> str | None:
    """The id of the uploaded file that a run reads."""
    return next((str(found) for place in FILES if (found := _get(config, place)) is not None), None)


def scenarios_of(resolved: JsonObject) -> Iterator[Scenarios]:
    """The scenarios that a run plays, which learns from no file; of a configuration with all settings."""
    if resolved["algorithm"]["objective"]["kind"] != "reward":
        return
    server = resolved["server"]
    if not server["scenarios"]:
        yield Scenarios(server["collection"], server["scenario"])
    for each in (*server["scenarios"], *server["held_out"]):
        collection, _, scenario = each.partition("/")
        yield Scenarios(collection, scenario or None)


def scopes_of(config: JsonObject) -> frozenset[Scope]:
    """The scopes that the key of a run needs."""
    single = _get(config, ("rollout", "single_turn")) is True
    return frozenset((Scope.TRAIN, Scope.SCORE) if single else (Scope.TRAIN,))


def as_toml(config: JsonObject, *, models: Path | None, rows: Path) -> str:
    """The file for the learner, with the paths of this machine; `InvalidRequest` for what TOML has no word for."""
    placed = {name: dict(value) if isinstance(value, dict) else value for name, value in config.items()}
    for section, key in FILES:
        if _get(config, (section, key)) is not None:
            placed[section][key] = str(rows)
    if _get(config, MODEL) is not None:
        placed[MODEL[0]][MODEL[1]] = str(model_folder(_get(config, MODEL), models))
    return "".join(f"{_text(name)} = {_value(value, name)}\n" for name, value in placed.items())


def _get(config: JsonObject, place: Place) -> Any:
    section = config.get(place[0])
    return section.get(place[1]) if isinstance(section, dict) else None


def _value(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(each, where) for each in value)}]"
    if isinstance(value, dict):
        inside = (f"{_text(name)} = {_value(each, f'{where}.{name}')}" for name, each in value.items())
        return f"{{{', '.join(inside)}}}"
    message = f"{where}: null is not a value; leave the key out."
    raise InvalidRequest(f"config.{message}", [FieldProblem(("config",), message)])


def _text(text: str) -> str:
    """A basic string of TOML: one of JSON, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
