"""Pairs to learn from in which neither style nor a reply alone can tell which side is better.

    layout       a judged pair twice: once with the better reply laid out and the worse one in a paragraph, once the
                 other way round
    relevance    two requests that are alike and their replies: each request prefers its own reply to the other's

Each set holds every change in both directions, so a head gains nothing from length, layout or manner in it: what is
left to learn is what people preferred whatever it looks like, and what a request asks for (counterfactual augmentation:
Kaushik, Hovy & Lipton 2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reward_server.encoders.encoder import TextEncoder
from reward_server.reward_models.conversation import Conversation, Reads
from reward_server.reward_models.dataset import Dataset, PreferredPair
from reward_server.reward_models.feature_rows import joined
from reward_server.reward_models.heads import Matrix
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.segments import by_answers
from reward_server.reward_models.style import dressed, reply_of, undressed, with_reply
from reward_server.reward_models.style_sets import judged_pairs, requests_alike

MOST_OF_A_SET = 400
"""Judged pairs that a set is made of."""
LAYOUT, RELEVANCE = 1.0, 0.3
"""What a set weighs beside all judged pairs together; chosen in `benchmarks.quality.styles` (decision 10)."""


@dataclass(frozen=True)
class Counterparts:
    """The pairs of both sets, with their weights."""

    pairs: tuple[PreferredPair, ...]

    def conversations(self) -> Iterator[Conversation]:
        """Every conversation of them."""
        for pair in self.pairs:
            yield pair.chosen
            yield pair.rejected

    def beside(self, examples: ExampleMatrices, features: Mapping[str, Matrix]) -> ExampleMatrices:
        """The judged rows with these behind them."""
        better, worse = (
            np.stack([features[side.digest] for side in sides])
            for sides in ([pair.chosen for pair in self.pairs], [pair.rejected for pair in self.pairs])
        )
        ones = np.ones(len(self.pairs), dtype=np.float32)
        weights = np.array([pair.weight for pair in self.pairs], dtype=np.float32)
        return replace(
            examples,
            chosen=joined(examples.chosen, better),
            rejected=joined(examples.rejected, worse),
            targets=np.concatenate([examples.targets, ones]),
            weights=np.concatenate([examples.weights, weights]),
        )


def counterparts(part: Dataset, encoder: TextEncoder, reads: Reads) -> Counterparts | None:
    """Those of the preference pairs of a part; None where it has none that an agent's own words can decide."""
    judged = judged_pairs(Dataset((), part.preferred))
    pairs = [pair for pair in judged if not by_answers(pair.chosen, reads)][:MOST_OF_A_SET]
    if not pairs:
        return None
    total = sum(pair.weight for pair in part.preferred)
    sets = ((LAYOUT, list(laid_out_both_ways(pairs))), (RELEVANCE, list(replies_exchanged(pairs, encoder))))
    return Counterparts(
        tuple(replace(pair, weight=share * total / len(some)) for share, some in sets for pair in some),
    )


def laid_out_both_ways(pairs: Sequence[PreferredPair]) -> Iterator[PreferredPair]:
    """Each pair with its better reply laid out and the worse one in a paragraph, and the other way round."""
    for pair in pairs:
        for better, worse in ((dressed, undressed), (undressed, dressed)):
            yield PreferredPair(
                with_reply(pair.chosen, better(reply_of(pair.chosen))),
                with_reply(pair.rejected, worse(reply_of(pair.rejected))),
                pair.group,
                pair.row,
            )


def replies_exchanged(pairs: Sequence[PreferredPair], encoder: TextEncoder) -> Iterator[PreferredPair]:
    """Of each judged pair the better reply, beside that of the nearest request of another group."""
    some = list({(pair.group, reply_of(pair.chosen)): pair for pair in pairs}.values())
    alike = requests_alike(some, encoder)
    done: set[tuple[int, int]] = set()
    for place, pair in enumerate(some):
        near = (int(other) for other in np.argsort(-alike[place], kind="stable") if some[other].group != pair.group)
        other = next(near, None)
        if other is None or (min(place, other), max(place, other)) in done:
            continue
        done.add((min(place, other), max(place, other)))
        for own, foreign in ((pair, some[other]), (some[other], pair)):
            yield PreferredPair(own.chosen, with_reply(own.chosen, reply_of(foreign.chosen)), own.group, own.row)
