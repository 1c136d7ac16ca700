"""Does the sampler draw from what the learner trains? Asked of invented rows, before anything is learned.

The most expensive error of a trainer is silent: a sampler that masks, scales or positions otherwise
than the learner. Ragged rows over two turns, some of which leave, show it in a second.
"""

from __future__ import annotations

import numpy as np
import torch

from learner import agreement
from learner.generate.session import Continuation, Generator
from learner.model import Policy
from learner.types import Segment
from trainer_client.chat.tokens import Renderer

ROWS, TURNS = 8, 2
WORDS = "Hello, I am not well today and I would like to know what I can do about it. "


class CanaryError(RuntimeError):
    """The sampler's log-probabilities are not the learner's."""


def gap(generator: Generator, policy: Policy, renderer: Renderer) -> float:
    """The distance of the two over the sampled tokens (`agreement.difference`)."""
    session = generator.start()
    limit = generator.context
    given = {row: renderer.opening(WORDS[: 7 * (row + 1)] * (1 + row % 3)) for row in range(ROWS)}
    played: dict[int, list[Segment]] = {row: [] for row in given}
    for turn in range(TURNS):
        lengths = {row: sum(len(segment.ids) for segment in played[row]) + len(given[row]) for row in given}
        given = {
            row: ids for row, ids in given.items() if limit is None or lengths[row] + generator.max_tokens <= limit
        }
        said = session.step({row: Continuation(ids, np.random.SeedSequence([turn, row])) for row, ids in given.items()})
        for row, completion in said.items():
            played[row] += [Segment(tuple(given[row])), completion.segment()]
        given = {row: renderer.suffix(WORDS[: 5 * (row + 1)], ended=said[row].ended) for row in said if row % 4}
    rows = [segments for segments in played.values() if segments]
    if not rows:
        raise CanaryError(
            f"a turn of model.max_tokens = {generator.max_tokens} does not fit beside a prompt into the model's context"
            f" of {limit} tokens; lower it"
        )
    sampled = [value for row in rows for segment in row for value in segment.logp or ()]
    with torch.no_grad():
        return agreement.difference(policy, policy.score_rows(rows)[0], torch.tensor(sampled))


def check(generator: Generator, policy: Policy, renderer: Renderer, tolerance: float | None = None) -> float:
    """The gap; raises CanaryError where it is too large."""
    found = gap(generator, policy, renderer)
    allowed = agreement.allowed(policy) if tolerance is None else tolerance
    if not found <= allowed:
        raise CanaryError(
            f"sampler and learner differ by {agreement.described(policy, found)} in the log-probability of the same"
            f" tokens (allowed: {allowed:.0e}), so the run would not train the policy that plays. Possible causes: the"
            " sampler does not support this model's attention; or a vLLM server has other weights, or returns raw"
            " log-probabilities"
        )
    return found
