"""The exam of a collection that a lab brought, as an errand of a process of its own (`fitting.process`)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from reward_server.exam.build import examiner_of
from reward_server.exam.rubric import examine_rubric
from reward_server.server.engine import OfflineEngine, offline_engine
from reward_server.settings import load_settings
from scenarios.exam_logs import SUFFIX, load_logs
from scenarios.library import Library, load_sound
from scenarios.own import write_files

PARTS = {"loading": (0.0, 0.1), "playing": (0.1, 1.0)}
PROBING_TURNS = 60
MOST_FINDINGS = 200


def do(order: dict[str, Any], report: Callable[[str, int, int], None]) -> dict[str, Any]:
    """The order has `slug`, `files` and `encoder`."""
    report("loading", 0, 1)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        write_files(root, order["slug"], order["files"])
        library, findings = load_sound(root, [order["slug"]])
        if findings:
            return {"passed": False, "findings": [f"{Path(each.file).name}: {each.message}" for each in findings]}
        settings = load_settings({"encoder": order["encoder"]})
        with offline_engine(settings, library) as engine:
            found = list(_examined(library, engine, root, report))
    failures = [line for lines in found for line in lines]
    warnings = [f"{Path(each.file).name}: {each.severity}: {each.message}" for each in library.warnings]
    return {"passed": not failures, "findings": [*failures, *warnings][:MOST_FINDINGS]}


def _examined(
    library: Library, engine: OfflineEngine, root: Path, report: Callable[[str, int, int], None]
) -> Iterator[list[str]]:
    """What failed, scenario by scenario."""
    examiner = examiner_of(library, engine, root, seeds=(1,), probing_turns=PROBING_TURNS)
    names = library.vault.names()
    for number, name in enumerate(names):
        report("playing", number, len(names))
        scenario = library.vault.open(*name)
        if scenario.has_persona:
            exam = asyncio.run(examiner.examine(scenario))
            yield [f"{name[1]}: {line}" for each in exam.failures for line in (each.text, *each.details)]
        else:
            logs = load_logs(root / name[0] / f"{name[1]}{SUFFIX}")
            yield [f"{name[1]}: {each}" for each in asyncio.run(examine_rubric(scenario, logs, engine.scorer)).failures]
