"""Reads the persona's line and the whole turn in one pass of the encoder, beside the reader as it is.

Usage: python -m benchmarks.one_pass [--designs full blocks] [--fit] [--share 0.4] [--cost] [--write]

The reader encodes each sentence, each clause of a question and each elliptic sentence after the persona's line. Here
all their vectors are pooled from one pass over the line and the turn (designs: `benchmarks.one_pass.passes`), with the
encoder and heads of the reader as it is; `--fit` also with heads that are fitted on such vectors, from a share of the
turns that a training reads (`--share`). Read are the labelled turns kept aside, after the persona's opening, and the
practice cases of the domains kept aside. `--cost` measures CPU for each turn (design full).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

import torch

from benchmarks.one_pass.cost import cost_table
from benchmarks.one_pass.passes import Design, PassEncoder
from benchmarks.one_pass.reading import OnePassReader, PassVectors, heads_of
from benchmarks.report import Table, environment, write
from personas.reading.heads import ReaderHeads, load_heads
from personas.reading.reader import LocalReader
from reward_server.encoders.minilm import EncoderCheckpoint, packaged_folder, read_checkpoint
from reward_server.fitting.reader.dataset import ReaderRow, after_opening, packaged_acts, packaged_turns
from reward_server.fitting.reader.evaluate import Share, measured, predict
from reward_server.fitting.reader.practised import ALL, practised
from reward_server.fitting.reader.train import lesson_of, rows_of
from reward_server.reader.build import local_reader, packaged_fluency
from reward_server.reader.encoder import artefact_bytes, tuned
from reward_server.server.engine import load_scenarios
from scenarios.library import Library
from scenarios.lint import COLLECTIONS
from scenarios.practice import PracticeCase, load_practice

SEED = 0
UNDERSTOOD = ("specific understood", "specific wrong", "double, per fact", "open apt", "foreign opened")
ASIDE = (*UNDERSTOOD, "commitment heard", "near miss taken for it")
PRACTICE = (*UNDERSTOOD, "follow-up understood")


def main() -> None:
    """Print the tables, and keep them if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", nargs="*", choices=get_args(Design), default=get_args(Design))
    parser.add_argument("--fit", action="store_true", help="with heads fitted on vectors from one pass, too")
    parser.add_argument("--share", type=float, default=0.4, help="of the turns that a training reads, to fit heads on")
    parser.add_argument("--cost", action="store_true", help="measure CPU for each turn")
    parser.add_argument("--write", action="store_true", help="keep them in benchmarks/results/one_pass.md")
    given = parser.parse_args()
    if not 0 < given.share <= 1:
        parser.error("--share has to be over 0 and at most 1")
    torch.set_num_threads(1)
    library = load_scenarios(None)
    rows, raw = packaged_turns(COLLECTIONS, library), artefact_bytes()
    aside = after_opening(library, [row for row in rows if row.turn.kept_aside])
    checkpoint = tuned(read_checkpoint(packaged_folder()), raw)
    tables: list[Table] = []
    if given.designs:
        practice = load_practice()
        fitted = _Fitted(library, rows, practice, given.share) if given.fit else None
        held_out = [case for case in practice if case.held_out]
        tables += understanding(library, _readers(checkpoint, raw, given.designs, fitted), aside, held_out)
    if given.cost:
        cases = {key: library.vault.open(*key).case for key in {row.key for row in aside}}
        tables.append(cost_table(checkpoint, raw, cases, aside))
    text = "\n\n".join([*(table.text() for table in tables), environment()])
    print(text)
    if given.write:
        write("one_pass", text)


def understanding(
    library: Library,
    readers: Iterator[tuple[str, LocalReader]],
    aside: Sequence[ReaderRow],
    held_out: Sequence[PracticeCase],
) -> list[Table]:
    """The tables of turns kept aside and of practice cases, a row a reader."""
    kept, practice = {}, {}
    for name, reader in readers:
        kept[name] = measured(predict(library, reader, aside))
        practice[name] = practised(reader, held_out)[ALL]
        print(f"{name}: {_shown(kept[name], ASIDE)}; practice: {_shown(practice[name], PRACTICE)}", flush=True)
    return [
        _table(f"{len(aside)} labelled turns kept aside", kept, ASIDE),
        _table("Practice cases of the domains kept aside", practice, PRACTICE),
    ]


class _Fitted:
    """Fits heads, on the same turns for each design."""

    def __init__(
        self, library: Library, rows: Sequence[ReaderRow], practice: Sequence[PracticeCase], share: float
    ) -> None:
        self._lesson = lesson_of(library, rows, packaged_acts(), (), practice)
        self._cases = self._lesson.cases()
        learned = rows_of(self._lesson, self._cases, SEED)
        self._rows = random.Random(SEED).sample(learned, round(share * len(learned))) if share < 1 else learned
        self.name = f"heads fitted on {share:.0%} of the turns"

    def heads(self, encoder: PassEncoder) -> ReaderHeads:
        return heads_of(PassVectors(encoder), self._lesson.acts, self._cases, self._rows, SEED)


def _readers(
    checkpoint: EncoderCheckpoint, raw: bytes, designs: Sequence[Design], fitted: _Fitted | None
) -> Iterator[tuple[str, LocalReader]]:
    yield "as it is", local_reader()
    fluency = packaged_fluency()
    for design in designs:
        encoder = PassEncoder(checkpoint, design)
        yield design, OnePassReader(PassVectors(encoder), load_heads(raw), fluency)
        if fitted:
            yield f"{design}, {fitted.name}", OnePassReader(PassVectors(encoder), fitted.heads(encoder), fluency)


def _table(caption: str, found: Mapping[str, Mapping[str, Share]], names: Sequence[str]) -> Table:
    first = next(iter(found.values()))
    table = Table(caption, ["", *(f"{name} ({first[name].of})" for name in names)])
    for reader, shares in found.items():
        table.add(reader, *(f"{shares[name].value:.0%}" for name in names))
    return table


def _shown(shares: Mapping[str, Share], names: Sequence[str]) -> str:
    return ", ".join(f"{name} {shares[name].value:.0%}" for name in names)


if __name__ == "__main__":
    main()
