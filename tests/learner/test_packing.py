"""Packed rows: every sampled token once, shared beginnings once, and gradients as of one conversation at a time."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import DynamicCache

from learner import agreement, attention
from learner.algorithms import Objective
from learner.generate import cache, hf
from learner.generate.hf import HfGenerator
from learner.generate.session import Continuation
from learner.head import Head, chosen_logp_and_entropy, head_of
from learner.lora import BasePolicy, LoraSettings, with_adapters
from learner.model import Policy
from learner.objectives import chosen_logp_and_entropy as plain_logp_and_entropy
from learner.packed import trial_rows
from learner.packing import LEAST_SHARED, pack, packed_size
from learner.recompute import recompute_layers
from learner.types import Group, Segment, Trajectory
from learner.update import Updater, UpdateSettings

VOCABULARY = 61
SHAPE = {
    "vocab_size": VOCABULARY,
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
WINDOW = {"sliding_window": 9, "use_sliding_window": True}


def model(kind: str, seed: int = 0, **more: Any) -> Any:
    import transformers

    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(**{**SHAPE, **more})
    made = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for weights in made.parameters():
            weights.mul_(3.0)  # fresh weights say nearly the same of every token
    return made


def tokens(draw: random.Random, count: int) -> tuple[int, ...]:
    return tuple(draw.randrange(2, VOCABULARY) for _ in range(count))


def spoken(draw: random.Random, count: int) -> Segment:
    return Segment(tokens(draw, count), (-1.0,) * count)


def groups(openings: int = 2, members: int = 3) -> list[Group]:
    draw = random.Random(1)
    found = []
    for seed in range(openings):
        opening = Segment(tokens(draw, 20 + seed))
        turns = [(opening, spoken(draw, 3 + k), Segment(tokens(draw, 5)), spoken(draw, 4)) for k in range(members)]
        # One goes on exactly where another one does, and one begins with what is another's whole.
        turns.append((*turns[0][:3], spoken(draw, 6)))
        made = [Trajectory(row, (0.0, draw.random()), seed) for row in turns]
        found.append(Group(seed, tuple(made)))
    return found


def rows(of: list[Group]) -> list[tuple[Segment, ...]]:
    return [row for group in of for trajectory in group.trajectories for row in trajectory.rows]


def gradients(policy: Policy, micro_tokens: int) -> Tensor:
    policy.model.zero_grad()
    settings = UpdateSettings(Objective(), micro_tokens=micro_tokens)
    Updater(policy, torch.optim.SGD(policy.model.parameters(), lr=0.0), settings).gradients(groups())
    return torch.cat([each.grad.flatten() for each in policy.model.parameters() if each.grad is not None])


def test_a_beginning_is_kept_once_and_every_sampled_token_has_its_place() -> None:
    given = rows(groups())
    packed = pack(given)
    assert packed.total == sum(len(segment.ids) for row in given for segment in row)
    opening = [len(row[0].ids) for row in given]
    assert packed_size(given) == len(packed.ids) < packed.total - sum(opening) + 20 + 21 + 1
    sampled = [token for row in given for segment in row if segment.sampled for token in segment.ids]
    assert packed.targets.tolist() == sampled
    place = 0
    for row in given:
        ids = [token for segment in row for token in segment.ids]
        start = 0
        for segment in row:
            for offset in range(len(segment.ids) if segment.sampled else 0):
                source = int(packed.sources[place])
                assert int(packed.ids[source]) == ids[start + offset - 1]
                assert int(packed.positions[source]) == start + offset - 1
                place += 1
            start += len(segment.ids)
    assert place == len(packed.sources)


def test_rows_that_share_too_little_are_kept_apart() -> None:
    draw = random.Random(2)
    short = Segment(tokens(draw, LEAST_SHARED - 1))
    apart = [(short, spoken(draw, 4)), (short, spoken(draw, 5))]
    assert packed_size(apart) == pack(apart).total
    assert packed_size(apart, least_shared=2) < packed_size(apart)
    twice = [apart[0], apart[0]]
    assert pack(twice, least_shared=2).targets.tolist() == 2 * list(apart[0][1].ids)


KINDS = [
    ("Llama", {}),
    ("Qwen2", {}),
    ("Qwen3", {"tie_word_embeddings": True}),
    ("Mistral", {"sliding_window": 9}),
    ("Granite", {"logits_scaling": 4.0, "embedding_multiplier": 2.0, "residual_multiplier": 0.5}),
    ("Cohere", {"logit_scale": 0.25}),
    ("Gemma", {}),
    ("Gemma3Text", {"sliding_window": 9, "final_logit_softcapping": 2.0}),
    ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256}),
]


@pytest.mark.parametrize(("kind", "more"), KINDS, ids=[kind for kind, _ in KINDS])
def test_gradients_are_those_of_one_conversation_at_a_time(kind: str, more: dict[str, Any]) -> None:
    made = model(kind, **more)
    policy = Policy(made, end_id=0, banned=[1], temperature=0.7)
    alone = gradients(Policy(made, end_id=0, banned=[1], temperature=0.7, packs=False), micro_tokens=1)
    assert policy.packs
    assert (gradients(policy, micro_tokens=10_000) - alone).norm() / alone.norm() < 1e-5
    assert (gradients(policy, micro_tokens=60) - alone).norm() / alone.norm() < 1e-5


def test_a_model_that_cannot_be_packed_is_scored_in_padded_rows() -> None:
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    state = MambaForCausalLM(MambaConfig(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=1)).eval()
    soft = model("Gemma2", sliding_window=9, attn_logit_softcapping=1.0, query_pre_attn_scalar=8)
    for made in (state, soft):
        policy = Policy(made, end_id=0)
        before = getattr(made.config, "_attn_implementation", None)
        assert not policy.packs
        assert getattr(made.config, "_attn_implementation", None) == before != attention.NAME
        logp, _ = policy.score_rows(rows(groups(1)))
        assert torch.isfinite(logp).all()


def test_the_sampler_keeps_its_own_attention_on_a_model_that_packs() -> None:
    made = model("Llama")
    ids = torch.randint(2, VOCABULARY, (2, 12), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[0, :4] = 0
    before = made(input_ids=ids, attention_mask=mask).logits
    assert Policy(made, end_id=0).packs
    assert torch.equal(made(input_ids=ids, attention_mask=mask).logits, before)


def test_one_kernel_under_a_mask_gives_the_same_as_run_by_run() -> None:
    packed = pack(rows(groups()))
    for window in (None, 9):
        size, generator = len(packed.ids), torch.Generator().manual_seed(0)
        parts = [torch.randn(1, 2, size, 8, generator=generator) for _ in range(3)]
        by_runs = attention._by_runs(*parts, packed, scale=None, window=window)
        whole = nn.functional.scaled_dot_product_attention(*parts, packed.mask(window))
        assert torch.allclose(by_runs, whole, atol=1e-5)


@pytest.mark.parametrize("cap", [None, 3.0])
@pytest.mark.parametrize("bias", [False, True])
def test_the_chunked_head_is_the_plain_one_in_value_and_gradient(cap: float | None, *, bias: bool) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(8, 11, bias=bias).double()
    hidden = torch.randn(7, 8, dtype=torch.float64, requires_grad=True)
    targets, banned = torch.tensor([0, 3, 4, 5, 6, 7, 10]), torch.tensor([1, 9])
    head = Head(linear, 1.0 if cap else 2.0, cap)
    weights = torch.rand(2, 7) - 0.5

    def plain() -> tuple[Tensor, Tensor]:
        logits = linear(hidden) * head.scale
        logits = logits if cap is None else cap * torch.tanh(logits / cap)
        return plain_logp_and_entropy(logits.index_fill(-1, banned, float("-inf")) / 0.7, targets)

    def chunked() -> tuple[Tensor, Tensor]:
        return chosen_logp_and_entropy(hidden, targets, head, temperature=0.7, banned=banned, chunk=3)

    found = []
    for way in (plain, chunked):
        for each in (hidden, *linear.parameters()):
            each.grad = None
        logp, entropy = way()
        (weights[0] * logp + weights[1] * entropy).sum().backward()
        found.append([logp, entropy, hidden.grad, *(each.grad for each in linear.parameters())])
    for one, other in zip(*found, strict=True):
        assert one is not None
        assert other is not None
        assert torch.allclose(one.float(), other.float(), atol=1e-5), (one, other)


def test_logits_are_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from learner import head as module

    largest = 0
    made = module._Logits.of

    def watched(self: Any, hidden: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, len(hidden))
        return made(self, hidden)

    monkeypatch.setattr(module._Logits, "of", watched)
    hidden = torch.randn(50, 32, requires_grad=True)
    logp, _ = chosen_logp_and_entropy(
        hidden, torch.zeros(50, dtype=torch.long), Head(nn.Linear(32, 9)), temperature=1.0,
        banned=torch.zeros(0, dtype=torch.long), chunk=8,
    )  # fmt: skip
    logp.sum().backward()
    assert largest == 8


@pytest.mark.parametrize(("kept", "again"), [(10**6, 0), (30 * 9, 4), (0, 7)])
def test_logits_are_made_again_only_where_they_are_too_many_to_keep(
    monkeypatch: pytest.MonkeyPatch, kept: int, again: int
) -> None:
    from learner import head as module

    made, calls = module._Logits.of, []

    def counted(self: Any, hidden: Tensor) -> Tensor:
        calls.append(len(hidden))
        return made(self, hidden)

    monkeypatch.setattr(module._Logits, "of", counted)
    monkeypatch.setattr(module, "KEPT", kept)
    torch.manual_seed(0)
    hidden, last = torch.randn(50, 32, requires_grad=True), nn.Linear(32, 9)
    targets = torch.arange(50) % 9
    logp, entropy = chosen_logp_and_entropy(
        hidden, targets, Head(last), temperature=1.0, banned=torch.zeros(0, dtype=torch.long), chunk=8
    )
    assert len(calls) == 7
    (logp.sum() + entropy.sum()).backward()
    assert len(calls) == 7 + again
    found, hidden.grad = hidden.grad, None
    one, other = plain_logp_and_entropy(last(hidden), targets)
    (one.sum() + other.sum()).backward()
    assert found is not None
    assert hidden.grad is not None
    assert torch.allclose(found, hidden.grad, atol=1e-6)


def test_what_follows_the_head_is_read_off_the_model() -> None:
    plain = head_of(model("Llama"))
    assert plain is not None
    assert (plain.scale, plain.cap) == (pytest.approx(1.0), None)
    granite = head_of(model("Granite", logits_scaling=4.0))
    assert granite is not None
    assert granite.scale == pytest.approx(0.25)
    capped = head_of(model("Gemma3Text", final_logit_softcapping=2.0))
    assert capped is not None
    assert (capped.scale, capped.cap) == (1.0, 2.0)
    odd = model("Llama")
    forward = odd.forward

    def twisted(*args: Any, **options: Any) -> Any:
        out = forward(*args, **options)
        out.logits = out.logits.sin()
        return out

    odd.forward = twisted
    assert head_of(odd) is None
    policy = Policy(odd, end_id=0)
    assert policy.packs
    given = rows(groups(1))
    assert torch.allclose(policy.score_rows(given)[0], policy.score_padded(given)[0], atol=1e-4)


def test_bf16_is_near_and_float32_outside() -> None:
    made = model("Llama")
    exact, coarse = Policy(made, end_id=0), Policy(made, end_id=0, autocast=torch.bfloat16)
    given = rows(groups())
    assert coarse.packs
    one, other = exact.score_rows(given)[0].detach(), coarse.score_rows(given)[0].detach()
    assert other.dtype == torch.float32
    assert not torch.equal(one, other)
    assert float((one - other).abs().mean()) < 0.03
    apart = coarse.score_padded(given)[0].detach()
    assert float((other - apart).abs().mean()) < 0.03


def test_a_bf16_policy_is_packed_however_far_it_is_from_float32() -> None:
    made = model("Llama")
    with torch.no_grad():
        for weights in made.parameters():
            weights.mul_(3.0)
    exact, coarse = Policy(made, end_id=0, packs=False), Policy(made, end_id=0, autocast=torch.bfloat16)
    given = trial_rows(coarse)
    one, other = exact.score_padded(given)[0].detach(), coarse.score_padded(given)[0].detach()
    assert agreement.difference(coarse, one, other) > agreement.allowed(coarse)
    assert coarse.packs


def test_recomputed_layers_give_the_same_gradient_and_leave_the_sampler_alone() -> None:
    plain, forgetful = Policy(model("Qwen3"), end_id=0), Policy(model("Qwen3"), end_id=0)
    assert recompute_layers(forgetful.model) == 2
    assert torch.allclose(gradients(plain, 10_000), gradients(forgetful, 10_000), atol=1e-6)
    passes: list[bool] = []
    first = forgetful.model.model.layers[0].mlp
    hook = first.register_forward_pre_hook(lambda *_: passes.append(torch.is_grad_enabled()))
    gradients(forgetful, 10_000)
    hook.remove()
    assert passes.count(True) == 2
    sampled = [
        HfGenerator(each, max_tokens=8).start().step({0: Continuation([3, 4, 5], np.random.SeedSequence(1))})
        for each in (plain, forgetful)
    ]
    assert sampled[0] == sampled[1]
    with pytest.raises(ValueError, match="recompute"):
        recompute_layers(nn.Linear(2, 2))


def test_adapters_alone_are_trained_and_switched_off_they_are_the_reference() -> None:
    plain = Policy(model("Llama"), end_id=0)
    adapted = Policy(with_adapters(model("Llama"), LoraSettings(rank=4)), end_id=0)
    base = BasePolicy(adapted)
    given = rows(groups())
    before = plain.score_rows(given)[0].detach()
    assert adapted.packs
    assert torch.allclose(adapted.score_rows(given)[0], before, atol=1e-5)
    trained = [each for each in adapted.model.parameters() if each.requires_grad]
    assert 0 < sum(each.numel() for each in trained) < 0.2 * sum(each.numel() for each in plain.model.parameters())
    objective = Objective(kl="k3", beta=0.1)
    updater = Updater(adapted, torch.optim.Adam(trained, lr=0.05), UpdateSettings(objective), base)
    for _ in range(3):
        metrics = updater.update(groups())
    assert metrics["update/kl_reference"] > 0
    assert not torch.allclose(adapted.score_rows(given)[0], before, atol=1e-2)
    assert torch.allclose(base.score_rows(given)[0], before, atol=1e-5)


def test_the_growing_cache_says_what_the_plain_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy(model("Llama"), end_id=0)
    monkeypatch.setattr(cache, "FIRST_CAPACITY", 4)

    def played(make: Callable[[], Any]) -> list[Any]:
        monkeypatch.setattr(hf, "growing_cache", make)
        session = HfGenerator(policy, max_tokens=5).start()
        first = {n: Continuation([3 + n, 4, 5][: 1 + n], np.random.SeedSequence([1, n])) for n in range(3)}
        later = {n: Continuation([9, 8 + n], np.random.SeedSequence([2, n])) for n in (0, 2)}
        return [session.step(first), session.step(later), session.step({2: later[2]})]

    assert played(cache.growing_cache) == played(DynamicCache)
