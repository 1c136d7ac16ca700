"""The loop as a whole: it learns, it resumes exactly, and failures are counted instead of learned from."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from learner import loop
from learner.config import Config, ConfigError, read
from learner.metrics import MetricsFile, plot_curve, read_metrics
from learner.rollout import Collected
from learner.run import Run, open_run
from learner.types import Group
from tests.learner.small import tokenizer, trajectory
from tests.learner.stage import StageServer, client_of, refusal

SCRIPT = {
    "collection": "c",
    "scenario": "s",
    "openings": [f"hello, I am number {number}" for number in range(10)],
    "styles": [
        {
            "name": "any",
            "weight": 1,
            "early": {"good": 1, "chatter": 1, "rude": 1},
            "late": {"good": 1, "chatter": 1, "rude": 1},
        }
    ],
    "exchanges": [
        {"kind": "good", "agent": "tell me more.", "persona": ["yes, that is so 1"]},
        {"kind": "chatter", "agent": "the sky is blue.", "persona": ["yes, that is so 3"]},
        {"kind": "rude", "agent": "go away!", "persona": ["yes, that is so 5"]},
    ],
}


def config(folder: Path, updates: int, **sections: Any) -> Config:
    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    content: dict[str, Any] = {
        "server": {"collection": "c", "scenario": "s", "max_turns": 2},
        "model": {"layers": 1, "width": 32, "heads": 4, "max_tokens": 8},
        "warmup": {"script": str(script), "steps": 40, "batch": 8, "turns": 2, "learning_rate": 1e-2},
        "rollout": {"groups": 2, "group_size": 6},
        "optim": {"learning_rate": 5e-3},
        "evaluation": {"every": 4, "episodes": 8, "samples": 1},
        "run": {"updates": updates, "checkpoint_every": 2},
    }
    for name, values in sections.items():
        content[name] = {**content.get(name, {}), **values}
    return read(content)


def run(
    settings: Config,
    folder: Path,
    server: StageServer | None = None,
    asked_to_end: Callable[[], bool] = lambda: False,
    say: Callable[[str], None] = lambda line: None,
) -> Run:
    server = server or StageServer(turns=2)
    opened = open_run(settings, folder, lambda line: None)

    async def go() -> None:
        async with client_of(server) as client:
            await loop.train(opened, client, say, asked_to_end)

    asyncio.run(go())
    return opened


def digest(opened: Run) -> str:
    state = opened.policy.model.state_dict()
    return hashlib.sha256(b"".join(state[name].numpy().tobytes() for name in sorted(state))).hexdigest()


def records(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [record for record in read_metrics(folder / "metrics.jsonl") if record["kind"] == kind]


def test_the_policy_learns_to_say_what_is_rewarded(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(config(tmp_path, 12), folder)
    held_out = records(folder, "eval")
    assert [record["step"] for record in held_out] == [0, 4, 8, 12]
    assert held_out[-1]["reward/mean"] > held_out[0]["reward/mean"] + 0.25
    assert sorted(path.name for path in (folder / "samples").iterdir()) == ["update-0000.txt", "update-0012.txt"]
    after = (folder / "samples" / "update-0012.txt").read_text()
    assert after.count("policy : ") == 2
    assert "tell" in after


@pytest.mark.slow
def test_a_run_that_was_interrupted_ends_with_the_same_weights(tmp_path: Path) -> None:
    whole = run(config(tmp_path, 4), tmp_path / "whole")
    run(config(tmp_path, 2), tmp_path / "parts")
    resumed = run(config(tmp_path, 4), tmp_path / "parts")
    assert digest(resumed) == digest(whole)
    keys = ("step", "reward/mean", "tokens/sampled", "update/grad_norm")
    rows = [
        [{key: record[key] for key in keys} for record in records(tmp_path / name, "train")]
        for name in ("whole", "parts")
    ]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    "episodes", [9, pytest.param(8 + 12, marks=pytest.mark.slow), pytest.param(8 + 12 + 1, marks=pytest.mark.slow)]
)
def test_a_run_asked_to_end_saves_the_update_it_is_in_and_goes_on_as_if_nothing_had_been(
    tmp_path: Path, episodes: int
) -> None:
    """Asked in the first or second update; checkpoints are due at every second, an evaluation after each."""
    settings = config(tmp_path, 3, evaluation={"every": 1})
    whole = run(settings, tmp_path / "whole")
    server = StageServer(turns=2)
    stopped = run(settings, tmp_path / "parts", server, lambda: len(server.created) >= episodes)
    assert stopped.step == stopped.saved == 1
    assert digest(run(settings, tmp_path / "parts")) == digest(whole)
    for kind in ("train", "eval"):
        rows = [
            [(record["step"], record["reward/mean"]) for record in records(tmp_path / name, kind)]
            for name in ("whole", "parts")
        ]
        assert rows[0] == rows[1]


def test_a_run_that_begins_again_has_one_first_evaluation(tmp_path: Path) -> None:
    settings = config(tmp_path, 1)
    run(settings, tmp_path / "run", asked_to_end=lambda: True)
    assert run(settings, tmp_path / "run").step == 1
    assert [record["step"] for record in records(tmp_path / "run", "eval")] == [0, 1]


def test_what_was_written_after_the_last_checkpoint_is_done_again_once(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(config(tmp_path, 2), folder)
    MetricsFile(folder / "metrics.jsonl").write("train", 3, {"reward/mean": 0.0})
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "train", "st')
    run(config(tmp_path, 4), folder)
    assert [record["step"] for record in records(folder, "train")] == [1, 2, 3, 4]
    assert records(folder, "train")[2]["reward/mean"] > 0.0


def test_another_seed_is_another_run(tmp_path: Path) -> None:
    first = run(config(tmp_path, 1), tmp_path / "a")
    second = run(config(tmp_path, 1, run={"seed": 1}), tmp_path / "b")
    assert digest(first) != digest(second)
    with pytest.raises(ConfigError, match=r"another configuration \(run\.seed was 0\)"):
        open_run(config(tmp_path, 1, run={"seed": 1}), tmp_path / "a", lambda line: None)


@pytest.mark.parametrize(
    ("sections", "named"),
    [
        ({"server": {"reward_config": {"skip_safety_gate": True}}}, "server.reward_config was {}"),
        ({"server": {"max_turns": 1}}, "server.max_turns was 2"),
        ({"server": {"system": "Be kind."}}, "server.system was 'auto'"),
        ({"optim": {"learning_rate": 1e-4}}, "optim.learning_rate was 0.005"),
    ],
)
def test_a_run_does_not_go_on_with_what_would_train_something_else(
    sections: dict[str, Any], named: str, tmp_path: Path
) -> None:
    run(config(tmp_path, 1), tmp_path / "run")
    with pytest.raises(ConfigError, match=re.escape(named)):
        open_run(config(tmp_path, 2, **sections), tmp_path / "run", lambda line: None)


def test_held_out_seeds_are_never_trained_on(tmp_path: Path) -> None:
    server = StageServer(turns=2)
    run(config(tmp_path, 3), tmp_path / "run", server)
    seeds = [content["config"]["seed"] for content in server.created]
    held_out = {seed for seed in seeds if seed >= loop.FIRST_HELD_OUT_SEED}
    trained = set(seeds) - held_out
    assert len(held_out) == 8
    assert len(trained) == 3 * 2


def test_errored_episodes_are_counted_and_in_no_mean(tmp_path: Path) -> None:
    server = StageServer(turns=2, score=lambda said: 0.5 + 0.1 * ("tell" in said[-1]))
    # Eight held-out episodes come first; the first update's are number 9 to 20.
    server.faults = {number: refusal(502, "judge_failed") for number in (9, 15, 16)}
    folder = tmp_path / "run"
    run(config(tmp_path, 1), folder, server)
    first = records(folder, "train")[0]
    assert (first["episodes/errored"], first["episodes/scored"]) == (3, 9)
    assert first["reward/mean"] >= 0.5


def test_if_every_episode_fails_the_run_stops_and_says_why(tmp_path: Path) -> None:
    server = StageServer(turns=2)
    server.faults = {number: refusal(502, "judge_failed") for number in range(1, 100)}
    with pytest.raises(loop.NoEpisodesError, match="all 8 episodes failed; the most frequent error is judge_failed"):
        run(config(tmp_path, 1), tmp_path / "run", server)


def test_a_key_that_stopped_working_is_named_with_the_variable_to_set(tmp_path: Path) -> None:
    server = StageServer(turns=2)
    server.faults = {number: refusal(401, "unauthenticated") for number in range(1, 100)}
    with pytest.raises(loop.NoEpisodesError, match=r"unauthenticated \(.*set LABS_API_KEY"):
        run(config(tmp_path, 1), tmp_path / "run", server)


@pytest.mark.slow
def test_a_kl_run_resumes_with_the_policy_it_began_with(tmp_path: Path) -> None:
    settings = {"algorithm": {"name": "grpo_kl", "overrides": {"beta": 0.5}}}
    whole = run(config(tmp_path, 4, **settings), tmp_path / "whole")
    run(config(tmp_path, 2, **settings), tmp_path / "parts")
    assert digest(run(config(tmp_path, 4, **settings), tmp_path / "parts")) == digest(whole)


def test_a_checkpoint_is_a_model_to_start_from(tmp_path: Path) -> None:
    first = run(config(tmp_path, 2), tmp_path / "first")
    path = str(tmp_path / "first" / "checkpoints" / "step-000002" / "model")
    second = open_run(config(tmp_path, 2, model={"path": path}), tmp_path / "second", lambda line: None)
    assert digest(second) == digest(first)
    assert second.step == 0


def test_the_summary_is_of_scored_episodes_only() -> None:
    words = tokenizer()
    members = tuple(trajectory(words, [("hello", "tell me more.")], [reward]) for reward in (0.2, 0.6))
    values = loop.summary(Collected((Group(1, members, errored=2, error_codes=("x", "y")),), 2.0, 1.0))
    assert values["reward/mean"] == pytest.approx(0.4)
    assert (values["episodes/scored"], values["episodes/errored"]) == (2, 2)
    assert values["reward/standard_error"] == pytest.approx(0.2)


def test_the_curve_is_drawn(tmp_path: Path) -> None:
    rows = [
        {"kind": "eval", "step": 0, "reward/mean": 0.2, "reward/standard_error": 0.01},
        {"kind": "train", "step": 1, "reward/mean": 0.3},
        {"kind": "eval", "step": 2, "reward/mean": 0.5, "reward/standard_error": 0.01},
    ]
    plot_curve({"one": rows, "two": rows[:1]}, tmp_path / "curve.png", "title")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def axes_of(runs: dict[str, list[dict[str, Any]]], path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from matplotlib import pyplot

    drawn = []
    monkeypatch.setattr(pyplot, "close", drawn.append)
    plot_curve(runs, path, "title")
    [figure] = drawn
    return figure.axes[0]


def test_the_legend_names_every_line_and_of_several_runs_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"kind": "eval", "step": 0, "reward/mean": 0.2, "reward/standard_error": 0.01},
        {"kind": "train", "step": 1, "reward/mean": 0.3},
    ]

    def named(name: str) -> list[str]:
        with monkeypatch.context() as patched:
            axes = axes_of({name: rows}, tmp_path / "curve.png", patched)
        return sorted(text.get_text() for text in axes.get_legend().get_texts())

    assert named("") == ["held-out seeds", "training"]
    assert named("seed 1") == ["seed 1: held-out seeds", "seed 1: training"]


def test_updates_are_counted_in_whole_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"kind": "eval", "step": step, "reward/mean": 0.2, "reward/standard_error": 0.01} for step in (0, 5, 10, 15, 20)
    ]
    for last in (3, 5):
        ticks = axes_of({"": rows[:last]}, tmp_path / "curve.png", monkeypatch).get_xticks()
        assert [tick for tick in ticks if tick != round(tick)] == []


def test_it_is_told_what_is_going_on(tmp_path: Path) -> None:
    told: list[str] = []
    opened = open_run(config(tmp_path, 1), tmp_path / "run", lambda line: None, told.append)
    assert told[:2] == ["warm-up: 0 of 40 steps", "warm-up: 1 of 40 steps"]
    del told[:]

    async def go() -> None:
        async with client_of(StageServer(turns=2)) as client:
            await loop.train(opened, client, lambda line: None, now=told.append)

    asyncio.run(go())
    assert told[0] == "held-out seeds, 8 episodes: 0 turns played, 0 finished"
    assert "held-out seeds, 8 episodes: 16 turns played, 8 finished" in told
    assert "update    1  12 episodes: 24 turns played, 12 finished" in told
    assert "update    1  learning from 12 episodes" in told


def test_metrics_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        MetricsFile(tmp_path / "metrics.jsonl").write("train", 1, {"reward/mean": float("nan")})
