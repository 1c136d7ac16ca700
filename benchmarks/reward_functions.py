"""What the reward functions that need no model are worth on human-judged data, beside chance and the longer answer.

`python -m benchmarks.reward_functions FOLDER`: FOLDER holds the public sets `hh_rlhf_harmless/pairs.jsonl.gz`
(anthropics/hh-rlhf), `llmbar/*.json` (princeton-nlp/LLMBar) and `casino/casino_train.json` (kushalchawla/CaSiNo).
Nothing was fitted to any of them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from benchmarks.report import Table, environment, write
from trainer_client.rewards import EngagementReward, KeywordReward, LengthReward, RewardFunction
from trainer_client.rewards.base import Conversation

_SATISFACTION = (
    "Extremely dissatisfied",
    "Slightly dissatisfied",
    "Undecided",
    "Slightly satisfied",
    "Extremely satisfied",
)
Pair = tuple[Conversation, Conversation]


class LongerReward(RewardFunction):
    """The limit to compare with: the more words the agent says, the better."""

    name = "longer"

    def score(self, messages: Conversation, context: Any = None) -> Any:
        """Score one conversation."""
        from trainer_client.rewards import RewardResult

        words = sum(len(str(each["content"]).split()) for each in messages if each["role"] == "assistant")
        return RewardResult(words / (words + 1000))


def harmless(folder: Path) -> Iterator[Pair]:
    """Pairs of dialogues; the first was preferred."""
    with gzip.open(folder / "hh_rlhf_harmless" / "pairs.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            yield _dialogue(row["chosen"]), _dialogue(row["rejected"])


def _dialogue(text: str) -> Conversation:
    parts = re.split(r"\n\n(Human|Assistant):", text)[1:]
    roles = {"Human": "user", "Assistant": "assistant"}
    return [{"role": roles[who], "content": said.strip()} for who, said in zip(parts[::2], parts[1::2], strict=True)]


def answers(folder: Path) -> Iterator[Pair]:
    """Pairs of answers to an instruction; the first was preferred."""
    for path in sorted((folder / "llmbar").glob("*.json")):
        for row in json.loads(path.read_text()):
            pair = [
                [{"role": "user", "content": row["input"]}, {"role": "assistant", "content": row[f"output_{n}"]}]
                for n in (1, 2)
            ]
            yield (pair[0], pair[1]) if int(row["label"]) == 1 else (pair[1], pair[0])


def negotiations(folder: Path) -> Iterator[tuple[Conversation, float]]:
    """A negotiation as one of both saw it, and how satisfied its partner was, from 0 to 4."""
    for row in json.loads((folder / "casino" / "casino_train.json").read_text()):
        people = sorted(row["participant_info"])
        for agent, partner in (people, people[::-1]):
            said = [
                {"role": "assistant" if each["id"] == agent else "user", "content": each["text"]}
                for each in row["chat_logs"]
                if not each["text"].startswith(("Submit-Deal", "Accept-Deal", "Reject-Deal", "Walk-Away"))
            ]
            felt = row["participant_info"][partner]["outcomes"]["satisfaction"]
            yield said, float(_SATISFACTION.index(felt))


def accuracy(reward: RewardFunction, pairs: list[Pair]) -> float:
    """Share of pairs in the order that people gave them; a tie counts half."""
    found = [(reward(better), reward(worse)) for better, worse in pairs]
    return sum((a > b) + 0.5 * (a == b) for a, b in found) / len(found)


def main() -> None:
    """Measure, print and keep the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="Folder of the public data sets.")
    folder = parser.parse_args().folder
    sets = {"hh_rlhf_harmless": list(harmless(folder)), "llmbar": list(answers(folder))}
    rewards: dict[str, RewardFunction] = {
        "LengthReward(3, 80)": LengthReward(),
        "LengthReward(3, 30)": LengthReward(3, 30),
        'KeywordReward("sorry", "cannot", "help")': KeywordReward(["sorry", "cannot", "help"], "any"),
        "the longer one (limit)": LongerReward(),
    }
    table = Table("Share of pairs in people's order; chance is .500", ["reward", *sets])
    for name, reward in rewards.items():
        table.add(name, *(f"{accuracy(reward, pairs):.3f}" for pairs in sets.values()))
    seen = list(negotiations(folder))
    engagement = EngagementReward()
    rho = spearmanr([engagement(talk) for talk, _ in seen], [felt for _, felt in seen]).statistic
    words = spearmanr([LongerReward()(talk) for talk, _ in seen], [felt for _, felt in seen]).statistic
    second = Table(
        f"Spearman correlation with the partner's satisfaction in {len(seen)} negotiations (CaSiNo)", ["reward", "ρ"]
    )
    second.add("EngagementReward()", f"{rho:+.3f}")
    second.add("the agent's own words (limit)", f"{words:+.3f}")
    counts = ", ".join(f"{name} {len(pairs)} pairs" for name, pairs in sets.items())
    write("reward_functions", "\n\n".join([table.text(), second.text(), f"{counts}. {environment()}"]))


if __name__ == "__main__":
    main()
