"""Late interaction over token vectors of the encoder: ColBERT's MaxSim without any training for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from benchmarks.quality.figures import Floats
from reward_server.encoders.sentence_transformer import best_device
from reward_server.reward_models.base_encoder import load_base
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.style import reply_of, undressed
from reward_server.reward_models.style_sets import request_of


class TokenLikeness:
    """How near the nearest token of a reply is to each token of its request, and the other way round."""

    def __init__(self, base: str) -> None:
        """Args: base: the encoder of the setting, a folder or a name."""
        self._model = load_base(base).to(best_device())
        self._known: dict[str, Floats] = {}

    def __call__(self, conversations: Sequence[Conversation]) -> Floats:
        """Both directions, shape (n, 2)."""
        missing = {each.digest: each for each in conversations if each.digest not in self._known}
        some = list(missing.values())
        for start in range(0, len(some), 32):
            self._add(some[start : start + 32])
        return np.stack([self._known[each.digest] for each in conversations])

    def _add(self, conversations: Sequence[Conversation]) -> None:
        sides = {each.digest: (request_of(each), undressed(reply_of(each))) for each in conversations}
        vectors = self._vectors({text for two in sides.values() for text in two})
        for digest, (request, reply) in sides.items():
            cosines = vectors[reply] @ vectors[request].T
            self._known[digest] = np.array([cosines.max(0).mean(), cosines.max(1).mean()], dtype=np.float64)

    def _vectors(self, texts: set[str]) -> Mapping[str, np.ndarray]:
        order = sorted(texts)
        with torch.inference_mode():
            found = self._model.encode(order, output_value="token_embeddings", show_progress_bar=False, batch_size=16)
        return {
            text: torch.nn.functional.normalize((rows[1:-1] if len(rows) > 2 else rows).float(), dim=1).cpu().numpy()
            for text, rows in zip(order, found, strict=True)
        }
