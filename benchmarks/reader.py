"""How well the reader understands: on turns from outside, on turns kept aside, and on collections it never saw.

    python -m benchmarks.reader --turns FOLDER
    python -m benchmarks.reader --turns FOLDER --unseen /tmp/folds

`--unseen` trains the reader once for each pair of collections, without them, and measures on all labelled turns of
both, whose cases then have their authors' examples alone. A reader that lies in the folder already is not trained
again; with `--train no` only those are measured. `benchmarks/results/reader.md` is written with `--write`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import environment, write
from reward_server.engine import load_scenarios
from reward_server.reader.build import local_reader
from reward_server.reader.dataset import Row, after_opening, packaged_acts, packaged_turns, turns_of_file
from reward_server.reader.evaluate import Prediction, by_collection, predict, predicted_unseen, table
from reward_server.reader.train import lesson_of, train
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
    parts.append(opened("turns of the package that were kept aside", library, aside))
    if arguments.unseen:
        found = unseen(arguments.unseen, library, rows, may_train=arguments.train == "yes")
        parts.append(section(f"turns of collections that the reader was not trained on ({EPOCHS} epochs)", found))
    text = "\n\n".join(["# Understanding agent turns", environment(), *parts])
    print(text)
    if arguments.write:
        write("reader", text)


def opened(what: str, library: Library, rows: Sequence[Row]) -> str:
    """Turns after the opening of their persona, as in play."""
    return section(f"{what}, after the persona's opening", measured(library, after_opening(library, rows)))


def section(what: str, found: Sequence[Prediction]) -> str:
    """A table with its heading."""
    scenarios = {each.row.key for each in found}
    return f"## {len(found)} {what} ({len(scenarios)} scenarios)\n\n{table(by_collection(found))}"


def measured(library: Library, rows: Sequence[Row]) -> list[Prediction]:
    """What the packaged reader makes of turns."""
    return predict(library, local_reader(), rows)


def unseen(folder: Path, library: Library, rows: Sequence[Row], *, may_train: bool) -> list[Prediction]:
    """What readers make of the turns of the collections that they were trained without."""
    found: list[Prediction] = []
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
