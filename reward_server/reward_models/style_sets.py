"""Pairs in which style and merit go together, apart, or have changed places: does a judge read what is said?

    agrees      people's pairs whose better reply is the longer or better laid-out one
    disagrees   those whose worse reply is
    restyled    people's pairs with the better reply in one paragraph and the worse one under a heading, in bullets
    neighbours  the better reply in one paragraph beside a longer, laid-out reply to the nearest other request, as in
                the adversarial part of LLMBar (Zeng et al. 2024)

A judge of style is above chance on the first and below it on the others. Conversations in a scenario are left out where
an agent earns by answers alone: its style is not read there.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from hashlib import sha256

import numpy as np

from reward_server.encoders.encoder import TextEncoder, Vectors, meaning_width
from reward_server.reward_models.conversation import Conversation, Reads
from reward_server.reward_models.dataset import OVERALL, Dataset, PreferredPair
from reward_server.reward_models.segments import by_answers
from reward_server.reward_models.style import dressed, leans, reply_of, style_of, undressed, with_reply

AGREES, DISAGREES, RESTYLED, NEIGHBOURS = "agrees", "disagrees", "restyled", "neighbours"
APART = 0.25
"""By which labels of two replies in one dialogue have to differ to make a pair."""
MOST_OF_A_GROUP = 10
MOST_OF_A_SET = 400
NEAREST = 20
"""So many nearest requests are searched for a longer reply."""


def style_sets(
    dataset: Dataset, encoder: TextEncoder, reads: Reads = "answers"
) -> Mapping[str, tuple[PreferredPair, ...]]:
    """The sets that these rows make, by name; empty ones are left out."""
    pairs = [pair for pair in judged_pairs(dataset) if not by_answers(pair.chosen, reads)]
    found = {
        AGREES: [pair for pair in pairs if leans(pair) > 0],
        DISAGREES: [pair for pair in pairs if leans(pair) < 0],
        RESTYLED: [_restyled(pair) for pair in pairs],
        NEIGHBOURS: _neighbours(pairs, encoder),
    }
    return {name: tuple(some[:MOST_OF_A_SET]) for name, some in found.items() if some}


def judged_pairs(dataset: Dataset) -> list[PreferredPair]:
    """The pairs of people, and those that labels of one dialogue make; always the same ones, in the same order."""
    pairs = [pair for pair in dataset.preferred if not pair.tie]
    by_group: dict[str, list[PreferredPair]] = {}
    labelled = [row for row in dataset.labelled if OVERALL in row.scores]
    for _, rows in itertools.groupby(sorted(labelled, key=lambda row: row.group), key=lambda row: row.group):
        for one, other in itertools.combinations(list(rows)[: 4 * MOST_OF_A_GROUP], 2):
            worse, better = sorted((one, other), key=lambda row: row.scores[OVERALL])
            if better.scores[OVERALL] - worse.scores[OVERALL] >= APART:
                by_group.setdefault(one.group, []).append(
                    PreferredPair(better.conversation, worse.conversation, one.group, better.row)
                )
    drawn = [pair for some in by_group.values() for pair in sorted(some, key=_draw)[:MOST_OF_A_GROUP]]
    spoken = (pair for pair in (*pairs, *drawn) if reply_of(pair.chosen).strip() and reply_of(pair.rejected).strip())
    return sorted(spoken, key=_draw)


def _draw(pair: PreferredPair) -> bytes:
    return sha256((pair.chosen.digest + pair.rejected.digest).encode()).digest()


def _restyled(pair: PreferredPair) -> PreferredPair:
    return PreferredPair(
        with_reply(pair.chosen, undressed(reply_of(pair.chosen))),
        with_reply(pair.rejected, dressed(reply_of(pair.rejected))),
        pair.group,
        pair.row,
    )


def _neighbours(pairs: Sequence[PreferredPair], encoder: TextEncoder) -> list[PreferredPair]:
    some = list({(pair.group, reply_of(pair.chosen)): pair for pair in pairs}.values())[:MOST_OF_A_SET]
    if len(some) < 2:
        return []
    likeness = requests_alike(some, encoder)
    found = []
    for place, pair in enumerate(some):
        near = [other for other in np.argsort(-likeness[place], kind="stable") if some[other].group != pair.group]
        better = undressed(reply_of(pair.chosen))
        length = style_of(better)[0]
        longer = (
            dressed(reply_of(side)) for other in near[:NEAREST] for side in (some[other].chosen, some[other].rejected)
        )
        foreign = next((text for text in longer if style_of(text)[0] > length), None)
        if foreign is not None:
            found.append(
                PreferredPair(with_reply(pair.chosen, better), with_reply(pair.chosen, foreign), pair.group, pair.row)
            )
    return found


def requests_alike(pairs: Sequence[PreferredPair], encoder: TextEncoder) -> Vectors:
    """The likeness of what was asked, shape (n, n)."""
    asked = [request_of(pair.chosen) for pair in pairs]
    vectors = encoder.encode(asked)[:, : meaning_width(encoder)]
    return np.asarray(vectors @ vectors.T)


def request_of(conversation: Conversation) -> str:
    """The message that the agent's last one answers."""
    last = max(place for place, said in enumerate(conversation.turns) if said.party == "agent")
    before = (said.text for said in reversed(conversation.turns[:last]) if said.party == "persona")
    return next(before, conversation.scenario)
