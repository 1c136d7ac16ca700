"""Learning from files: preferences and imitation; rows that cannot be used are named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from learner import offline
from learner.cli import main
from learner.config import ConfigError, load, read
from learner.conversations import RowError, as_segments, pair_of, read_conversations, read_pairs
from learner.run import Run, open_run
from learner.split import split
from learner.stored import chosen_checkpoint
from tests.learner.small import policy, tokenizer
from tests.learner.test_chat_templates import TEMPLATES
from tests.learner.test_chat_templates import tokenizer as bytes_tokenizer
from tests.learner.test_defects import REWRITES
from tests.learner.test_loop import config, digest, records
from trainer_client.chat.dialogue import read_chat
from trainer_client.chat.tokens import Renderer
from trainer_client.chat.tools import message_of

WORDS = tokenizer()
RENDERER = Renderer(WORDS)
GOOD, BAD = "tell me more.", "go away!"


def pairs() -> list[dict[str, Any]]:
    prompts = [f"hello, I am number {number}" for number in range(10)]
    return [{"prompt": prompt, "chosen": GOOD, "rejected": BAD, "margin": 0.5} for prompt in prompts]


def conversations() -> list[dict[str, Any]]:
    said = {"role": "assistant", "content": GOOD}
    return [{"messages": [{"role": "user", "content": f"hello, I am number {number}"}, said]} for number in range(10)]


def write(folder: Path, rows: list[Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def trained(folder: Path, name: str, updates: int, path: Path, *, at: str = "run") -> Run:
    settings = config(
        folder,
        updates,
        algorithm={"name": name},
        data={"file": str(path), "batch": 4, "micro": 3, "held_out_share": 0.2},
        optim={"learning_rate": 2e-3},
        warmup={"steps": 3},
    )
    opened = open_run(settings, folder / at, lambda line: None)
    offline.train(opened, lambda line: None)
    return opened


@pytest.mark.parametrize("name", ["dpo", "dpo_margin", "ipo"])
def test_what_was_preferred_becomes_more_likely_than_what_was_not(name: str, tmp_path: Path) -> None:
    trained(tmp_path, name, 6, write(tmp_path, pairs()))
    held_out = records(tmp_path / "run", "eval")
    assert held_out[0]["preference/margin"] == pytest.approx(0.0, abs=1e-4)
    assert held_out[0]["preference/accuracy"] == 0.5, "all margins are zero: ties"
    assert held_out[-1]["preference/accuracy"] == 1.0
    assert held_out[-1]["preference/margin"] > 0.5
    assert held_out[-1]["update/loss"] < held_out[0]["update/loss"]


def test_imitation_makes_what_is_shown_likely_and_a_run_goes_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    said = [
        {"messages": [{"role": "user", "content": row["prompt"]}, {"role": "assistant", "content": GOOD}]}
        for row in pairs()
    ]
    path = write(tmp_path, said)
    whole = trained(tmp_path, "sft", 4, path, at="whole")
    losses = [record["update/loss"] for record in records(tmp_path / "whole", "eval")]
    assert losses[-1] < losses[0] - 0.2
    trained(tmp_path, "sft", 2, path, at="parts")
    assert digest(trained(tmp_path, "sft", 4, path, at="parts")) == digest(whole)


def test_the_likelihood_of_the_chosen_keeps_it_from_falling_with_the_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, pairs())
    gains = []
    for weight in (0.0, 1.0):
        chosen = {"name": "dpo", "overrides": {"positive_nll": weight}}
        settings = config(
            tmp_path,
            6,
            algorithm=chosen,
            data={"file": str(path), "batch": 4, "held_out_share": 0.2},
            optim={"learning_rate": 2e-3},
            warmup={"steps": 3},
        )
        opened = open_run(settings, tmp_path / str(weight), lambda line: None)
        offline.train(opened, lambda line: None)
        gains.append(records(tmp_path / str(weight), "eval")[-1]["preference/chosen_gain"])
    assert gains[1] > gains[0] + 0.1


@pytest.mark.parametrize("overrides", [{}, {"positive_nll": 1.0}], ids=["plain", "likelihood"])
def test_the_step_is_the_same_however_the_pairs_are_cut(overrides: dict[str, float], tmp_path: Path) -> None:
    path = write(tmp_path, [{**row, "margin": 0.1 + number} for number, row in enumerate(pairs())])
    found = []
    for micro in (1, 8):
        settings = config(
            tmp_path,
            1,
            algorithm={"name": "dpo_margin", "overrides": overrides},
            data={"file": str(path), "batch": 8, "micro": micro},
            warmup={"steps": 1},
        )
        opened = open_run(settings, tmp_path / str(micro), lambda line: None)
        offline.train(opened, lambda line: None)
        found.append(records(tmp_path / str(micro), "train")[0])
    assert found[0]["update/loss"] == pytest.approx(found[1]["update/loss"], rel=1e-4)
    assert found[0]["update/grad_norm"] == pytest.approx(found[1]["update/grad_norm"], rel=1e-3)


def test_every_row_comes_once_before_any_a_second_time_and_held_out_ones_never() -> None:
    learned, held_out = split(list(range(10)), 0.2, 3)
    assert sorted([*learned, *held_out]) == list(range(10))
    assert len(held_out) == 2
    seen = Counter(row for step in range(1, 5) for row in offline.batch_of(learned, step, 4, 3))
    assert set(seen) == set(learned)
    assert set(seen.values()) == {2}
    assert len(split([1], 0.9, 0)[0]) == 1


def test_of_a_pair_only_what_comes_after_the_prompt_is_learned(tmp_path: Path) -> None:
    begin = [
        {"role": "system", "content": "tell me why"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "the sky is blue."},
        {"role": "user", "content": "yes"},
    ]
    row = {
        name: [*begin, {"role": "assistant", "content": text}] for name, text in (("chosen", GOOD), ("rejected", BAD))
    }
    [pair] = read_pairs(write(tmp_path, [row]), RENDERER, WORDS)
    assert [segment.sampled for segment in pair.chosen] == [False, True]
    assert WORDS.decode(list(pair.chosen[1].ids)) == f"{GOOD}<|im_end|>"
    assert "the sky is blue." in WORDS.decode(list(pair.chosen[0].ids))
    assert "tell me why" in WORDS.decode(list(pair.chosen[0].ids))
    whole = as_segments(read_chat(row["chosen"]), RENDERER, WORDS)
    assert [segment.sampled for segment in whole] == [False, True, False, True]


def test_a_conversation_forks_in_a_file_as_it_does_in_a_rollout() -> None:
    words = bytes_tokenizer(REWRITES)
    messages = [{"role": role, "content": "yes"} for role in ("user", "assistant", "user", "assistant")]
    whole = as_segments(read_chat(messages), Renderer(words), words)
    assert [segment.fork for segment in whole] == [False, False, True, False]
    later = as_segments(read_chat(messages), Renderer(words), words, learned_from=3)
    assert later[0].ids == whole[2].ids


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "row 2: not valid JSON"),
        ("[]", "row 2: not a JSON object"),
        ('{"chosen": "a", "rejected": "a", "prompt": "b"}', "row 2: `chosen` and `rejected` are the same"),
        (
            '{"chosen": "a", "rejected": "b"}',
            "row 2: after the system prompt, user and assistant messages must alternate",
        ),
        (
            '{"chosen": "xyz", "rejected": "a", "prompt": "b"}',
            "row 2: an assistant message contains the control token '<|unk|>'",
        ),
        ('{"chosen": "a", "prompt": "b"}', "row 2: `rejected` must be a list of messages or a text"),
        ('{"chosen": "a", "rejected": "c", "prompt": "b", "margin": -1}', "row 2: `margin` must be"),
        (
            '{"chosen": [{"role": "tool", "content": ""}], "rejected": "c", "prompt": "b"}',
            "row 2: a `tool` message must follow the assistant message that made the call",
        ),
    ],
)
def test_a_row_that_cannot_be_used_is_named(line: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, pairs()[:1])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(RowError, match=message):
        read_pairs(path, RENDERER, WORDS)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ({"name": "send", "arguments": "no object"}, "a tool call of `messages` must be"),
        ({"arguments": {}}, "a tool call of `messages` must be"),
        ("send", "a tool call of `messages` must be"),
    ],
)
def test_a_tool_call_that_cannot_be_learned_is_named(call: Any, told: str, tmp_path: Path) -> None:
    said = {"role": "assistant", "content": None, "tool_calls": [call if isinstance(call, str) else {"function": call}]}
    row = {"messages": [{"role": "user", "content": "hello"}, said]}
    with pytest.raises(RowError, match=told):
        read_conversations(write(tmp_path, [row]), RENDERER, WORDS)


def test_tool_calls_and_tools_of_a_row_are_learned_as_rollouts_show_them() -> None:
    words = bytes_tokenizer(TEMPLATES["qwen2_5"])
    renderer = Renderer(words)
    tool = {"type": "function", "function": {"name": "send", "description": "Sends one.", "parameters": {}}}
    call = {"type": "function", "function": {"name": "send", "arguments": '{"value": "new"}'}}
    said = {"role": "assistant", "content": "I will send one.", "tool_calls": [call]}
    messages = [{"role": "system", "content": "You help."}, {"role": "user", "content": "It leaks."}, said]
    given, learned = as_segments(read_chat(messages), renderer, words, tools=[tool])
    assert list(given.ids) == renderer.within("You help.", [tool]).opening("It leaks.")
    assert learned.sampled
    whole = words.apply_chat_template(
        [*messages[:2], {**said, "tool_calls": [{"function": {"name": "send", "arguments": {"value": "new"}}}]}],
        tokenize=False,
        tools=[tool],
    )
    assert whole.startswith(words.decode([*given.ids, *learned.ids]))
    read = message_of(renderer.spoken(list(learned.ids)).text)
    assert [(each.name, each.input) for each in read.tool_calls or ()] == [("send", {"value": "new"})]


def test_the_best_of_a_run_on_a_file_has_the_lowest_held_out_loss_and_is_kept(tmp_path: Path) -> None:
    settings = config(
        tmp_path,
        12,
        algorithm={"name": "sft"},
        data={"file": str(write(tmp_path, conversations())), "batch": 4, "held_out_share": 0.2},
        optim={"learning_rate": 0.3, "schedule": "linear", "final_share": 1.0},
        evaluation={"every": 1, "stop_after": 2},
        run={"checkpoint_every": 100, "keep": 1},
        warmup={"steps": 1},
    )
    told: list[str] = []
    opened = open_run(settings, tmp_path / "run", told.append)
    offline.train(opened, told.append)
    losses = {record["step"]: record["update/loss"] for record in records(tmp_path / "run", "eval")}
    best = min(losses, key=lambda step: losses[step])
    assert opened.step == best + 2 < 12
    assert told[-1] == f"stopped at update {opened.step}: no better result in the last 2 evaluations"
    assert chosen_checkpoint(tmp_path / "run", "best").step == best
    assert chosen_checkpoint(tmp_path / "run", "last").step == opened.step


def test_without_an_evaluation_the_best_is_the_last(tmp_path: Path) -> None:
    settings = config(
        tmp_path,
        2,
        algorithm={"name": "sft"},
        data={"file": str(write(tmp_path, conversations())), "batch": 4, "held_out_share": 0.0},
        warmup={"steps": 1},
    )
    opened = open_run(settings, tmp_path / "run", lambda line: None)
    offline.train(opened, lambda line: None)
    assert chosen_checkpoint(tmp_path / "run", "best").step == 2


def test_a_row_that_is_longer_than_the_context_is_named_before_anything_is_learned(tmp_path: Path) -> None:
    opening = {"role": "user", "content": "hello, I am number 3"}
    long = [opening, {"role": "assistant", "content": GOOD}] * 300
    path = write(tmp_path, [*pairs()[:1], {"prompt": [*long, opening], "chosen": GOOD, "rejected": BAD}])
    with pytest.raises(RowError, match=r"row 2: [\d,]+ tokens are more than the 2,048 of the model's context"):
        trained(tmp_path, "dpo", 1, path)
    said = [{"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": GOOD}]}]
    with pytest.raises(RowError, match=r"row 1: .* of the model's context"):
        read_conversations(write(tmp_path, said), RENDERER, WORDS, context=4)
    assert len(read_conversations(write(tmp_path, said), RENDERER, WORDS, context=64)) == 1


def test_pairs_are_scored_as_one_side_at_a_time(tmp_path: Path) -> None:
    """Packed, with what the sides begin with once: in value and gradient."""
    acting = policy(WORDS, spread=3.0)
    long = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "the sky is blue."}] * 3
    rows = [*pairs()[:2], {"prompt": [*long, {"role": "user", "content": "yes"}], "chosen": GOOD, "rejected": BAD}]
    found = read_pairs(write(tmp_path, rows), RENDERER, WORDS)
    sides = [side for pair in found for side in (pair.chosen, pair.rejected)]
    assert acting.packs
    packed = offline._sums(acting, sides)
    (packed * torch.arange(6)).sum().backward()
    gradients = [each.grad.clone() for each in acting.model.parameters()]
    acting.model.zero_grad()
    alone = torch.stack([acting.score_padded([side])[0].sum() for side in sides])
    (alone * torch.arange(6)).sum().backward()
    assert torch.allclose(packed, alone, atol=1e-4)
    assert all(
        torch.allclose(one, other.grad, atol=1e-3)
        for one, other in zip(gradients, acting.model.parameters(), strict=True)
    )


def test_what_the_tokenizer_cannot_spell_is_said_so() -> None:
    with pytest.raises(RowError, match="cannot spell an assistant message"):
        pair_of({"prompt": "hello", "chosen": "Straße 日本", "rejected": "go away!"}, Renderer(WORDS), WORDS)


def test_a_file_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RowError, match="all pairs are ties"):
        read_pairs(write(tmp_path, [{**pairs()[0], "margin": 0}]), RENDERER, WORDS)
    with pytest.raises(RowError, match="the file has no rows"):
        read_conversations(write(tmp_path, []), RENDERER, WORDS)
    with pytest.raises(RowError, match=r"data\.file: cannot read"):
        read_pairs(tmp_path / "nothing.jsonl", RENDERER, WORDS)
    with pytest.raises(ConfigError, match=r"data\.file: 'dpo' learns from a file"):
        read({"algorithm": {"name": "dpo"}})


def test_algorithms_are_shown_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['transformers'] = None\n"
        "from learner.cli import main\nsys.exit(main(['algorithms', '--show', 'vapo']) or main(['algorithms']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "arXiv 2504.05118" in done.stdout
    assert "dpo_margin" in done.stdout


def test_rows_that_cannot_be_used_are_told_together_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.run.warmed_up", lambda *_: pytest.fail("a model was built"))
    bad: list[Any] = [{**row, "chosen": "Straße"} for row in said_pairs()[:3]]
    rows = write(tmp_path, [*said_pairs(), *bad, {"chosen": "a"}, 5])
    assert main(["train", str(run_file(tmp_path, rows)), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "5 of 15 rows cannot be used" in error
    assert "row 11 (and 2 more rows): the tokenizer of the model cannot spell" in error
    assert "row 14: " in error
    assert "row 15: not a JSON object" in error
    assert error.rstrip().endswith("--skip-bad")
    assert error.count("\n") == 1


def run_file(folder: Path, rows: Path, more: str = "") -> Path:
    """A quick run on a file of pairs."""
    path = folder / "run.toml"
    path.write_text(
        f'[algorithm]\nname = "dpo"\n[data]\nfile = "{rows}"\nbatch = 4\n'
        f"[model]\nwidth = 32\n[warmup]\nsteps = 1\n[run]\nupdates = 1\n{more}"
    )
    return path


def said_pairs() -> list[dict[str, Any]]:
    """Pairs in words of the packaged script."""
    return [{**row, "chosen": "tell me more.", "rejected": "go on."} for row in pairs()]


def test_rows_that_cannot_be_used_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = [{**row, "chosen": "Straße 日本"} for row in pairs()[:3]]
    path = run_file(tmp_path, write(tmp_path, [*bad, *said_pairs()]))
    assert main(["train", str(path), "--out", str(tmp_path / "run"), "--skip-bad"]) == 0
    assert "3 of 13 rows are left out: row 1 (and 2 more rows)" in capsys.readouterr().out
    with pytest.raises(RowError, match="3 of 3 rows cannot be used"):
        read_pairs(write(tmp_path, bad), RENDERER, WORDS, skip_bad=True)


@pytest.mark.slow
def test_a_start_that_failed_does_not_block_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    rows = write(tmp_path, said_pairs())
    settings = load(run_file(tmp_path, rows))
    open_run(settings, folder, lambda line: None)  # and then something ends it, before the first update
    assert main(["train", str(run_file(tmp_path, rows, "seed = 1\n")), "--out", str(folder)]) == 0
    assert "made no update and had another configuration; starting anew" in capsys.readouterr().out
    assert records(folder, "train")[-1]["step"] == 1
    # What was learned is not thrown away like that, but for who asks for it.
    (folder / "notes.txt").write_text("mine")
    other = str(run_file(tmp_path, rows, "seed = 2\n"))
    assert main(["train", other, "--out", str(folder)]) == 2
    assert "replace it with --overwrite" in capsys.readouterr().err
    assert main(["train", other, "--out", str(folder), "--overwrite"]) == 0
    assert json.loads((folder / "config.json").read_text())["shape"]["run"]["seed"] == 2
    assert (folder / "notes.txt").exists()


def test_a_folder_that_is_no_runs_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model"
    policy(WORDS).model.save_pretrained(model)
    path = run_file(tmp_path, write(tmp_path, said_pairs()))
    assert main(["train", str(path), "--out", str(model), "--overwrite"]) == 2
    assert "contains something else than a run" in capsys.readouterr().err
    assert (model / "config.json").exists()
