"""Adapters in a run of the command line: they alone are trained and stored, and a run goes on with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from learner.config import ConfigError
from learner.lora import LoraSettings, narrow_frozen, with_adapters
from learner.model import Policy
from learner.packed import trial_rows
from learner.run import Run
from learner.stored import open_stored
from tests.learner.small import qwen3_config
from tests.learner.test_loop import config, digest, run

LORA: dict[str, Any] = {"lora": {"rank": 4, "alpha": 8}}


def base_weights(opened: Run) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in opened.policy.model.state_dict().items() if "lora_" not in name}


def test_only_adapters_are_trained_and_the_reference_is_what_is_below_them(tmp_path: Path) -> None:
    settings = config(tmp_path, 2, **LORA, algorithm={"name": "grpo_kl"})
    opened = run(settings, tmp_path / "run")
    trained = [name for name, value in opened.policy.model.named_parameters() if value.requires_grad]
    assert trained
    assert all("lora_" in name for name in trained)
    stored = tmp_path / "run" / "checkpoints" / "step-000002" / "model"
    assert (stored / "adapter_config.json").exists()
    assert not (stored / "model.safetensors").exists()
    assert opened.reference is not None
    assert opened.reference.model is opened.policy.model


def test_layers_that_the_model_does_not_have_are_named_by_their_setting() -> None:
    model = AutoModelForCausalLM.from_config(qwen3_config(50))
    with pytest.raises(ConfigError, match=r"lora\.targets: .*nope"):
        with_adapters(model, LoraSettings(targets=("nope",)))


@pytest.mark.parametrize("tied", [False, True])
def test_frozen_weights_of_16_bits_give_the_same_numbers_in_half_of_the_memory(tied: bool) -> None:
    config = qwen3_config(50)
    config.tie_word_embeddings = tied
    torch.manual_seed(0)
    model = with_adapters(AutoModelForCausalLM.from_config(config), LoraSettings(rank=4))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "lora_" in name:
                value.normal_(std=0.1)
    rows = trial_rows(Policy(model, end_id=0))

    def of() -> tuple[torch.Tensor, torch.Tensor]:
        policy = Policy(model, end_id=0, autocast=torch.bfloat16)
        assert policy.packs
        model.zero_grad()
        logp = policy.score_rows(rows)[0]
        logp.sum().backward()  # type: ignore[no-untyped-call]
        return logp.detach(), torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])

    before = of()
    narrow_frozen(model, torch.bfloat16)
    assert all(torch.equal(one, other) for one, other in zip(before, of(), strict=True))
    layers = {name for name, value in model.named_parameters() if value.dtype is torch.bfloat16}
    assert len([name for name in layers if "base_layer" in name]) == 7 * config.num_hidden_layers
    assert any("lm_head" in name for name in layers)
    assert not [name for name in layers if "lora_" in name or "embed" in name]


@pytest.mark.slow
def test_a_run_in_16_bits_keeps_the_frozen_weights_so_and_its_critic_whole(tmp_path: Path) -> None:
    settings = config(tmp_path, 1, **LORA, algorithm={"name": "ppo"}, model={"precision": "bfloat16"})
    opened = run(settings, tmp_path / "run")
    kinds = {value.dtype for name, value in opened.policy.model.named_parameters() if "base_layer" in name}
    assert kinds == {torch.bfloat16}
    assert opened.critic is not None
    assert {value.dtype for value in opened.critic.parameters()} == {torch.float32}


@pytest.mark.slow
def test_a_run_with_adapters_goes_on_as_if_it_had_not_been_interrupted(tmp_path: Path) -> None:
    whole = run(config(tmp_path, 4, **LORA), tmp_path / "whole")
    run(config(tmp_path, 2, **LORA), tmp_path / "parts")
    resumed = run(config(tmp_path, 4, **LORA), tmp_path / "parts")
    assert digest(resumed) == digest(whole)
    before = base_weights(whole)
    assert all(torch.equal(value, before[name]) for name, value in base_weights(resumed).items())


def test_an_exported_run_with_adapters_is_a_plain_model_that_says_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from transformers import AutoModelForCausalLM, logging

    from learner.cli import main

    opened = run(config(tmp_path, 2, **LORA, optim={"learning_rate": 0.1}), tmp_path / "run")
    logging.enable_progress_bar()  # type: ignore[no-untyped-call]
    capfd.readouterr()
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "plain"), "--which", "last"]) == 0
    assert "it/s" not in capfd.readouterr().err
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "plain").eval()
    ids = torch.tensor([[5, 9, 12, 7]])
    with torch.no_grad():
        given, found = plain(ids).logits, opened.policy.model(ids).logits
    assert torch.allclose(given, found, atol=1e-4)
    assert json.loads((tmp_path / "plain" / "config.json").read_text())["model_type"] == "llama"
    assert open_stored(tmp_path / "plain").renderer.end_id == opened.renderer.end_id


@pytest.mark.parametrize("which", ["first", "99"])
def test_a_checkpoint_that_is_none_is_named(which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from learner.cli import main

    (tmp_path / "run" / "checkpoints" / "step-000004").mkdir(parents=True)
    assert main(["export", str(tmp_path / "run"), str(tmp_path / "plain"), "--which", which]) == 2
    assert which in capsys.readouterr().err
