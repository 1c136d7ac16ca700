"""The `learner` command, against a stand-in server on loopback."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
from transformers import AutoModelForCausalLM

from learner import policies, run
from learner.cli import main, training
from learner.cli.launching import accelerate_command
from learner.config import ConfigError
from learner.metrics import read_metrics
from learner.models import load_given
from learner.objectives import ALGORITHMS
from learner.warmup import load_script
from tests.learner.quick import settings
from tests.learner.small import qwen3_config, tokenizer
from tests.learner.stage import StageServer, listening, refusal

ROOT = Path(__file__).parents[2]
CHANGES = settings()


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.slow
def test_the_demo_leaves_a_run_and_goes_on_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = StageServer(turns=2, score=lambda said: min(1.0, len("".join(said)) / 200))
    command = ["demo", "--out", str(tmp_path), "--seed", "3", *CHANGES]
    with listening(server) as url:
        assert main([*command, "--url", url, "--updates", "1"]) == 0
        first = capsys.readouterr().out
        assert main([*command, "--url", url, "--updates", "2"]) == 0
        second = capsys.readouterr().out
    assert "held-out reward" in first
    assert "continuing from update 1 of 2" in second
    assert (tmp_path / "curve.png").exists()
    assert (tmp_path / "samples" / "update-0000.txt").exists()
    assert (tmp_path / "checkpoints" / "step-000002" / "manifest.json").exists()
    assert json.loads((tmp_path / "config.json").read_text())["resolved"]["run"]["seed"] == 3
    steps = [record["step"] for record in read_metrics(tmp_path / "metrics.jsonl") if record["kind"] == "train"]
    assert steps == [1, 2]


def test_the_help_names_the_command_as_it_is_typed_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
    assert said.startswith("Usage: labs learner train ")
    assert "such as run.toml" in said
    assert "such as optim.learning_rate=1e-5" in said


@pytest.mark.parametrize(
    ("interrupts", "saved"), [(1, 2), (2, 0)], ids=["the first ends after the update", "the second ends at once"]
)
@pytest.mark.slow
def test_ctrl_c_says_where_the_same_command_will_go_on(
    interrupts: int,
    saved: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first_was_heard = threading.Event()

    def say_it_will_end() -> None:
        say()
        first_was_heard.set()

    def score(said: Sequence[str]) -> float:
        # Two held-out episodes, four of an update, two held-out ones: then the second update has begun.
        if len(server.created) > 2 + 4 + 2 and len(said) in waiting:
            waiting.remove(len(said))
            # Two signals that arrive before the first is handled are delivered as one.
            assert len(waiting) == interrupts - 1 or first_was_heard.wait(60)
            os.kill(os.getpid(), signal.SIGINT)
        return min(1.0, len("".join(said)) / 200)

    # One in the first turn of an episode, the other in the second.
    waiting = list(range(1, interrupts + 1))
    server = StageServer(turns=2, score=score)
    say = training._say_it_will_end
    monkeypatch.setattr(training, "_say_it_will_end", say_it_will_end)
    with listening(server) as url:
        command = ["demo", "--out", str(tmp_path), "--updates", "4", "--url", url, *CHANGES]
        assert main(command) == 130
        error = capsys.readouterr().err
        assert "stopping after this update, with a checkpoint; press Ctrl-C again to stop immediately" in error
        assert error.endswith(f"interrupted; the same command will continue from update {saved}\n")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert (tmp_path / "curve.png").exists()
        assert main(command) == 0
    assert f"continuing from update {saved} of 4" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_that_has_what_is_asked_for_says_that_it_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["demo", "--out", str(tmp_path), *CHANGES]
    with listening(StageServer(turns=2)) as url:
        assert main([*command, "--url", url, "--updates", "2"]) == 0
        capsys.readouterr()
        for asked in ("1", "2"):
            assert main([*command, "--url", url, "--updates", asked]) == 0
            out = capsys.readouterr().out
            assert f"already finished: the run in {tmp_path} has 2 updates and run.updates is {asked}" in out
            assert "going on" not in out


def test_an_algorithm_that_contradicts_itself_is_refused_before_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["--set", "algorithm.name=ppo", "--set", "algorithm.overrides={ratio = 'sequence_mean'}"]
    assert main(["demo", "--url", free_address(), "--out", str(tmp_path / "run"), *changes]) == 2
    assert "algorithm.overrides: advantage 'gae' has a value per token" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["dpoo", "PPO"])
def test_an_algorithm_that_is_none_of_the_table_is_refused_by_name(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--url", free_address(), "--set", f"algorithm.name={name}"]) == 2
    assert f"algorithm.name: {name!r} is unknown" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_in_the_warm_up_says_that_nothing_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    command = ["demo", "--out", str(tmp_path), "--updates", "1", *CHANGES]
    with listening(StageServer(turns=2)) as url:
        with monkeypatch.context() as patched:
            patched.setattr(policies, "warm_up", interrupted)
            assert main([*command, "--url", url]) == 130
        said = "interrupted before there was a checkpoint: nothing is kept, and the same command starts again\n"
        assert capsys.readouterr().err.endswith(said)
        # Where nothing is kept, other settings may take the folder as well.
        assert main([*command, "--url", url, "--set", "warmup.steps=2"]) == 0
        with monkeypatch.context() as patched:
            patched.setattr(run, "load_checkpoint", interrupted)
            assert main([*command, "--url", url, "--set", "warmup.steps=2", "--updates", "2"]) == 130
        assert capsys.readouterr().err.endswith("interrupted; the same command will continue from update 1\n")


def test_the_file_of_the_docs_is_refused_for_its_path_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever pastes it has a path to fill in, and on a machine without a GPU a device."""
    content, *_ = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/training.md").read_text(), re.DOTALL)
    (tmp_path / "run.toml").write_text(content)
    with listening(StageServer(turns=2)) as url:
        assert main(["check", str(tmp_path / "run.toml"), "--url", url]) == 2
    said = "learner: model.path: path/to/a/transformers/model is neither a folder nor the name of a model on the hub"
    assert capsys.readouterr().err.startswith(said)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "model.path=path/to/a/model",
            "model.path: path/to/a/model is neither a folder nor the name of a model on the hub",
        ),
        ("model.path=no/such-model", "model.path: no/such-model: neither a folder nor a model on the hub"),
        ("model.path=FOLDER", "the folder contains no model that can be loaded"),
        ("model.device=gpu", "model.device: 'gpu' cannot be used on this machine"),
    ],
)
def test_a_model_that_cannot_be_had_is_named_by_its_setting(
    change: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with listening(StageServer(turns=2)) as url:
        assert main(["check", "--url", url, "--set", change.replace("FOLDER", str(tmp_path))]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_model_without_its_tokenizer_is_said_so(tmp_path: Path) -> None:
    """Transformers makes an empty tokenizer where there is none: what is missing is not the chat template."""
    AutoModelForCausalLM.from_config(qwen3_config(50)).save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"model\.path: .* there is no tokenizer; it belongs beside the weights"):
        load_given(str(tmp_path))
    tokenizer().save_pretrained(tmp_path)
    assert len(load_given(str(tmp_path))[1]) == len(tokenizer())


@pytest.mark.parametrize(
    ("command", "default"),
    [("demo", "runs/demo-seed-SEED"), ("train", "runs/ and the name of FILE without its ending")],
)
def test_the_help_says_where_a_run_goes(command: str, default: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    assert f"[default: ({default})]" in " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().out).split())


@pytest.mark.slow
def test_train_reads_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[algorithm]\nname = "dapo"\n[run]\nupdates = 1\n')
    with listening(StageServer(turns=2)) as url:
        assert main(["train", str(path), "--url", url, "--out", str(tmp_path / "run"), *CHANGES]) == 0
    resolved = json.loads((tmp_path / "run" / "config.json").read_text())["resolved"]
    assert resolved["algorithm"]["objective"]["eps_high"] == 0.28
    assert "after 1 updates" in capsys.readouterr().out


def test_preferences_are_learned_without_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = (exchange.agent for exchange in load_script("tired-and-dizzy").exchanges[:2])
    pairs = [{"prompt": f"hello {number}", "chosen": good, "rejected": bad} for number in range(6)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    changes = ["algorithm.name=dpo", f"data.file={tmp_path / 'pairs.jsonl'}", "data.batch=2", "run.updates=1"]
    path = tmp_path / "mine.toml"
    path.write_text("")
    command = ["train", str(path), "--out", str(tmp_path / "run"), *CHANGES]
    assert main([*command, *(part for change in changes for part in ("--set", change))]) == 0
    out = capsys.readouterr().out
    assert "preference/accuracy" in out
    assert re.search(r"^held-out loss \d\.\d\d -> \d\.\d\d after 1 updates", out, re.MULTILINE)
    assert (tmp_path / "run" / "checkpoints" / "step-000001").exists()
    assert "clinical-intake" not in (tmp_path / "run" / "report.html").read_text()
    with listening(StageServer(turns=2)) as url:
        more = ["--which", "last", "--scenario", "c/s", "--episodes", "2", "--url", url]
        assert main(["evaluate", str(tmp_path / "run"), *more]) == 0
    out = capsys.readouterr().out
    assert "run, update 1: c/s: " in out
    assert "the run was trained" not in out


def test_check_plays_an_episode_and_compares_log_probabilities(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(StageServer(turns=2)) as url:
        assert main(["check", "--url", url, *CHANGES]) == 0
    out = capsys.readouterr().out
    assert "canary" in out
    assert "fine" in out


@pytest.mark.slow
@pytest.mark.parametrize("place", ["episodes", "turns"])
@pytest.mark.parametrize("command", ["demo", "check"])
def test_what_the_server_says_of_the_most_frequent_error_is_said(
    command: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Strict(StageServer):
        def _create(self, content: dict[str, Any]) -> httpx2.Response:
            return answer if place == "episodes" else super()._create(content)

        def _turn(self, name: str, content: dict[str, Any]) -> httpx2.Response:
            return answer

    told = "No judge `reward_model` is available on this server; train and activate a model."
    answer = httpx2.Response(
        400, json={"message": told, "data": {"request_id": "req_1", "code": "invalid_reward_config"}}
    )
    more = ["--out", str(tmp_path / "run")] if command == "demo" else []
    with listening(Strict()) as url:
        assert main([command, "--url", url, *more, *CHANGES]) != 0
    said = capsys.readouterr()
    assert f"invalid_reward_config ({told.removesuffix('.')})" in said.out + said.err


@pytest.mark.parametrize("command", [["demo"], ["check"]])
def test_no_server_is_one_line(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = free_address()
    more = ["--out", str(tmp_path / "run")] if command == ["demo"] else []
    assert main([*command, "--url", address, *more]) == 2
    error = capsys.readouterr().err
    assert error == f"learner: no server answers at {address}; start one with `./labs serve`\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demo", "--set", "optim.learning_rte=1"], "did you mean 'learning_rate'"),
        (["demo", "--url", "localhost:1"], "must look like"),
        (["train", "nothing.toml"], "cannot read nothing.toml"),
        (["train", "grp0"], "grp0: there is no file and no preset of this name; did you mean 'grpo'?"),
        (["export", "nowhere", "out"], "nowhere is not a folder; give the folder of a run or of a model"),
        (["serve", "learner/data"], "learner/data contains neither a run (checkpoints/) nor a transformers model"),
        (["evaluate", "nowhere"], "nowhere is not a folder; give the folder of a run or of a model"),
        (["algorithms", "--show", "gsp0"], "did you mean 'gspo'"),
    ],
)
def test_a_wrong_call_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_scenario_the_server_does_not_have_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with listening(StageServer()) as url:
        arguments = ["demo", "--url", url, "--out", str(tmp_path), "--set", "server.scenario=nowhere"]
        assert main(arguments) == 2
    assert "has no scenario clinical-intake/nowhere; known are c/s" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("server.scenarios=['c/nowhere']", "server.scenarios: 'c/nowhere' is unknown"),
        ("server.reward_config={composite={combine='mn'}}", "server.reward_config.composite.combine"),
        ("rollout.prompts=nothing.jsonl", "rollout.prompts: cannot read nothing.jsonl"),
        ("data.file=nothing.jsonl", "data.file: cannot read nothing.jsonl"),
    ],
)
def test_a_setting_that_names_nothing_is_refused_before_anything_is_built(
    change: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--set", "rollout.single_turn=true"] if "prompts" in change else []
    more += ["--set", "algorithm.name=sft"] if "data" in change else []
    with listening(StageServer()) as url:
        assert main(["demo", "--url", url, "--out", str(tmp_path / "run"), "--set", change, *more]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("key", "what"), [("wrong", "does not know this key"), ("", "needs a key")])
def test_a_key_that_is_refused_is_one_line_that_says_what_to_do(
    key: str, what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Locked(StageServer):
        def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
            return refusal(401, "unauthenticated")

    monkeypatch.setenv("LABS_API_KEY", key)
    with listening(Locked()) as url:
        assert main(["demo", "--url", url]) == 2
    error = capsys.readouterr().err
    assert f"the server at {url} {what}; set LABS_API_KEY" in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_only_the_scenarios_of_a_mixture_need_to_be_there(tmp_path: Path) -> None:
    class Other(StageServer):
        def _scenario(self, parts: list[str]) -> httpx2.Response:
            return super()._scenario(parts) if parts[-1] == "s" else refusal(404, "scenario_not_found")

    with listening(Other(turns=2)) as url:
        changes = settings("server.scenarios=['c/s']", "run.updates=1")
        assert main(["train", "demo", "--url", url, "--out", str(tmp_path / "run"), *changes]) == 0


@pytest.mark.parametrize("failure", [lambda: torch.empty(1 << 60, dtype=torch.uint8), lambda: bytearray(1 << 62)])
def test_too_little_memory_is_one_line(
    failure: Callable[[], object], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policies, "warm_up", lambda *_, **__: failure())
    with listening(StageServer(turns=2)) as url:
        assert main(["check", "--url", url, *CHANGES]) == 2
    error = capsys.readouterr().err
    assert error.startswith("learner: too little memory; lower optim.micro_tokens or rollout.groups")
    assert error.count("\n") == 1


def test_another_error_is_not_called_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake in the program")

    monkeypatch.setattr(policies, "warm_up", broken)
    with listening(StageServer(turns=2)) as url, pytest.raises(RuntimeError, match="a mistake"):
        main(["check", "--url", url, *CHANGES])


def test_check_reads_the_file_of_an_algorithm_that_needs_no_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = load_script("tired-and-dizzy").exchanges[0].agent
    talk = {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": said}]}
    path = tmp_path / "talks.jsonl"
    path.write_text(f"{json.dumps(talk)}\n" * 3)
    changes = settings("algorithm.name=sft", f"data.file={path}")
    assert main(["check", "--url", free_address(), *changes]) == 0
    out = capsys.readouterr().out
    assert "canary" in out
    assert "file: 3 rows can be learned from" in out


def test_algorithms_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name} " in listed for name in ALGORITHMS)
    assert main(["algorithms", "--show", "gspo"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^ratio +sequence_mean +or token, sequence_sum, sequence_then_token$", shown, re.MULTILINE)
    assert "0.0003" in shown


def test_importing_the_learner_loads_no_heavy_library_and_no_other_room() -> None:
    code = "import json, sys, learner, learner.cli, learner.types; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert names & {"torch", "transformers", "matplotlib", "fastapi", "reward_server", "personas", "scenarios"} == set()


@pytest.mark.slow
def test_no_module_of_the_learner_loads_the_server_or_its_scenarios() -> None:
    code = (
        "import importlib, json, pkgutil, sys, learner\n"
        "for module in pkgutil.walk_packages(learner.__path__, 'learner.'):\n"
        "    if not module.name.endswith('__main__'): importlib.import_module(module.name)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert names & {"reward_server", "personas", "scenarios"} == set()
    assert "torch" in names


def test_a_configuration_is_checked_and_shown_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[run]\nupdates = 3\n")
    assert main(["config", str(file), "--set", "optim.learning_rate=1e-5"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["run"]["updates"], shown["optim"]["learning_rate"]) == (3, 1e-5)
    assert shown["algorithm"]["objective"]["kind"] == "reward"
    file.write_text("[run]\nupdate = 3\n")
    assert main(["config", str(file)]) == 2
    assert capsys.readouterr().err == "learner: run.update: unknown; did you mean 'updates'?\n"


def test_launch_says_what_accelerate_is_to_start() -> None:
    assert accelerate_command(4, 2, 1, "host:29500")[-4:] == [
        "--main_process_ip",
        "host",
        "--main_process_port",
        "29500",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--processes", "3", "--machines", "2"], "cannot be spread evenly"),
        (["--processes", "4", "--machines", "2", "--machine", "2"], "the last is 1"),
        (["--processes", "4", "--machines", "2"], "need --address HOST:PORT"),
        (["--address", "host"], "write it as HOST:PORT"),
    ],
)
def test_a_launch_that_cannot_be_is_one_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["launch", "demo", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1
