"""How well a persona understands scenarios of one's own, whose authors knew the README and the docs alone.

Two authors wrote a collection each, and 180 labelled turns to its scenario without seeing how the reader takes them.
The turns are read one at a time, each after the persona's opening if it names no line before it, with the reader that
reads commitments once and with the one that reads those that cost the agent a second time, as it does in scenarios of
one's own. The second table is about labels: some of the turns, drawn three times, help to read the others.

    .venv/bin/python -m benchmarks.own_scenarios             # --write puts it into benchmarks/results
    .venv/bin/python -m benchmarks.own_scenarios --practice  # also the practice cases that nothing is trained on
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import torch

from benchmarks.own_scenarios.labels import DRAWS, WAYS, helped
from benchmarks.own_scenarios.measures import MEASURES
from benchmarks.own_scenarios.reading import read
from benchmarks.own_scenarios.sets import TurnSet, own_sets, practice_set
from benchmarks.report import Table, environment, write
from personas.reading.reader import LocalReader
from reward_server.fitting.reader.evaluate import Share
from reward_server.fitting.reader.own import LEAST
from reward_server.reader.build import local_reader

TIME = "CPU time of reading a turn, ms"


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, default=40, help="labelled turns that help to read the others")
    parser.add_argument("--practice", action="store_true", help="also read the practice cases kept aside")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/own_scenarios.md")
    given = parser.parse_args(arguments)
    own = own_sets()
    most = min(len(each.rows) for each in own) - 1
    if not LEAST <= given.labels <= most:
        parser.error(f"--labels: give a number from {LEAST} to {most}, not {given.labels}")
    torch.set_num_threads(1)
    command = f"`python -m benchmarks.own_scenarios --labels {given.labels}{' --practice' * given.practice} --write`"
    first = understood([*own, practice_set()] if given.practice else own).text()
    print(first, flush=True)
    second = with_labels(local_reader(twice=True), own, given.labels).text()
    print(f"\n{second}")
    if given.write:
        write("own_scenarios", "\n\n".join(["# Scenarios of one's own", f"{environment()} {command}", first, second]))


def understood(sets: Sequence[TurnSet]) -> Table:
    """Every set read once and twice, a column each; each with a fresh reader, whose caches know nothing yet."""
    columns: dict[str, Mapping[str, Share]] = {}
    times = []
    for each in sets:
        for name, twice in (("once", False), ("twice", True)):
            found = read(local_reader(twice=twice), each, each.rows)
            columns[f"{each.name}, {name}"] = found.shares
            times.append(f"{found.ms_a_turn:.0f}")
    table = _table("Commitments read once, and those that cost read twice", columns)
    table.add(TIME, *times)
    return table


def with_labels(reader: LocalReader, sets: Sequence[TurnSet], labels: int, draws: int = DRAWS) -> Table:
    """The turns without labels, by what the labels are used for; commitments that cost are read twice."""
    columns: dict[str, Mapping[str, Share]] = {}
    for each in sets:
        found = helped(reader, each, labels, draws)
        columns |= {f"{each.name}, {way}": found[way] for way in WAYS}
    return _table(f"The other turns, with {labels} labels of {draws} draws together, read twice", columns)


def _table(caption: str, columns: Mapping[str, Mapping[str, Share]]) -> Table:
    table = Table(caption, ["", *columns])
    for measure in MEASURES:
        table.add(measure, *(_cell(shares[measure]) for shares in columns.values()))
    return table


def _cell(share: Share) -> str:
    return f"{share.hits}/{share.of} ({share.value:.0%})" if share.of else "-"


if __name__ == "__main__":
    main()
