"""The network that is fine-tuned: a text encoder of torch with a linear head on what both parties said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor, nn

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class TuningNet(nn.Module):
    """The encoder with a linear head on [persona, agent, product, |difference|, last agent turn]."""

    def __init__(self, model: SentenceTransformer, width: int, start: Sequence[float], generator: torch.Generator):
        super().__init__()
        self.model = model
        self.head = nn.Linear(5 * width, len(start))
        self.is_frozen = False
        self._known: dict[str, Tensor] = {}
        """Vectors of the frozen encoder: every epoch of phase 1 sees the same ones."""
        native = torch.cpu.get_capabilities()
        self._bf16 = any(bool(native.get(name)) for name in ("amx_bf16", "avx512_bf16"))
        with torch.no_grad():
            self.head.weight.copy_(torch.randn(self.head.weight.shape, generator=generator) * 1e-3)
            self.head.bias.copy_(torch.tensor(start))

    def forward(self, sides: Sequence[Sequence[str]]) -> Tensor:
        """Outputs, shape (sides, heads)."""
        texts = [text for side in sides for text in side]
        unique = list(dict.fromkeys(texts))  # the two sides of a pair share what was said before
        places = {text: place for place, text in enumerate(unique)}
        vectors = self._vectors(unique)[[places[text] for text in texts]]
        persona, agent, last = vectors[0::3], vectors[1::3], vectors[2::3]
        features = torch.cat([persona, agent, persona * agent, (persona - agent).abs(), last], dim=1)
        # Entries of unit vectors are as small as they are many.
        outputs: Tensor = self.head(features * math.sqrt(vectors.shape[1]))
        return outputs

    def freeze(self, frozen: bool) -> None:
        """Whether vectors are those of an encoder that stays as it is, computed once and without gradients."""
        self.is_frozen = frozen
        self._known.clear()
        # Set both ways: a phase must not depend on what the one before it froze.
        for parameter in transformer_of(self.model).parameters():
            parameter.requires_grad_(not frozen)

    def _vectors(self, texts: Sequence[str]) -> Tensor:
        if not self.is_frozen:
            return self._encoded(texts)
        missing = [text for text in texts if text not in self._known]
        if missing:
            with torch.no_grad():
                self._known.update(zip(missing, self._encoded(missing), strict=True))
        return torch.stack([self._known[text] for text in texts])

    def _encoded(self, texts: Sequence[str]) -> Tensor:
        tokens = self.model.preprocess(list(texts))
        with torch.autocast("cpu", torch.bfloat16, enabled=self._bf16):
            vectors = self.model(tokens)["sentence_embedding"]
        return F.normalize(vectors.float(), dim=1)


def transformer_of(model: SentenceTransformer) -> nn.Module:
    """The pre-trained network inside a sentence-transformers model."""
    inner: Any = model[0]
    found: nn.Module = inner.auto_model
    return found
