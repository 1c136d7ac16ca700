"""Writes the results of a run: JSONL as it is, or Parquet made from it when the run has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from reward_server.errors import InvalidRequest
from reward_server.offline.results import Result
from reward_server.offline.sources import PARQUET, needed

ENDINGS = (".jsonl", PARQUET)
OTHER_FILES = (".json", ".csv", ".tsv", ".txt", ".gz")
_ROWS = 4096


def is_file(out: Path) -> bool:
    """Whether the output is one file; else it is a folder."""
    return out.suffix in ENDINGS


def check_out(out: Path) -> None:
    """`InvalidRequest` for a file that cannot be written or is there already."""
    if out.suffix in OTHER_FILES or (out.is_file() and not is_file(out)):
        raise InvalidRequest(f"--out must be a folder, or end in {' or '.join(ENDINGS)}")
    if is_file(out) and out.exists():
        raise InvalidRequest(f"{out} exists already: give another --out")
    if out.suffix == PARQUET:
        needed("pyarrow.parquet")


def write(out: Path, journal: Path, results: Iterable[Result]) -> None:
    """The file, from the journal of the run; it is there whole or not at all."""
    if out.suffix != PARQUET:
        journal.replace(out)
        return
    unfinished = out.with_name(f"{out.name}.part")
    schema = _schema()
    with needed("pyarrow.parquet").ParquetWriter(unfinished, schema) as writer:
        for some in _some(results):
            writer.write_table(needed("pyarrow").Table.from_pylist(some, schema=schema))
    unfinished.replace(out)


def _some(results: Iterable[Result]) -> Iterator[list[Result]]:
    waiting = iter(results)
    while some := list(islice(waiting, _ROWS)):
        yield [_row(result) for result in some]


def _row(result: Result) -> Result:
    row = {**result, "scores": list(result.get("scores", {}).items())}
    return {**row, "id": str(row["id"])} if "id" in row else row


def _schema() -> Any:
    pa = needed("pyarrow")
    texts = ("id", "part", "collection_slug", "scenario_slug", "status", "scoring_version", "code", "message", "key")
    return pa.schema(
        [
            pa.field("row", pa.int64()),
            *(pa.field(name, pa.string()) for name in texts),
            pa.field("turns", pa.int64()),
            pa.field("reward", pa.float64()),
            pa.field("scores", pa.map_(pa.string(), pa.float64())),
            *(pa.field(name, pa.list_(pa.string())) for name in ("flags", "capped_by")),
            *(pa.field(name, pa.list_(pa.string())) for name in ("undecided", "undecided_caps", "left_out")),
        ]
    )
