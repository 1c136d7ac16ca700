"""One optimiser step (or a few) from a batch of groups.

The gradient of a step is that of the whole batch: micro-batches divide by the counts of the step,
not by their own. The loss sees one row per sequence: the sampled tokens of an episode, over all its
rows, or of one turn where each turn has an advantage of its own and one ratio stands for a whole
sequence. With one update per batch the old policy is the present one, so no second forward pass is
made; with more, the sampler's log-probabilities are the old ones, unless a correction for the
sampler is on: then both are needed, and the old ones are computed first. Where sampler and policy
are too far apart, which is known before the first step, none is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from learner import advantages
from learner.algorithms import CRITIC_ADVANTAGES, TOKEN_ADVANTAGES, Objective
from learner.algorithms import Credit as CreditName
from learner.credit import CreditAssignment
from learner.critic import Critic, explained_variance
from learner.examples import Example, by_tokens, joined, sampler_logp, split
from learner.model import Policy
from learner.objectives import LossInputs, mismatch_metrics, policy_loss, value_loss
from learner.ranks import Ranks
from learner.steps import Stepper
from learner.types import Group


class NonFiniteError(RuntimeError):
    """A loss or gradient that is not a number; going on would spoil the weights."""


class MismatchError(RuntimeError):
    """Sampler and trainer give the same tokens too different probabilities; nothing of the update was made."""


def mismatch_told(found: float, limit: float) -> str:
    """The message on a mismatch, and what to do about it."""
    return (
        f"the KL between sampler and trainer is {found:.2g} nats per token (k3 estimate), above"
        f" optim.max_mismatch_kl = {limit:g}. Lower rollout.max_staleness or optim.learning_rate, see that the sampler"
        " has the same weights and precision as the trainer, or raise the limit"
    )


@dataclass(frozen=True)
class UpdateSettings:
    """The settings by which a batch becomes steps."""

    objective: Objective
    credit: CreditName | None = None
    """In place of the objective's own."""
    gamma: float | None = None
    """In place of the objective's own."""
    entropy: float = 0.0
    """Weight of the entropy bonus."""
    clip_norm: float = 1.0
    minibatches: int = 1
    """Optimiser steps per batch."""
    micro_tokens: int = 4_096
    """Tokens per forward pass: packed ones, or padded ones where the model does not allow packing."""
    tolerance: float = 1e-4
    """Rewards closer than this are equal."""
    turn_limit: int = 0
    """Longest turn in tokens, for the shaping of overlong ones."""
    dimensions: dict[str, float] = field(default_factory=dict)
    """Weight of each score dimension, for an objective that takes them one by one; 1 where none is given."""
    non_finite: Literal["stop", "skip"] = "stop"
    """What to do with a step whose gradient is not a number."""
    max_mismatch_kl: float = 0.0
    """Nats per token: no update where the k3 estimate of KL(sampler || trainer) on its first part is above. 0: none."""
    on_mismatch: Literal["stop", "skip"] = "stop"
    """What to do then."""

    def resolved(self) -> Objective:
        """The objective with what is set beside it."""
        chosen = self.objective
        if self.credit is not None:
            chosen = replace(chosen, credit=self.credit)
        return chosen if self.gamma is None else replace(chosen, gamma=self.gamma)


@dataclass(frozen=True)
class _Tally:
    """Sums over one optimiser step."""

    sequences: int
    tokens: int
    good_tokens: int


def check_trainable(objective: Objective) -> None:
    """Refuse a combination that would train something else than it says."""
    if objective.advantage in TOKEN_ADVANTAGES and objective.is_whole_sequence:
        raise ValueError(
            f"advantage {objective.advantage!r} has a value per token, but ratio {objective.ratio!r} with gate"
            f" {objective.gate!r} has one bound per sequence; use ratio 'token' or 'sequence_then_token'"
        )
    known = (*advantages.ESTIMATORS, *TOKEN_ADVANTAGES, "dimension_z_scores")
    if objective.kind == "reward" and objective.advantage not in known:
        raise ValueError(f"there is no advantage {objective.advantage!r}; known are {', '.join(known)}")


