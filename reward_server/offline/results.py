"""The results file of an evaluation: append-only JSONL that survives being interrupted.

Every finished conversation is one line, flushed to disk with its batch. A run that goes on reads the keys that
are done and drops a last line that was cut off in the middle, so nothing is scored twice and nothing is lost.
Lines hold figures and codes; no conversation text, no verdicts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reward_server.errors import InvalidRequest

RESULTS = "results.jsonl"
Result = dict[str, Any]


def result_key(
    number: int, part: str, collection: str | None, scenario: str | None, messages: Sequence[Mapping[str, Any]]
) -> str:
    """Names one conversation of one input: its place and its content, so that a changed input is not confused."""
    text = json.dumps([number, part, collection, scenario, messages], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def holds_results(folder: Path) -> bool:
    """True if there is something in an output folder that a run could go on from."""
    path = folder / RESULTS
    return path.exists() and path.stat().st_size > 0


class ResultsFile:
    """The results of one output folder."""

    def __init__(self, folder: Path, scoring_version: str | None, resume: bool) -> None:
        """Open it; where the scoring version is not known yet, `require` has to be called before results are added."""
        self._path = folder / RESULTS
        folder.mkdir(parents=True, exist_ok=True)
        if holds_results(folder) and not resume:
            raise InvalidRequest(f"{self._path} already exists: use --resume to continue, or another --out")
        self._mend()
        self.done = frozenset(result["key"] for result in self.read())
        if scoring_version is not None:
            self.require(scoring_version)
        self._stream = self._path.open("a", encoding="utf-8")

    def _mend(self) -> None:
        """Cut off a last line that was not finished."""
        if not self._path.exists():
            return
        raw = self._path.read_bytes()
        whole = raw.rfind(b"\n") + 1
        if whole < len(raw):
            os.truncate(self._path, whole)

    def require(self, scoring_version: str) -> None:
        """`InvalidRequest` if there are results of another version."""
        versions = {result["scoring_version"] for result in self.read() if "scoring_version" in result}
        if versions - {scoring_version}:
            raise InvalidRequest(
                f"{self._path} was scored under {', '.join(sorted(versions))}, this is {scoring_version}: "
                "rewards of two versions cannot be mixed, use another --out"
            )

    def read(self) -> Iterator[Result]:
        """All results so far."""
        if not self._path.exists():
            return
        with self._path.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    raise InvalidRequest(f"{self._path}:{number} is damaged: use another --out") from error

    def append(self, results: Sequence[Result]) -> None:
        """Write a batch of results and wait until it is on disk."""
        self._stream.write("".join(json.dumps(result, sort_keys=True) + "\n" for result in results))
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
