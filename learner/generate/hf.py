"""Sampling with a transformers model in this process, all live conversations of a wave in one batch.

Keys and values are kept over the turns: a step runs the model on the new tokens alone. Rows differ
in length, so each step pads on the left and masks the holes, with every row's own positions; where
layers look back only so far, the mask counts positions and not places in the cache. The
random numbers of a turn come from its own seed, so what is sampled does not depend on a global
generator. Sampling is at the policy's temperature, from what its top-k and top-p leave of the
distribution. What the conversations of a group begin with is computed once. On a GPU, single tokens are steps of fixed
shapes, replayed as CUDA graphs (`fixed`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from learner.generate.cache import growing_cache
from learner.generate.decode import Decoder, decoder_of
from learner.generate.fixed import ONE_KIND, FixedStep, agrees, lowest
from learner.generate.session import Completion, Continuation
from learner.model import Policy
from learner.support import listed


class HfGenerator:
    """Starts sessions on the policy's own weights: nothing to synchronise."""

    def __init__(self, policy: Policy, *, max_tokens: int, fixed_shapes: bool | None = None) -> None:
        """`fixed_shapes`: single tokens in steps of fixed shapes, if the model can; None: on a GPU."""
        self._policy = policy
        self.max_tokens = max_tokens
        self._fixed = policy.device.type == "cuda" if fixed_shapes is None else fixed_shapes
        self._decoder: Decoder | None = None
        self._looked = False

    @property
    def context(self) -> int | None:
        """The number of positions of the model."""
        return self._policy.context

    def start(self) -> HfSession:
        """A session without conversations."""
        if not self._looked:
            self._decoder = decoder_of(self._policy.model) if self._policy.autocast is None else None
            self._fixed = self._fixed and agrees(self._policy, kinds_of(self._policy.model.config))
        self._looked = True
        return HfSession(self._policy, self.max_tokens, self._decoder, fixed_shapes=self._fixed)


