"""Pairs to be labelled: what a lab has compared, and couples of its episodes; none twice unless overlap is asked for.

Couples are those of an export (`preferences.pairs.couples`): two episodes of one scenario, seed and persona. A pair is
known by what was said in it, whichever side stands first, so a label is found again however it came in.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reward_server.console.visit import Visit
from reward_server.episodes.machine import agent_role, log_of
from reward_server.preferences.pairs import couples
from reward_server.store.records import ComparisonRow, EpisodeRow, PreferenceRow, TurnRow

Json = dict[str, Any]
MOST_LABELS = 2_000
MOST_COMPARISONS = 200
MOST_EPISODES = 2_000
EPISODES_AT_ONCE = 20
GOLD = "gold"
"""Labels under this name say what is right: others are asked about them now and then."""
GOLD_EVERY = 8


Source = tuple[str, str, str]
"""Where a pair comes from: `comparison` or `label` and its id, or `episodes` and theirs."""


@dataclass(frozen=True, slots=True)
class ConversationPair:
    """Two conversations of one scenario, in the order in which they are stored."""

    key: str
    collection: str
    scenario: str
    a: Sequence[Json] = field(repr=False)
    b: Sequence[Json] = field(repr=False)
    agent_role: str
    source: Source


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of pairs so far."""

    by_pair: Mapping[str, Mapping[str, str]]
    """Pair -> person -> the digest of the side that is better; empty for a tie."""
    rows: Sequence[PreferenceRow]

    def people(self) -> list[tuple[str, int]]:
        """The people who labelled, and how much; the busiest first."""
        return Counter(row.labeller or "nobody by name" for row in self.rows).most_common()

    def agreement(self, one: str, other: str) -> tuple[int, int]:
        """(equal, both labelled) of two people."""
        both = [said for said in self.by_pair.values() if one in said and other in said]
        return sum(said[one] == said[other] for said in both), len(both)


def digest(messages: Sequence[Json]) -> str:
    """Of what was said in a conversation."""
    said = [[each["role"], each.get("content") or "", each.get("tool_calls") or []] for each in messages]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:24]


def key_of(a: Sequence[Json], b: Sequence[Json]) -> str:
    """Of a pair, whichever side stands first."""
    return "-".join(sorted((digest(a), digest(b))))


async def labels_of(visit: Visit) -> Labels:
    """The newest labels of the lab."""
    async with visit.services.store.reading() as unit:
        rows = await unit.preferences.page(visit.lab.lab_id, MOST_LABELS, collections=visit.lab.collections)
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows:
        better = {"a": row.messages_a, "b": row.messages_b}.get(row.winner)
        said = "" if better is None else digest(better)
        found[key_of(row.messages_a, row.messages_b)].setdefault(row.labeller or "", said)
    return Labels(found, rows)


async def candidates(visit: Visit, labels: Labels, person: str, *, overlap: bool) -> AsyncIterator[ConversationPair]:
    """Pairs for this person: those of comparisons first, then couples of episodes, which are in no fixed order."""
    count = sum(person in said for said in labels.by_pair.values())
    if count % GOLD_EVERY == GOLD_EVERY - 1:
        for row in labels.rows:
            if row.labeller == GOLD and person not in labels.by_pair[key_of(row.messages_a, row.messages_b)]:
                yield _of_row(row)
    async for pair in _all(visit):
        said = labels.by_pair.get(pair.key, {})
        if person not in said and (overlap or not said):
            yield pair


async def _all(visit: Visit) -> AsyncIterator[ConversationPair]:
    lab = visit.lab
    async with visit.services.store.reading() as unit:
        compared = await unit.comparisons.page(lab.lab_id, MOST_COMPARISONS, collections=lab.collections)
        finished = await unit.browsing.newest_finished(lab.lab_id, MOST_EPISODES, collections=lab.collections)
    for row in compared:
        yield _of_row(row)
    found = list(couples(finished))
    # Not the newest first: people who begin together would all begin with the same.
    random.shuffle(found)
    for start in range(0, len(found), EPISODES_AT_ONCE):
        ids = [(better.episode_id, worse.episode_id) for better, worse in found[start : start + EPISODES_AT_ONCE]]
        for pair in await _of_episodes(visit, ids):
            yield pair


async def found_again(visit: Visit, source: Source) -> ConversationPair | None:
    """The pair that came from there; None where it is there no more."""
    kind, one, other = source
    lab_id = visit.lab.lab_id
    if kind == "episodes":
        return next(iter(await _of_episodes(visit, [(one, other)])), None)
    if kind == "label":
        rows = (await labels_of(visit)).rows
        return next((_of_row(row) for row in rows if row.preference_id == one), None)
    async with visit.services.store.reading() as unit:
        row = await unit.comparisons.get(lab_id, one)
    return None if row is None else _of_row(row)


async def _of_episodes(visit: Visit, couples_of: Sequence[tuple[str, str]]) -> list[ConversationPair]:
    ids = [each for couple in couples_of for each in couple]
    async with visit.services.store.reading() as unit:
        episodes = await unit.episodes.named(visit.lab.lab_id, ids)
        turns = await unit.episodes.turns_of(visit.lab.lab_id, ids)
    made = []
    for one, other in couples_of:
        # The lab may have deleted one meanwhile.
        if one in episodes and other in episodes:
            a, b = (_spoken(episodes[each], turns[each]) for each in (one, other))
            where = episodes[one].collection, episodes[one].scenario
            made.append(ConversationPair(key_of(a, b), *where, a, b, "assistant", ("episodes", one, other)))
    return [pair for pair in made if digest(pair.a) != digest(pair.b)]


def _spoken(episode: EpisodeRow, turns: Sequence[TurnRow]) -> list[Json]:
    """The messages of an episode, with the agent as `assistant`."""
    agent = agent_role(episode.observation_role)
    found: list[Json] = []
    for line in log_of(episode, turns):
        message: Json = {"role": "assistant" if line.role == agent else "user", "content": line.content}
        found.append(message | ({"tool_calls": list(line.tool_calls)} if line.tool_calls else {}))
    return found


def _of_row(row: ComparisonRow | PreferenceRow) -> ConversationPair:
    if isinstance(row, ComparisonRow) or row.comparison_id is not None:
        source: Source = ("comparison", row.comparison_id or "", "")
    else:
        source = ("label", row.preference_id, "")
    key = key_of(row.messages_a, row.messages_b)
    return ConversationPair(key, row.collection, row.scenario, row.messages_a, row.messages_b, row.agent_role, source)
