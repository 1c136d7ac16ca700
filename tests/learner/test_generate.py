"""The sampler: kept keys and values change nothing, the noise decides alone, the probabilities are real."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from learner.generate.hf import HfGenerator
from learner.generate.session import Completion, Continuation
from learner.model import Policy, rows_of
from learner.types import Segment
from tests.learner.small import generator, policy, tokenizer
from trainer_client.chat.tokens import Renderer


def noise(*numbers: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(numbers)


def play(of: Policy, words: Any, count: int, turns: int, leave: int = 0) -> dict[int, list[Segment]]:
    """Conversations of different lengths; after each turn `leave` of them end."""
    renderer = Renderer(words)
    session = generator(of).start()
    given = {number: renderer.opening("hello " * (number % 3 + 1)) for number in range(count)}
    segments: dict[int, list[Segment]] = {number: [] for number in given}
    for turn in range(turns):
        said = session.step({number: Continuation(ids, noise(turn, number)) for number, ids in given.items()})
        for number, completion in said.items():
            segments[number] += [Segment(tuple(given[number])), Segment(completion.ids, completion.logp)]
        staying = list(said)[: len(said) - leave]
        answers = ("yes", "yes, that is so 1", "hello, I am number 3")
        given = {number: renderer.suffix(answers[number % 3], ended=said[number].ended) for number in staying}
    return segments


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_the_samplers_log_probabilities_are_the_learners(temperature: float) -> None:
    words = tokenizer()
    acting = policy(words, temperature=temperature, spread=3.0)
    segments = play(acting, words, count=7, turns=4, leave=1)
    assert {len(each) for each in segments.values()} == {2, 4, 6, 8}
    rows = rows_of(list(segments.values()), words.pad_token_id)
    with torch.no_grad():
        gap = (acting.score(rows).logp - rows.sampler_logp).abs().max()
    assert gap < 1e-4


def test_weights_are_cast_once_a_turn_and_not_once_a_token() -> None:
    words = tokenizer()
    acting = policy(words, spread=3.0)
    acting.autocast = torch.bfloat16
    cast: list[torch.Tensor] = []

    class Watched(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is torch.ops.aten._to_copy.default and isinstance(args[0], torch.nn.Parameter):
                cast.append(args[0])
            return func(*args, **(kwargs or {}))

    session = generator(acting).start()
    given = {number: Continuation(Renderer(words).opening("hello"), noise(number)) for number in range(3)}
    with Watched():
        said = session.step(given)
    assert max(len(each.ids) for each in said.values()) > 2
    assert len(cast) == len({id(each) for each in cast}) > 0


def test_what_a_conversation_says_does_not_depend_on_its_company() -> None:
    words = tokenizer()
    acting = policy(words, spread=3.0)
    many = play(acting, words, count=6, turns=3)
    few = play(acting, words, count=2, turns=3)
    for number in few:
        assert [segment.ids for segment in few[number]] == [segment.ids for segment in many[number]]


def test_control_tokens_are_never_sampled() -> None:
    words = tokenizer()
    acting = policy(words)
    forbidden = {words.convert_tokens_to_ids(token) for token in words.all_special_tokens} - {words.eos_token_id}
    said = [segment for each in play(acting, words, 8, 3).values() for segment in each if segment.sampled]
    assert forbidden.isdisjoint(token for segment in said for token in segment.ids)
    assert all(words.eos_token_id not in segment.ids[:-1] for segment in said)


def first_tokens(of: Policy, words: Any, count: int) -> list[Completion]:
    session = HfGenerator(of, max_tokens=1).start()
    prompt = Renderer(words).opening("hello")
    said = session.step({number: Continuation(prompt, noise(5, number)) for number in range(count)})
    return list(said.values())


def test_tokens_come_up_as_often_as_their_probability_says() -> None:
    words = tokenizer()
    acting = policy(words, spread=4.0, temperature=0.7)
    drawn = first_tokens(acting, words, 4000)
    counts = Counter(completion.ids[0] for completion in drawn)
    logp = {completion.ids[0]: completion.logp[0] for completion in drawn}
    for token, count in counts.most_common(8):
        expected = 4000 * float(np.exp(logp[token]))
        assert abs(count - expected) < 5 * np.sqrt(expected) + 1


def test_a_turn_at_the_limit_has_not_ended() -> None:
    words = tokenizer()
    for completion in first_tokens(policy(words), words, 50):
        assert completion.ended == (completion.ids[-1] == words.eos_token_id)


def test_a_conversation_that_left_cannot_come_back() -> None:
    words = tokenizer()
    session = generator(policy(words)).start()
    prompt = Renderer(words).opening("hello")
    session.step({number: Continuation(prompt, noise(number)) for number in range(3)})
    session.step({0: Continuation(prompt, noise(9)), 2: Continuation(prompt, noise(9))})
    with pytest.raises(ValueError, match="rejoin"):
        session.step({0: Continuation(prompt, noise(9)), 1: Continuation(prompt, noise(9))})


def test_a_temperature_of_nothing_is_refused() -> None:
    words = tokenizer()
    with pytest.raises(ValueError, match="temperature"):
        policy(words, temperature=0.0)