class HfSession:
    """Conversations that share one cache."""

    def __init__(
        self, policy: Policy, max_tokens: int, decoder: Decoder | None = None, *, fixed_shapes: bool = False
    ) -> None:
        self._policy = policy
        self._max_tokens = max_tokens
        self._cache = growing_cache()
        self._numbers: list[int] = []
        self._attention = torch.zeros((0, 0), dtype=torch.long)
        self._lengths = torch.zeros(0, dtype=torch.long)
        self._positions = torch.zeros((0, 0), dtype=torch.long)
        self._unfed: list[list[int]] = []
        """Of each row, the last token that was sampled if the model has not seen it yet."""
        self._kinds = kinds_of(policy.model.config)
        self._windowed = any(limits != (None, None) for limits in self._kinds.values())
        self._decoder = None if self._windowed or fixed_shapes else decoder
        self.fixed_shapes = fixed_shapes
        self._fixed: FixedStep | None = None

    @torch.no_grad()
    def step(self, continuations: Mapping[int, Continuation]) -> dict[int, Completion]:
        """Continue these conversations; the first step names all there will be."""
        if not continuations:
            return {}
        first = not self._numbers
        self._keep(list(continuations))
        for row, number in enumerate(self._numbers):
            if continuations[number].fresh:
                self._attention[row] = 0
                self._lengths[row] = 0
                self._unfed[row] = []
        new = [[*self._unfed[row], *continuations[number].ids] for row, number in enumerate(self._numbers)]
        draws = torch.tensor(
            np.stack([_uniforms(continuations[number].noise, self._max_tokens) for number in self._numbers])
        )
        with self._one_cast():
            logits = self._begin(new) if first else self._feed(*self._side_by_side(new))
            return self._sample(logits, draws)

    def _one_cast(self) -> AbstractContextManager[Any]:
        """Cast weights once a turn and not once a token, where products are narrower than the weights.

        A CUDA graph outlives the turn, so it must not read what this context frees at its end.
        """
        return nullcontext() if self.fixed_shapes else self._policy.precision()

    def _keep(self, numbers: list[int]) -> None:
        if not self._numbers:
            self._numbers = numbers
            self._clear(len(numbers))
            return
        kept = [row for row, number in enumerate(self._numbers) if number in set(numbers)]
        if len(kept) != len(numbers):
            raise ValueError("a conversation cannot join or rejoin a session that has started")
        if len(kept) < len(self._numbers):
            self._select(kept)
            self._numbers = [self._numbers[row] for row in kept]

    def _clear(self, rows: int) -> None:
        self._attention = torch.zeros((rows, 0), dtype=torch.long)
        self._positions = torch.zeros((rows, 0), dtype=torch.long)
        self._lengths = torch.zeros(rows, dtype=torch.long)
        self._unfed = [[] for _ in range(rows)]

    def _select(self, rows: list[int]) -> None:
        """Go on with these rows, some of them more than once."""
        place = torch.tensor(rows)
        self._cache.batch_select_indices(place)
        self._fixed = None  # its graph would keep the old rows in memory
        self._attention, self._lengths = self._attention[place], self._lengths[place]
        self._positions = self._positions[place]
        self._unfed = [list(self._unfed[row]) for row in rows]

    def _begin(self, new: list[list[int]]) -> Tensor:
        """`_feed` for the first time, each beginning once."""
        different = list(dict.fromkeys(map(tuple, new)))
        self._clear(len(different))
        logits = self._feed(*self._side_by_side(different))
        rows = [different.index(tuple(ids)) for ids in new]
        if len(different) == len(new):
            return logits
        self._select(rows)
        return logits[torch.tensor(rows, device=logits.device)]

    def _side_by_side(self, new: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """New tokens [B, T] padded on the left, and 1 where there is one."""
        width = max(len(ids) for ids in new)
        ids = torch.full((len(new), width), self._policy.end_id, dtype=torch.long)
        mask = torch.zeros((len(new), width), dtype=torch.long)
        for row, tokens in enumerate(new):
            if tokens:
                ids[row, width - len(tokens) :] = torch.tensor(tokens, dtype=torch.long)
                mask[row, width - len(tokens) :] = 1
        return ids, mask

    def _feed(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Run the model on the new tokens; the logits after each row's last one."""
        positions = (self._lengths[:, None] + mask.cumsum(1) - 1).clamp(min=0)
        self._attention = torch.cat([self._attention, mask], dim=1)
        self._positions = torch.cat([self._positions, positions], dim=1)
        self._lengths = self._lengths + mask.sum(1)
        if self._decoder is not None and ids.shape[1] == 1:
            return self._policy.distribution(self._decoder.step(ids, positions, self._attention, self._cache))
        if self.fixed_shapes and ids.shape[1] == 1 and self._cache.layers:
            return self._policy.distribution(self._feed_fixed(ids, positions))
        device = self._policy.device
        with self._policy.precision():
            output = self._policy.model(
                input_ids=ids.to(device),
                attention_mask=self._masks(positions) if self._windowed else self._attention.to(device),
                position_ids=positions.to(device),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
        return self._policy.distribution(output.logits[:, -1])

    def _feed_fixed(self, ids: Tensor, positions: Tensor) -> Tensor:
        masks = self._masks_by_kind(positions)
        if self._fixed is None or not self._fixed.fits():
            self._fixed = FixedStep(self._policy, self._cache, masks, self._max_tokens)
        return self._fixed(ids, positions, masks)

    def _masks(self, positions: Tensor) -> Any:
        """The masks as the model takes them: one, or one by the name of each kind of layer."""
        masks = self._masks_by_kind(positions)
        return masks.get(ONE_KIND, masks)

    def _masks_by_kind(self, positions: Tensor) -> dict[str, Tensor]:
        """The tokens that each new token may look at, [B, 1, new, kept], for each kind of layer that the model has."""
        reach = positions[:, :, None] - self._positions[:, None, :]
        seen = (self._attention[:, None, :] > 0) & (reach >= 0)
        dtype, hidden = self._policy.model.dtype, lowest(self._policy)
        masks = {}
        for kind, (window, chunk) in self._kinds.items():
            allowed = seen if window is None else seen & (reach < window)
            if chunk is not None:
                allowed = allowed & (positions[:, :, None] // chunk == self._positions[:, None, :] // chunk)
            blocked = torch.zeros(allowed.shape, dtype=dtype).masked_fill(~allowed, hidden)
            masks[kind] = blocked[:, None].to(self._policy.device)
        return masks

    def _sample(self, logits: Tensor, draws: Tensor) -> dict[int, Completion]:
        count = len(self._numbers)
        ids: list[list[int]] = [[] for _ in range(count)]
        logp: list[list[float]] = [[] for _ in range(count)]
        supports: list[list[tuple[int, ...]]] = [[] for _ in range(count)]
        live, spoke, tokens = [True] * count, [True] * count, torch.zeros(count, dtype=torch.long)
        for position in range(self._max_tokens):
            if position:
                # A row that has ended was fed its end, and is a hole from then on.
                logits = self._feed(tokens[:, None], torch.tensor(spoke, dtype=torch.long)[:, None])
            allowed = self._policy.truncation.support(logits) if self._policy.truncation else None
            if allowed is not None:
                logits = logits.masked_fill(~allowed, float("-inf"))
            logps = torch.log_softmax(logits, dim=-1)
            drawn = _inverse_cdf(logps, draws[:, position].to(logps.device))
            chosen = logps.gather(1, drawn[:, None])[:, 0].tolist()
            tokens, spoke = drawn.cpu(), live
            said = tokens.tolist()
            drawable = None if allowed is None else listed(allowed)
            for row, on in enumerate(spoke):
                if on:
                    if drawable is not None:
                        supports[row].append(drawable[row])
                    ids[row].append(said[row])
                    logp[row].append(min(chosen[row], 0.0))
            live = [on and token != self._policy.end_id for on, token in zip(spoke, said, strict=True)]
            if not any(live):
                break
        # The next step continues right after the last token: it is fed together with what comes then.
        self._unfed = [row_ids[-1:] if on else [] for row_ids, on in zip(ids, spoke, strict=True)]
        return {
            number: Completion(
                tuple(ids[row]),
                tuple(logp[row]),
                ended=not live[row],
                support=tuple(supports[row]) if self._policy.truncation else None,
            )
            for row, number in enumerate(self._numbers)
        }


def _uniforms(noise: np.random.SeedSequence, count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.Generator(np.random.Philox(noise)).random(count)


def _inverse_cdf(logps: Tensor, draws: Tensor) -> Tensor:
    """The token at which the cumulative probability passes the draw; never one of probability 0."""
    # Where the logits are: moving a large vocabulary to the CPU for every token is what a GPU would wait for.
    exact = torch.float64 if logps.device.type == "cpu" else torch.float32
    cumulative = logps.to(exact).exp().cumsum(-1)
    total = cumulative[:, -1:]
    target = torch.minimum(draws[:, None].to(exact) * total, torch.nextafter(total, torch.zeros_like(total)))
    # right=True: the first entry strictly above the target, so a draw of 0 cannot pick a ruled-out first token.
    return torch.searchsorted(cumulative, target, right=True)[:, 0]


def kinds_of(config: Any) -> dict[str, tuple[int | None, int | None]]:
    """(window, chunk) of each kind of layer, by its name if the model takes a mask for each; None: no limit."""
    window, chunk = getattr(config, "sliding_window", None), getattr(config, "attention_chunk_size", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if "sliding_attention" in kinds or "chunked_attention" in kinds:
        known = {
            "full_attention": (None, None),
            "sliding_attention": (window, None),
            "chunked_attention": (None, chunk),
        }
        return {kind: limits for kind, limits in known.items() if kind in kinds}
    windowed = window is not None and not kinds and getattr(config, "use_sliding_window", True)
    return {ONE_KIND: (window if windowed else None, None)}
