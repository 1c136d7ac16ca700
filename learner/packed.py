"""A policy's view of sampled tokens by packed rows, for every model that gives the same numbers that way.

Whether it does is not looked up but tried: a few rows are scored packed and one by one before the first update. A model
that differs (attention of its own, a state that runs along the row) keeps being scored in padded rows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from learner import agreement, attention
from learner.head import Head, chosen_logp_and_entropy, head_of
from learner.objectives import chosen_logp_and_entropy as chosen_of_logits
from learner.packing import LEAST_SHARED, Packed, pack
from learner.support import Supports
from learner.types import Segment


class Packable(agreement.Computing, Protocol):
    """A policy whose rows may be packed."""

    temperature: float
    banned: Tensor

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        ...

    def precision(self) -> torch.autocast:
        """The context in which the model is run."""
        ...

    def distribution(self, logits: Tensor) -> Tensor:
        """[..., V] logits of the sampling distribution."""
        ...

    def score_padded(self, rows: Sequence[Sequence[Segment]]) -> tuple[Tensor, Tensor]:
        """[N] log-probabilities and entropies of the sampled tokens, by padded rows."""
        ...


class PackedScorer:
    """Scores rows of one policy."""

    def __init__(self, policy: Packable) -> None:
        self._policy = policy
        self._head: Head | None = head_of(policy.model)

    def score(self, rows: Sequence[Sequence[Segment]]) -> tuple[Tensor, Tensor]:
        """[N] log-probabilities and entropies of the sampled tokens, row by row."""
        policy = self._policy
        packed = pack(rows).to(policy.device)
        # With a head that is known, the model's own forward computes one place, which nobody looks at.
        hidden, logits = self._forward(packed, all_logits=self._head is None)
        supports = Supports.of(rows)
        if self._head is None:
            logits = policy.distribution(logits)
            return chosen_of_logits(logits if supports is None else supports.narrow(logits), packed.targets)
        return chosen_logp_and_entropy(
            hidden,
            packed.targets,
            self._head,
            temperature=policy.temperature,
            banned=policy.banned,
            supports=supports,
        )

    def _forward(self, packed: Packed, *, all_logits: bool) -> tuple[Tensor, Tensor]:
        me = threading.get_ident()
        found: list[Tensor] = []

        def pick(_: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            # The sampler may use the same weights in another thread.
            if threading.get_ident() != me:
                return None
            found.append(inputs[0][0].index_select(0, packed.sources))
            return (found[0][None] if all_logits else inputs[0][:, :1],)

        model = self._policy.model
        hook = model.get_output_embeddings().register_forward_pre_hook(pick)
        try:
            with attention.without_masks():
                logits: Tensor = model(
                    input_ids=packed.ids[None], position_ids=packed.positions[None], use_cache=False, packing=packed
                ).logits
        finally:
            hook.remove()
        return found[0], logits[0]


def packed_scorer(policy: Packable) -> PackedScorer | None:
    """A scorer, if packed rows give this policy's own numbers; else None, and the model is as it was."""
    model = policy.model
    before = getattr(model.config, "_attn_implementation", None)
    if before not in ("sdpa", attention.NAME):
        return None
    model.set_attn_implementation(attention.NAME)
    try:
        with torch.no_grad(), attention.watched() as asked, policy.precision():
            scorer = PackedScorer(policy)
            rows = trial_rows(policy)
            packed = scorer.score(rows)[0]
        alone = torch.cat([policy.score_padded([row])[0].detach() for row in rows])
        if asked[0] and agreement.difference(policy, packed, alone) <= agreement.allowed(policy):
            return scorer
    except (attention.CannotPackError, TypeError, ValueError, RuntimeError, IndexError):
        pass  # this model cannot be given packed rows; padded ones always work
    model.set_attn_implementation(before)
    return None


def trial_rows(policy: Packable) -> list[tuple[Segment, ...]]:
    """Two conversations that begin alike, one of them twice as long, and one that does not."""
    head = policy.model.get_output_embeddings()
    size: int = getattr(head, "out_features", head.weight.shape[0])
    usable = sorted(set(range(size)) - set(policy.banned.tolist()))
    draw = torch.Generator().manual_seed(0)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(usable[int(each)] for each in torch.randint(len(usable), (count,), generator=draw))

    def spoken(count: int) -> Segment:
        return Segment(tokens(count), (-1.0,) * count)

    opening = Segment(tokens(LEAST_SHARED + 3))
    return [
        (opening, spoken(5)),
        (Segment(tokens(4)), spoken(6)),
        (opening, spoken(7), Segment(tokens(6)), spoken(4)),
    ]
