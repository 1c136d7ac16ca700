"""The benchmark of fine-tuning, on a tiny encoder: the product decides, and the report says what it decided."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.unfreezing import Clock, first_pairs, report, trained
from reward_server.reward_models.finetune import Tuning
from tests.reward_models.talks import preferred_talks
from tests.reward_models.tiny_encoder import make_tiny_encoder

pytestmark = pytest.mark.slow


def test_the_first_pairs_are_read_as_the_command_reads_them(tmp_path: Path) -> None:
    folder = tmp_path / "hh_rlhf_harmless"
    folder.mkdir()
    with gzip.open(folder / "pairs.jsonl.gz", "wt", encoding="utf-8") as file:
        for number in range(5):
            start = f"\n\nHuman: Question {number}?\n\nAssistant: "
            file.write(json.dumps({"chosen": f"{start}Gladly.", "rejected": f"{start}No."}) + "\n")
    found = first_pairs(tmp_path, 3, tmp_path)
    assert [pair.chosen.turns[0].text for pair in found.preferred] == [f"Question {number}?" for number in range(3)]
    assert [pair.chosen.turns[1].text for pair in found.preferred] == ["Gladly."] * 3


@pytest.mark.slow
def test_the_report_says_what_the_training_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABS_ENCODER", str(make_tiny_encoder(tmp_path / "encoder")))
    clock = Clock()
    made = trained(preferred_talks(60), tmp_path, clock, Tuning(head_epochs=1, epochs=1))
    assert {"training", "fine-tuning", "training anew"} <= set(clock.heard)
    assert clock.extra() > 0.0
    text = report(made, 7.4)
    found = made.card.finetuning
    assert f"| heads on the frozen encoder | {found['frozen']:.3f}" in text
    assert f"| heads on the tuned encoder | {found['tuned']:.3f}" in text
    assert f"| tuned minus frozen | {found['difference']['value']:.3f} [" in text
    assert f"Kept: {found['kept']}. Fine-tuning took 7 times" in text
    other = "tuned" if found["kept"] == "frozen" else "frozen"
    card = made.card.model_copy(update={"finetuning": {**found, "kept": other}})
    assert f"Kept: {other}." in report(replace(made, card=card), 7.4)
