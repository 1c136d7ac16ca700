"""Training runs: a list, one with its live curves, stop and resume; start one from the learner's configuration."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from fastapi import Response

from reward_server.api.body import validate
from reward_server.api.paging import Pager
from reward_server.api.routes import training_runs as api
from reward_server.console import queries, view
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.ids import IdPrefix
from reward_server.store.records import PageEnd
from reward_server.store.training_records import MetricPlace
from reward_server.training.service import document
from trainer_client.wire import TrainingRunRequest

pages = Pages()
Json = dict[str, Any]
MOST_RECORDS = 1_000
CURVES = (
    ("Reward", ("reward/mean", "held out")),
    ("KL to the reference", ("update/kl_reference", "update/approx_kl")),
    ("Entropy", ("update/entropy",)),
    ("Clip share", ("update/clip_share",)),
    ("Broken and cut turns", ("fluency/broken", "turns/lossy", "turns/truncated")),
    ("Where the time goes, in seconds", ("seconds/generating", "seconds/rollout", "seconds/update")),
    ("Loss", ("update/loss",)),
    ("Gradient norm", ("update/grad_norm",)),
)
"""What is drawn, where the run has it: a name, and the figures of the learner."""
STEPS = {"stop": api.stop_training_run, "resume": api.resume_training_run}


@pages.read("/training", like=api.list_training_runs)
async def runs(visit: Visit) -> Response:
    """The lab's runs."""
    query = queries.read(visit, api.RunsQuery)
    pager = Pager(visit.services.cursors, visit.lab.lab_id, IdPrefix.TRAINING_RUN)
    rows = await visit.services.training_runs.page(visit.lab, query.limit + 1, pager.after(query.cursor), query.status)
    shown, following = pager.shown(rows, query.limit, lambda each: PageEnd(each.created_at, each.training_run_id))
    found = [document(row) for row in shown]
    return view.page(visit, "training.html", runs=found, more=following.get("next_cursor", ""))


@pages.change("/training", like=api.start_training_run)
async def start(visit: Visit) -> Response:
    """Start a run."""
    await visit.services.storage.require_room(visit.lab)
    try:
        config = tomllib.loads(visit.form.text("config"))
    except tomllib.TOMLDecodeError as error:
        raise InvalidRequest(errors=[FieldProblem(("config",), f"Is not valid TOML: {error}.")]) from None
    wanted = validate(TrainingRunRequest, {"config": config, "name": visit.form.line("name") or None})
    body = await visit.services.training_runs.start(visit.lab, wanted, None)
    return view.sent(visit.request, f"{ROOT}/training/{body['training_run_id']}")


@pages.read("/training/{run_id}", like=api.read_training_metrics)
async def run(visit: Visit, run_id: str) -> Response:
    """One run with its curves; while it is open, a part of the page asks again."""
    body = await visit.services.training_runs.get(visit.lab, run_id)
    rows = await visit.services.training_runs.metrics(visit.lab, run_id, MetricPlace(-1), MOST_RECORDS)
    return view.page(
        visit,
        "_run.html" if visit.is_partial else "run.html",
        run=body,
        curves=curves_of([row.record for row in rows]),
        is_live=body["status"] in ("queued", "running", "stopping"),
    )


for _step, _like in STEPS.items():

    async def _moved(visit: Visit, run_id: str, step: str = _step) -> Response:
        await getattr(visit.services.training_runs, step)(visit.lab, run_id)
        return view.sent(visit.request, f"{ROOT}/training/{run_id}")

    pages.change(f"/training/{{run_id}}/{_step}", like=_like)(_moved)


def curves_of(records: Sequence[Json]) -> list[tuple[str, Json]]:
    """The curves that these records have figures for."""
    steps = sorted({record["step"] for record in records})
    by_kind: dict[tuple[str, int], Json] = {(record["kind"], record["step"]): record for record in records}
    found = []
    for title, names in CURVES:
        lines = [{"name": name, "values": [_figure(by_kind, name, step) for step in steps]} for name in names]
        lines = [line for line in lines if any(value is not None for value in line["values"])]
        if lines:
            plot = {"kind": "line", "x": steps, "lines": lines, "unit": "update", "free": title != "Reward"}
            found.append((title, plot))
    return found


def _figure(by_kind: dict[tuple[str, int], Json], name: str, step: int) -> float | None:
    kind, wanted = ("eval", "reward/mean") if name == "held out" else ("train", name)
    value = by_kind.get((kind, step), {}).get(wanted)
    return float(value) if isinstance(value, int | float) else None
