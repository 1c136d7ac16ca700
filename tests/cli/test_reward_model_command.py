"""`labs reward-model`: from a file to a model that serves, and one line for everything that is wrong."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import scenarios
from reward_server.cli import main as cli
from reward_server.cli import reward_model, training
from reward_server.errors import InvalidRequest
from reward_server.fitting.reward_model import metrics, tools
from reward_server.reward_models import artefact, fitness
from reward_server.reward_models.dataset import split
from reward_server.reward_models.registry import Registry
from reward_server.store.migrate import migrate
from reward_server.store.store import Store
from scenarios.lint import is_scenario
from tests.reward_models.talks import labelled_talks
from tests.reward_models.tiny_encoder import make_tiny_encoder
from tests.store.builders import an_evaluation

pytestmark = pytest.mark.slow

Json = dict[str, Any]
PACKAGED = Path(scenarios.__file__).parent / "collections"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(make_tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny"))


@pytest.fixture
def home(tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder and a small encoder, as the environment of the commands."""
    monkeypatch.setenv("LABS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LABS_ENCODER", tiny)
    monkeypatch.setattr(metrics, "RESAMPLES", 50)
    return tmp_path


def data_file(folder: Path, count: int = 80) -> Path:
    path = folder / "talks.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows(count)))
    return path


def rows(count: int, groups: int = 20) -> list[Json]:
    roles = {"agent": "assistant", "persona": "user"}
    return [
        {
            "messages": [{"role": roles[said.party], "content": said.text} for said in row.conversation.turns],
            "scores": {"lamps": row.scores["lamps"]},
            "score": row.scores["score"],
            "group": row.group,
        }
        for row in labelled_talks(count, groups).labelled
    ]


