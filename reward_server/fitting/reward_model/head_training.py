"""Fits the heads: regression and Bradley-Terry losses together, on features of a frozen encoder.

    L = mean_h mean_i (r_h(x_i) - y_ih)^2 / var(y_h)                               regression
      + w * mean_p -[t log s + (1 - t) log(1 - s)],  s = sigmoid(b (r(x_p) - r(y_p)))   Bradley & Terry 1952
      + c * mean_p ((r(x_p) - m)^2 + (r(y_p) - m)^2)                                centring, keeps r from floating
      + l2 * ||W||^2

Weights of features that may only cost are kept at most 0, by projection after each step (Bertsekas, Nonlinear
Programming, 1999, section 2.3).

t is 1, or 1/2 for a tie; b is learned where labels give r a scale, else 1. The strength of `l2` and the number of
epochs are those that do best on the validation part, and the weights kept are those of that very epoch. A run
depends on data and recipe alone; one that was interrupted goes on from its last whole epoch and ends the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

from reward_server.errors import InvalidRequest
from reward_server.reward_models.checkpoint import TrainingCheckpoint, TrainingProgress
from reward_server.reward_models.feature_rows import FeatureRows, blocks
from reward_server.reward_models.heads import Exact, Heads, Matrix
from reward_server.reward_models.matrices import ExampleMatrices, moments, scaled

MIN_PAIRS = 20
"""Fewer validation pairs say nothing about how sharp chances should be."""
ROWS_AT_ONCE = 1024
"""Of the validation part, which is judged after each epoch."""


@dataclass(frozen=True)
class Recipe:
    """The settings by which heads are trained."""

    seed: int = 0
    epochs: int = 200
    batch: int = 256
    learning_rate: float = 2e-3
    warmup: float = 0.1
    """Share of all steps in which the rate rises, so that no run consists of warm-up alone."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    patience: int = 25
    """Epochs without a better validation loss before a run ends."""
    l2: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0, 30.0)
    preference_weight: float = 1.0
    centring: float = 0.01


@dataclass(frozen=True)
class Epoch:
    """One point of the learning curve."""

    l2: float
    number: int
    training_loss: float
    validation_loss: float


@dataclass(frozen=True)
class Fitted:
    """Trained heads and how they came about."""

    heads: Heads
    history: tuple[Epoch, ...]
    l2: float
    epoch: int
    """The epoch whose weights were kept, from 1."""
    validation_loss: float


@dataclass
class _Run:
    """The state of a run between two epochs; tensors and plain numbers alone, so that it can be kept on disk."""

    progress: TrainingProgress = field(default_factory=TrainingProgress)
    weight: Tensor = field(default_factory=lambda: torch.zeros(0))
    moments: dict[str, Tensor] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)
    """The weights of the best epoch so far, over all strengths of `l2`."""


def fit(
    names: tuple[str, ...],
    train: ExampleMatrices,
    validation: ExampleMatrices,
    recipe: Recipe,
    *,
    emphasis: Matrix | None = None,
    costs: NDArray[np.bool_] | None = None,
    scratch: Path | None = None,
    checkpoint: TrainingCheckpoint | None = None,
    on_epoch: Callable[[int, int], None] = lambda done, total: None,
) -> Fitted:
    """Train one candidate for each strength of `l2` and keep the best epoch of the best one.

    `emphasis` multiplies the standardised features, shape (width,); the penalty then weighs on them accordingly.
    `costs` names the features that may only lower a value, shape (width,).
    `scratch` is a folder for rows that are too many for memory, by default that of temporary files.
    `on_epoch` hears of finished and of all epochs; what it raises ends the run, whose state is then on disk.

    Raises:
        InvalidRequest: the losses are no numbers, so nothing was learned.
    """
    torch.set_num_threads(1)  # sums are then ordered alike on every machine with this processor
    fitter = _Fitter(names, train, validation, recipe, emphasis=emphasis, costs=costs, scratch=scratch)
    restored = checkpoint.restore() if checkpoint is not None else None
    state = fitter.begin() if restored is None else _Run(*restored)
    try:
        while not fitter.is_over(state):
            state = fitter.epoch(state)
            if checkpoint is not None and state.progress.epochs % checkpoint.every == 0:
                checkpoint.keep(state.progress, state.weight, state.moments, state.best)
            on_epoch(state.progress.epochs, recipe.epochs * len(recipe.l2))
    except BaseException:
        if checkpoint is not None:
            checkpoint.keep(state.progress, state.weight, state.moments, state.best)
        raise
    return fitter.finish(state)


