"""The policy: a causal transformer and the one distribution that sampler and learner share.

`Policy.distribution` divides by the temperature and rules out control tokens; both the sampler and
the loss go through it, so their log-probabilities are of the same thing. What top-k and top-p leave
out is decided where a token is drawn, and kept with it (`support`). The LM head runs on the
positions of sampled tokens only. Rows are scored packed (`packed`) where the model allows it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from learner.objectives import chosen_logp_and_entropy
from learner.packed import PackedScorer, packed_scorer
from learner.products import multiply_fast
from learner.support import Supports, Truncation
from learner.types import Segment

FULL = Truncation()


@dataclass(frozen=True)
class PaddedRows:
    """Conversations padded on the right, and which of their tokens were sampled."""

    ids: Tensor
    sampled: Tensor
    """[B, T] float; 1 on sampled tokens."""
    sampler_logp: Tensor
    """[B, T]; 0 where nothing was sampled."""
    supports: Supports | None = None
    """Of the sampled tokens, row by row, where some could not be drawn."""


@dataclass(frozen=True)
class TokenScores:
    """The policy's view of the sampled tokens; both [B, T], 0 elsewhere."""

    logp: Tensor
    entropy: Tensor


class Policy:
    """A model with the distribution it acts by."""

    def __init__(
        self,
        model: Any,
        *,
        end_id: int,
        banned: Sequence[int] = (),
        temperature: float = 1.0,
        truncation: Truncation = FULL,
        autocast: torch.dtype | None = None,
        packs: bool = True,
    ) -> None:
        if temperature <= 0:
            raise ValueError("the temperature must be above 0")
        multiply_fast(model)
        self.model = model
        self.end_id = end_id
        self.temperature = temperature
        self.truncation = truncation
        self.autocast = autocast
        """What matrix products are computed in; None: the model's own dtype."""
        self.banned = torch.tensor(sorted(set(banned) - {end_id}), dtype=torch.long, device=model.device)
        self._may_pack = packs
        self._scorer: PackedScorer | None = None

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        device: torch.device = self.model.device
        return device

    @property
    def context(self) -> int | None:
        """The number of tokens the model has positions for; None: it does not say."""
        found: int | None = getattr(self.model.config, "max_position_embeddings", None)
        return found

    def precision(self) -> torch.autocast:
        """The context in which the model is run, by sampler and learner alike."""
        enabled = self.autocast is not None
        return torch.autocast(self.device.type, dtype=self.autocast or torch.bfloat16, enabled=enabled)

    @property
    def packs(self) -> bool:
        """True if rows are scored packed; found out when it is first asked."""
        if self._may_pack and self._scorer is None:
            self._scorer = packed_scorer(self)
            self._may_pack = self._scorer is not None
        return self._may_pack

    def score_rows(self, rows: Sequence[Sequence[Segment]]) -> tuple[Tensor, Tensor]:
        """[N] log-probabilities and entropies of the sampled tokens, row by row, with gradient."""
        if not self.packs or self._scorer is None:
            return self.score_padded(rows)
        with self.precision():
            return self._scorer.score(rows)

    def score_padded(self, rows: Sequence[Sequence[Segment]]) -> tuple[Tensor, Tensor]:
        """The same by rows of one width."""
        padded = rows_of(rows, 0, self.device)
        scored = self.score(padded)
        chosen = padded.sampled > 0
        return scored.logp[chosen], scored.entropy[chosen]

    def distribution(self, logits: Tensor) -> Tensor:
        """Logits of the distribution that is sampled from."""
        logits = logits.float()
        if len(self.banned):
            logits = logits.index_fill(-1, self.banned, float("-inf"))
        return logits / self.temperature

    def score(self, rows: PaddedRows) -> TokenScores:
        """Log-probability and entropy at every sampled token, with gradient."""
        # Token t is scored from the hidden state at t - 1; no trajectory starts with a sampled token.
        chosen = rows.sampled[:, 1:] > 0
        logits = self.distribution(self._logits_at(rows.ids, functional.pad(chosen, (0, 1))))
        if rows.supports is not None:
            logits = rows.supports.narrow(logits)
        logp, entropy = chosen_logp_and_entropy(logits, rows.ids[:, 1:][chosen])
        return TokenScores(_scatter(logp, rows.sampled), _scatter(entropy, rows.sampled))

    def _logits_at(self, ids: Tensor, places: Tensor) -> Tensor:
        """[N, vocabulary] at the places [B, T]: by the model's own forward, so that its scales and soft caps count.

        The head is the dear part, so it gets those positions alone: what comes after it works entry by entry.
        """
        me = threading.get_ident()

        def pick(_: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
            # The sampler may use the same weights in another thread.
            return (inputs[0][places][None],) if threading.get_ident() == me else None

        hook = self.model.get_output_embeddings().register_forward_pre_hook(pick)
        try:
            # Rows are padded on the right, where a causal model never looks: no mask, and the faster kernel.
            with self.precision():
                logits: Tensor = self.model(input_ids=ids, use_cache=False).logits
        finally:
            hook.remove()
        return logits[0]


def rows_of(conversations: Sequence[Sequence[Segment]], pad_id: int, device: torch.device | str = "cpu") -> PaddedRows:
    """Pad conversations on the right."""
    width = max(sum(len(segment.ids) for segment in segments) for segments in conversations)
    shape = (len(conversations), width)
    ids = torch.full(shape, pad_id, dtype=torch.long)
    sampled, logp = torch.zeros(shape), torch.zeros(shape)
    for row, segments in enumerate(conversations):
        start = 0
        for segment in segments:
            end = start + len(segment.ids)
            ids[row, start:end] = torch.tensor(segment.ids, dtype=torch.long)
            if segment.logp is not None:
                sampled[row, start:end] = 1.0
                logp[row, start:end] = torch.tensor(segment.logp)
            start = end
    return PaddedRows(ids.to(device), sampled.to(device), logp.to(device), Supports.of(conversations))


def _scatter(values: Tensor, sampled: Tensor) -> Tensor:
    out = torch.zeros_like(sampled)
    return out.masked_scatter(sampled > 0, values)
