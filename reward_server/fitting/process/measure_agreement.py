"""Measures judges of this machine, or scores that were made before, for a lab.

Nobody is asked who costs money: a language model, a decision model, a classifier behind a URL. What they decide of a
rubric is left out, and the result says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reward_server.errors import InvalidRequest
from reward_server.fitting.agreement.read import LabelledEntry, RowDefaults, read
from reward_server.fitting.agreement.report import markdown
from reward_server.fitting.agreement.roster import chosen, seats
from reward_server.fitting.agreement.run import AgreementTask, of_judges, of_scores
from reward_server.fitting.agreement.scores import require_scenarios
from reward_server.preferences.figures import Figures
from reward_server.scoring.compose import RUBRIC
from reward_server.server.engine import load_scenarios, offline_engine
from reward_server.settings import Settings, load_settings
from trainer_client.wire import AgreementOptions

PARTS = {"reading": (0.0, 0.02), "loading": (0.02, 0.1), "scoring": (0.1, 1.0)}
LEFT_OUT = "Criteria that a language model or a decision model decides were left out."


def do(order: dict[str, Any], report: Callable[[str, int, int], None]) -> dict[str, Any]:
    """The order has `rows`, `collections` (that the lab may use), `data`, `scenarios`, `encoder` and `options`."""
    options = AgreementOptions.model_validate(order["options"])
    report("reading", 0, 1)
    defaults = RowDefaults(order["collection_slug"], order["scenario_slug"], options.scale)
    entries = read(Path(order["rows"]), defaults)
    if entries[0].sides[0].scores:
        if options.judges is not None:
            raise InvalidRequest("The rows already contain scores: leave out `judges`.")
        found = of_scores(entries)
    else:
        found = asyncio.run(_of_judges(order, options, entries, report))
    return {"agreement": found, "report": markdown(found).rpartition("![")[0].rstrip()}


async def _of_judges(
    order: dict[str, Any],
    options: AgreementOptions,
    entries: Sequence[LabelledEntry],
    report: Callable[[str, int, int], None],
) -> Figures:
    own = load_settings({name: order[name] for name in ("data", "scenarios", "encoder")})
    settings = asking_nobody(own)
    library = load_scenarios(settings.scenarios, settings.libraries)
    sides = [side for entry in entries for side in entry.sides]
    for number, side in enumerate(sides, 1):
        if side.collection not in order["collections"]:
            raise InvalidRequest(f"conversation {number}: this key has no collection {side.collection}.")
    require_scenarios(sides, library.vault)
    report("loading", 0, 1)
    with offline_engine(settings, library) as engine:
        judges = chosen(seats(engine, settings.llm_samples), options.judges or [RUBRIC])
        task = AgreementTask(judges, options.attacked)

        def on_progress(done: int, total: int) -> None:
            report("scoring", done, total)

        found = await of_judges(entries, engine.scorer, library.vault, task, on_progress)
    return found if settings == own else found | {"notes": [LEFT_OUT]}


def asking_nobody(settings: Settings) -> Settings:
    """The same without whoever is asked over the network."""
    remote = settings.classifier is not None and settings.classifier.startswith(("http://", "https://"))
    changes: dict[str, Any] = {"reader": "local", "judges": "llm", "llm_provider": "none"}
    return settings.model_copy(update=changes | ({"classifier": None} if remote else {}))