def sharpened(heads: Heads, part: ExampleMatrices) -> Heads:
    """With the sharpness at which chances fit these pairs best: a penalty that helps the order flattens the odds.

    Temperature scaling, Guo et al. 2017; the heads as they are where there are too few pairs to tell.
    """
    if len(part.chosen) < MIN_PAIRS:
        return heads
    differences = heads.raw(part.chosen)[:, 0] - heads.raw(part.rejected)[:, 0]
    targets, weights = part.targets.astype(np.float64), part.weights.astype(np.float64)

    def loss(log_sharpness: float) -> float:
        odds = np.exp(log_sharpness) * differences
        return float(np.sum(weights * (np.logaddexp(0.0, odds) - targets * odds)))

    best = minimize_scalar(loss, bounds=(-6.0, 6.0), method="bounded")
    return replace(heads, sharpness=float(np.exp(best.x)))


class _Fitter:
    """The parts that stay the same during a run."""

    def __init__(
        self,
        names: tuple[str, ...],
        train: ExampleMatrices,
        validation: ExampleMatrices,
        recipe: Recipe,
        *,
        emphasis: Matrix | None,
        costs: NDArray[np.bool_] | None,
        scratch: Path | None,
    ) -> None:
        self._names = names
        self._recipe = recipe
        self._has_labels = bool(len(train.features))
        centre, spread = moments(train.parts)
        self._centre = centre.astype(np.float32)
        # A feature that never varies says nothing; dividing by its rounding error would make it say a lot.
        spread[spread < 1e-6] = np.inf
        stretch = np.ones(len(centre)) if emphasis is None else emphasis.astype(np.float64)
        # The rows then have a length of about 1, whatever the number of features.
        self._scale = (spread / stretch * math.sqrt(float((stretch**2).sum()))).astype(np.float32)
        self._scratch = scratch
        self._train, self._validation = self._prepared(train), self._prepared(validation)
        self._pairs = validation
        self._costs = costs if costs is not None and costs.any() else None
        columns = np.zeros(len(centre), bool) if self._costs is None else self._costs
        self._capped = torch.from_numpy(np.tile(columns, len(names)))
        labels = train.labels.astype(np.float64)
        self._means, self._variances = _moments(labels, len(names))

    def _prepared(self, part: ExampleMatrices) -> ExampleMatrices:
        """The same with standardised features."""
        centre, scale = self._centre.astype(np.float64), self._scale.astype(np.float64)
        features, chosen, rejected = (scaled(rows, centre, scale, self._scratch) for rows in part.parts)
        return replace(part, features=features, chosen=chosen, rejected=rejected)

    # --- a run -----------------------------------------------------------------------------------

    def begin(self) -> _Run:
        return _Run(weight=self._start())

    def _start(self) -> Tensor:
        """All weights, biases and the log of the sharpness in one vector; the biases are the labels' means."""
        heads, width = len(self._names), self._centre.shape[0]
        start = torch.zeros(heads * width + heads + 1)
        start[heads * width : heads * width + heads] = torch.from_numpy(self._means.astype(np.float32))
        # Differences of values in [0, 1] are small; odds begin at e for a difference of about a quarter.
        start[-1] = math.log(4.0) if self._has_labels else 0.0
        return start

    def is_over(self, state: _Run) -> bool:
        return state.progress.candidate >= len(self._recipe.l2)

    def epoch(self, state: _Run) -> _Run:
        """One epoch of the present candidate, and on to the next one where it is exhausted."""
        recipe, progress = self._recipe, state.progress
        parameter = state.weight.clone().requires_grad_()
        optimiser = torch.optim.Adam([parameter], lr=recipe.learning_rate)
        if state.moments:
            optimiser.state[parameter] = {name: moment.clone() for name, moment in state.moments.items()}
        steps = self._steps()
        loss = 0.0
        for step, batch in enumerate(self._batches(progress.candidate, progress.epoch, steps)):
            done = progress.epoch * steps + step
            optimiser.param_groups[0]["lr"] = recipe.learning_rate * self._rate(done, steps * recipe.epochs)
            optimiser.zero_grad()
            value = self._loss(parameter, batch) + self._decay(parameter, recipe.l2[progress.candidate])
            value.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_([parameter], recipe.clip)
            optimiser.step()
            self._cap(parameter)
            loss += float(value.detach()) / steps
        weight = parameter.detach().clone()
        moments = {name: moment.detach().clone() for name, moment in optimiser.state[parameter].items()}
        return self._judged(state, weight, moments, loss)

    def _cap(self, parameter: Tensor) -> None:
        """Back to the nearest weights at which nothing earns that may only cost."""
        with torch.no_grad():
            weights = parameter[: len(self._capped)]
            weights[self._capped] = weights[self._capped].clamp(max=0.0)

    def _judged(self, state: _Run, weight: Tensor, moments: dict[str, Tensor], loss: float) -> _Run:
        """The state after an epoch: its weights are the best so far, or its candidate may be exhausted."""
        before, recipe = state.progress, self._recipe
        with torch.inference_mode():
            validation = float(self._loss(weight, self._validation, centred=False))
        if not math.isfinite(loss) or not math.isfinite(validation):
            raise InvalidRequest("training diverged: a loss is not a number; try a smaller learning rate")
        point = Epoch(recipe.l2[before.candidate], before.epoch + 1, loss, validation)
        after = before.advanced((point.l2, float(point.number), loss, validation))
        best = {"weight": weight} if after.best_epochs == after.epochs else state.best
        exhausted = after.epoch >= recipe.epochs or after.since_better >= recipe.patience
        if exhausted:
            return _Run(after.next_candidate(), self._start(), {}, best)
        return _Run(after, weight, moments, best)

    def finish(self, state: _Run) -> Fitted:
        """The kept weights as heads."""
        history = tuple(Epoch(l2, int(number), *losses) for l2, number, *losses in state.progress.history)
        kept = history[state.progress.best_epochs - 1]
        heads, width = len(self._names), self._centre.shape[0]
        weight = state.best["weight"].numpy()
        unsharpened = Heads(
            names=self._names,
            centre=self._centre,
            scale=self._scale,
            weights=weight[: heads * width].reshape(heads, width).copy(),
            bias=weight[heads * width : -1].copy(),
            sharpness=float(np.exp(np.float64(weight[-1]))) if self._has_labels else 1.0,
            link="identity" if self._has_labels else "preference",
            costs=self._costs,
        )
        return Fitted(
            heads=sharpened(unsharpened, self._pairs),
            history=history,
            l2=kept.l2,
            epoch=kept.number,
            validation_loss=kept.validation_loss,
        )

    # --- losses ----------------------------------------------------------------------------------

    def _loss(self, parameter: Tensor, batch: ExampleMatrices, *, centred: bool = True) -> Tensor:
        heads, width = len(self._names), self._centre.shape[0]
        weights = parameter[: heads * width].view(heads, width)
        bias = parameter[heads * width : -1]
        total = torch.zeros(())
        if len(batch.features):
            total = total + self._regression(_linear(batch.features, weights, bias), _tensor(batch.labels))
        if len(batch.chosen):
            better = _linear(batch.chosen, weights[:1], bias[:1])[:, 0]
            worse = _linear(batch.rejected, weights[:1], bias[:1])[:, 0]
            sharpness = parameter[-1].exp() if self._has_labels else torch.ones(())
            total = total + self._recipe.preference_weight * self._preference(sharpness * (better - worse), batch)
            if centred:
                middle = float(self._means[0])
                total = total + self._recipe.centring * ((better - middle).square() + (worse - middle).square()).mean()
        return total

    def _regression(self, values: Tensor, labels: Tensor) -> Tensor:
        known = labels.isfinite()
        errors = torch.where(known, values - labels.nan_to_num(), 0.0).square() / torch.from_numpy(self._variances)
        counts = known.sum(0)
        return (errors.sum(0) / counts.clamp(min=1)).sum() / (counts > 0).sum().clamp(min=1)

    def _preference(self, odds: Tensor, batch: ExampleMatrices) -> Tensor:
        targets, weights = _tensor(batch.targets), _tensor(batch.weights)
        losses = F.binary_cross_entropy_with_logits(odds, targets, reduction="none")
        mean: Tensor = (losses * weights).sum() / weights.sum().clamp(min=1e-6)
        return mean

    def _decay(self, parameter: Tensor, l2: float) -> Tensor:
        heads, width = len(self._names), self._centre.shape[0]
        # Features are divided by about the root of their number, so weights are larger by that root.
        penalty: Tensor = l2 * parameter[: heads * width].square().sum() / width / heads
        return penalty

    # --- steps -----------------------------------------------------------------------------------

    def _steps(self) -> int:
        """Steps of an epoch."""
        most = max(len(self._train.features), len(self._train.chosen))
        return max(1, math.ceil(most / self._recipe.batch))

    def _rate(self, step: int, steps: int) -> float:
        """The share of the learning rate at a step: a linear rise, then half a cosine down."""
        rise = max(1, round(self._recipe.warmup * steps))
        if step < rise:
            return (step + 1) / rise
        return 0.5 * (1.0 + math.cos(math.pi * (step - rise) / max(1, steps - rise)))

    def _batches(self, candidate: int, epoch: int, steps: int) -> Iterator[ExampleMatrices]:
        """The rows in an order that follows from seed, candidate and epoch, so that no generator has to be kept."""
        generator = torch.Generator().manual_seed((self._recipe.seed * 1009 + candidate) * 100_003 + epoch)
        train = self._train
        labelled = torch.randperm(len(train.features), generator=generator).tensor_split(steps)
        pairs = torch.randperm(len(train.chosen), generator=generator).tensor_split(steps)
        for rows, others in ((one.numpy(), two.numpy()) for one, two in zip(labelled, pairs, strict=True)):
            yield ExampleMatrices(
                features=train.features[rows],
                labels=train.labels[rows],
                chosen=train.chosen[others],
                rejected=train.rejected[others],
                targets=train.targets[others],
                weights=train.weights[others],
            )


def _tensor(values: Matrix) -> Tensor:
    return torch.from_numpy(values.astype(np.float32, copy=False))


def _linear(rows: FeatureRows, weights: Tensor, bias: Tensor) -> Tensor:
    """Outputs of heads, shape (n, heads), with a few rows in memory at a time."""
    products = [F.linear(torch.from_numpy(block), weights, bias) for block in blocks(rows, ROWS_AT_ONCE)]
    return products[0] if len(products) == 1 else torch.cat(products)


def _moments(labels: Exact, heads: int) -> tuple[Exact, Matrix]:
    """Mean and variance of each head's labels; 0 and 1 where there are none."""
    means, variances = np.zeros(heads), np.ones(heads, dtype=np.float32)
    for head in range(heads):
        known = labels[:, head][np.isfinite(labels[:, head])] if len(labels) else np.zeros(0)
        if len(known):
            means[head] = known.mean()
            variances[head] = max(float(known.var()), 1e-6)
    return means, variances