def labs(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["labs", "reward-model", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def trained(home: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    code = labs(monkeypatch, "train", data_file(home), "--out", home / "model", "--epochs", 12, *options)
    assert code == 0
    return artefact.read_card(home / "model").id


def test_a_model_is_trained_listed_activated_measured_and_exported(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert labs(monkeypatch, "list") == 0
    listed = capsys.readouterr()
    assert (listed.out, listed.err.count("\n")) == ("", 1)
    assert "no reward model yet: labs reward-model train" in listed.err
    model = trained(home, monkeypatch)
    said = capsys.readouterr().out.replace("\n", " ")
    assert model in said
    assert "Training ended at its limit of 12 epochs" in said
    assert "no row has a `scenario`: in a scenario, as the server always scores," in said
    assert "limit of 12 epochs" in (home / "model" / "report.md").read_text()
    assert labs(monkeypatch, "list") == 0
    line = capsys.readouterr().out
    assert line.startswith(f"{model}  created=")
    assert "active" not in line
    assert labs(monkeypatch, "activate", model, "--force") == 0
    assert Registry(home / "data" / "reward-models").active_id() == model
    assert "labs: its card says: no row has a `scenario`" in capsys.readouterr().err
    labs(monkeypatch, "list")
    assert capsys.readouterr().out.rstrip().endswith("active")
    assert labs(monkeypatch, "evaluate", model, home / "talks.jsonl", "--out", home / "measured") == 0
    said = capsys.readouterr().out.replace("\n", " ")
    split = artefact.read_card(home / "model").split
    assert f"{split['train'] + split['validation']} of 80 rows were trained on: figures on them say little" in said
    assert "rows were trained on" in (home / "measured" / "report.md").read_text()
    assert "Figures on these rows, " in (home / "measured" / "report.md").read_text()
    assert "held-out" not in said
    assert labs(monkeypatch, "activate", "--off") == 0
    assert Registry(home / "data" / "reward-models").active_id() is None
    capsys.readouterr()
    assert labs(monkeypatch, "activate", model, "--force", "--lab", "acme") == 0
    assert "Lab acme" not in capsys.readouterr().err
    assert labs(monkeypatch, "activate", "--off") == 0
    assert capsys.readouterr().err.splitlines() == [
        "No reward model that all labs share is active.",
        f"Lab acme has an active model of its own, {model}: --lab acme.",
    ]
    assert labs(monkeypatch, "list") == 0
    shared, of_acme = capsys.readouterr().out.splitlines()
    assert of_acme == f"{shared}  lab=acme  active"
    assert labs(monkeypatch, "list", "--lab", "acme") == 0
    assert capsys.readouterr().out.splitlines() == [of_acme]
    monkeypatch.setattr(sys, "argv", ["labs", "doctor"])
    with pytest.raises(SystemExit):
        cli.main()
    assert f"none is active for all other labs, {model} is active for lab acme" in capsys.readouterr().out
    assert labs(monkeypatch, "activate", "--off", "--lab", "acme") == 0
    assert capsys.readouterr().err == "No reward model of lab acme is active.\n"


def test_a_model_below_a_simple_baseline_is_not_activated_unless_forced(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fitness, "CHANCE", 2.0)
    monkeypatch.setattr(fitness, "MIN_STYLE_PAIRS", 0)
    model = trained(home, monkeypatch)
    assert "should not serve: " in capsys.readouterr().out
    assert labs(monkeypatch, "activate", model) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"labs: {model} is not activated: ")
    assert line.endswith("--force activates it anyway")
    assert Registry(home / "data" / "reward-models").active_id() is None
    assert labs(monkeypatch, "activate", model, "--force") == 0


def test_a_model_of_rows_with_their_scenario_is_activated_without_a_word_on_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "played.jsonl"
    file.write_text("".join(f"{json.dumps({**row, 'scenario': 'A visit.'})}\n" for row in rows(80)))
    assert labs(monkeypatch, "train", file, "--out", home / "model", "--epochs", 4) == 0
    assert labs(monkeypatch, "activate", home / "model", "--force") == 0
    said = capsys.readouterr()
    assert "no `scenario`" not in said.out + said.err
    assert "has a `scenario`" not in said.out + said.err


def test_an_exported_model_scores_as_the_trained_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from reward_server.reward_models.portable import load

    trained(home, monkeypatch, "--keep-uncertainty")
    assert labs(monkeypatch, "export", home / "model", "--out", home / "export") == 0
    readme = (home / "export" / "README.md").read_text()
    assert "`pip install` a checkout" in readme
    assert "## Use" in readme
    assert "- `uncertainty.safetensors`" in readme
    assert "`report.md` has intervals and baselines.\n" in readme
    messages = rows(1)[0]["messages"]
    found = load(home / "export").score(messages)
    assert found == load(home / "model").score(messages)
    assert set(found) == {"score", "lamps", "epistemic", "noise"}
    wrong: Any
    for wrong in ("x", None, ["x"], [{"role": "user"}], []):
        with pytest.raises(InvalidRequest):
            load(home / "model").score(wrong)
    assert 0.0 <= found["score"] <= 1.0


def test_what_little_data_cannot_give_is_said_and_not_exported(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = home / "few.jsonl"
    few = [{**row, "group": f"g{n % 10}"} for n, row in enumerate(rows(60))]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in few))
    options = ("--epochs", 12)
    assert labs(monkeypatch, "train", file, "--out", home / "model", *options) == 0
    said = capsys.readouterr().out.replace("\n", " ")
    assert "no uncertainty: fewer than 3 held-out groups cannot show that it sorts errors" in said
    assert "no intervals for labels: they need 3 groups to be measured on and have 2" in said
    assert labs(monkeypatch, "evaluate", home / "model", file) == 0
    assert "was trained without one" in capsys.readouterr().out
    assert labs(monkeypatch, "export", home / "model", "--out", home / "export") == 0
    readme = (home / "export" / "README.md").read_text()
    assert "uncertainty.safetensors" not in readme
    assert "baselines, but no intervals." in readme
    assert "It does not know how sure it is" in readme
    assert "- `encoder/`: the text encoder st/" in readme


def test_labels_that_are_all_the_same_measure_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trained(home, monkeypatch)
    same = home / "same.jsonl"
    same.write_text("".join(f"{json.dumps({**row, 'score': 1, 'scores': {}})}\n" for row in rows(40)))
    capsys.readouterr()
    assert labs(monkeypatch, "evaluate", home / "model", same, "--out", home / "measured") == 1
    said = capsys.readouterr().err
    assert "all 40 labels of `score` are 1: there is nothing to tell apart" in said
    assert said.count("\n") == 1
    assert not (home / "measured").exists()


def test_labels_to_learn_from_that_are_all_alike_give_a_model_without_doubt(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = labelled_talks(36, 36)
    held_out = {row.group for row in split(dataset, 0).held_out.labelled}
    file = home / "skewed.jsonl"
    odd, few = min(held_out), [{**row, "scores": {}} for row in rows(36, 36)]
    file.write_text("".join(f"{json.dumps({**row, 'score': float(row['group'] != odd)})}\n" for row in few))
    assert labs(monkeypatch, "train", file, "--out", home / "model", "--epochs", 4) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "no uncertainty: all labels to learn from are equal; add rows with other labels" in said
    card = artefact.read_card(home / "model")
    assert (card.recipe["uncertainty"], "uncertainty.safetensors" in card.files) == ("none", False)


def test_nothing_to_resume_is_said(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("train", data_file(home), "--out", home / "model", "--epochs", 3)
    assert labs(monkeypatch, *arguments, "--resume") == 0
    assert "nothing to resume" in capsys.readouterr().err


def test_a_finished_model_has_nothing_to_resume(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = trained(home, monkeypatch)
    capsys.readouterr()
    assert labs(monkeypatch, "train", home / "talks.jsonl", "--out", home / "model", "--resume") == 1
    said = capsys.readouterr().err
    assert f"nothing to resume: the model in {home / 'model'} is finished ({model})" in said
    assert said.count("\n") == 1


def test_ctrl_c_before_the_training_says_that_nothing_was_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    arguments = ("train", data_file(home), "--out", home / "model")
    for module, slow in ((training, "read"), (tools, "tools_on"), (training, "run")):
        with monkeypatch.context() as patched:
            patched.setattr(module, slow, interrupted)
            assert labs(patched, *arguments) == 130
        assert capsys.readouterr().err == (
            "labs: interrupted; nothing was kept yet, so the same command starts from the beginning\n"
        )
    kept = home / "model.training"
    kept.mkdir()
    (kept / "state.json").write_text("{}")
    monkeypatch.setattr(training, "read", interrupted)
    assert labs(monkeypatch, *arguments) == 130
    assert "interrupted; the same command with --resume continues" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_terminal_shows_at_once_that_something_happens(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Before the data is read and the encoder is loaded, which takes seconds."""
    told: list[tuple[str, int]] = []

    @contextmanager
    def listening(_: object) -> Iterator[Any]:
        yield lambda stage, done, total: told.append((stage, done))

    def seen(*_: object) -> None:
        raise InvalidRequest("that is all")

    arguments: tuple[object, ...] = (data_file(home), "--out", home / "new")
    if command == "evaluate":
        trained(home, monkeypatch)
        arguments = (home / "model", *arguments)
    room = training if command == "train" else reward_model
    monkeypatch.setattr(room, "shown", listening)
    with monkeypatch.context() as patched:
        patched.setattr(room, "read", seen)
        assert labs(patched, command, *arguments) == 1
    assert told == [("reading", 0)]
    assert labs(monkeypatch, command, *arguments, *(("--epochs", 2) if command == "train" else ())) == 0
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages[:2] == ["reading", "loading the encoder"]
    assert stages[-1] == "measuring"
    assert {("baselines", 0), ("encoding", 0)} <= set(told)


def test_the_store_of_other_labs_is_not_called_empty(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fill() -> None:
        url = f"sqlite:///{home / 'data' / 'labs.sqlite'}"
        await migrate(url)
        store = await Store.open(url)
        async with store.transaction() as unit:
            await unit.evaluations.add_many([an_evaluation(lab_id="acme"), an_evaluation(lab_id="development")])
        await store.close()

    (home / "data").mkdir()
    asyncio.run(fill())
    assert labs(monkeypatch, "train", "--from-store", "--lab", "nolab", "--out", home / "model") == 1
    said = capsys.readouterr().err
    assert "lab nolab has no evaluations in the store; --lab takes one of these: acme (1), development (1)" in said
    assert labs(monkeypatch, "train", "--from-store", "--out", home / "model") == 1
    assert "several labs have rows in the store: give --lab or --all-labs" in capsys.readouterr().err
    assert labs(monkeypatch, "train", "--from-store", "--all-labs", "--out", home / "model") == 1
    assert "none of the 2 stored rows has a reward of the rubric alone in a scenario" in capsys.readouterr().err


def test_going_on_with_the_store_goes_on_with_the_rows_of_then(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server scores meanwhile: the same command could not go on if rows of now were read."""
    names = [(each.parent.name, each.stem) for each in sorted(PACKAGED.glob("*/*.yaml")) if is_scenario(each)]

    def some(start: int, end: int) -> list[Any]:
        where = names[:6]
        return [
            an_evaluation(
                collection=where[n % 6][0],
                scenario=where[n % 6][1],
                messages=[{"role": "user", "content": "Hi."}, {"role": "assistant", "content": f"{n} " + "word " * n}],
                reward=n / 100,
                scores=None,
            )
            for n in range(start, end)
        ]

    async def add(rows: list[Any]) -> None:
        url = f"sqlite:///{home / 'data' / 'labs.sqlite'}"
        await migrate(url)
        store = await Store.open(url)
        async with store.transaction() as unit:
            await unit.evaluations.add_many(rows)
        await store.close()

    @contextmanager
    def stopping(_: object) -> Iterator[Any]:
        def report(stage: str, done: int, total: int) -> None:
            if (stage, done) == ("training", 3):
                raise KeyboardInterrupt

        yield report

    (home / "data").mkdir()
    asyncio.run(add(some(0, 60)))
    whole = ("train", "--from-store", "--epochs", 8, "--out")
    assert labs(monkeypatch, *whole, home / "whole") == 0
    with monkeypatch.context() as patched:
        patched.setattr(training, "shown", stopping)
        assert labs(patched, *whole, home / "model") == 130
    kept = home / "model.training" / "rows.json"
    assert kept.stat().st_mode & 0o077 == 0
    asyncio.run(add(some(60, 61)))
    capsys.readouterr()
    assert labs(monkeypatch, *whole, home / "model", "--resume", "--lab", "acme") == 1  # that is another question
    assert "is of other data or settings" in capsys.readouterr().err
    assert labs(monkeypatch, *whole, home / "model", "--resume") == 0
    assert not kept.exists()
    assert artefact.read_card(home / "model").id == artefact.read_card(home / "whole").id


def bad_rows(*changes: Json) -> str:
    good = rows(60)
    for change in changes:
        good[1] = {**good[1], **change}
    return "".join(f"{json.dumps(row)}\n" for row in good)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (bad_rows({"score": 7}), "row 2: `score` is outside 0 to 1; give the scale as --scale LOW HIGH"),
        (bad_rows({"score": float("nan")}), "row 2: `score` is not a finite number"),
        (bad_rows({"messages": None}), "row 2: `messages` must be a list"),
        ("".join(f"{json.dumps({**row, 'score': 1})}\n" for row in rows(60)), "all 60 labels of `score` are 1"),
        ("".join(f"{json.dumps(row)}\n" for row in rows(8)), "too little data: 8 usable rows, at least 30 are needed"),
        (bad_rows({"score": None, "scores": None, "ratings": []}), "row 2: no label: `scores` or `ratings` is empty"),
        ("", "holds no usable row"),
    ],
)
def test_bad_data_is_one_line_and_nothing_is_written(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], content: str, line: str
) -> None:
    path = home / "bad.jsonl"
    path.write_text(content)
    assert labs(monkeypatch, "train", path, "--out", home / "model") == 1
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1
    assert not (home / "model").exists()
    assert not (home / "data" / "reward-models").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("train",), "give a file of labelled conversations or preference pairs, or --from-store"),
        (("train", "talks.jsonl", "--from-store"), "give a file or --from-store, not both"),
        (("train", "nowhere.jsonl"), "nowhere.jsonl cannot be read: No such file or directory"),
        (("train", "--from-store", "--out", "new"), "the store holds no evaluations yet"),
        (("activate", "rm_000000000000"), "There is no reward model rm_000000000000; labs reward-model list shows"),
        (("activate",), "give a model, or --off"),
        (("evaluate", "rm_000000000000", "talks.jsonl"), "There is no reward model rm_000000000000; labs"),
        (("export", "nonsense", "--out", "new"), "There is no such reward model; labs reward-model list"),
        (
            ("train", "talks.jsonl", "--encoder", "/nonexist"),
            "--encoder (or LABS_ENCODER) is no model folder and no reachable model name: /nonexist",
        ),
        (("train", "talks.jsonl", "--lab", "acme"), "--lab has no effect without --from-store"),
        (("train", "talks.jsonl", "--all-labs"), "--all-labs has no effect without --from-store"),
        (("train", "--from-store", "--lab", "acme", "--all-labs"), "give --lab or --all-labs, not both"),
        (("train", "talks.jsonl", "--version", "sv_1"), "--version has no effect without --from-store"),
        (("train", "talks.jsonl", "--encoder", "no/such/model"), "is no model folder and no reachable model name"),
    ],
)
def test_a_wrong_call_is_one_line(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    line: str,
) -> None:
    data_file(home)
    monkeypatch.chdir(home)
    assert labs(monkeypatch, *arguments) == 1
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "value", "line"),
    [
        ("--ties", "lose", "Invalid value for '--ties': 'lose' is not one of 'drop', 'half' (see "),
        ("--reads", "lips", "'lips' is not one of 'answers', 'words' (see "),
        ("--epochs", "0", "Invalid value for '--epochs'"),
    ],
)
def test_a_value_that_an_option_does_not_take_is_a_wrong_call(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], option: str, value: str, line: str
) -> None:
    assert labs(monkeypatch, "train", "talks.jsonl", option, value) == 2
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


