"""How the fluency model tells broken sentences from whole ones, and what broken turns earn.

    python -m benchmarks.fluency --data DATA [--write]

DATA holds MathDial and MRBench (see `benchmarks.dialogue_lines`) and the folders `natural_turns` and
`honest_sentences`: whole sentences of which nothing was trained on. Broken ones are made from the packaged turns that
are kept aside. `broken_turns.json` holds seven turns that a small policy said when it was trained on reward alone, and
the same turns in fluent language; both are played on the same seeds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.dialogue_lines import MEASURED_ON, lines_of
from benchmarks.plays import played
from benchmarks.report import Table, environment, write
from personas.reading.fluency import Fluency, is_judged
from personas.text.sentences import sentences
from reward_server.fitting.reader.corruptions import Corruptor
from reward_server.fitting.reader.dataset import packaged_turns
from reward_server.reader.build import packaged_fluency
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import or_raise
from reward_server.server.engine import OfflineEngine, load_scenarios, offline_engine
from reward_server.settings import load_settings
from scenarios.library import Library
from scenarios.lint import COLLECTIONS
from scenarios.schema import ScriptStep
from trainer_client.wire import Message

PAIRS = Path(__file__).parent / "broken_turns.json"
PLAYED_IN = ("clinical-intake", "tired-and-dizzy")
SEEDS = range(1_000, 1_024)
TRIES = 2


def aside(library: Library) -> dict[str, list[str]]:
    """By scenario, the sentences of the packaged turns that are kept aside."""
    found: dict[str, list[str]] = {}
    for row in packaged_turns(COLLECTIONS, library):
        if row.turn.kept_aside:
            found.setdefault("/".join(row.key), []).extend(sentences(row.turn.turn))
    return {name: [each for each in dict.fromkeys(texts) if is_judged(each)] for name, texts in found.items()}


def whole(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Sets of sentences that people and good models wrote."""
    natural = [
        json.loads(line)["turn"]
        for path in sorted((data / "natural_turns").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    honest = [
        json.loads(line)["text"]
        for line in (data / "honest_sentences" / "sentences.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for name, texts in (("natural turns", natural), ("honest sentences", honest)):
        yield name, list(dict.fromkeys(each for text in texts for each in sentences(text)))
    for name in MEASURED_ON:
        yield name, lines_of(name, data)


def taken_for_broken(model: Fluency, sets: Mapping[str, Sequence[str]]) -> Table:
    """The share of whole sentences that the model would not read."""
    table = Table("whole sentences taken for broken", ["set", "sentences", "taken for broken"])
    for name, texts in sets.items():
        judged = [each for each in texts if is_judged(each)]
        table.add(name, len(judged), f"{len(model.broken(judged)) / len(judged):.2%}")
    return table


def found_broken(model: Fluency, kept: Mapping[str, Sequence[str]]) -> Table:
    """The share of broken sentences that the model finds, by how they were made."""
    corruptor = Corruptor(kept, random.Random(0))
    tries = (corruptor.broken(name, each) for name, texts in kept.items() for each in texts for _ in range(TRIES))
    made = {each.text: each.way for each in tries if each is not None and is_judged(each.text)}
    found, of = Counter(made[text] for text in model.broken(made)), Counter(made.values())
    table = Table("broken sentences found", ["made by", "sentences", "found"])
    for way in sorted(of):
        table.add(way, of[way], f"{found[way] / of[way]:.0%}")
    table.add("all", of.total(), f"{found.total() / of.total():.0%}")
    return table


async def earned(engine: OfflineEngine, library: Library, lines: Sequence[str]) -> float:
    """The mean reward of an agent that says these lines, over the seeds."""
    requests = []
    for seed in SEEDS:
        base = played(
            library.vault.open(*PLAYED_IN), "lines", [ScriptStep(say=line) for line in lines], engine.reader, seed
        )
        messages = [Message.model_validate(message) for message in base.messages]
        requests.append(ScoreRequest(*PLAYED_IN, engine.scorer.read(*PLAYED_IN, messages, "assistant")))
    return fmean(or_raise(each).reward for each in await engine.scorer.score(requests))


async def pairs_table() -> Table:
    """What the seven turns earn, broken and fluent."""
    library = load_scenarios(None)
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))
    table = Table(f"reward of seven turns in {'/'.join(PLAYED_IN)}, mean of {len(SEEDS)} seeds", ["turns", "reward"])
    with offline_engine(load_settings(), library) as engine:
        for name in ("fluent", "broken"):
            table.add(name, f"{await earned(engine, library, [pair[name] for pair in pairs]):.3f}")
        one_broken = [
            [pair["broken" if number == place else "fluent"] for number, pair in enumerate(pairs)]
            for place in range(len(pairs))
        ]
        table.add(
            "fluent but for one of them", f"{fmean([await earned(engine, library, each) for each in one_broken]):.3f}"
        )
    return table


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    options.add_argument("--artefact", type=Path, help="measure this artefact instead of the packaged one")
    options.add_argument("--write", action="store_true", help="also write benchmarks/results/fluency.md")
    given = options.parse_args()
    model = packaged_fluency(raw=given.artefact.read_bytes() if given.artefact else None)
    kept = aside(load_scenarios(None))
    sets = {"packaged turns kept aside": [each for texts in kept.values() for each in texts], **dict(whole(given.data))}
    tables = [taken_for_broken(model, sets), found_broken(model, kept), asyncio.run(pairs_table())]
    text = "\n\n".join(table.text() for table in tables)
    print(text)
    if given.write:
        write("fluency", f"{environment()}\n\n{text}")


if __name__ == "__main__":
    main()
