"""`labs preferences export`: a file that trainers read, and its manifest."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from learner.conversations import read_pairs
from learner.tiny import build_model, build_tokenizer
from reward_server.cli.preferences import app
from reward_server.errors import InvalidRequest, LabsError
from reward_server.settings import Settings
from reward_server.store.migrate import migrate
from reward_server.store.store import Store
from tests.store.builders import a_comparison
from trainer_client.chat.tokens import Renderer

ANSWERS = {"a": ["Since when?", "Do you take any painkillers?"], "b": ["Next, please."]}


def talk(number: int, side: str) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": "You are a nurse."}, {"role": "user", "content": f"I am tired {number}."}]
    for line in ANSWERS[side]:
        messages += [{"role": "assistant", "content": line}, {"role": "user", "content": "For two weeks."}]
    return messages


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Eight comparisons of acme and one of another lab."""

    async def fill() -> None:
        settings = Settings(data=tmp_path)
        await migrate(settings.database)
        store = await Store.open(settings.database)
        async with store.transaction() as work:
            for number in range(9):
                sides: dict[str, Any] = {f"messages_{side}": talk(number, side) for side in "ab"}
                await work.comparisons.add(a_comparison(lab_id="acme" if number < 8 else "other", winner="a", **sides))
        await store.close()

    asyncio.run(fill())
    return tmp_path


def run(data: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["export", "--data", str(data), *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_file_of_a_lab_comes_with_a_manifest(data: Path) -> None:
    out = data / "pairs.jsonl"
    said = run(data, "--lab", "acme", "--out", str(out))
    manifest = json.loads((data / "pairs.manifest.json").read_text())
    assert manifest["pairs"] == len(out.read_text().splitlines()) == 8
    assert manifest["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert manifest["sources"] == {"compare": 8}
    assert "8 pairs in" in said
    first = out.read_bytes()
    run(data, "--lab", "acme", "--out", str(out))
    assert out.read_bytes() == first


def test_a_lab_without_pairs_gets_no_file(data: Path) -> None:
    out = data / "nothing.jsonl"
    with pytest.raises(LabsError, match=f"nobody has no pairs to export .data {re.escape(str(data))}."):
        run(data, "--lab", "nobody", "--out", str(out))
    with pytest.raises(LabsError, match="8 × margin"):
        run(data, "--lab", "acme", "--out", str(out), "--min-margin", "1")
    with pytest.raises(InvalidRequest, match="trl, openrlhf, openai"):
        run(data, "--lab", "acme", "--out", str(out), "--format", "csv")
    assert not list(data.glob("nothing*"))


def words() -> Any:
    texts = ["You are a nurse. I am tired 0 1 2 3 4 5 6 7 8. For two weeks.", *ANSWERS["a"], *ANSWERS["b"]]
    return build_tokenizer(texts)


def test_the_learner_reads_it(data: Path) -> None:
    out = data / "pairs.jsonl"
    run(data, "--lab", "acme", "--out", str(out))
    tokenizer = words()
    pairs = read_pairs(out, Renderer(tokenizer), tokenizer)
    assert len(pairs) == 8
    learned = ["".join(tokenizer.decode(each.ids) for each in pair.chosen if each.sampled) for pair in pairs]
    assert all(ANSWERS["a"][0] in text and ANSWERS["a"][1] in text and "weeks" not in text for text in learned)
    assert {pair.margin for pair in pairs} == {a_comparison().margin}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("provenance", ["--provenance", "--no-provenance"])
def test_trl_reads_it_and_trains_on_it(data: Path, provenance: str) -> None:
    from datasets import load_dataset
    from trl import DPOConfig, DPOTrainer
    from trl.data_utils import is_conversational

    out = data / "pairs.jsonl"
    run(data, "--lab", "acme", "--out", str(out), provenance)
    rows = load_dataset("json", data_files=str(out), split="train", cache_dir=str(data / "cache"))
    assert is_conversational(rows[0])
    tokenizer = words()
    settings = DPOConfig(
        output_dir=str(data / "run"), max_steps=2, per_device_train_batch_size=2, report_to=[], use_cpu=True, bf16=False
    )
    model, reference = (build_model(tokenizer, layers=1, width=16, heads=2, context=256, seed=0) for _ in range(2))
    trainer = DPOTrainer(
        model=model, ref_model=reference, args=settings, train_dataset=rows, processing_class=tokenizer
    )
    shown = tokenizer.decode(trainer.train_dataset[0]["chosen_ids"])
    assert ANSWERS["a"][0] in shown
    assert "For two weeks." in shown  # as the page says: what the persona says between is learned as well
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert trainer.state.global_step == 2
    assert all(loss > 0 for loss in losses)


def test_the_until_of_a_manifest_gives_the_same_file_again(data: Path) -> None:
    out = data / "pairs.jsonl"
    run(data, "--lab", "acme", "--out", str(out))
    before = out.read_bytes()
    until = json.loads((data / "pairs.manifest.json").read_text())["until"]

    async def add_a_later_one() -> None:
        store = await Store.open(Settings(data=data).database)
        sides: dict[str, Any] = {f"messages_{side}": talk(9, side) for side in "ab"}
        later = datetime.fromisoformat(until) + timedelta(days=1)
        async with store.transaction() as work:
            await work.comparisons.add(a_comparison(lab_id="acme", winner="a", created_at=later, **sides))
        await store.close()

    asyncio.run(add_a_later_one())
    run(data, "--lab", "acme", "--out", str(out), "--until", until)
    assert out.read_bytes() == before
    run(data, "--lab", "acme", "--out", str(out), "--until", "2999-01-01")
    assert len(out.read_text().splitlines()) == 9
    with pytest.raises(InvalidRequest, match="--until must be a time such as 2026-01-31T12:00:00Z, not soon"):
        run(data, "--lab", "acme", "--out", str(out), "--until", "soon")
