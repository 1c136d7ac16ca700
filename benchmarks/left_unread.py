"""How much of what agents say learned judges leave unread in conversations without a scenario.

Usage: python -m benchmarks.left_unread DATA [--write]

DATA is a folder with the public sets of benchmarks.quality (docs/quality.md names their sources). For each set: the
agents' sentences, the share that `robust_reading` drops, and how many match the patterns of talk to a judge (orders,
praise, openers). These are honest conversations, so what is dropped is what the reading costs. A reply that stands in
several pairs counts once; what the conversation before it says counts with each reply.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from benchmarks.quality.data import hh_pairs, llmbar_pairs, mrbench_replies
from benchmarks.report import Table, environment, write
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.robust_reading import read, sentences
from reward_server.scoring.judge_talk import is_for_the_judge


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/left_unread.md")
    arguments = parser.parse_args()
    head = ["set", "conversations", "agents' sentences", "left unread", "match patterns of talk to a judge"]
    table = Table("what learned judges leave unread of honest talk", head)
    for name, found in conversations(arguments.data).items():
        table.add(name, *counted({each.digest: each for each in found}.values()))
    text = f"{table.text()}\n\n{environment()}"
    print(text)
    if arguments.write:
        write("left_unread", text)


def conversations(data: Path) -> dict[str, list[Conversation]]:
    """By set, those that are there."""
    found: dict[str, list[Conversation]] = {}
    if (data / "hh_rlhf_harmless").is_dir():
        found["hh"] = [side for pair in hh_pairs(data / "hh_rlhf_harmless") for side in (pair.chosen, pair.rejected)]
    if (data / "mrbench").is_dir():
        found["MRBench"] = [reply.conversation for reply in mrbench_replies(data / "mrbench")]
    if (data / "llmbar").is_dir():
        for subset, pairs in llmbar_pairs(data / "llmbar").items():
            found[f"LLMBar {subset}"] = [side for pair in pairs for side in (pair.chosen, pair.rejected)]
    return found


def counted(found: Iterable[Conversation]) -> list[str]:
    """Conversations, sentences, share left unread, matches."""
    talks, said, kept, matched = 0, 0, 0, 0
    for talk in found:
        talks += 1
        for turn in talk.turns:
            if turn.party == "agent":
                mine = sentences(turn.text)
                said += len(mine)
                matched += sum(map(is_for_the_judge, mine))
        kept += sum(len(message.segments) for message in read(talk) if message.party == "agent")
    return [f"{talks:,}", f"{said:,}", f"{1 - kept / said:.1%}", str(matched)]


if __name__ == "__main__":
    main()
