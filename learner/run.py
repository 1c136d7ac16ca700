"""A run on disk: its folder, policy, optimiser and server, opened fresh or from a checkpoint.

The folder holds `config.json` (fully resolved), `metrics.jsonl`, `units.json`, `report.html`, `curve.png`, `samples/`
and `checkpoints/`. Opening a folder that has checkpoints goes on from the newest one; a folder made with
another configuration is refused.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from learner import checkpoint
from learner.algorithms import Objective
from learner.config import Config
from learner.critic import Critic
from learner.display import Now, Say, silent
from learner.engine import Engine
from learner.fluency import Fluency
from learner.folder import settle_config, where_it_goes_on
from learner.generate.session import Generator
from learner.lora import BasePolicy
from learner.metrics import MetricsFile, read_metrics
from learner.model import Policy
from learner.models import (
    check_device,
    check_path,
    ids_without_token,
    load,
    load_checkpoint,
    load_given,
    stops_of,
    with_lora,
)
from learner.overlap import Batch, load_batch, save_batch
from learner.patience import Patience
from learner.ranks import Ranks, SharedCollector, device_of, join_ranks
from learner.recompute import recompute_layers
from learner.rollout import Collector, Rollouts, Stage
from learner.single_turn import PromptSource, SingleTurn, read_prompts
from learner.split import split
from learner.tiny import build_model, build_tokenizer
from learner.tokens import Renderer, special_tokens
from learner.trackers import open_trackers
from learner.update import Updater
from learner.warmup import load_script, warm_up
from trainer_client import AsyncLabsClient


@dataclass
class Run:
    """Everything a loop needs."""

    config: Config
    folder: Path
    policy: Policy
    tokenizer: Any
    renderer: Renderer
    optimizer: torch.optim.Optimizer
    updater: Updater
    metrics: MetricsFile
    fluency: Fluency
    pad_id: int
    reference: Policy | None
    step: int
    saved: int = 0
    """Step of the newest checkpoint: where the same command would go on."""
    critic: Critic | None = None
    critic_optimizer: torch.optim.Optimizer | None = None

    queue: Batch | None = None
    """The batch that waits to be learned from, where one is played ahead."""

    @functools.cached_property
    def engine(self) -> Engine:
        """Who samples."""
        return Engine(self.config, self.policy, self.renderer, self.tokenizer, self.folder)

    @property
    def ranks(self) -> Ranks:
        """The processes that make this run."""
        return self.updater.ranks

    @property
    def objective(self) -> Objective:
        """What is trained."""
        return self.updater.objective

    def rollouts(
        self,
        client: AsyncLabsClient,
        stage: Stage | None = None,
        say: Say = silent,
        generator: Generator | None = None,
    ) -> Collector:
        """Episodes with the present policy (or another sampler), or single replies where the configuration says so."""
        server, settings = self.config.server, self.config.rollout
        stage = stage or Stage(server.collection, server.scenario, server.max_turns)
        patience = Patience(server.patience_s, say=say)
        generator, found = generator or self.engine.generator, None
        if settings.single_turn:
            source = self._prompts()
            found = SingleTurn(client, generator, self.renderer, stage, source=source, patience=patience)
        alone: Collector = found or Rollouts(
            client, generator, self.renderer, stage, waves=settings.waves, patience=patience
        )
        return alone if self.ranks.world == 1 else SharedCollector(alone, self.ranks)

    def _prompts(self) -> PromptSource:
        if self.config.rollout.prompts is None:
            return PromptSource()
        rows = read_prompts(Path(self.config.rollout.prompts))
        return PromptSource(*split(rows, self.config.data.held_out_share, self.config.run.seed))

    def set_rate(self, step: int) -> float:
        """Give the optimisers the learning rate of an update; returns it."""
        rate = self.config.optim.rate(step, self.config.run.updates)
        optimizers = [(self.optimizer, 1.0), (self.critic_optimizer, self.objective.critic_rate)]
        for optimizer, factor in optimizers:
            for group in [] if optimizer is None else optimizer.param_groups:
                group["lr"] = rate * factor
        return rate

    def best(self) -> tuple[int, float] | None:
        """Step and held-out reward of the best evaluation so far."""
        found = [
            (int(record["step"]), float(record["reward/mean"]))
            for record in read_metrics(self.metrics.path)
            if record["kind"] == "eval" and "reward/mean" in record
        ]
        return max(found, key=lambda each: each[1]) if found else None

    def save(self) -> None:
        """Write the checkpoint of this step; of several processes the first does."""
        if not self.ranks.first:
            self.saved = self.step
            return
        best = self.best()
        checkpoint.save(
            self.folder / "checkpoints",
            self.step,
            model=self.policy.model,
            tokenizer=self.tokenizer,
            optimizer=self.optimizer,
            keep=self.config.run.keep,
            best=None if best is None else best[0],
            more=self._save_more,
        )
        self.saved = self.step

    def _save_more(self, folder: Path) -> None:
        if self.queue is not None:
            save_batch(folder, self.queue)
        if self.critic is not None and self.critic_optimizer is not None:
            self.critic.save(folder, self.critic_optimizer)


def open_run(config: Config, folder: Path, say: Say, now: Now = silent) -> Run:
    """A new run, or the continuation of the one in this folder.

    Of several processes the first makes it; the others begin with its checkpoint, whatever they would have made.
    """
    ranks = join_ranks(config.model.device)
    config = dataclasses.replace(config, model=dataclasses.replace(config.model, device=device_of(config.model.device)))
    if not ranks.first:
        ranks.wait()
    run = _opened(config, folder, ranks, say, now)
    if ranks.first:
        # Nothing is kept of a run that begins (again): its first evaluation comes before its first update.
        run.metrics.rewind(run.step or -1)
        run.metrics = MetricsFile(run.metrics.path, open_trackers(config.log, folder, run.step, config.resolved()))
        ranks.wait()
    return run


def _opened(config: Config, folder: Path, ranks: Ranks, say: Say, now: Now) -> Run:
    torch.set_num_threads(config.model.threads)
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    found = checkpoint.newest(folder / "checkpoints")
    if found is None:  # else the checkpoint is loaded, and the model it began with may be gone
        check_path(config.model.path)
    check_device(config.model.device)
    if ranks.first:
        settle_config(config, folder, is_begun=found is not None)
    if found is not None:
        say(where_it_goes_on(found.step, config, folder))
        model, tokenizer = load_checkpoint(found.model_path, folder, config.model.path)
    elif config.model.path is not None:
        model, tokenizer = load_given(config.model.path)
    else:
        model, tokenizer = _warmed_up(config, say, now)
    if found is None:
        model = with_lora(model, tokenizer, config, folder)
    run = _assemble(config, folder, model.to(config.model.device), tokenizer, ranks)
    if found is not None:
        run.optimizer.load_state_dict(found.optimizer_state())
        if run.critic is not None and run.critic_optimizer is not None:
            run.critic.load(found.path, run.critic_optimizer)
        run.step = run.saved = found.step
        run.queue = load_batch(found.path)
    else:
        run.save()
    return run


def _warmed_up(config: Config, say: Say, now: Now) -> tuple[Any, Any]:
    shape, script = config.model, load_script(config.warmup.script)
    tokenizer = build_tokenizer(script.texts(), shape.family)
    model = build_model(
        tokenizer,
        layers=shape.layers,
        width=shape.width,
        heads=shape.heads,
        context=shape.context,
        seed=config.run.seed,
        family=shape.family,
    )
    count = sum(parameter.numel() for parameter in model.parameters())
    say(f"warming up a model of {count:,} parameters and {len(tokenizer):,} tokens on scripted dialogues")
    policy = _policy(config, model, tokenizer, _renderer(config, model, tokenizer))
    losses = warm_up(policy, script, tokenizer, config.warmup.settings(), seed=config.run.seed, now=now)
    say(f"warm-up: loss {losses[0]:.2f} -> {losses[-1]:.2f} in {len(losses)} steps")
    return model, tokenizer


def _policy(config: Config, model: Any, tokenizer: Any, renderer: Renderer) -> Policy:
    model.eval()  # no dropout: sampler and learner must see one distribution
    banned = [*special_tokens(tokenizer).values(), *ids_without_token(model, tokenizer)]
    return Policy(
        model,
        end_id=renderer.end_id,
        banned=banned,
        temperature=config.model.temperature,
        autocast=torch.bfloat16 if config.model.precision == "bfloat16" else None,
    )


def _renderer(config: Config, model: Any, tokenizer: Any) -> Renderer:
    return Renderer(tokenizer, options=config.model.template_options, stops=stops_of(model))


def _assemble(config: Config, folder: Path, model: Any, tokenizer: Any, ranks: Ranks) -> Run:
    renderer = _renderer(config, model, tokenizer)
    policy = _policy(config, model, tokenizer, renderer)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.optim.learning_rate, weight_decay=config.optim.weight_decay)
    settings = config.update_settings()
    reference = None
    if settings.objective.needs_reference or config.model.reference:
        reference = _reference(config, folder, policy, tokenizer, renderer)
    critic = Critic(policy) if settings.objective.needs_critic else None
    critic_optimizer = None
    if critic is not None:
        critic_optimizer = torch.optim.AdamW(critic.parameters(), lr=config.optim.learning_rate, weight_decay=0.0)
    pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else renderer.end_id
    pairs = Fluency.pairs_of(load_script(config.warmup.script).texts()) if config.model.path is None else frozenset()
    if config.model.recompute:
        # After the copies above: a copy would call the layers of this one.
        recompute_layers(model)
    return Run(
        config=config,
        folder=folder,
        policy=policy,
        tokenizer=tokenizer,
        renderer=renderer,
        optimizer=optimizer,
        updater=Updater(
            policy,
            optimizer,
            settings,
            pad_id,
            reference,
            critic=critic,
            critic_optimizer=critic_optimizer,
            ranks=ranks,
        ),
        metrics=MetricsFile(folder / "metrics.jsonl", writes=ranks.first),
        fluency=Fluency(renderer, pad_id, reference, pairs),
        pad_id=pad_id,
        reference=reference,
        step=0,
        critic=critic,
        critic_optimizer=critic_optimizer,
    )


def _reference(config: Config, folder: Path, policy: Policy, tokenizer: Any, renderer: Renderer) -> Policy:
    """The policy the run began with, frozen: what is below the adapters, its first checkpoint, or this one."""
    if config.lora.rank:
        return BasePolicy(policy)
    first = checkpoint.at(folder / "checkpoints", 0)
    model = policy.model
    frozen = copy.deepcopy(model) if first is None else load(str(first.model_path))[0].to(config.model.device)
    return _policy(config, frozen.requires_grad_(requires_grad=False), tokenizer, renderer)
