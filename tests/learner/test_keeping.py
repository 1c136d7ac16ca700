"""Whatever ends a run, the updates before it are kept."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from torch import Tensor

from learner import checkpoint, loop, update
from learner.cli.main import main
from learner.objectives import LossInputs, LossOutput, Objective
from learner.update import NonFiniteError
from tests.learner import quick
from tests.learner.stage import StageServer, listening, refusal
from tests.learner.test_loop import SCRIPT, config, digest, records, run
from tests.learner.test_single_turn import SINGLE, Evaluator

RARELY = {"checkpoint_every": 100}


def kept_at(folder: Path) -> int:
    found = checkpoint.newest(folder / "checkpoints")
    assert found is not None
    return found.step


def not_a_number_at(call: int) -> Callable[..., LossOutput]:
    """The loss of a policy, which at this call is not a number."""
    calls: list[Tensor] = []
    honest = update.policy_loss

    def loss(logp: Tensor, inputs: LossInputs, objective: Objective) -> LossOutput:
        calls.append(logp)
        found = honest(logp, inputs, objective)
        return LossOutput(found.loss * float("nan"), found.metrics) if len(calls) == call else found

    return loss


def test_an_evaluation_that_fails_costs_no_update_and_is_made_up_for(tmp_path: Path) -> None:
    settings = config(tmp_path, 2, evaluation={"every": 2}, run=RARELY)
    whole = run(settings, tmp_path / "whole")
    server = StageServer(turns=2)
    # Eight held-out episodes and two updates of twelve are played before the evaluation.
    server.faults = {number: refusal(502, "judge_failed") for number in range(33, 100)}
    with pytest.raises(loop.NoEpisodesError, match=r"judge_failed (.|\s)*continues from update 2$"):
        run(settings, tmp_path / "parts", server)
    assert [record["step"] for record in records(tmp_path / "parts", "eval")] == [0]
    assert digest(run(settings, tmp_path / "parts")) == digest(whole)
    rewards = [[record["reward/mean"] for record in records(tmp_path / name, "eval")] for name in ("whole", "parts")]
    assert rewards[0] == rewards[1]
    assert len(rewards[0]) == 2


def test_a_gradient_that_is_not_a_number_costs_no_update_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(update, "policy_loss", not_a_number_at(3))
    with pytest.raises(NonFiniteError, match=r"continues from update 2$"):
        run(config(tmp_path, 4, run=RARELY), tmp_path / "run")
    assert kept_at(tmp_path / "run") == 2


def test_half_an_update_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two steps, the second one of the second update fails."""
    monkeypatch.setattr(update, "policy_loss", not_a_number_at(4))
    with pytest.raises(NonFiniteError, match=r"continues from update 0$"):
        run(config(tmp_path, 4, run=RARELY, optim={"minibatches": 2}), tmp_path / "run")
    assert kept_at(tmp_path / "run") == 0


def test_a_transcript_that_is_gone_does_not_end_the_run(tmp_path: Path) -> None:
    class Forgetful(StageServer):
        def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
            is_log = method == "GET" and "/episodes/" in path
            return refusal(404, "episode_not_found") if is_log else super().answer(method, path, body)

    said: list[str] = []
    opened = run(config(tmp_path, 1, run=RARELY), tmp_path / "run", Forgetful(turns=2), say=said.append)
    assert opened.saved == 1
    told = f"the transcript of seed {loop.FIRST_HELD_OUT_SEED} cannot be fetched: No."
    assert told in said
    assert "cannot be fetched" in (tmp_path / "run" / "samples" / "update-0001.txt").read_text()


def test_replies_whose_batch_is_refused_are_errored(tmp_path: Path) -> None:
    class Failing(Evaluator):
        batches = 0

        def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
            self.batches += path.endswith("/batch/evaluate")
            return refusal(500, "internal") if self.batches >= 4 else super().answer(method, path, body)

    # The evaluation and two updates are scored.
    with pytest.raises(loop.NoEpisodesError, match=r"12 episodes failed; .* internal (.|\s)*continues from update 2$"):
        run(config(tmp_path, 4, **SINGLE, run=RARELY), tmp_path / "run", Failing())
    assert kept_at(tmp_path / "run") == 2


@pytest.mark.slow
def test_sigterm_ends_after_the_update_however_often_it_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def score(said: Sequence[str]) -> float:
        if len(server.created) > 2 + 4 and len(said) in waiting:
            waiting.remove(len(said))
            os.kill(os.getpid(), signal.SIGTERM)
        return min(1.0, len("".join(said)) / 200)

    waiting = [1, 2]
    server = StageServer(turns=2, score=score)
    changes = quick.settings("evaluation.every=100", "run.checkpoint_every=100")
    ours = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with listening(server) as url:
            assert main(["demo", "--out", str(tmp_path), "--updates", "4", "--url", url, *changes]) == 130
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, ours)
    assert not waiting
    assert capsys.readouterr().err.endswith("interrupted; the same command will continue from update 2\n")


def test_the_command_says_where_a_run_on_a_file_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    row: dict[str, Any] = {
        "messages": [
            {"role": "user", "content": "hello, I am number 3"},
            {"role": "assistant", "content": "tell me more."},
        ]
    }
    (tmp_path / "rows.jsonl").write_text(f"{json.dumps(row)}\n" * 4)
    (tmp_path / "run.toml").write_text("")
    changes = [
        f'warmup.script="{tmp_path}/script.json"',
        'algorithm.name="sft"',
        f'data.file="{tmp_path}/rows.jsonl"',
        "model.layers=1",
        "model.heads=2",
        "optim.warmup_updates=0",
        "run.updates=400",
        "run.checkpoint_every=100",
        "evaluation.every=100",
        "optim.learning_rate=1e19",
    ]
    command = ["train", str(tmp_path / "run.toml"), "--out", str(tmp_path / "run"), *quick.settings(*changes)]
    assert main(command) == 2
    kept = kept_at(tmp_path / "run")
    assert kept > 0
    assert capsys.readouterr().err.endswith(f"'skip'. The same command continues from update {kept}\n")
