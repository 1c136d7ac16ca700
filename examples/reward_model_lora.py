"""Trains a decoder as a reward model on preference pairs, with LoRA adapters, for LABS_CLASSIFIER to serve.

    ./labs preferences export --lab development --format trl --out pairs.jsonl
    .venv/bin/python -m pip install "trl>=1.16,<2" "peft>=0.21,<1"
    .venv/bin/python examples/reward_model_lora.py pairs.jsonl --base /models/my-decoder --out /models/my-reward-model
    LABS_CLASSIFIER=/models/my-reward-model ./labs serve

A row has `prompt`, `chosen` and `rejected` as lists of messages, and optionally `margin`, as the export writes them.
The base is a folder or hub name of a decoder whose tokenizer has a chat template. Only the adapters and the output are
trained; the adapters are then added to the weights, so the folder needs no peft to be read.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from datasets import load_dataset
from peft import LoraConfig
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from trl import RewardConfig, RewardTrainer


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, merge, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, help="JSON lines of pairs")
    parser.add_argument("--base", required=True, help="folder or hub name of a decoder with a chat template")
    parser.add_argument("--out", type=Path, required=True, help="new folder for the reward model")
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=1e-4, help="learning rate of the adapters")
    parser.add_argument("--rank", type=int, default=16, help="of the adapters")
    parser.add_argument("--batch", type=int, default=2, help="pairs on the GPU at once")
    parser.add_argument("--accumulate", type=int, default=8, help="batches for each step")
    parser.add_argument("--tokens", type=int, default=2048, help="longer conversations are left out")
    given = parser.parse_args(arguments)
    if not given.pairs.is_file():
        parser.error(f"there is no file {given.pairs}")
    if given.out.exists():
        parser.error(f"{given.out} is there already; name a new folder")
    on_gpu = torch.cuda.is_available()
    tokenizer = AutoTokenizer.from_pretrained(given.base)
    if not tokenizer.chat_template:
        parser.error(f"the tokenizer of {given.base} has no chat template")
    torch.manual_seed(0)  # the output layer starts at random
    model = AutoModelForSequenceClassification.from_pretrained(given.base, num_labels=1, dtype="auto")
    config = RewardConfig(
        output_dir=str(given.out.with_name(f"{given.out.name}.training")),
        num_train_epochs=given.epochs,
        learning_rate=given.rate,
        per_device_train_batch_size=given.batch,
        gradient_accumulation_steps=given.accumulate,
        max_length=given.tokens,
        bf16=on_gpu,
        gradient_checkpointing=on_gpu,
        # Outputs of a pair have no natural zero; near 0 they are easier to scale.
        center_rewards_coefficient=0.01,
        save_strategy="no",
        report_to="none",
        logging_steps=10,
    )
    trainer = RewardTrainer(
        model=model,
        args=config,
        train_dataset=load_dataset("json", data_files=str(given.pairs), split="train"),
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=given.rank, lora_alpha=2 * given.rank, target_modules="all-linear", task_type="SEQ_CLS"
        ),
    )
    trainer.train()
    merged = trainer.accelerator.unwrap_model(trainer.model).merge_and_unload()
    merged.save_pretrained(given.out)
    tokenizer.save_pretrained(given.out)
    print(f"saved: LABS_CLASSIFIER={given.out}")


if __name__ == "__main__":
    main()
