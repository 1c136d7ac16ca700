"""Top-k and top-p: what is sampled, and its log-probabilities in sampler and learner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from learner import canary
from learner.config import ConfigError, read
from learner.generate.session import Completion, Continuation
from learner.model import Policy
from learner.overlap import Batch, load_batches, save_batches
from learner.rollout import Collected
from learner.stored import open_stored
from learner.support import Supports, Truncation, listed
from learner.types import Group, Segment, Trajectory
from tests.learner.small import generator, policy, tokenizer
from trainer_client.chat.tokens import Renderer

WORDS = tokenizer()
RENDERER = Renderer(WORDS)


def truncated(top_p: float = 1.0, top_k: int = 0, temperature: float = 1.0) -> Policy:
    acting = policy(WORDS, spread=4.0, temperature=temperature)
    acting.truncation = Truncation(top_p, top_k)
    return acting


def sampled(acting: Policy, rows: int = 6) -> list[tuple[Segment, Segment]]:
    prompt = RENDERER.opening("hello, I am number 3")
    asked = {row: Continuation(prompt, np.random.SeedSequence([row])) for row in range(rows)}
    said = generator(acting).start().step(asked)
    return [(Segment(tuple(prompt)), said[row].segment()) for row in range(rows)]


@pytest.mark.parametrize(
    ("truncation", "expected"),
    [
        (Truncation(), (0, 1, 2, 3)),
        (Truncation(top_k=2), (1, 3)),
        (Truncation(top_k=9), (0, 1, 2, 3)),
        (Truncation(top_p=0.5), (1,)),
        (Truncation(top_p=0.51), (1, 3)),
        (Truncation(top_p=1e-9), (1,)),
        (Truncation(top_p=0.7, top_k=2), (1, 3)),
        (Truncation(top_p=0.6, top_k=2), (1,)),  # of the two: .5 / .8 is .625
    ],
)
def test_what_is_left_is_what_transformers_and_vllm_leave(truncation: Truncation, expected: tuple[int, ...]) -> None:
    logits = torch.tensor([[0.05, 0.5, 0.15, 0.3]]).log()
    assert listed(truncation.support(logits)) == [expected]
    banned = torch.tensor([[float("-inf"), 0.0, float("-inf"), -1.0]])
    assert set(listed(truncation.support(banned))[0]) <= {1, 3}


@pytest.mark.parametrize(("top_p", "top_k"), [(0.6, 0), (1.0, 3), (0.8, 5)])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampler_and_learner_give_the_same_log_probabilities(top_p: float, top_k: int, temperature: float) -> None:
    """Packed and padded, in value and gradient; those of the whole distribution are others."""
    acting = truncated(top_p, top_k, temperature)
    rows = sampled(acting)
    sampler = torch.tensor([value for _, said in rows for value in said.logp or ()])
    assert acting.packs
    gradients = []
    for score in (acting.score_rows, acting.score_padded):
        logp, entropy = score(rows)
        torch.testing.assert_close(logp, sampler, rtol=0, atol=1e-4)
        assert float(entropy.detach().min()) >= -1e-6
        acting.model.zero_grad()
        (logp.sum() + 0.3 * entropy.sum()).backward()
        gradients.append(torch.cat([each.grad.flatten() for each in acting.model.parameters()]))
    torch.testing.assert_close(*gradients, rtol=1e-3, atol=1e-4)
    assert torch.isfinite(gradients[0]).all()
    whole = acting.score_rows([(given, replace(said, support=None)) for given, said in rows])[0]
    assert float((whole - sampler).detach().abs().max()) > 0.05
    assert canary.gap(generator(acting), acting, RENDERER) < 1e-3


def test_probabilities_are_those_within_the_set() -> None:
    """Independently: the logits of one place, exponentiated over the kept tokens alone."""
    acting = truncated(top_k=3)
    given, said = sampled(acting, 1)[0]
    ids = [*given.ids, *said.ids]
    with torch.no_grad():
        logits = acting.distribution(acting.model(input_ids=torch.tensor([ids])).logits[0])
    assert said.support is not None
    assert said.logp is not None
    for place, (token, kept, value) in enumerate(zip(said.ids, said.support, said.logp, strict=True)):
        at = logits[len(given.ids) - 1 + place]
        assert token in kept
        assert set(kept) == set(at.topk(3).indices.tolist())
        assert value == pytest.approx(float(at[token].exp().log() - at[list(kept)].exp().sum().log()), abs=1e-4)


def test_the_sets_are_kept_where_a_batch_waits_in_a_checkpoint(tmp_path: Path) -> None:
    given, said = sampled(truncated(top_k=3), 1)[0]
    group = Group(1, (Trajectory((given, said), (0.5,), 1),))
    save_batches(tmp_path, [Batch(1, Collected((group,), 1.0, 1.0), 0, 0)])
    [batch] = load_batches(tmp_path)
    assert batch.collected.groups[0].trajectories[0].segments[1] == said
    with pytest.raises(ValueError, match="at each of its places"):
        replace(said, support=((1,),) * (len(said.ids) + 1))


def test_rows_with_and_without_a_set_are_scored_together() -> None:
    acting = truncated(top_k=2)
    rows = sampled(acting, 2)
    mixed = [rows[0], (rows[1][0], replace(rows[1][1], support=None))]
    supports = Supports.of(mixed)
    assert supports is not None
    assert supports.sets[-1] is None
    alone = torch.cat([acting.score_rows([row])[0].detach() for row in mixed])
    torch.testing.assert_close(acting.score_rows(mixed)[0].detach(), alone, rtol=0, atol=1e-4)
    assert Completion((1,), (0.0,), ended=True).segment().support is None


def test_a_run_and_its_evaluation_sample_with_it(tmp_path: Path) -> None:
    from learner.run import open_run
    from tests.learner.test_loop import config

    settings = config(tmp_path, 1, model={"top_k": 4, "top_p": 0.9}, warmup={"steps": 1})
    opened = open_run(settings, tmp_path / "run", lambda line: None)
    assert opened.policy.truncation == Truncation(0.9, 4)
    assert opened.reference is not None
    assert open_stored(tmp_path / "run").policy().truncation == Truncation(0.9, 4)


def test_a_sampler_that_does_not_tell_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.top_p, model\.top_k: vLLM does not say"):
        read({"model": {"top_k": 5}, "generator": {"kind": "vllm", "url": "http://a"}})
