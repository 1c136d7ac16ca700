"""Recorded agents are answered by the persona, the same way every time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from personas.case.library import load_temperaments
from reward_server.offline.recast import RecordedAgentPlayer
from reward_server.offline.results import ResultsFile
from reward_server.offline.rows import read_rows
from reward_server.offline.run import FileEvaluation, ScoringTask
from reward_server.server.engine import OfflineEngine
from scenarios.library import Library
from tests.jobs.conftest import COLLECTION, SCENARIO


def recorded(library: Library) -> dict[str, Any]:
    """The oracle's lines, answered by somebody who tells nothing."""
    steps = library.vault.open(COLLECTION, SCENARIO).secrets.exam.oracle
    messages = []
    for step in steps:
        messages += [{"role": "assistant", "content": step.say}, {"role": "user", "content": "I would rather not say."}]
    return {"messages": messages}


async def rewards(engine: OfflineEngine, recast: RecordedAgentPlayer | None, source: Path, out: Path) -> list[float]:
    with ResultsFile(out, engine.scorer.scoring_version, resume=True) as results:
        task = ScoringTask(COLLECTION, SCENARIO)
        await FileEvaluation(engine.scorer, task, results, recast).run(read_rows(source), lambda row: None)
        return [result["reward"] for result in results.read()]


async def test_the_persona_tells_what_the_recorded_partner_did_not(
    engine: OfflineEngine, library: Library, rows: Callable[..., Path], tmp_path: Path
) -> None:
    source = rows(recorded(library))
    recast = RecordedAgentPlayer(library.vault, load_temperaments(), engine.reader)
    (plain,) = await rewards(engine, None, source, tmp_path / "plain")
    (answered,) = await rewards(engine, recast, source, tmp_path / "answered")
    (again,) = await rewards(engine, recast, source, tmp_path / "again")
    assert answered > plain + 0.2
    assert answered == again


async def test_one_folder_keeps_both_apart(
    engine: OfflineEngine, library: Library, rows: Callable[..., Path], tmp_path: Path
) -> None:
    source = rows(recorded(library))
    recast = RecordedAgentPlayer(library.vault, load_temperaments(), engine.reader)
    await rewards(engine, None, source, tmp_path / "out")
    assert len(await rewards(engine, recast, source, tmp_path / "out")) == 2
