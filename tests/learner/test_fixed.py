"""Steps of fixed shapes say what the model's own forward pass says; what records them on a GPU is told apart by device.

No GPU is needed: a CUDA graph replays exactly the tensors and shapes that are used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from learner.generate import cache, fixed, hf
from learner.generate.hf import HfGenerator, HfSession
from learner.generate.session import Completion, Continuation
from learner.model import Policy
from tests.learner.test_decode import model

FAMILIES: list[tuple[str, dict[str, Any]]] = [
    ("Llama", {}),
    ("Qwen3", {"tie_word_embeddings": True}),
    ("Mistral", {"sliding_window": 7}),
    ("Gemma2", {"sliding_window": 7, "attn_logit_softcapping": 2.0}),
    ("Gemma3Text", {"sliding_window": 7, "layer_types": ["sliding_attention", "full_attention"]}),
    ("Granite", {"logits_scaling": 4.0}),
    ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4}),
]


def played(of: Policy, *, fixed_shapes: bool) -> list[dict[int, Completion]]:
    """Two turns of three conversations of different lengths, then one that goes on alone."""
    session = HfSession(of, 6, fixed_shapes=fixed_shapes)
    first = {n: Continuation([3, 4, 5, 6][: 2 + n % 2], np.random.SeedSequence([1, n])) for n in range(3)}
    later = {n: Continuation([9, 8 + n, 7][: 1 + n], np.random.SeedSequence([2, n])) for n in (0, 2)}
    return [session.step(first), session.step(later), session.step({2: later[2]})]


@pytest.mark.parametrize(("kind", "more"), FAMILIES)
def test_steps_of_fixed_shapes_sample_what_the_models_own_do(
    kind: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "FIRST_CAPACITY", 4)  # the room is enlarged on the way
    of = Policy(model(kind, **more), end_id=0)
    assert fixed.agrees(of, hf.kinds_of(of.model.config))
    for one, other in zip(played(of, fixed_shapes=True), played(of, fixed_shapes=False), strict=True):
        for number, completion in one.items():
            assert completion.ids == other[number].ids
            assert np.allclose(completion.logp, other[number].logp, atol=1e-5)


@pytest.mark.parametrize(("kind", "more"), [FAMILIES[0], FAMILIES[2]])
def test_no_number_is_lost_in_16_bits(kind: str, more: dict[str, Any]) -> None:
    of = Policy(model(kind, **more), end_id=0, autocast=torch.bfloat16)
    for turn in played(of, fixed_shapes=True):
        for completion in turn.values():
            assert np.isfinite(completion.logp).all()
    assert fixed.agrees(of, hf.kinds_of(of.model.config))


def test_a_step_is_made_once_for_each_room(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    calls: list[int] = []

    class Watched(fixed.FixedStep):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(len(self._ids))

        def _forward(self) -> torch.Tensor:
            calls.append(len(self._ids))
            return super()._forward()

    monkeypatch.setattr(hf, "FixedStep", Watched)
    of = Policy(model("Llama"), end_id=0)
    of.banned = torch.tensor([0])  # nobody stops early
    played(of, fixed_shapes=True)
    assert made == [3, 2, 1]  # once for as many conversations as go on
    assert calls == [3] * 5 + [2] * 5 + [1] * 5  # the first token of a turn comes with what it answers


def test_a_model_that_cannot_is_run_as_it_is() -> None:
    config = {"state_size": 4, "num_hidden_layers": 2, "hidden_size": 32, "expand": 2}
    of = Policy(model("Mamba", **config), end_id=0)
    assert not fixed.agrees(of, hf.kinds_of(of.model.config))


def test_shapes_are_fixed_where_that_was_asked_for_and_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Policy(model("Llama"), end_id=0)
    assert not HfGenerator(of, max_tokens=4).start().fixed_shapes  # the default on a CPU
    assert HfGenerator(of, max_tokens=4, fixed_shapes=True).start().fixed_shapes
    monkeypatch.setattr(hf, "agrees", lambda *_: False)
    assert not HfGenerator(of, max_tokens=4, fixed_shapes=True).start().fixed_shapes


class Recorder:
    """Stands for the GPU's streams and graphs: what is recorded is not run, and a replay runs it."""

    def __init__(self, step: fixed.FixedStep) -> None:
        self.step = step
        self.seen: list[str] = []

    @contextmanager
    def graph(self, _: Any, **__: Any) -> Iterator[None]:
        yield
        self.seen.append("recorded")

    def replay(self) -> None:
        self.seen.append("replayed")
        assert self.step._logits is not None
        self.step._logits.copy_(self.step._forward())

    def wait_stream(self, _: Any) -> None:
        """Nothing runs beside it."""

    @contextmanager
    def stream(self, _: Any) -> Iterator[None]:
        yield
        self.seen.append("warm")


@torch.no_grad()
def test_a_graph_is_recorded_once_and_replayed_for_every_token(monkeypatch: pytest.MonkeyPatch) -> None:
    of = Policy(model("Llama"), end_id=0)

    def logits(*, recorded: bool) -> tuple[list[torch.Tensor], list[str]]:
        kept = cache.growing_cache()
        of.model(input_ids=torch.tensor([[3, 4]]), past_key_values=kept, use_cache=True)
        step = fixed.FixedStep(of, kept, {fixed.ONE_KIND: torch.zeros(1, 1, 1, 3)}, 8)
        seen: list[str] = []
        if recorded:
            recorder = Recorder(step)
            seen = recorder.seen
            for name in ("Stream", "current_stream", "CUDAGraph"):
                monkeypatch.setattr(torch.cuda, name, lambda: recorder)
            monkeypatch.setattr(torch.cuda, "stream", recorder.stream)
            monkeypatch.setattr(torch.cuda, "graph", recorder.graph)
            step.records = True
        said = []
        for place in range(2, 5):
            ids, positions = torch.tensor([[5 + place]]), torch.tensor([[place]])
            said.append(step(ids, positions, {fixed.ONE_KIND: torch.zeros(1, 1, 1, place + 1)}).clone())
        return said, seen

    plain, _ = logits(recorded=False)
    replayed, seen = logits(recorded=True)
    assert seen == ["warm", "recorded", "replayed", "replayed", "replayed"]
    for one, other in zip(plain, replayed, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
