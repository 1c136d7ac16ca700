"""A step by the parts of a model says what its own forward pass says, and no token is computed twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from learner.generate.decode import decoder_of
from learner.generate.hf import HfGenerator, HfSession
from learner.generate.session import Completion, Continuation
from learner.model import Policy
from tests.learner.small import policy, tokenizer

SHAPE = {
    "vocab_size": 61,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "eos_token_id": 0,
    "pad_token_id": 1,
    "bos_token_id": None,
}


def model(kind: str, **more: Any) -> Any:
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**{**SHAPE, **more})
    made = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weights in made.parameters():
            weights.mul_(3.0)  # fresh weights say nearly the same of every token
    return made


def played(of: Policy, *, by_parts: bool) -> list[dict[int, Completion]]:
    """Two turns of three conversations of different lengths, then one that goes on alone."""
    decoder = decoder_of(of.model)
    assert decoder is not None
    session = HfSession(of, 6, decoder if by_parts else None)
    first = {n: Continuation([3, 4, 5, 6][: 2 + n % 2], np.random.SeedSequence([1, n])) for n in range(3)}
    later = {n: Continuation([9, 8 + n, 7][: 1 + n], np.random.SeedSequence([2, n])) for n in (0, 2)}
    return [session.step(first), session.step(later), session.step({2: later[2]})]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Llama", {}),
        ("Llama", {"num_key_value_heads": 4, "attention_bias": True, "mlp_bias": True}),
        ("Qwen2", {}),
        ("Qwen3", {"tie_word_embeddings": True}),
        ("Mistral", {"sliding_window": None}),
    ],
)
def test_a_step_by_parts_is_the_models_own(kind: str, more: dict[str, Any]) -> None:
    of = Policy(model(kind, **more), end_id=0)
    for one, other in zip(played(of, by_parts=True), played(of, by_parts=False), strict=True):
        for number, completion in one.items():
            assert completion.ids == other[number].ids
            assert np.allclose(completion.logp, other[number].logp, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Granite", {"residual_multiplier": 0.5}),  # the same parts, put together in another way
        ("Granite", {"logits_scaling": 4.0}),
        ("Gemma3Text", {}),
        ("Olmo2", {}),
        ("GPT2", {}),
    ],
)
def test_a_model_that_is_more_than_its_parts_is_asked_itself(kind: str, more: dict[str, Any]) -> None:
    assert decoder_of(model(kind, **more)) is None


def test_a_model_that_others_listen_to_is_asked_itself() -> None:
    made = model("Llama")
    hook = made.model.layers[0].register_forward_hook(lambda *_: None)
    assert decoder_of(made) is None
    hook.remove()
    assert decoder_of(made) is not None
    assert decoder_of(made.to(torch.bfloat16)) is None


def test_weights_are_read_when_a_step_is_made() -> None:
    of = Policy(model("Llama"), end_id=0)
    generator = HfGenerator(of, max_tokens=4)

    def said() -> Completion:
        return generator.start().step({0: Continuation([3, 4], np.random.SeedSequence(1))})[0]

    before = said()
    with torch.no_grad():
        for weights in of.model.parameters():
            weights.mul_(0.5)
    assert said().logp != before.logp


def test_what_conversations_begin_with_is_computed_once_and_no_token_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    words = tokenizer()
    of = policy(words, spread=3.0)
    of.banned = torch.tensor([of.end_id])  # nobody stops early
    fed: list[tuple[int, int]] = []
    feed = HfSession._feed

    def watched(self: HfSession, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        fed.append((len(ids), int(mask.sum())))
        return feed(self, ids, mask)

    monkeypatch.setattr(HfSession, "_feed", watched)
    session = HfGenerator(of, max_tokens=3).start()
    session.step({n: Continuation([4, 5, 6, 7][n // 3 :], np.random.SeedSequence(n)) for n in range(6)})
    assert fed == [(2, 7), (6, 6), (6, 6)]
    fed.clear()
    session.step({n: Continuation([8], np.random.SeedSequence(n)) for n in range(6)})
    assert fed == [(6, 12), (6, 6), (6, 6)]  # the last token of the turn before comes with the new one
