"""A decoder trained with adapters on exported pairs is a reward model that the classifier judge reads."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import Qwen3ForSequenceClassification

from learner.tiny import build_tokenizer
from reward_server.classifier.local import LocalClassifier
from tests.learner.small import qwen3_config
from tests.reward_models.talks import KIND, PLAIN

SCRIPT = Path(__file__).parents[2] / "examples" / "reward_model_lora.py"
ASKED = {"role": "user", "content": "hello"}


def said(word: str) -> dict[str, str]:
    return {"role": "assistant", "content": f"well {word}"}


def decoder(folder: Path) -> Path:
    tokenizer = build_tokenizer([" ".join(("hello well", *KIND, *PLAIN))], "qwen")
    torch.manual_seed(0)
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = qwen3_config(len(tokenizer), num_labels=1, **ids)
    Qwen3ForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_adapters_learn_what_people_prefer_and_are_merged_into_a_judge(tmp_path: Path) -> None:
    base, out, pairs = decoder(tmp_path / "base"), tmp_path / "judge", tmp_path / "pairs.jsonl"
    rows = [
        {"prompt": [ASKED], "chosen": [said(kind)], "rejected": [said(plain)], "margin": 0.5}
        for kind in KIND
        for plain in PLAIN
    ]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ["--epochs", "12", "--rate", "1e-2", "--batch", "8", "--accumulate", "1", "--tokens", "64"]
    main = runpy.run_path(str(SCRIPT))["main"]
    main([str(pairs), "--base", str(base), "--out", str(out), *options])

    judge = LocalClassifier(out)
    kind, plain = ([judge.output([ASKED, said(word)]) for word in words] for words in (KIND, PLAIN))
    assert min(kind) > max(plain)
    before, after = (load_file(folder / "model.safetensors") for folder in (base, out))
    assert before.keys() == after.keys()  # merged: nothing is left of the adapters
    assert torch.equal(before["model.embed_tokens.weight"], after["model.embed_tokens.weight"])
    [changed, _] = [name for name in before if name.endswith("self_attn.q_proj.weight")]
    assert not torch.equal(before[changed], after[changed])
    with pytest.raises(SystemExit):
        main([str(pairs), "--base", str(base), "--out", str(out)])  # it is there already
