"""A run on disk: its folder, policy, optimiser and server, opened fresh or from a checkpoint.

The folder holds `config.json` (fully resolved), `metrics.jsonl`, `units.json`, `report.html`, `curve.png`, `samples/`
and `checkpoints/`. Opening a folder that has checkpoints goes on from the newest one; a folder made with
another configuration is refused.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from learner import agreement, checkpoint
from learner.algorithms import Objective
from learner.checkpoint import Checkpoint
from learner.config import Config
from learner.critic import FILE as CRITIC_FILE
from learner.critic import Critic, saved_critic
from learner.curriculum import Curriculum
from learner.display import Now, Say, silent
from learner.engine import SamplerEngine
from learner.fluency import FluencyMeter
from learner.folder import is_of_another, remove_run, settle_config, where_it_goes_on
from learner.generate.session import Generator
from learner.lora import narrow_frozen
from learner.metrics import MetricsFile, best_evaluation, evaluations, read_metrics
from learner.model import Policy
from learner.models import check_device, check_path, load_checkpoint, load_given, with_lora
from learner.overlap import Batch, load_batches, save_batches
from learner.plan import remarks, shortage
from learner.plugins import NO_PLUGINS, Plugins
from learner.policies import policy_of, reference_of, renderer_of, warmed_up
from learner.ranks import Ranks, SharedCollector, device_of, join_ranks
from learner.recompute import recompute_layers
from learner.retry import OutageRetryPolicy
from learner.rollout import SAMPLING_RULES, BatchCollector, RolloutCollector, RolloutStage, share_of_sampling
from learner.single_turn import PromptSource, SingleTurn, read_prompts
from learner.split import split
from learner.trackers import open_trackers
from learner.update import Updater, UpdateSettings
from learner.warmup import load_script
from trainer_client import AsyncLabsClient
from trainer_client.chat.tokens import Renderer

TINY_WAVES = 2
"""Of a tiny model: nothing is measured, so that its runs repeat each other exactly."""


@dataclass
class Run:
    """Everything a loop needs."""

    config: Config
    folder: Path
    policy: Policy
    tokenizer: Any
    renderer: Renderer
    updater: Updater
    metrics: MetricsFile
    fluency: FluencyMeter
    reference: Policy | None
    curriculum: Curriculum
    step: int
    saved: int = 0
    """Step of the newest checkpoint: where the same command would go on."""
    critic: Critic | None = None
    whole: Policy | None = None
    """A copy with all weights, where the policy's are spread over processes."""
    queue: tuple[Batch, ...] = ()
    """The batches that wait to be learned from, where some are played ahead."""
    waves: int = 1
    """In how many batches episodes are played."""
    plugins: Plugins = NO_PLUGINS
    """Parts of somebody else's program."""

    def settle_waves(self) -> str | None:
        """Choose `waves` by what took the time of the first evaluation; what to say of it, if anything was chosen.

        What was measured is in the metrics, so a run that goes on chooses as it did before.
        """
        if self.config.rollout.waves is not None or self.config.model.path is None:
            return None
        share = share_of_sampling(read_metrics(self.metrics.path)) if self.ranks.first else None
        self.waves = 2 if self.ranks.agree(share is not None and share < SAMPLING_RULES) else 1
        if share is None:
            return None
        batches = "one batch" if self.waves == 1 else "two batches, one of which samples while the other one waits"
        return f"sampling takes {share:.0%} of the time of episodes: they are played in {batches} (rollout.waves)"

    @functools.cached_property
    def engine(self) -> SamplerEngine:
        """The engine that samples."""
        return SamplerEngine(self.config, self.policy, self.renderer, self.tokenizer, self.folder, sampler=self.sampler)

    @property
    def sampler(self) -> Policy:
        """A policy that this process can run alone."""
        return self.whole or self.policy

    @property
    def ranks(self) -> Ranks:
        """The processes that make this run."""
        return self.updater.ranks

    @property
    def objective(self) -> Objective:
        """The objective that is trained."""
        return self.updater.objective

    def rollouts(
        self,
        client: AsyncLabsClient,
        stage: RolloutStage | None = None,
        say: Say = silent,
        generator: Generator | None = None,
        ranks: Ranks | None = None,
    ) -> BatchCollector:
        """Episodes with the present policy (or another sampler), or single replies where the configuration says so.

        Of several processes, `ranks` is how those that play talk to each other.
        """
        server, settings = self.config.server, self.config.rollout
        stage = stage or RolloutStage(server.collection, server.scenario, server.max_turns)
        retry_policy = self.retry_policy(say)
        generator, found = generator or self.engine.generator, None
        if settings.single_turn:
            source = self._prompts()
            found = SingleTurn(client, generator, self.renderer, stage, source=source, retry_policy=retry_policy)
        alone: BatchCollector = found or RolloutCollector(
            client,
            generator,
            self.renderer,
            stage,
            waves=lambda: self.waves,
            retry_policy=retry_policy,
            plugins=self.plugins,
        )
        return alone if self.ranks.world == 1 else SharedCollector(alone, ranks or self.ranks)

    def retry_policy(self, say: Say = silent) -> OutageRetryPolicy:
        """The retries of calls to the server, and how long they may take."""
        return OutageRetryPolicy(self.config.server.patience_s, say=say)

    def _prompts(self) -> PromptSource:
        if self.config.rollout.prompts is None:
            return PromptSource()
        rows = read_prompts(Path(self.config.rollout.prompts), skip_bad=self.config.data.skip_bad)
        return PromptSource(*split(rows, self.config.data.held_out_share, self.config.run.seed))

    def set_rate(self, step: int) -> float:
        """Give the optimisers the learning rate of an update; returns it."""
        rate = self.config.optim.rate(step, self.config.run.updates)
        self.updater.stepper.set_rate(rate)
        if self.updater.critic_stepper is not None:
            self.updater.critic_stepper.set_rate(rate * self.objective.critic_rate)
        return rate

    def best(self) -> tuple[int, float] | None:
        """Step and figure of the best evaluation so far (`metrics.evaluations`)."""
        return best_evaluation(self.metrics.path)

    def is_best(self) -> bool:
        """True if this step has the best evaluation so far; all processes hear what the first one knows."""
        best = self.best() if self.ranks.first else None
        return self.ranks.agree(best is not None and best[0] == self.step)

    def is_over(self) -> bool:
        """True if early stopping says so: the last evaluations were all no better than one before them."""
        patience = self.config.evaluation.stop_after
        figures = [figure for _, figure in evaluations(read_metrics(self.metrics.path))]
        return bool(patience) and len(figures) > patience and max(figures[-patience:]) <= max(figures[:-patience])

    def ending(self) -> str:
        """The message about a run that early stopping has ended."""
        patience = self.config.evaluation.stop_after
        return f"stopped at update {self.step}: no better result in the last {patience} evaluations"

    def save(self) -> None:
        """Write the checkpoint of this step; of several processes the first does, with what all of them hold."""
        stepper, critic_stepper = self.updater.stepper, self.updater.critic_stepper
        optimizer, critic = stepper.state(), None
        if self.critic is not None and critic_stepper is not None:
            critic = {"weights": dict(critic_stepper.weights(self.critic)), "optimizer": critic_stepper.state()}
        if not self.ranks.first:
            self.saved = self.step
            return
        best = self.best()
        checkpoint.save(
            self.folder / "checkpoints",
            self.step,
            model=self.sampler.model,
            tokenizer=self.tokenizer,
            optimizer=optimizer,
            keep=self.config.run.keep,
            best=None if best is None else best[0],
            more=lambda beside: self._save_more(beside, critic),
        )
        self.saved = self.step
        self.plugins.callbacks.on_checkpoint(self)

    def _save_more(self, folder: Path, critic: dict[str, Any] | None) -> None:
        if self.queue:
            save_batches(folder, self.queue)
        self.curriculum.save(folder)
        if critic is not None:
            torch.save(critic, folder / CRITIC_FILE)


