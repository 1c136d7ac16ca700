"""Builds the examiner of a library, on the matcher, reader and scorer of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from personas.case.library import load_temperaments
from reward_server.exam.marks import PlayScorer
from reward_server.exam.run import Examiner
from reward_server.server.engine import OfflineEngine
from scenarios.library import Library, breaches, labelled_turns, natural_agents


def examiner_of(
    library: Library, engine: OfflineEngine, root: Path | None, *, seeds: Sequence[int], probing_turns: int
) -> Examiner:
    """An examiner with what lies beside the scenarios below `root` (default: the packaged ones)."""
    return Examiner(
        library=library,
        reader=engine.reader,
        marker=PlayScorer(engine.scorer, engine.reader, engine.matcher),
        temperaments=load_temperaments(),
        natural=natural_agents(library, root),
        turns=labelled_turns(library, root),
        breaches=breaches(library, root),
        seeds=tuple(seeds),
        probing_turns=probing_turns,
    )
