"""Is a right reply told from a longer, laid-out reply to a near request, on dialogues that nothing was chosen on?

Usage: python -m benchmarks.quality.untouched --data DIR [--cache DIR] [--most N] [--features NAME]
       [--counterparts with|without|auto] [--write]

Heads are trained as `labs reward-model train` does on the human pairs of LLMBar that are not in its natural part. They
are asked about the natural part, and about three sets of real dialogues on which no feature, weight or limit was
chosen, one exchange of each dialogue:

    mts_dialog   a doctor's question and the patient's answer
    mathdial     what a student said and the tutor's reply (MRBench took some of its conversations from this set)
    tau_bench    what a customer wrote and the assistant's reply; one dialogue of each task

Nobody judged pairs there, so the pairs are built: `neighbours` and `adversarial` as in `shipped`, from requests of one
set. The column `plain twin` has the same reply twice, in one paragraph and laid out: the share of twins of which the
paragraph gets more. Neither is better, so a judge of content has no reason to be near 0 or 1.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.quality import data
from benchmarks.quality.shipped import (
    ADVERSARIAL,
    COSINE,
    HEAD,
    SHIPPED,
    Judges,
    Noted,
    Pairs,
    adversarial,
    cell,
    sets_of,
    table,
)
from benchmarks.quality.styles import some_of
from benchmarks.quality.vectors import KeptVectors
from benchmarks.report import Table, environment, write
from reward_server.encoders.encoder import TextEncoder
from reward_server.encoders.loading import load_fast_encoder
from reward_server.fitting.reward_model.style_choice import AUTO
from reward_server.offline.formats import ANYONE, BadRow, Message, Speakers, convert
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import Dataset, PreferredPair, hold_out
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.style import dressed, reply_of, undressed, with_reply
from reward_server.reward_models.style_sets import NEIGHBOURS, style_sets
from reward_server.settings import load_settings

LEAST_WORDS = 5
"""A shorter request or reply ("Yes.") fits many others."""
TWIN = "plain twin"
COLUMNS = (NEIGHBOURS, ADVERSARIAL, TWIN)
PATIENT = Speakers(("Patient",))
Rows = Iterator[tuple[str, Mapping[str, Any]]]


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    parser.add_argument("--cache", type=Path, help="folder where sentence vectors are kept between runs")
    parser.add_argument("--most", type=int, default=1_000_000, help="pairs or dialogues of a set at most")
    parser.add_argument("--features", default=AUTO, help="as the option of `train`")
    parser.add_argument("--counterparts", default="auto", choices=["auto", "with", "without"], help="likewise")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/untouched.md")
    given = parser.parse_args(arguments)
    encoder = KeptVectors(load_fast_encoder(load_settings().encoder, "fp32"), given.cache, threads=1)
    featuriser = ConversationFeaturiser(encoder, remembered=200_000)
    subsets = {
        name: [PreferredPair(pair.chosen, pair.rejected, pair.group) for pair in pairs]
        for name, pairs in data.llmbar_pairs(given.data / "llmbar").items()
    }
    natural = some_of(subsets.pop("natural"), given.most)
    others = some_of([pair for pairs in subsets.values() for pair in pairs], given.most)
    split = hold_out(Dataset((), (*natural, *others)), frozenset(pair.group for pair in natural), seed=0)
    ways = f"--most {given.most} --features {given.features} --counterparts {given.counterparts}"
    parts = [f"Command: `python -m benchmarks.quality.untouched --data DIR {ways} --write`."]
    with tempfile.TemporaryDirectory() as folder:
        judges = Judges(
            split,
            featuriser,
            encoder,
            FeatureShelf(Path(folder) / "features"),
            Path(folder) / "checkpoint",
            features=given.features,
            counterparts=given.counterparts,
        )
        noted = Noted(kept=[judges.kept])
        judges.note(sets_of(natural, encoder), noted)
        parts.append(table("LLMBar natural, trained on its other human pairs", noted))
        print(parts[-1], flush=True)
        for name, found in exchanges(given.data, given.most).items():
            noted = Noted()
            judges.note(built(found, encoder), noted)
            parts.append(built_table(name, len(found), noted))
            print(parts[-1], flush=True)
            encoder.save()
    if given.write:
        write("untouched", "\n\n".join([environment(), *parts]))


def exchanges(folder: Path, most: int) -> dict[str, Pairs]:
    """By set, one request and its reply of each dialogue; as a pair of the reply with itself."""
    readers: dict[str, tuple[Callable[[Path], Rows], Speakers]] = {
        "mts_dialog": (_mts, PATIENT),
        "mathdial": (_mathdial, ANYONE),
        "tau_bench": (_tau, ANYONE),
    }
    found: dict[str, Pairs] = {}
    for name, (rows, speakers) in readers.items():
        if (folder / name).is_dir():
            pairs = {
                group: pair for group, row in rows(folder / name) if (pair := _exchange(row, name, speakers, group))
            }
            found[name] = some_of(list(pairs.values()), most)
    return found


def _mts(folder: Path) -> Rows:
    with data.one_file(folder, "*.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield row["ID"], row


def _mathdial(folder: Path) -> Rows:
    """Several students get the same exercise."""
    with data.one_file(folder, "*.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            yield str(row["qid"]), row


def _tau(folder: Path) -> Rows:
    """Each task was tried several times."""
    for row in json.loads(data.one_file(folder, "*.json").read_text(encoding="utf-8")):
        yield str(row["task_id"]), row


def _exchange(row: Mapping[str, Any], name: str, speakers: Speakers, group: str) -> PreferredPair | None:
    """The first request and reply of a dialogue that are long enough; None where there are none."""
    try:
        messages: Sequence[Message] = [message for each in convert(row, name, speakers) for message in each.messages]
    except BadRow:
        return None
    for asked, said in itertools.pairwise(messages):
        texts = str(asked["content"]), str(said["content"])
        if (asked["role"], said["role"]) == ("user", "assistant") and all(
            len(text.split()) >= LEAST_WORDS for text in texts
        ):
            spoken = Conversation((ConversationMessage("persona", texts[0]), ConversationMessage("agent", texts[1])))
            return PreferredPair(spoken, spoken, group)
    return None


def built(pairs: Pairs, encoder: TextEncoder) -> Mapping[str, Pairs]:
    """The sets that requests with their own replies make."""
    return {
        NEIGHBOURS: style_sets(Dataset((), tuple(pairs)), encoder)[NEIGHBOURS],
        ADVERSARIAL: adversarial(pairs, encoder),
        TWIN: [
            PreferredPair(
                with_reply(pair.chosen, undressed(reply_of(pair.chosen))),
                with_reply(pair.chosen, dressed(reply_of(pair.chosen))),
                pair.group,
            )
            for pair in pairs
        ],
    }


def built_table(name: str, dialogues: int, noted: Noted) -> str:
    """Figures over dialogues, and what is shipped less the others on the same pairs."""
    shown = Table(f"{name}, {dialogues} dialogues: share of pairs in the right order [95 %]", ["judge", *COLUMNS])
    for judge, right in noted.right.items():
        shown.add(judge, *(cell(right[each], noted.groups[each]) for each in COLUMNS))
    for other in (HEAD, COSINE):
        gains = {
            each: [own - theirs for own, theirs in zip(noted.right[SHIPPED][each], right, strict=True)]
            for each, right in noted.right[other].items()
        }
        shown.add(
            f"{SHIPPED} less {other}",
            *(cell(gains[each], noted.groups[each], "+.3f") for each in COLUMNS[:2]),
            "",
        )
    sizes = ", ".join(f"{each} {len(noted.groups[each])}" for each in COLUMNS)
    return f"{shown.text()}\n\nPairs: {sizes}."


if __name__ == "__main__":
    main()
