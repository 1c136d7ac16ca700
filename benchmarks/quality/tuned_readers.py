"""The encoder with its last two layers trained on pairs: over request and reply together, or apart.

Judged pairs and counterparts are drawn by their weights, a fixed number of steps; the rates were not tuned.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from torch import Tensor, nn

from benchmarks.quality.figures import Floats
from reward_server.reward_models.base_encoder import base_folder
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import PreferredPair
from reward_server.reward_models.style import reply_of
from reward_server.reward_models.style_sets import request_of

CROSS, TOWERS = "cross-encoder", "two towers"
WAYS = (CROSS, TOWERS)
STEPS, BATCH, MAX_TOKENS, TRAINED_LAYERS = 200, 8, 256, 2
LAYER_RATE, HEAD_RATE = 5e-5, 1e-3
Pairs = Sequence[PreferredPair]


class Reader(nn.Module):
    """A number for each request and reply; the lower layers stay as they are."""

    def __init__(self, way: str, base: str) -> None:
        from transformers import AutoModel, AutoTokenizer

        super().__init__()
        folder = str(base_folder(base))
        self._way = way
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.encoder: Any = AutoModel.from_pretrained(folder)
        width = self.encoder.config.hidden_size
        self.head = nn.Linear(width if way == CROSS else 3 * width, 1)
        for parameter in self.encoder.parameters():
            parameter.requires_grad_(False)
        # Whatever the architecture calls them, its layers are its longest list of modules.
        layers = max((each for each in self.encoder.modules() if isinstance(each, nn.ModuleList)), key=len)
        for layer in list(layers)[-TRAINED_LAYERS:]:
            layer.requires_grad_(True)

    def forward(self, sides: Sequence[Conversation]) -> Tensor:
        """Shape (n,)."""
        asked, said = [request_of(each) for each in sides], [reply_of(each) for each in sides]
        if self._way == CROSS:
            found = self._means(asked, said)
        else:
            requests, replies = (F.normalize(self._means(texts), dim=1) * 20.0 for texts in (asked, said))
            found = torch.cat([requests * replies / 20.0, (requests - replies).abs(), replies], dim=1)
        outputs: Tensor = self.head(found)[:, 0]
        return outputs

    def _means(self, *texts: Sequence[str]) -> Tensor:
        tokens = self._tokenizer(
            *map(list, texts), padding=True, truncation="longest_first", max_length=MAX_TOKENS, return_tensors="pt"
        )
        with torch.autocast("cpu", torch.bfloat16, enabled=bool(torch.cpu.get_capabilities().get("avx512_bf16"))):
            hidden = self.encoder(**tokens).last_hidden_state.float()
        mask = tokens["attention_mask"].unsqueeze(-1).float()
        return torch.as_tensor((hidden * mask).sum(1) / mask.sum(1))


def tuned(way: str, base: str, judged: Pairs, beside: Pairs) -> Callable[[Pairs], Floats]:
    """Train it, and return what it says of pairs: the better side less the other, shape (n,)."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    draw = np.random.default_rng(0)
    pairs = [*judged, *beside]
    chances = np.array([pair.weight for pair in pairs])
    reader = Reader(way, base)
    optimiser = torch.optim.AdamW(
        [
            {"params": [each for each in reader.encoder.parameters() if each.requires_grad], "lr": LAYER_RATE},
            {"params": list(reader.head.parameters()), "lr": HEAD_RATE},
        ]
    )
    warm = STEPS // 10
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, (STEPS - step) / (STEPS - warm))
    )
    started, losses = time.process_time(), []
    reader.train()
    for step in range(STEPS):
        some = [pairs[place] for place in draw.choice(len(pairs), BATCH, p=chances / chances.sum())]
        loss = F.softplus(-_margins(reader, some)).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        losses.append(float(loss.detach()))
        if (step + 1) % 50 == 0:
            spent = (time.process_time() - started) / 60
            print(
                f"  {way}: step {step + 1}, loss {np.mean(losses[-50:]):.3f}, {spent:.1f} CPU minutes", file=sys.stderr
            )
    reader.eval()

    def margins(asked: Pairs) -> Floats:
        with torch.inference_mode():
            parts = [_margins(reader, asked[start : start + BATCH]) for start in range(0, len(asked), BATCH)]
        return torch.cat(parts).numpy().astype(np.float64)

    return margins


def _margins(reader: Reader, pairs: Pairs) -> Tensor:
    values = reader([side for pair in pairs for side in (pair.chosen, pair.rejected)])
    return torch.as_tensor(values[0::2] - values[1::2])
