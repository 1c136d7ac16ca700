"""A search over settings that goes on where it was."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from learner.cli import main
from learner.config import ConfigError
from learner.tuning import SearchDimension, read_dimension, score
from tests.learner.quick import settings, stage
from tests.learner.stage import listening

pytestmark = pytest.mark.slow


def test_ranges_are_read() -> None:
    assert read_dimension("optim.learning_rate=1e-5..1e-2:log") == SearchDimension(
        "optim.learning_rate", low=1e-5, high=1e-2, log=True
    )
    assert read_dimension("rollout.groups=2..8").whole
    assert read_dimension("algorithm.name=grpo,gspo").choices == ("grpo", "gspo")


@pytest.mark.parametrize(
    "text", ["optim.learning_rate", "rate=1..2", "optim.x=2..1", "optim.x=0..1:log", "optim.x=a..b"]
)
def test_a_range_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--search"):
        read_dimension(text)


def test_a_search_finds_the_best_trial_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search = ["--search", "optim.learning_rate=1e-4..1e-2:log", "--search", "model.max_tokens=2,4"]
    with listening(stage()) as url:
        command = ["tune", "demo", "--url", url, "--out", str(tmp_path), *search, *settings("run.updates=1")]
        assert main([*command, "--trials", "1"]) == 0
        assert main([*command, "--trials", "2"]) == 0
    said = capsys.readouterr().out
    assert said.count("trial 0:") == said.count("trial 1:") == 1
    assert "best held-out reward" in said.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.glob("trial-*")) == ["trial-000", "trial-001"]


def test_a_trial_that_diverges_is_left_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def command(*rates: str) -> list[str]:
        search = [part for rate in rates for part in ("--search", f"optim.learning_rate={rate}")]
        changes = settings("run.updates=2", "rollout.group_size=4", "model.threads=1")
        folder = str(tmp_path / "-".join(rates))
        return ["tune", "demo", "--url", url, "--out", folder, *search, *changes, "--trials", "4"]

    with listening(stage()) as url:
        assert main(command("1e-3,1e30")) == 0
        said = capsys.readouterr().out
        assert "failed: " in said
        assert "best held-out reward" in said.splitlines()[-1]
        assert "learning_rate=1e-3" in said.splitlines()[-1]
        assert main(command("1e30")) == 2
        assert "all 4 trials failed, the last one with: " in capsys.readouterr().err


@pytest.mark.slow
def test_ray_tune_plays_two_trials_at_a_time_and_one_process_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = ["--search", "optim.learning_rate=1e-4..1e-2:log", "--search", "model.max_tokens=2,4"]
    on_ctrl_c = signal.getsignal(signal.SIGINT)
    with listening(stage()) as url:
        command = ["tune", "demo", "--url", url, "--out", str(tmp_path), *search, *settings("run.updates=1")]
        assert main([*command, "--trials", "2", "--workers", "2"]) == 0
        assert signal.getsignal(signal.SIGINT) is on_ctrl_c
        assert main([*command, "--trials", "3"]) == 0
    said = capsys.readouterr().out
    assert "2 trials, 2 at a time" in said
    assert "trial 2:" in said
    rewards = [score(folder) for folder in sorted(tmp_path.glob("trial-*"))]
    assert len(rewards) == 3
    assert f"best held-out reward {max(rewards):.3f}" in said.splitlines()[-1]


def test_a_key_that_is_searched_and_does_not_exist_is_refused_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", "demo", "--search", "optim.rate=1..2", "--out", str(tmp_path / "runs")]) == 2
    assert "optim.rate: unknown" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
