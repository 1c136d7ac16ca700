"""A whole training step beside TRL's trainer: sampling, rewards, update and optimiser, in turn, in CPU seconds.

    .venv/bin/python -m pip install trl==1.16.0
    .venv/bin/python -m benchmarks.learner_step_speed --write

Both train the same 3.4 million parameters on 4 prompts of 67 tokens with 4 answers of 64 tokens each, float32, no
KL, AdamW, one thread. TRL is its own `GRPOTrainer.train()`; after each of its steps comes one of ours.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.learner_update_speed import SIZES, build
from benchmarks.report import Table, environment, write
from learner.algorithms import Objective
from learner.generate.hf import HfGenerator
from learner.generate.session import Continuation
from learner.model import Policy
from learner.types import Group, Segment, Trajectory
from learner.update import Updater, UpdateSettings

PROMPTS, MEMBERS, PROMPT, NEW, WARM_UP = 4, 4, 67, 64, 2
LEARNING_RATE = 1e-3
VOCABULARY = SIZES["3.4 M"][2]

Seconds = dict[str, list[float]]


def prompts(count: int) -> list[list[int]]:
    draw = random.Random(0)
    return [[draw.randrange(2, VOCABULARY) for _ in range(PROMPT)] for _ in range(count)]


def reward(ids: Sequence[int]) -> float:
    """Something that can be learned: the share of low numbers."""
    return sum(each < 200 for each in ids) / len(ids)


class Ours:
    """Our steps."""

    def __init__(self) -> None:
        model = build(*SIZES["3.4 M"]).eval()
        policy = Policy(model, end_id=0)
        policy.banned = torch.tensor([0])  # nobody stops early
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
        self._updater = Updater(policy, optimizer, UpdateSettings(Objective(eps_high=0.28)))
        self._generator = HfGenerator(policy, max_tokens=NEW)
        self._given = iter(prompts(10_000))
        self.seconds: Seconds = {"whole step": [], "sampling": [], "the rest": []}
        self.rewards: list[float] = []

    def step(self) -> None:
        """One, timed."""
        started = time.process_time()
        given = [next(self._given) for _ in range(PROMPTS)]
        wanted = {
            number: Continuation(given[number // MEMBERS], np.random.SeedSequence([len(self.rewards), number]))
            for number in range(PROMPTS * MEMBERS)
        }
        said = self._generator.start().step(wanted)
        sampled = time.process_time()
        groups = []
        for seed, opening in enumerate(given):
            found = [said[number] for number in range(seed * MEMBERS, (seed + 1) * MEMBERS)]
            rows = [(Segment(tuple(opening)), Segment(each.ids, each.logp)) for each in found]
            members = [Trajectory(row, (reward(each.ids),), seed) for row, each in zip(rows, found, strict=True)]
            groups.append(Group(seed, tuple(members)))
        self._updater.update(groups)
        ended = time.process_time()
        self.rewards.append(sum(reward(each.ids) for each in said.values()) / len(said))
        for name, each in zip(self.seconds, (ended - started, sampled - started, ended - sampled), strict=True):
            self.seconds[name].append(each)


def words() -> Any:
    """A tokenizer for texts like `12 7 900`."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({str(number): number for number in range(VOCABULARY)}, unk_token="1"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=made, eos_token="0", pad_token="1", padding_side="left"
    )


def beside(steps: int, after: Callable[[], None]) -> tuple[Seconds, list[float]]:
    """CPU seconds of each of TRL's steps, and rewards; `after` is called between two."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    seconds: Seconds = {"whole step": [], "sampling": [], "the rest": []}
    rewards: list[float] = []
    clock = {"started": 0.0, "sampling": 0.0}

    class Clock(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            clock.update(started=time.process_time(), sampling=0.0)

        def on_step_end(self, *_: Any, **__: Any) -> None:
            took = time.process_time() - clock["started"]
            parts = (took, clock["sampling"], took - clock["sampling"])
            for name, each in zip(seconds, parts, strict=True):
                seconds[name].append(each)
            after()

    def scored(completion_ids: list[list[int]], **_: Any) -> list[float]:
        found = [reward(ids) for ids in completion_ids]
        rewards.append(sum(found) / len(found))
        return found

    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=PROMPTS * MEMBERS,
            num_generations=MEMBERS,
            max_completion_length=NEW,
            generation_kwargs={"min_new_tokens": NEW},
            max_steps=steps,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="constant",
            epsilon_high=0.28,
            beta=0.0,
            bf16=False,
            use_cpu=True,
            gradient_checkpointing=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=0,
        )
        rows = [{"prompt": " ".join(map(str, ids))} for ids in prompts(256)]
        trainer = GRPOTrainer(
            model=build(*SIZES["3.4 M"]),
            reward_funcs=scored,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=words(),
            callbacks=[Clock()],
        )
        generate = trainer._generate_single_turn

        def timed(*given: Any, **options: Any) -> Any:
            started = time.process_time()
            found = generate(*given, **options)
            clock["sampling"] += time.process_time() - started
            return found

        trainer._generate_single_turn = timed
        trainer.train()
    return seconds, rewards


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/learner_step_speed.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ours = Ours()
    theirs, rewards = beside(options.rounds + WARM_UP, ours.step)
    table = Table(
        f"A step of 16 answers of {NEW} tokens, CPU seconds of one thread, smallest of {options.rounds} in turn",
        ["part", "TRL 1.16", "ours", "ours in TRL's"],
    )
    for name, found in theirs.items():
        trl, mine = min(found[WARM_UP:]), min(ours.seconds[name][WARM_UP:])
        table.add(name, f"{trl:.2f}", f"{mine:.2f}", f"{mine / trl:.2f}")
    learned = (
        f"The reward, first and last step: TRL {rewards[0]:.3f} and {rewards[-1]:.3f}, ours {ours.rewards[0]:.3f} and"
        f" {ours.rewards[-1]:.3f}. The rest is scoring, update and optimiser."
    )
    text = "\n\n".join(["# A training step beside TRL's", table.text(), learned, environment()])
    print(text)
    if options.write:
        write("learner_step_speed", text)


if __name__ == "__main__":
    main()
