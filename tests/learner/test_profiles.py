"""Named sets over the presets, files in three formats, and the seven parts of VAPO."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from learner import advantages
from learner.algorithms import ALGORITHMS
from learner.cli import main
from learner.config import ConfigError, load, load_with_profile
from learner.presets import demo_file, preset_file, preset_names
from learner.profiles import PROFILES


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_fits_every_preset(profile: str, preset: str) -> None:
    config, told = load_with_profile(preset_file(preset), profile)
    assert (config == load(preset_file(preset))) == (not told)
    assert bool(told) == (profile != "balanced")


def test_a_profile_scales_what_the_file_says() -> None:
    config, told = load_with_profile(demo_file(), "conservative")
    assert config.optim.learning_rate == load(demo_file()).optim.learning_rate / 2
    assert "optim.learning_rate      0.001 -> 0.0005" in told


def test_what_is_set_beside_a_profile_wins() -> None:
    config, told = load_with_profile(demo_file(), "aggressive", ["optim.learning_rate=0.1"])
    assert config.optim.learning_rate == 0.1
    assert not any(line.startswith("optim.learning_rate") for line in told)


def test_train_says_what_a_profile_changed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["demo", "--profile", "research", "--dry-run", "--out", str(tmp_path)]) == 0
    assert "profile research\n  evaluation.every" in capsys.readouterr().out
    assert main(["profiles", "--show", "balanced"]) == 0
    assert capsys.readouterr().out == "no setting changes\n"


def test_an_unknown_profile_is_answered_with_the_likely_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--profile", "agressive"]) == 2
    assert "did you mean 'aggressive'" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["yaml", "yml", "json", "toml"])
def test_a_configuration_is_the_same_in_any_format(ending: str, tmp_path: Path) -> None:
    content = {"optim": {"learning_rate": 0.002}, "algorithm": {"name": "dapo"}}
    texts = {
        "yaml": yaml.safe_dump(content),
        "yml": yaml.safe_dump(content),
        "json": json.dumps(content),
        "toml": '[optim]\nlearning_rate = 0.002\n[algorithm]\nname = "dapo"\n',
    }
    path = tmp_path / f"run.{ending}"
    path.write_text(texts[ending])
    config = load(path)
    assert (config.optim.learning_rate, config.algorithm.name) == (0.002, "dapo")


def test_yaml_has_the_numbers_and_words_of_toml(tmp_path: Path) -> None:
    """`1e-6` is how learning rates are written, and `off` a value of a setting; in YAML 1.1 they are neither."""
    path = tmp_path / "run.yaml"
    path.write_text("optim: {learning_rate: 1e-6}\nlog: {wandb: off, tensorboard: true}\nrun: {updates: 3}\n")
    config = load(path)
    assert (config.optim.learning_rate, config.log.wandb) == (1e-6, "off")
    assert (config.log.tensorboard, config.run.updates) == (True, 3)


@pytest.mark.parametrize(("name", "text"), [("a.yaml", "- 1"), ("a.json", "[1]"), ("a.json", "{"), ("a.yaml", "a: [")])
def test_a_file_that_is_no_configuration_is_one_line(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_seven_parts_of_vapo_are_all_there() -> None:
    """arXiv 2504.05118, section 4: where each part acts."""
    row, config = ALGORITHMS["vapo"], load(preset_file("vapo"))
    others = load(preset_file("ppo")).rollout
    assert row.critic_warmup > 0, "value pretraining: updates in which only the critic learns"
    assert row.critic_lam == 1.0, "decoupled GAE: targets of the critic at lambda 1"
    assert row.advantage == "gae_length_adaptive", "length-adaptive GAE: lambda of the policy by length"
    assert advantages.vapo_lambda(advantages.torch.tensor([1000.0])).item() == pytest.approx(0.98)
    assert row.aggregation == "token_mean", "token-level loss"
    assert (row.eps_low, row.eps_high) == (0.2, 0.28), "clip-higher"
    assert row.positive_nll == 0.1, "likelihood of good sequences beside the loss"
    assert config.rollout.group_size > others.group_size, "group sampling: more samples ..."
    assert config.rollout.groups < others.groups, "... of fewer prompts"