def open_run(config: Config, folder: Path, say: Say, now: Now = silent, plugins: Plugins = NO_PLUGINS) -> Run:
    """A new run, or the continuation of the one in this folder.

    Of several processes the first makes it; the others begin with its checkpoint, whatever they would have made.
    """
    ranks = join_ranks(config.model.device)
    model = config.model.model_copy(update={"device": device_of(config.model.device)})
    config = config.model_copy(update={"model": model})
    if not ranks.first:
        ranks.wait()
    run = _opened(config, folder, ranks, say, now)
    run.plugins = plugins
    if ranks.first:
        # Nothing is kept of a run that begins (again): its first evaluation comes before its first update.
        run.metrics.rewind(run.step or -1)
        run.metrics = MetricsFile(run.metrics.path, open_trackers(config.log, folder, run.step, config.resolved()))
        ranks.wait()
    if ranks.first and (told := shortage(config, run.policy.model)):
        say(f"memory: {told}")
    for remark in remarks(config, ranks.world) if ranks.first else ():
        say(remark)
    if ranks.world > 1 and config.parallel.kind != "replicate":
        from learner.spread import spread

        run.whole = spread(config, run.updater, run.policy, run.reference, run.critic)
    if config.model.compile:
        from learner.compiled import check_compiled, compile_layers

        say("compiling the model's layers")
        compile_layers(run.policy.model)
        if run.critic is not None:
            compile_layers(run.critic)
        gap = agreement.described(run.policy, check_compiled(run.policy))
        say(f"compiled: log-probabilities differ by {gap} (fine)")
    if config.model.recompute:
        recompute_layers(run.policy.model)
        if run.critic is not None:
            recompute_layers(run.critic)
    return run


