"""The folder of a run: the learner's last word, and what is cleared away; and its environment."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reward_server.training.folder import forget_runs, refusal_in, run_folder
from reward_server.training.process import environment


def test_the_last_refusal_is_told_without_the_names_of_folders(tmp_path: Path) -> None:
    printed = f"update 1\nlearner: first\nlearner: {tmp_path}/rows.jsonl: line 3 is no JSON\nupdate 2\n"
    assert refusal_in(printed, tmp_path) == "rows.jsonl: line 3 is no JSON"
    assert refusal_in("Traceback\nValueError: learner: no\n", tmp_path) is None
    assert len(refusal_in(f"learner: {'x' * 5000}", tmp_path) or "") < 500


def test_only_what_this_attempt_printed_counts(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "acme", "run_a")
    assert (folder.log_size(), folder.last_line(0)) == (0, None)
    folder.place.mkdir(parents=True)
    folder.log.write_text("learner: old\n")
    since = folder.log_size()
    assert folder.last_line(since) is None
    with folder.log.open("a") as log:
        log.write("learner: new\n")
    assert folder.last_line(since) == "new"


def test_old_folders_of_runs_that_nobody_knows_are_deleted(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    for name, age in (("run_known", 9), ("run_new", 0), ("run_old", 9)):
        place = run_folder(tmp_path, "acme", name).place
        place.mkdir(parents=True)
        (place / "learner.log").write_text("")
        then = (now - timedelta(days=age)).timestamp()
        os.utime(place, (then, then))
    forget_runs(tmp_path, {"run_known"}, now - timedelta(hours=1))
    assert sorted(path.name for path in (tmp_path / "labs" / "acme").iterdir()) == ["run_known", "run_new"]


def test_the_learner_sees_none_of_the_servers_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("LABS_PEPPER", "LABS_DATABASE_URL", "LABS_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY")
    for name in (*secrets, "HF_TOKEN", "WANDB_API_KEY"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    seen = environment("http://127.0.0.1:1", None)
    assert "canary" not in seen.values()
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["LABS_URL"]) == ("1", "http://127.0.0.1:1")
    assert environment("http://127.0.0.1:1", "lab_x")["LABS_API_KEY"] == "lab_x"