def test_a_place_that_cannot_be_written_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = home / "a-file"
    blocked.write_text("")
    assert labs(monkeypatch, "train", data_file(home), "--out", blocked / "model", "--epochs", 12) == 1
    said = capsys.readouterr().err
    assert "cannot be read or written: Not a directory" in said.splitlines()[-1]
    assert "Traceback" not in said


def test_a_model_of_another_encoder_is_not_activated(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = trained(home, monkeypatch)
    assert labs(monkeypatch, "activate", model, "--encoder", "packaged") == 1
    assert "was trained with the encoder st/" in capsys.readouterr().err
    assert Registry(home / "data" / "reward-models").active_id() is None


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on_and_going_on_ends_the_same(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, place = home / "model", home / "model.training"
    arguments = ["train", str(data_file(home, 120)), "--out", str(out), "--epochs", "80"]
    command = [sys.executable, "-m", "reward_server.cli.main", "reward-model", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (place / "state.json").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command with --resume continues" in said
    assert not out.exists()
    assert labs(monkeypatch, *arguments, "--resume") == 0
    assert not place.exists()
    again = [*arguments[:3], str(home / "whole"), *arguments[4:]]
    assert labs(monkeypatch, *again) == 0
    # The same heads to the last bit; only the numbers of resamples, which the environment decides, might differ.
    first, second = (artefact.read(folder).card.files for folder in (out, home / "whole"))
    assert first == second


def test_the_card_names_the_encoder_as_it_is_found_from_anywhere(
    home: Path, tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(tiny).parent)
    file = data_file(home)
    assert labs(monkeypatch, "train", file, "--out", home / "model", "--epochs", 12, "--encoder", "tiny") == 0
    assert artefact.read_card(home / "model").encoder == str(Path(tiny).resolve())
    monkeypatch.chdir(home)
    assert labs(monkeypatch, "evaluate", home / "model", file) == 0


def test_the_help_says_which_scoring_version_holds_without_an_option() -> None:
    train: Any = get_command(reward_model.app).commands["train"]  # type: ignore[attr-defined]
    [help_text] = [option.help for option in train.params if option.name == "version"]
    assert "default: that of the newest reward of the rubric alone" in help_text
