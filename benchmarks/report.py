"""Tables in Markdown, and the line that says where and when they were measured."""

from __future__ import annotations

import datetime
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass
class Table:
    """A captioned table."""

    caption: str
    head: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells: object) -> None:
        """One row."""
        self.rows.append([str(cell) for cell in cells])

    def text(self) -> str:
        """Markdown."""
        lines = [self.head, ["---"] * len(self.head), *self.rows]
        return f"**{self.caption}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def environment(accelerator: str = "no GPU") -> str:
    """Date, processor and load."""
    model = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    load = os.getloadavg()[0]
    day = datetime.datetime.now(datetime.UTC).date()
    machine = f"{os.cpu_count()} cores ({model}), {accelerator}, Python {platform.python_version()}"
    return f"Measured {day} on {machine}, load average {load:.1f} at the end."


def write(name: str, text: str) -> None:
    """Keep a result."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.md"
    path.write_text(text + "\n")
    print(f"\nwritten to {path}")
