"""What a run leaves to look at: figures with units, a report in one file, TensorBoard, W&B; and what it says before."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from learner import plan
from learner.cli import main
from learner.config import load
from learner.display import progress_bar
from learner.metric_names import METRICS
from learner.metrics import read_metrics
from learner.presets import preset_file, preset_names
from learner.report import write_report
from learner.run import open_run
from tests.learner.quick import QUICK, settings, stage
from tests.learner.stage import listening


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with TensorBoard beside its metrics."""
    path = tmp_path_factory.mktemp("watched") / "run"
    with listening(stage()) as url:
        command = ["train", "demo", "--url", url, "--out", str(path)]
        assert main([*command, *settings("log.tensorboard=true", "run.updates=2")]) == 0
    return path


def test_every_figure_of_a_run_is_named_with_its_unit(folder: Path) -> None:
    written = {name for record in read_metrics(folder / "metrics.jsonl") for name in record} - {"kind", "step"}
    families = {"score/": "score/DIMENSION", "ends/": "ends/REASON"}
    known = {next((general for start, general in families.items() if name.startswith(start)), name) for name in written}
    assert known - set(METRICS) == set()
    assert json.loads((folder / "units.json").read_text())["update/entropy"] == "nats per token"


def test_the_report_is_one_file_with_curves_and_dialogues(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert "<svg" in page
    for title in ("reward", "dimensions", "KL to the initial weights", "entropy", "clip share", "lengths", "fluency"):
        assert title in page
    assert "seconds per update" in page
    assert "persona: hello, I am number" in page
    loaded = re.findall(r"""(?:src|href)=["'](?!#)([^"']+)""", page)
    assert loaded == []
    assert (folder / "curve.png").exists()


def test_figures_have_words_and_the_reward_has_the_level_before_training(tmp_path: Path) -> None:
    figures = {"reward/mean": 0.2, "reward/standard_error": 0.1, "score/D1_Care": 0.5, "mine/own": 1.0}
    records = [{"kind": "eval", "step": step, **figures} for step in (0, 10)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    page = write_report(tmp_path).read_text()
    for words in ("mean reward of the episodes", "mean of one dimension of the reward: D1_Care", "mine/own"):
        assert f">{words}</td>" in page
    assert '<td title="reward/mean">' in page
    assert "before training" in page
    (tmp_path / "metrics.jsonl").write_text(json.dumps(records[1]) + "\n")
    assert "before training" not in write_report(tmp_path).read_text()


def test_what_was_said_is_shown_and_not_run(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"kind": "eval", "step": 0, "reward/mean": 0.2}\n')
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "update-0000.txt").write_text("policy : <script>alert(1)</script>\n")
    with pytest.raises(KeyError):  # the curve needs the standard error, as every evaluation has it
        write_report(tmp_path)
    (tmp_path / "metrics.jsonl").write_text(
        '{"kind": "eval", "step": 0, "reward/mean": 0.2, "reward/standard_error": 0.1}\n'
    )
    page = write_report(tmp_path).read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_report_of_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "contains no run" in capsys.readouterr().err


def test_tensorboard_has_the_figures_of_the_file(folder: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    rewards = [record for record in read_metrics(folder / "metrics.jsonl") if record["kind"] == "train"]
    found = events.Scalars("train/reward/mean")
    assert [(each.step, pytest.approx(each.value, abs=1e-6)) for each in found] == [
        (record["step"], record["reward/mean"]) for record in rewards
    ]


@pytest.mark.slow
def test_wandb_writes_offline_what_can_be_sent_later(tmp_path: Path) -> None:
    with listening(stage()) as url:
        command = ["train", "demo", "--url", url, "--out", str(tmp_path / "run")]
        assert main([*command, *settings("log.wandb=offline", "run.updates=1")]) == 0
    [written] = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    assert b"train/reward/mean" in written.read_bytes()


def test_a_dry_run_says_what_would_be_done_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage()
    with listening(server) as url:
        command = ["train", "ppo", "--url", url, "--out", str(tmp_path / "run"), "--dry-run"]
        assert main([*command, *settings()]) == 0
    said = capsys.readouterr().out
    assert "critic" in said
    assert re.search(r"memory +about [\d,]+ MB in all; there are [\d,]+ MB", said)
    assert "2 groups of 2: 4 episodes of at most 12 turns" in said
    assert server.created == []
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_too_little_memory_is_said_before_it_runs_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "memory_there", lambda device: 1e6)
    told = r"too little: the run may need [\d,]+ MB, and there are 1 MB; lower optim\.micro_tokens"
    with listening(stage()) as url:
        command = ["train", "demo", "--url", url, "--out", str(tmp_path / "run"), *settings("run.updates=1")]
        assert main([*command, "--dry-run"]) == 0
        assert re.search(told, capsys.readouterr().out)
        assert main(command) == 0
        assert re.search(told, capsys.readouterr().out)


def test_a_container_may_have_less_memory_than_its_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("machine", "MemTotal:  2000 kB\nMemFree: 5 kB\n"), ("some", "1024\n"), ("all", "max\n")):
        (tmp_path / name).write_text(text)
    machine = (str(tmp_path / "machine"), plan._MEMORY[0][1], 1024.0)

    def there(container: str) -> float | None:
        monkeypatch.setattr(plan, "_MEMORY", (machine, (str(tmp_path / container), plan._MEMORY[1][1], 1.0)))
        return plan.memory_there("cpu")

    assert [there(each) for each in ("some", "all", "none")] == [1024.0, 2000 * 1024.0, 2000 * 1024.0]


def test_a_dry_run_needs_no_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "demo", "--url", "http://127.0.0.1:9", "--out", str(tmp_path / "run"), "--dry-run"]
    assert main(command) == 0
    assert "http://127.0.0.1:9 does not answer" in capsys.readouterr().out


def test_what_is_allowed_and_probably_not_meant_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "vapo", "--url", "http://127.0.0.1:9", "--out", str(tmp_path / "run"), "--dry-run"]
    assert main(command) == 0
    assert "note" not in capsys.readouterr().out
    assert main([*command, *settings("run.updates=2", "parallel.kind=fsdp")]) == 0
    said = capsys.readouterr().out
    assert "in all 2 updates only the critic learns: set algorithm.overrides.critic_warmup (now 2)" in said
    assert "parallel.kind = 'fsdp' has no effect: there is only one process" in said
    lines: list[str] = []
    open_run(load(preset_file("vapo"), [*QUICK, "run.updates=2"]), tmp_path / "run", lines.append)
    assert any("only the critic learns" in line for line in lines)


def test_presets_and_figures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["presets"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == preset_names()
    assert main(["presets", "vapo"]) == 0
    assert 'name = "vapo"' in capsys.readouterr().out
    assert main(["metrics"]) == 0
    assert re.search(r"update/clip_share +share of tokens", capsys.readouterr().out)


def test_the_bar_tells_the_time_that_is_left_at_the_pace_so_far() -> None:
    assert progress_bar(0, 4, 0, 0.0) == "[....................] 0/4"
    assert progress_bar(2, 4, 0, 20.0) == "[##########..........] 2/4, 20 s left"
    assert progress_bar(3, 4, 2, 90.0) == "[###############.....] 3/4, 2 min left"
    assert progress_bar(4, 4, 2, 90.0) == "[####################] 4/4"
