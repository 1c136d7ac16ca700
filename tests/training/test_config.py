"""What a configuration that comes over HTTP may hold, and the file that the learner gets of it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from reward_server.auth.scopes import Scope
from reward_server.errors import InvalidRequest
from reward_server.ids import IdPrefix, new_id
from reward_server.training.config import Scenarios, as_toml, file_of, require_inside, scenarios_of, scopes_of

FILE = new_id(IdPrefix.FILE)
ODD = {
    "server": {"system": 'a "quoted"\n\ttext \\ with ünï\x7f\x01 and 😀', "max_turns": 3, "held_out": ["a/b", "c"]},
    "optim": {"learning_rate": 1e-05, "clip_norm": 1e16, "weight_decay": -0.5},
    "algorithm": {"overrides": {"deep": {"x": [True, False, [1, 2.5]]}}, "dotted.key": {}},
    "run": {},
}


@pytest.fixture
def models(tmp_path: Path) -> Path:
    (tmp_path / "models" / "family" / "small").mkdir(parents=True)
    return tmp_path / "models"


def refused(config: dict[str, Any], models: Path | None = None) -> str:
    with pytest.raises(InvalidRequest) as caught:
        require_inside(config, models)
    [problem] = caught.value.errors
    assert caught.value.message == f"{'.'.join(map(str, problem.loc))}: {problem.msg}"
    return caught.value.message


def test_the_file_says_what_the_object_said(tmp_path: Path) -> None:
    assert tomllib.loads(as_toml(ODD, models=None, rows=tmp_path / "rows.jsonl")) == ODD


def test_null_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"config\.run\.seed: null is not a value"):
        as_toml({"run": {"seed": None}}, models=None, rows=tmp_path / "rows.jsonl")


def test_paths_become_those_of_this_machine_and_the_object_stays_as_it_was(tmp_path: Path, models: Path) -> None:
    config = {"model": {"path": "family/small"}, "data": {"file": FILE}}
    require_inside(config, models)
    made = tomllib.loads(as_toml(config, models=models, rows=tmp_path / "rows.jsonl"))
    assert made == {
        "model": {"path": str(models / "family" / "small")},
        "data": {"file": str(tmp_path / "rows.jsonl")},
    }
    assert config == {"model": {"path": "family/small"}, "data": {"file": FILE}}
    assert file_of(config) == FILE


@pytest.mark.parametrize("path", ["/etc", "../models", "family/../../x", "missing", 7, ["family"]])
def test_a_model_is_one_of_the_operators_folder(models: Path, path: Any) -> None:
    assert "LABS_TRAINING_MODELS" in refused({"model": {"path": path}}, models)


def test_without_a_folder_there_are_no_models() -> None:
    assert "LABS_TRAINING_MODELS" in refused({"model": {"path": "family/small"}})


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"server": {"url": "http://10.0.0.1"}}, "config.server.url"),
        ({"generator": {"kind": "vllm", "url": "http://10.0.0.1"}}, "config.generator.url"),
        ({"log": {"wandb": "online"}}, "config.log.wandb"),
        ({"warmup": {"script": "/etc/passwd.json"}}, "config.warmup.script"),
        ({"warmup": {"script": "../x"}}, "config.warmup.script"),
        ({"data": {"file": "/etc/passwd"}}, "config.data.file"),
        ({"rollout": {"prompts": "rows.jsonl"}}, "config.rollout.prompts"),
        ({"rollout": {"prompts": FILE}, "data": {"file": FILE}}, "config.rollout.prompts"),
    ],
)
def test_what_reaches_beyond_the_run_is_refused(config: dict[str, Any], where: str) -> None:
    assert refused(config).startswith(f"{where}: ")


def test_what_is_no_section_is_left_to_the_learner() -> None:
    require_inside({"model": 3, "server": "x", "data": [], "nonsense": {"a": 1}}, None)


def test_the_scenarios_of_a_run() -> None:
    server = {"collection": "a", "scenario": "b", "scenarios": [], "held_out": []}
    resolved = {"server": server, "algorithm": {"objective": {"kind": "reward"}}}
    assert list(scenarios_of(resolved)) == [Scenarios("a", "b")]
    server |= {"scenarios": ["c", "d/e"], "held_out": ["f/g"]}
    assert list(scenarios_of(resolved)) == [Scenarios("c", None), Scenarios("d", "e"), Scenarios("f", "g")]
    assert list(scenarios_of({"server": server, "algorithm": {"objective": {"kind": "preference"}}})) == []


def test_single_replies_are_scored_and_episodes_only_played() -> None:
    assert scopes_of({}) == {Scope.TRAIN}
    assert scopes_of({"rollout": {"single_turn": True}}) == {Scope.TRAIN, Scope.SCORE}
