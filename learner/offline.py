"""Learning from a file: preferences (DPO, IPO) and imitation (SFT), with the run, checkpoints and metrics of any other.

Which rows an update takes follows from the run's seed and its number alone, so a run goes on as if it
had not been interrupted. Some rows are held out and never learned from.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from learner.config import ConfigError
from learner.conversations import ContinuationPair, Segments
from learner.datafile import read_data
from learner.display import Now, Say, silent
from learner.model import Policy
from learner.objectives import preference_loss
from learner.run import Run
from learner.saving import kept
from learner.split import split
from learner.types import rows_in

T = TypeVar("T")


def train(run: Run, say: Say, asked_to_end: Callable[[], bool] = lambda: False, now: Now = silent) -> None:
    """Train to the configured number of updates, or to the end of the one in which it is asked to end."""
    rows: Sequence[Any] = read_data(run.config, run.renderer, run.tokenizer, run.sampler.context)
    loss: Loss[Any] = _preference if run.objective.kind == "preference" else _likelihood
    _train(run, rows, loss, asked_to_end, say=say, now=now)


Loss = Callable[[Run, Sequence[T], Sequence[T]], tuple[Tensor, dict[str, float]]]


def _train(run: Run, rows: Sequence[T], loss: Loss[T], asked_to_end: Callable[[], bool], *, say: Say, now: Now) -> None:
    settings = run.config
    learned, held_out = split(rows, settings.data.held_out_share, settings.run.seed)
    with kept(run, shared=()):
        _updates(run, learned, held_out, loss, asked_to_end, say=say, now=now)


def _updates(
    run: Run,
    learned: Sequence[T],
    held_out: Sequence[T],
    loss: Loss[T],
    asked_to_end: Callable[[], bool],
    *,
    say: Say,
    now: Now,
) -> None:
    settings = run.config
    if run.step == 0:
        _evaluate(run, held_out, loss, say)
    is_over = run.ranks.agree(run.is_over())
    while run.step < settings.run.updates and not asked_to_end() and not is_over:
        step, started = run.step + 1, time.monotonic()
        now(f"update {step:>4} of {settings.run.updates}")
        batch = batch_of(learned, step, settings.data.batch, settings.run.seed)
        rate = run.set_rate(step)
        parts = [functools.partial(loss, run, part, batch) for part in _parts(batch, settings.data.micro)]
        values = run.updater.apply(parts)
        run.step = step
        run.metrics.write(
            "train", step, {**values, "update/learning_rate": rate, "seconds/update": time.monotonic() - started}
        )
        due = step % settings.evaluation.every == 0 or step == settings.run.updates
        if due:
            _evaluate(run, held_out, loss, say)
        if due:
            is_over = run.ranks.agree(run.is_over())
        if (due and run.is_best()) or step % settings.run.checkpoint_every == 0:
            run.save()
    if run.saved < run.step:
        run.save()
    if is_over:
        say(run.ending())


def _evaluate(run: Run, held_out: Sequence[T], loss: Loss[T], say: Say) -> None:
    if not held_out:
        return
    sums: dict[str, float] = {}
    with torch.no_grad():
        for part in _parts(held_out, run.config.data.micro):
            for name, value in loss(run, part, held_out)[1].items():
                sums[name] = sums.get(name, 0.0) + value
    run.metrics.write("eval", run.step, sums)
    shown = "  ".join(f"{name.removeprefix('update/')} {value:.3f}" for name, value in sums.items())
    say(f"update {run.step:>4}  held-out rows: {shown}")


def batch_of(rows: Sequence[T], step: int, size: int, seed: int) -> list[T]:
    """The rows of an update, counted from 1: every row once before any a second time."""
    size = min(size, len(rows))
    found: list[T] = []
    for place in range((step - 1) * size, step * size):
        epoch, number = divmod(place, len(rows))
        order = list(range(len(rows)))
        random.Random(f"epoch {epoch} of {seed}").shuffle(order)  # noqa: S311 - data, no secret
        found.append(rows[order[number]])
    return found


def _parts(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _preference(
    run: Run, pairs: Sequence[ContinuationPair], batch: Sequence[ContinuationPair]
) -> tuple[Tensor, dict[str, float]]:
    """The share that these pairs have in the loss of the batch, and in its figures."""
    row, reference = run.objective, run.reference
    if reference is None:
        raise ConfigError("model.reference: a preference loss needs the reference; set it to true")
    sides = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
    logp = _sums(run.policy, sides)
    with torch.no_grad():
        gap = logp - _sums(reference, sides)
    gap = gap.detach() + logp - logp.detach()
    margins = gap[: len(pairs)] - gap[len(pairs) :]
    weights = torch.tensor([pair.margin for pair in pairs], device=margins.device) if row.margin_weighted else None
    whole = sum(pair.margin for pair in batch) if row.margin_weighted else float(len(batch))
    share = (float(weights.sum()) if weights is not None else len(pairs)) / whole
    loss = share * preference_loss(
        margins, beta=row.margin_beta, kind=row.preference, smoothing=row.smoothing, weights=weights
    )
    if row.positive_nll:
        loss = loss - row.positive_nll * logp[: len(pairs)].sum() / _learned_tokens([pair.chosen for pair in batch])
    part, found = len(pairs) / len(batch), margins.detach()
    # A tie counts half: before the first update all margins are zero, which says nothing of either side.
    accuracy = float(((found > 0).float() + 0.5 * (found == 0).float()).mean())
    return loss, {
        "update/loss": float(loss.detach()),
        "preference/accuracy": part * accuracy,
        "preference/margin": part * float(found.mean()),
        "preference/chosen_gain": part * float(gap[: len(pairs)].detach().mean()),
    }


def _likelihood(run: Run, rows: Sequence[Segments], batch: Sequence[Segments]) -> tuple[Tensor, dict[str, float]]:
    loss = -_sums(run.policy, rows).sum() / _learned_tokens(batch)
    return loss, {"update/loss": float(loss.detach())}


def _learned_tokens(conversations: Sequence[Segments]) -> int:
    return sum(len(segment.ids) for each in conversations for segment in each if segment.sampled)


def _sums(policy: Policy, conversations: Sequence[Segments]) -> Tensor:
    """[B]: log-probability of each conversation's learned tokens, over all rows that it forks into.

    What two conversations begin with, such as the prompt of a pair, is computed once where the model allows it.
    """
    logp, _ = policy.score_rows([row for each in conversations for row in rows_in(each)])
    return torch.stack([part.sum() for part in torch.split(logp, [_learned_tokens([each]) for each in conversations])])
