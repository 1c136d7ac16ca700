"""Reads the public sets into conversations with human labels. Nothing is shipped: the folder is an argument.

hh_rlhf_harmless (pairs.jsonl.gz or harmless-base test.jsonl.gz), llmbar (*.json), mrbench (MRBench*.json), mts_dialog
(*.csv); docs/quality.md names the public source of each. A set that is not there is left out of the report.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from reward_server.reward_models.conversation import Conversation, ConversationMessage, Party

DIMENSIONS = (
    "Mistake_Identification",
    "Mistake_Location",
    "Providing_Guidance",
    "Actionability",
    "Revealing_of_the_Answer",
    "Coherence",
)
"""Of MRBench; humanlikeness and tone have next to no answers other than yes or are no question of yes and no."""
LEAST_WORDS = 3
"""MTS-Dialog: answers that are shorter ("No.") say which question was asked only by their place."""
LEAST_PAIRS = 3
APART = 2
"""MRBench: verdicts by which a reply has to be ahead of another to count as preferred."""
MOST_PAIRS = 10
"""MRBench: pairs of one conversation, so that no conversation decides a figure."""

_HH_TURN = re.compile(r"\n\n(Human|Assistant): ?")
_TUTOR_TURN = re.compile(r"(?:^|\n|\u00a0)\s*(Tutor|Student)\s*: ?")


@dataclass(frozen=True)
class Pair:
    """Two conversations that differ in their last message; people preferred the first."""

    chosen: Conversation
    rejected: Conversation
    group: str
    """Pairs of one group share a dialogue and never lie on both sides of a split."""
    first_shown: str = ""
    """Of LLMBar: which of the two was shown first, `chosen` or `rejected`."""
    systems: tuple[str, str] = ("", "")
    """Of MRBench: who wrote the better and the worse one."""


@dataclass(frozen=True)
class Reply:
    """A tutor's reply with people's verdicts per dimension, true where they said yes."""

    conversation: Conversation
    met: Mapping[str, bool]
    group: str
    system: str = ""
    """Who wrote it."""


@dataclass(frozen=True)
class Interview:
    """A doctor's questions with the patient's answers, in order."""

    name: str
    pairs: tuple[tuple[str, str], ...]


def hh_pairs(folder: Path) -> list[Pair]:
    """hh-rlhf harmless: human preferences on dialogues; grouped by the first message."""
    path = one_file(folder, "*.jsonl.gz")
    pairs = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            chosen, rejected = _hh_turns(row["chosen"]), _hh_turns(row["rejected"])
            if chosen != rejected:
                pairs.append(Pair(Conversation(chosen), Conversation(rejected), chosen[0].text))
    return pairs


def _hh_turns(text: str) -> tuple[ConversationMessage, ...]:
    parts = _HH_TURN.split(text)[1:]
    spoken = zip(parts[::2], parts[1::2], strict=True)
    return tuple(ConversationMessage("persona" if who == "Human" else "agent", words.strip()) for who, words in spoken)


def llmbar_pairs(folder: Path) -> dict[str, list[Pair]]:
    """LLMBar: two outputs for an instruction, by subset; grouped by the instruction."""
    return {path.stem.removeprefix("processed_"): _llmbar(path) for path in sorted(folder.glob("*.json"))}


def _llmbar(path: Path) -> list[Pair]:
    pairs = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        sides = [
            Conversation((ConversationMessage("persona", row["input"]), ConversationMessage("agent", row[side])))
            for side in ("output_1", "output_2")
        ]
        better = int(row["label"]) - 1
        shown = "chosen" if better == 0 else "rejected"
        pairs.append(Pair(sides[better], sides[1 - better], row["input"], shown))
    return pairs


def mrbench_replies(folder: Path) -> list[Reply]:
    """MRBench: replies to a student's mistake; grouped by the conversation."""
    replies = []
    for row in json.loads(one_file(folder, "*.json").read_text(encoding="utf-8")):
        turns = _tutoring(row["conversation_history"])
        for system, answer in row["anno_llm_responses"].items():
            met = {name: str(answer["annotation"][name]).startswith("Yes") for name in DIMENSIONS}
            spoken = Conversation((*turns, ConversationMessage("agent", answer["response"])))
            replies.append(Reply(spoken, met, str(row["conversation_id"]), system))
    return replies


def mrbench_pairs(folder: Path) -> list[Pair]:
    """Replies to one student of which people said more good than of the other; telling the answer is not good."""
    by_conversation: dict[str, list[Reply]] = {}
    for reply in mrbench_replies(folder):
        by_conversation.setdefault(reply.group, []).append(reply)
    pairs = []
    for group, replies in by_conversation.items():
        apart = []
        for two in itertools.combinations(replies, 2):
            worse, better = sorted(two, key=_merit)
            if _merit(better) - _merit(worse) >= APART:
                systems = (better.system, worse.system)
                apart.append(Pair(better.conversation, worse.conversation, group, systems=systems))
        # Any of them, but the same ones in every run.
        pairs += sorted(apart, key=lambda pair: sha256((pair.chosen.digest + pair.rejected.digest).encode()).digest())[
            :MOST_PAIRS
        ]
    return pairs


def _merit(reply: Reply) -> int:
    told = "Revealing_of_the_Answer"
    return sum(met != (name == told) for name, met in reply.met.items())


def _tutoring(history: str) -> tuple[ConversationMessage, ...]:
    parts = _TUTOR_TURN.split(history)[1:]
    roles: dict[str, Party] = {"Tutor": "agent", "Student": "persona"}
    return tuple(
        ConversationMessage(roles[who], " ".join(words.replace("\u00a0", " ").split()))
        for who, words in zip(parts[::2], parts[1::2], strict=True)
    )


def mts_interviews(folder: Path) -> list[Interview]:
    """MTS-Dialog: questions of doctors with the answers of patients that say something, three or more a dialogue."""
    interviews = []
    with one_file(folder, "*.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            pairs = tuple(_answered(list(_lines(row["dialogue"]))))
            if len({answer for _, answer in pairs}) >= LEAST_PAIRS:
                interviews.append(Interview(row["ID"], pairs))
    return interviews


def _lines(dialogue: str) -> Iterator[tuple[str, str]]:
    for line in dialogue.splitlines():
        who, _, words = line.strip().partition(":")
        yield who, words.strip()


def _answered(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for (asker, question), (answerer, answer) in itertools.pairwise(lines):
        asked = asker == "Doctor" and answerer == "Patient" and "?" in question
        if asked and len(answer.split()) >= LEAST_WORDS:
            yield question, answer


def one_file(folder: Path, pattern: str) -> Path:
    """The first file of this kind; there has to be one."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise FileNotFoundError(f"{folder.name}: no file {pattern}")
    return found[0]