def _is_left_over(found: Checkpoint, config: Config, folder: Path, say: Say) -> bool:
    """True if this is of a start that failed, with another configuration; it is removed then."""
    if found.step or not is_of_another(config, folder):
        return False
    say(f"the run in {folder} made no update and had another configuration; starting anew")
    remove_run(folder)
    return True


def _opened(config: Config, folder: Path, ranks: Ranks, say: Say, now: Now) -> Run:
    torch.set_num_threads(config.model.threads)
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if ranks.first:
        checkpoint.sweep(folder / "checkpoints")
    found = checkpoint.newest(folder / "checkpoints")
    if ranks.first and found is not None and _is_left_over(found, config, folder, say):
        found = None
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
        model, tokenizer = warmed_up(config, say, now)
    if found is None:
        model = with_lora(model, tokenizer, config, folder)
    if config.narrows_frozen:
        narrow_frozen(model, torch.bfloat16)
    run = _assemble(config, folder, model.to(config.model.device), tokenizer, ranks)
    if found is None:
        run.save()
    else:
        _restore(run, found)
    return run


def _restore(run: Run, found: Checkpoint) -> None:
    """Put into the run what is beside the model in a checkpoint."""
    run.updater.stepper.load(found.optimizer_state())
    if run.critic is not None and run.updater.critic_stepper is not None:
        state = saved_critic(found.path)
        run.critic.load_state_dict(state["weights"])
        run.updater.critic_stepper.load(state["optimizer"])
    run.step = run.saved = found.step
    run.queue = load_batches(found.path)
    run.curriculum.load(found.path)


def _assemble(config: Config, folder: Path, model: Any, tokenizer: Any, ranks: Ranks) -> Run:
    renderer = renderer_of(config, model, tokenizer)
    policy = policy_of(config, model, tokenizer, renderer)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=config.optim.learning_rate, weight_decay=config.optim.weight_decay)
    settings = _update_settings(config)
    reference = None
    if settings.objective.needs_reference or config.model.reference:
        reference = reference_of(config, folder, policy, tokenizer, renderer)
    critic = Critic(policy) if settings.objective.needs_critic else None
    critic_optimizer = None
    if critic is not None:
        critic_optimizer = torch.optim.AdamW(critic.parameters(), lr=config.optim.learning_rate, weight_decay=0.0)
    pairs = (
        FluencyMeter.pairs_of(load_script(config.warmup.script).texts()) if config.model.path is None else frozenset()
    )
    return Run(
        config=config,
        folder=folder,
        policy=policy,
        tokenizer=tokenizer,
        renderer=renderer,
        updater=Updater(
            policy,
            optimizer,
            settings,
            reference,
            critic=critic,
            critic_optimizer=critic_optimizer,
            ranks=ranks,
        ),
        metrics=MetricsFile(folder / "metrics.jsonl", writes=ranks.first),
        fluency=FluencyMeter(renderer, reference, pairs),
        reference=reference,
        curriculum=Curriculum(
            config.run.seed,
            is_on=config.rollout.curriculum == "spread",
            staleness=config.rollout.max_staleness,
        ),
        step=0,
        critic=critic,
        waves=config.rollout.waves or (TINY_WAVES if config.model.path is None else 1),
    )


def _update_settings(config: Config) -> UpdateSettings:
    """As the updater takes them."""
    return UpdateSettings(
        objective=config.objective(),
        entropy=config.algorithm.entropy,
        turn_limit=config.model.max_tokens,
        dimensions=config.algorithm.dimensions,
        non_finite=config.optim.non_finite,
        max_mismatch_kl=config.optim.max_mismatch_kl,
        on_mismatch=config.optim.on_mismatch,
        clip_norm=config.optim.clip_norm,
        minibatches=config.optim.minibatches,
        micro_tokens=config.optim.micro_tokens,
    )
