"""How well the reader understands: on turns from outside, on turns kept aside, and on collections it never saw.

    python -m benchmarks.reader --turns FOLDER
    python -m benchmarks.reader --turns FOLDER --unseen FOLDS

`--unseen` trains the reader once for each pair of collections, without them, and measures on all labelled turns of
both, whose cases then have their authors' examples alone. A reader that lies in the folder already is not trained
again; with `--train no` only those are measured. `benchmarks/results/reader.md` is written with `--write`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import environment, write
from personas.case.compiled import CompiledCase
from personas.hearing.hear import hear
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from personas.reading.acts import Reading
from personas.reading.heads import load_heads
from personas.reading.reader import LocalReader
from reward_server.encoders.encoder import EncoderMatcher
from reward_server.fitting.reader.dataset import ReaderRow, after_opening, packaged_acts, packaged_turns, turns_of_file
from reward_server.fitting.reader.evaluate import TurnPrediction, by_collection, predict, predicted_unseen, table
from reward_server.fitting.reader.train import lesson_of, train
from reward_server.reader.build import local_reader
from reward_server.reader.encoder import artefact_bytes, load_reader_encoder
from reward_server.server.engine import load_scenarios
from scenarios.library import Library
from scenarios.lint import COLLECTIONS

PAIRS = (
    ("clinical-intake", "tutoring"),
    ("customer-support", "negotiation"),
    ("it-helpdesk", "sales-discovery"),
)
EPOCHS = 2
"""Of the readers that are trained without a pair; the packaged one has more."""


def main() -> None:
    """Print the tables, and keep them if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=Path, help="folder of <collection>__<scenario>.jsonl that nobody trained on")
    parser.add_argument("--unseen", type=Path, help="folder of the readers trained without a pair of collections")
    parser.add_argument("--train", choices=("yes", "no"), default="yes", help="train the readers that are missing")
    parser.add_argument("--write", action="store_true", help="keep the tables in benchmarks/results/reader.md")
    arguments = parser.parse_args()
    library = load_scenarios(None)
    rows = packaged_turns(COLLECTIONS, library)
    parts: list[str] = []
    if arguments.turns:
        outside = [row for path in sorted(arguments.turns.glob("*.jsonl")) for row in turns_of_file(path, library)]
        what = "turns that nobody who worked on the reader wrote or trained on"
        parts += [section(f"{what}, read alone", measured(library, outside)), opened(what, library, outside)]
    aside = [row for row in rows if row.turn.kept_aside]
    parts += [opened("turns of the package that were kept aside", library, aside), without_the_line(library, rows)]
    if arguments.unseen:
        found = unseen(arguments.unseen, library, rows, may_train=arguments.train == "yes")
        parts.append(section(f"turns of collections that the reader was not trained on ({EPOCHS} epochs)", found))
    text = "\n\n".join(["# Understanding agent turns", environment(), *parts])
    print(text)
    if arguments.write:
        write("reader", text)


def opened(what: str, library: Library, rows: Sequence[ReaderRow]) -> str:
    """Turns after the opening of their persona, as in play."""
    return section(f"{what}, after the persona's opening", measured(library, after_opening(library, rows)))


def section(what: str, found: Sequence[TurnPrediction]) -> str:
    """A table with its heading."""
    scenarios = {each.row.key for each in found}
    return f"## {len(found)} {what} ({len(scenarios)} scenarios)\n\n{table(by_collection(found))}"


def measured(library: Library, rows: Sequence[ReaderRow]) -> list[TurnPrediction]:
    """What the packaged reader makes of turns."""
    return predict(library, local_reader(), rows)


class _AfterEveryLine(LocalReader):
    """The packaged reader, but every short sentence is read after the line before it."""

    def _alone(self, *_: object) -> list[tuple[str, str]]:
        return []


def without_the_line(library: Library, rows: Sequence[ReaderRow]) -> str:
    """How many turns are heard otherwise because some short sentences are read without the line before them."""
    raw = artefact_bytes()
    matcher, heads = EncoderMatcher(load_reader_encoder(raw)), load_heads(raw)
    readers = [LocalReader(matcher, heads), _AfterEveryLine(matcher, heads)]
    spoken = [row for row in after_opening(library, rows) if row.turn.turn.strip()]
    other = 0
    for key in dict.fromkeys(row.key for row in spoken):
        case = library.vault.open(*key).case
        turns = [(row.turn.line, row.turn.turn) for row in spoken if row.key == key]
        ways = [reader.read(case, turns) for reader in readers]
        heard = [[_heard(case, turn[1], found) for turn, found in zip(turns, way, strict=True)] for way in ways]
        other += sum(one != another for one, another in zip(*heard, strict=True))
    return (
        "## Short sentences read without the line before them\n\n"
        f"Of {len(spoken)} labelled turns, {other} ({other / len(spoken):.1%}) would be heard otherwise if each short "
        "sentence were read after the persona's last line: other facts asked for, or other commitments."
    )


def _heard(case: CompiledCase, text: str, reading: Reading) -> tuple[list[str], list[str]]:
    hearing = hear(case, PersonaState(), AgentTurn(text), reading)
    return [each.topic_id for each in hearing.asked], [each.commitment_id for each in hearing.commitments]


def unseen(folder: Path, library: Library, rows: Sequence[ReaderRow], *, may_train: bool) -> list[TurnPrediction]:
    """What readers make of the turns of the collections that they were trained without."""
    found: list[TurnPrediction] = []
    for pair in PAIRS:
        path = folder / f"without-{'-and-'.join(pair)}.safetensors"
        if not path.is_file():
            if not may_train:
                continue
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(train(lesson_of(library, rows, packaged_acts(), pair), epochs=EPOCHS))
        found += predicted_unseen(path.read_bytes(), [row for row in rows if row.collection in pair])
    return found


if __name__ == "__main__":
    main()
