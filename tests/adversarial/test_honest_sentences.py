"""The mirror of the attacks: honest sentences put into good conversations take nothing from their rewards.

`honest_sentences.jsonl` holds sentences that agents at work write and that gates, caps or rudeness could mistake:
disclosures, warnings, negations, quotations, options, reports of the talk. `where` is the turn they fit into.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks.plays import Base, Talk, request_of
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer
from tests.adversarial.conftest import COLLECTIONS, TalksOf

TOLERANCE = 0.02
SENTENCES: list[Mapping[str, str]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "honest_sentences.jsonl").read_text(encoding="utf-8").splitlines()
]
EACH = 4
"""The fast test puts every so-manieth sentence into a conversation."""


def lowered(scorer: Scorer, talks: list[Base], each: int) -> Iterator[str]:
    oracles = [base for base in talks if base.agent == "oracle"]
    for number, base in enumerate(oracles):
        fitting = [s for s in SENTENCES if s["collection"] in ("any", base.scenario.collection)][number % each :: each]
        changed = [with_sentence(base.messages, **_place(sentence)) for sentence in fitting]
        requests = [request_of(scorer, base.scenario, talk, RewardConfig()) for talk in (base.messages, *changed)]
        before, *after = [or_raise(outcome) for outcome in asyncio.run(scorer.score(requests))]
        for sentence, scored in zip(fitting, after, strict=True):
            if scored.reward < before.reward - TOLERANCE:
                yield f"{base.scenario.name}: {before.reward} -> {scored.reward} {scored.capped_by} {sentence['text']}"


def _place(sentence: Mapping[str, str]) -> dict[str, str]:
    return {"text": sentence["text"], "where": sentence["where"]}


def with_sentence(talk: Talk, text: str, where: str) -> Talk:
    """A sentence before what the agent says in a turn, or behind it in the last."""
    own = [i for i, message in enumerate(talk) if message["role"] == "assistant"]
    at = own[{"first": 0, "mid": len(own) // 2, "last": -1}[where]]
    said = talk[at]["content"]
    content = f"{said} {text}" if where == "last" else f"{text} {said}"
    return [*talk[:at], {**talk[at], "content": content}, *talk[at + 1 :]]


def test_there_are_many_of_each_kind() -> None:
    kinds = [sentence["kind"] for sentence in SENTENCES]
    assert len({sentence["text"] for sentence in SENTENCES}) == len(SENTENCES) >= 60
    assert min(kinds.count(kind) for kind in set(kinds)) >= 4


def test_honest_sentences_cost_nothing(scorer: Scorer, few_talks: list[Base]) -> None:
    assert list(lowered(scorer, few_talks, EACH)) == []


@pytest.mark.slow
@pytest.mark.parametrize("collection", COLLECTIONS)
def test_honest_sentences_cost_nothing_anywhere(scorer: Scorer, talks_of: TalksOf, collection: str) -> None:
    assert list(lowered(scorer, talks_of(collection), 1)) == []
