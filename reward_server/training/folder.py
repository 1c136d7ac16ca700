"""The folder of a run, and what lies in it: below the data folder of whoever runs it, a lab's runs together."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from reward_server.ownership import of_lab

_REFUSAL = "learner: "
"""How a line of the learner begins that says why it ended."""
_LINE_CHARACTERS = 400


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run."""

    place: Path

    @property
    def config(self) -> Path:
        """The configuration of the learner."""
        return self.place / "run.toml"

    @property
    def rows(self) -> Path:
        """The uploaded file that it reads."""
        return self.place / "rows.jsonl"

    @property
    def log(self) -> Path:
        """The output of the learner, attempt after attempt."""
        return self.place / "learner.log"

    @property
    def lock(self) -> Path:
        """Held by whoever works here."""
        return self.place / "lock"

    @property
    def out(self) -> Path:
        """The learner's own folder: checkpoints, metrics, report."""
        return self.place / "run"

    @property
    def metrics(self) -> Path:
        """The learner's record."""
        return self.out / "metrics.jsonl"

    def log_size(self) -> int:
        """The place where the next attempt begins in the log."""
        return self.log.stat().st_size if self.log.exists() else 0

    def last_line(self, since: int) -> str | None:
        """The reason why the learner ended, in its own words, if it said so since that place in the log."""
        with suppress(OSError):
            return refusal_in(self.log.read_bytes()[since:].decode(errors="replace"), self.place)
        return None


def refusal_in(printed: str, folder: Path) -> str | None:
    """The learner's last line that says why it ended, without the name of this folder."""
    said = [line for line in printed.splitlines() if line.startswith(_REFUSAL)]
    if not said:
        return None
    return said[-1].removeprefix(_REFUSAL).replace(f"{folder}/", "")[:_LINE_CHARACTERS]


def run_folder(runs: Path, lab_id: str, run_id: str) -> RunFolder:
    """The folder of a run of a lab."""
    own = of_lab(runs, lab_id)
    assert own is not None, "labs have ids that can be names of folders"
    return RunFolder((own / run_id).absolute())


def run_folders(runs: Path) -> list[Path]:
    """The folders of all runs, of all labs."""
    return sorted(runs.glob("labs/*/*"))


def forget_runs(runs: Path, known: Collection[str], before: datetime) -> None:
    """Delete the folders of runs that nobody knows any more, and that are older than this."""
    for place in run_folders(runs):
        if place.name not in known:
            with suppress(FileNotFoundError):
                if datetime.fromtimestamp(place.stat().st_mtime, UTC) < before:
                    shutil.rmtree(place, ignore_errors=True)