class Updater:
    """Holds the optimisers of one policy and, where the algorithm has one, its critic."""

    def __init__(
        self,
        policy: Policy,
        optimizer: torch.optim.Optimizer | Stepper,
        settings: UpdateSettings,
        reference: Policy | None = None,
        *,
        critic: Critic | None = None,
        critic_optimizer: torch.optim.Optimizer | Stepper | None = None,
        ranks: Ranks | None = None,
    ) -> None:
        self.ranks = ranks or Ranks()
        self.stepper = self._stepper_of(optimizer)
        self.critic_stepper = None if critic_optimizer is None else self._stepper_of(critic_optimizer)
        self._after_step: Callable[[], None] = lambda: None
        self.objective = settings.resolved()
        check_trainable(self.objective)
        if self.objective.needs_reference and reference is None:
            raise ValueError("a KL term needs a reference policy")
        if self.objective.needs_critic and (critic is None or critic_optimizer is None):
            raise ValueError(f"advantage {self.objective.advantage!r} needs a critic")
        self.credit = CreditAssignment(self.objective, settings.turn_limit, settings.tolerance)
        self._policy = policy
        self._settings = settings
        self._reference = reference
        self._critic = critic
        self.is_settled = True
        """Whether the weights are those after a whole update; not so where an error came between two of its steps."""

    def use(self, stepper: Stepper, critic_stepper: Stepper | None, after_step: Callable[[], None]) -> None:
        """Let others make the steps from now on, and something be done after each."""
        self.stepper, self.critic_stepper, self._after_step = stepper, critic_stepper, after_step

    def _stepper_of(self, optimizer: torch.optim.Optimizer | Stepper) -> Stepper:
        return optimizer if isinstance(optimizer, Stepper) else Stepper(optimizer, self.ranks)

    def update(self, groups: Sequence[Group], step: int | None = None) -> dict[str, float]:
        """Train on the groups; returns what happened. `step` counts updates from 1, for what is done at first only."""
        informative = [group for group in groups if self.credit.is_informative(group)]
        metrics = {"groups/all": float(len(groups)), "groups/used": float(len(informative))}
        usable = [group for group in groups if group.trajectories] if self.learns_from_all else informative
        if not usable:
            return metrics
        warming = step is not None and self.objective.needs_critic and step <= self.objective.critic_warmup
        examples = self._examples(usable, metrics, warming=warming)
        parts = split(examples, self._settings.minibatches)
        if warming:
            metrics["critic/warming_up"] = 1.0
        steps: list[dict[str, float]] = []
        for part in parts:
            steps.append(self._step(part, on_policy=len(parts) == 1, warming=warming, first=not steps))
            if self._is_foreign(steps[0]):
                break
        for name in {name: None for found in steps for name in found}:
            values = [found[name] for found in steps if name in found]
            if name in _LARGEST:
                metrics[name] = max(values)
            else:
                metrics[name] = sum(values) if name in _COUNTS else sum(values) / len(values)
        self.is_settled = True
        return metrics

    @property
    def learns_from_all(self) -> bool:
        """True if groups of equal rewards are learned from, too: their advantages are 0, and what else is in the loss
        is not. They then count in all of its denominators. Where they are played again they are left out."""
        row = self.objective
        return bool(row.has_other_terms or self._settings.entropy) and not row.resample

    def apply(self, parts: Sequence[Callable[[], tuple[Tensor, dict[str, float]]]]) -> dict[str, float]:
        """One step on losses that add up to that of the batch; the figures that come with them add up, too.

        Each part says what its loss is when it is asked: one at a time, and each by one process.
        """
        self.stepper.clear()
        sums: dict[str, float] = {}
        mine = self.ranks.share(parts)
        for part in mine:
            loss, figures = part()
            self.stepper.backward(loss)
            for name, value in figures.items():
                sums[name] = sums.get(name, 0.0) + value
        for _ in range(self._idle_passes(len(mine))):
            self.stepper.backward(0.0 * parts[0]()[0])
        sums = self.ranks.sum_figures(sums, ())
        sums["update/grad_norm"] = self._apply(self.stepper, sums)
        self._after_step()
        self.is_settled = True
        return sums

    def gradients(self, groups: Sequence[Group]) -> None:
        """Put the gradient of one step on all groups into the policy's parameters, and do not step."""
        examples = self._examples(groups, {}, warming=False)
        tally = self._tally(examples)
        for micro in by_tokens(examples, self._settings.micro_tokens, packs=self._policy.packs):
            self._backward(micro, tally, on_policy=True, first=True)

    # --- what is known before the first step ------------------------------------------------------

    def _examples(self, groups: Sequence[Group], metrics: dict[str, float], *, warming: bool) -> list[Example]:
        trajectories = [trajectory for group in groups for trajectory in group.trajectories]
        examples = [Example(trajectory, torch.zeros(trajectory.sampled_tokens)) for trajectory in trajectories]
        self._look_back(examples, groups)
        if self.objective.advantage in TOKEN_ADVANTAGES:
            self._token_advantages(examples, metrics, warming=warming)
        else:
            for example, row in zip(examples, self._per_turn(groups), strict=True):
                example.advantages = torch.repeat_interleave(
                    torch.tensor(row, dtype=torch.float32), torch.tensor(example.trajectory.turn_lengths)
                )
        return examples

    def _per_turn(self, groups: Sequence[Group]) -> list[tuple[float, ...]]:
        """The advantage of each turn of each member; of groups that say nothing 0, whatever the others' rewards are."""
        says = [self.credit.is_informative(group) for group in groups]
        informative = [group for group, told in zip(groups, says, strict=True) if told]
        found = iter(self.credit.per_turn(informative, self._settings.dimensions) if informative else ())
        return [
            next(found) if told else (0.0,) * each.turns
            for group, told in zip(groups, says, strict=True)
            for each in group.trajectories
        ]

    def _look_back(self, examples: Sequence[Example], groups: Sequence[Group]) -> None:
        """Compute what the reference, the old policy and the critic say of the tokens before anything is learned."""
        if self._reference is not None:
            # In no loss, it is only looked at: one member of each group is enough, and costs little.
            firsts, place = [], 0
            for group in groups:
                firsts.append(examples[place])
                place += len(group.trajectories)
            reference = self._reference
            chosen = examples if self.objective.needs_reference else firsts
            self._note(chosen, "reference_logp", lambda batch: self._score_flat(reference, batch)[0])
        several = self._settings.minibatches > 1 and self.objective.correction != "none"
        if several or self.objective.kl_reward:
            self._note(examples, "old_logp", lambda batch: self._score_flat(self._policy, batch)[0])
        if self._critic is not None and self.objective.advantage in CRITIC_ADVANTAGES:
            self._note(examples, "values", self._values)

    @torch.no_grad()
    def _note(self, examples: Sequence[Example], name: str, of: Callable[[list[Example]], Tensor]) -> None:
        for micro in by_tokens(examples, self._settings.micro_tokens, packs=self._policy.packs):
            for example, part in zip(micro, torch.split(of(micro), [example.tokens for example in micro]), strict=True):
                setattr(example, name, part)

    def _token_advantages(self, examples: Sequence[Example], metrics: dict[str, float], *, warming: bool) -> None:
        lengths = [example.tokens for example in examples]
        mask = pad_sequence([torch.ones(length) for length in lengths], batch_first=True)
        steps = pad_sequence([self._token_rewards(example) for example in examples], batch_first=True)
        if self.objective.advantage == "token_return_whitened":
            found = advantages.discounted_returns(steps, mask, self.objective.gamma)
        else:
            held = [example.values for example in examples if example.values is not None]
            values = pad_sequence(held, batch_first=True).cpu()
            found = self._with_critic(examples, steps, values, mask, warming=warming)
            ends = torch.cat([row[:length] for row, length in zip(values, lengths, strict=True)])
            targets = torch.cat([example.returns for example in examples if example.returns is not None])
            metrics["critic/explained_variance"] = explained_variance(ends, targets)
        found = advantages.whiten(found, mask)
        for example, row in zip(examples, found, strict=True):
            example.advantages = row[: example.tokens]

    def _with_critic(
        self, examples: Sequence[Example], steps: Tensor, values: Tensor, mask: Tensor, *, warming: bool
    ) -> Tensor:
        row, gamma = self.objective, self.objective.gamma
        lam: float | Tensor = row.lam
        if row.advantage == "gae_length_adaptive":
            lam = advantages.vapo_lambda(mask.sum(1), row.alpha)
        critic_lam = 1.0 if warming else row.critic_lam
        targets = advantages.gae(steps, values, mask, gamma=gamma, lam=critic_lam) + values
        for example, target in zip(examples, targets, strict=True):
            example.returns = target[: example.tokens]
        return advantages.gae(steps, values, mask, gamma=gamma, lam=lam)

    def _token_rewards(self, example: Example) -> Tensor:
        """[N]: each turn's reward on its last token, less the KL to the reference on every one."""
        out = torch.zeros(example.tokens)
        ends = torch.tensor(example.trajectory.turn_lengths).cumsum(0) - 1
        out[ends] = torch.tensor(self.credit.gains(example.trajectory), dtype=torch.float32)
        if self.objective.kl_reward and example.old_logp is not None and example.reference_logp is not None:
            out = out - self.objective.kl_reward * (example.old_logp - example.reference_logp).cpu()
        return out

    # --- a step -----------------------------------------------------------------------------------

    def _step(self, examples: Sequence[Example], *, on_policy: bool, warming: bool, first: bool) -> dict[str, float]:
        tally = self._tally(examples)
        sums: dict[str, float] = {}
        for stepper in (self.stepper, self.critic_stepper):
            if stepper is not None:
                stepper.clear()
        mine = list(by_tokens(self.ranks.share(examples), self._settings.micro_tokens, packs=self._policy.packs))
        for micro in mine:
            share = sum(example.tokens for example in micro) / tally.tokens
            found = {} if warming else self._backward(micro, tally, on_policy=on_policy, first=first)
            if self._critic is not None:
                found |= self._critic_backward(micro, tally)
            for name, value in found.items():
                sums[name] = (
                    max(sums.get(name, 0.0), value)
                    if name in _LARGEST
                    else sums.get(name, 0.0) + (value if name in _SUMS else share * value)
                )
        for _ in range(self._idle_passes(len(mine))):
            self._pass_idly(examples[:1], warming=warming)
        sums = self.ranks.sum_figures(sums, _LARGEST)
        if first and self._is_foreign(sums):
            self._refuse(sums)
        else:
            self._apply_all(sums, warming=warming)
        kl_tokens = sums.pop("kl_tokens", 0.0)
        if kl_tokens:
            sums["update/kl_reference"] = sums.pop("kl_sum") / kl_tokens
        return {**sums, "update/tokens": float(tally.tokens), "update/sequences": float(tally.sequences)}

    def _tally(self, examples: Sequence[Example]) -> _Tally:
        tokens = sum(example.tokens for example in examples)
        good = sum(example.tokens for example in examples if example.trajectory.reward >= self.objective.positive_from)
        return _Tally(sum(len(self._lengths(example)) for example in examples), tokens, good)

    def _idle_passes(self, made: int) -> int:
        """The number of passes other processes make after this one's last, where all must make the same number."""
        return max(self.ranks.gather(made)) - made if self.stepper.lockstep else 0

    def _pass_idly(self, examples: Sequence[Example], *, warming: bool) -> None:
        """Take part in the others' pass, and add nothing."""
        if not warming:
            self.stepper.backward(0.0 * self._score_flat(self._policy, examples)[0].sum())
        if self._critic is not None and self.critic_stepper is not None:
            self.critic_stepper.backward(0.0 * self._values(examples).sum())

    def _is_foreign(self, figures: Mapping[str, float]) -> bool:
        """True if what the first step measured says that the sampler is too far from the policy that is trained."""
        found, limit = figures.get("mismatch_k3"), self._settings.max_mismatch_kl
        # A figure that is not a number is not within the limit either.
        return found is not None and limit > 0 and not found <= limit

    def _refuse(self, sums: dict[str, float]) -> None:
        if self._settings.on_mismatch == "stop":
            raise MismatchError(mismatch_told(sums["mismatch_k3"], self._settings.max_mismatch_kl))
        for stepper in (self.stepper, self.critic_stepper):
            if stepper is not None:
                stepper.clear()
        sums["update/skipped"] = 1.0

    def _apply_all(self, sums: dict[str, float], *, warming: bool) -> None:
        if not warming:
            sums["update/grad_norm"] = self._apply(self.stepper, sums)
        if self.critic_stepper is not None:
            sums["critic/grad_norm"] = self._apply(self.critic_stepper, sums)
        self._after_step()

    def _apply(self, stepper: Stepper, sums: dict[str, float]) -> float:
        was_settled, self.is_settled = self.is_settled, False
        norm = stepper.step(self._settings.clip_norm)
        if math.isfinite(norm):
            return norm
        self.is_settled = was_settled  # no step was made
        if self._settings.non_finite == "stop":
            raise NonFiniteError(
                "the gradient is not a number; the weights were not changed. Lower optim.learning_rate, or set"
                " optim.non_finite = 'skip'"
            )
        sums["update/skipped"] = 1.0
        return 0.0

    def _lengths(self, example: Example) -> list[int]:
        """Tokens of each sequence that the loss sees in this episode."""
        by_turn = self.objective.credit == "to_go" and self.objective.is_whole_sequence
        return example.trajectory.turn_lengths if by_turn else [example.tokens]

    def _score_flat(self, policy: Policy, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
        """[N] log-probabilities and entropies of the sampled tokens, example by example."""
        return policy.score_rows([row for example in examples for row in example.trajectory.rows])

    def _values(self, examples: Sequence[Example]) -> Tensor:
        if self._critic is None:
            raise ValueError("there is no critic")
        return self._critic.values([row for example in examples for row in example.trajectory.rows])

    def _backward(
        self, examples: Sequence[Example], tally: _Tally, *, on_policy: bool, first: bool
    ) -> dict[str, float]:
        logp, entropies = self._score_flat(self._policy, examples)
        device = logp.device
        sampler = torch.cat([sampler_logp(example.trajectory) for example in examples]).to(device)
        lengths = [length for example in examples for length in self._lengths(example)]

        def shaped(flat: Tensor) -> Tensor:
            return pad_sequence(list(torch.split(flat.to(device), lengths)), batch_first=True)

        old = logp.detach() if on_policy else joined(examples, "old_logp")
        inputs = LossInputs(
            old_logp=shaped(sampler if old is None else old),
            mask=shaped(torch.ones(len(logp))),
            advantages=shaped(torch.cat([example.advantages for example in examples])),
            sampler_logp=shaped(sampler),
            reference_logp=_optional(shaped, joined(examples, "reference_logp")),
            rewards=torch.tensor(
                [example.trajectory.reward for example in examples for _ in self._lengths(example)], device=device
            ),
            total_sequences=tally.sequences,
            total_tokens=tally.tokens,
            total_good_tokens=tally.good_tokens,
        )
        output = policy_loss(shaped(logp), inputs, self.objective)
        bonus = self._settings.entropy * entropies.sum() / tally.tokens
        self.stepper.backward(output.loss - bonus)
        ones = torch.ones_like(logp)[None]
        # Before its first step, the policy is the one that was to sample.
        known = logp.detach() if first else old
        metrics = {f"update/{name}": value for name, value in output.metrics.items()}
        metrics["update/loss"] = float(output.loss.detach())
        if known is not None:
            metrics |= mismatch_metrics(known[None], sampler[None], ones)
        metrics |= _reference_gap(examples, logp.detach())
        return {**metrics, "update/entropy": float(entropies.detach().mean())}

    def _critic_backward(self, examples: Sequence[Example], tally: _Tally) -> dict[str, float]:
        values = self._values(examples)[None]
        old, returns = joined(examples, "values"), joined(examples, "returns")
        if old is None or returns is None or self.critic_stepper is None:
            raise ValueError("the critic has no targets")
        ones = torch.ones_like(values)
        loss = value_loss(values, old.to(values)[None], returns.to(values)[None], ones, clip=self.objective.value_clip)
        self.critic_stepper.backward(loss * values.shape[1] / tally.tokens)
        return {"critic/loss": float(loss.detach())}


_LARGEST = ("update/max_ratio", "update/skipped", "critic/warming_up")
_SUMS = ("update/loss", "kl_sum", "kl_tokens")
_COUNTS = ("update/tokens", "update/sequences")
"""Of the whole update: added up over its minibatches, where other figures are averaged."""


def _optional(shape: Callable[[Tensor], Tensor], flat: Tensor | None) -> Tensor | None:
    return None if flat is None else shape(flat)


def _reference_gap(examples: Sequence[Example], logp: Tensor) -> dict[str, float]:
    """Sum of the k3 estimates of KL(policy || reference) where the reference was asked, and of how many tokens."""
    total, tokens = 0.0, 0
    for example, part in zip(examples, torch.split(logp, [example.tokens for example in examples]), strict=True):
        if example.reference_logp is not None:
            gap = example.reference_logp - part
            total += float((gap.exp() - gap - 1).sum())
            tokens += example.tokens
    return {"kl_sum": total, "kl_tokens": float(tokens)} if tokens else {}
