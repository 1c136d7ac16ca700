"""Pages for an operator: usage and budgets, keys, the audit log, and how the server is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Response

from reward_server.api.access import Access
from reward_server.api.body import validate
from reward_server.api.context import actor_of
from reward_server.api.routes import keys as keys_api
from reward_server.api.routes import labs as labs_api
from reward_server.auth.lab import Plan
from reward_server.auth.scopes import ANY, USUAL, Scope
from reward_server.console import queries, view
from reward_server.console.forms import Form
from reward_server.console.routing import ROOT, Pages
from reward_server.console.visit import Visit
from reward_server.errors import InvalidRequest
from reward_server.telemetry.alerts.readings import LabelFilter, Readings, page_of, quantile
from trainer_client.wire import CreateKeyRequest

pages = Pages()
Json = dict[str, Any]
HEALTH = Access(ANY)
"""As /metrics: for every key, or for operators', as the settings say (`health`)."""
SHARES = (0.5, 0.95, 0.99)


@pages.read("/usage", like=labs_api.read_usage)
async def usage(visit: Visit) -> Response:
    """The page of the lab's usage, day by day, and its budgets."""
    query = queries.read(visit, labs_api.UsageQuery)
    body = await labs_api.read_usage(visit.request, visit.lab, query)
    days = list(reversed(body["data"]))
    plots = [(name, _daily(days, name)) for name in ("requests", "turns", "evaluations", "characters", "llm_usd")]
    shown = [(name, plot) for name, plot in plots if any(plot["lines"][0]["values"])]
    return view.page(visit, "usage.html", usage=body, plots=shown if len(days) > 1 else [])


@pages.read("/keys", like=keys_api.list_keys)
async def keys(visit: Visit) -> Response:
    """All keys."""
    return await _keys(visit, {}, Form())


@pages.change("/keys", like=keys_api.create_key)
async def create_key(visit: Visit) -> Response:
    """Make a key; this page alone has it."""
    try:
        wanted = _wanted(visit.form)
        made = await keys_api.made_key(visit.services, wanted, actor_of(visit.request, visit.lab))
    except InvalidRequest as error:
        return await _keys(visit, {}, visit.form, **view.refusal(visit.request, error))
    return await _keys(visit, made, Form())


def _wanted(form: Form) -> CreateKeyRequest:
    given: Json = {
        "lab_id": form.line("lab_id"),
        "name": form.line("name") or None,
        "plan": form.line("plan") or Plan.STANDARD.value,
        "rate_per_minute": form.whole("rate_per_minute"),
        "collections": form.all("collections") or None,
        "full_scores": bool(form.line("full_scores")),
        "scopes": form.all("scopes") or None,
        "expires_days": form.whole("expires_days"),
    }
    return validate(CreateKeyRequest, {name: value for name, value in given.items() if value is not None})


@pages.change("/keys/{key_id}/revoke", like=keys_api.revoke_key)
async def revoke_key(visit: Visit, key_id: str) -> Response:
    """End a key."""
    await visit.services.keys.revoke(key_id, actor_of(visit.request, visit.lab))
    return view.sent(visit.request, f"{ROOT}/keys")


@pages.read("/audit", like=keys_api.read_audit)
async def audit(visit: Visit) -> Response:
    """The page of the audit log."""
    query = queries.read(visit, keys_api.AuditQuery)
    body = await keys_api.read_audit(visit.request, visit.lab, query)
    return view.page(visit, "audit.html", rows=body["data"], more=body.get("next_cursor", ""))


@pages.read("/health", like=HEALTH)
async def health(visit: Visit) -> Response:
    """The page that an operator needs first on a bad day; a part of the page asks again."""
    services = visit.services
    if services.settings.metrics_need_a_key:
        visit.lab.require(Scope.OPERATE)
    seen = Readings(page_of(services.metrics.registry), {})
    return view.page(
        visit,
        "_health.html" if visit.is_partial else "health.html",
        dependencies=await services.readiness.look(),
        state=_state(seen),
        routes=_routes(seen),
    )


async def _keys(visit: Visit, made: Json, entered: Form, **refused: Any) -> Response:
    body = await keys_api.list_keys(visit.request, visit.lab)
    ticked = entered.all("scopes") if refused else [scope for scope in Scope if scope in USUAL or visit.is_open]
    return view.page(
        visit,
        "keys.html",
        keys=body["data"],
        made=made,
        entered=entered,
        scopes=[(scope.value, scope in ticked) for scope in Scope],
        plans=[plan.value for plan in Plan],
        collections=list(visit.services.catalog.collections),
        **refused,
    )


def _daily(days: list[Json], name: str) -> Json:
    values = [day[name] for day in days]
    lines = [{"name": name, "values": values}]
    return {"kind": "line", "x": list(range(1 - len(days), 1)), "lines": lines, "unit": "day", "free": True}


def _state(seen: Readings) -> list[tuple[str, str]]:
    answered = seen.grown("labs_requests_total")
    failed = seen.grown("labs_requests_total", lambda labels: labels["status"].startswith("5"))
    return [
        ("requests in work", f"{seen.level('labs_requests_in_work'):.0f}"),
        ("s in the scoring queue", f"{seen.level('labs_scoring_queue_seconds'):.1f}"),
        ("wait for the store", f"{seen.level('labs_store_waiting'):.0f}"),
        ("s late, event loop", f"{seen.level('labs_loop_lag_seconds'):.2f}"),
        ("MB of memory", f"{seen.level('process_resident_memory_bytes') / 1e6:,.0f}"),
        ("turns", f"{seen.grown('labs_turns_total'):,.0f}"),
        ("judges failed", f"{seen.grown('labs_judge_failures_total'):,.0f}"),
        ("turned away", f"{seen.grown('labs_turned_away_total'):,.0f}"),
        ("over a limit", f"{seen.grown('labs_rate_limited_total'):,.0f}"),
        ("answers were errors of ours", f"{failed:,.0f} of {answered:,.0f}"),
        ("alerts fire", f"{sum(seen.now.get('labs_alerts_firing', {}).values()):.0f}"),
    ]


def _routes(seen: Readings) -> list[Json]:
    """Requests by route since the start, the busiest first."""
    found = {(dict(each)["method"], dict(each)["route"]) for each in seen.now.get("labs_requests_total", {})}
    rows = [_route(seen, method, route) for method, route in found if not route.startswith("/console/assets")]
    return sorted(rows, key=lambda row: (-row["count"], row["route"]))[:60]


def _route(seen: Readings, method: str, route: str) -> Json:
    def here(labels: Mapping[str, str]) -> bool:
        return labels["method"] == method and labels["route"] == route

    def failed(labels: Mapping[str, str]) -> bool:
        return here(labels) and labels["status"].startswith("5")

    return {
        "method": method,
        "route": route,
        "count": seen.grown("labs_requests_total", here),
        "failed": seen.grown("labs_requests_total", failed),
        "ms": _quantiles(seen, here),
    }


def _quantiles(seen: Readings, here: LabelFilter) -> list[str]:
    buckets = seen.now.get("labs_request_seconds_bucket", {})
    bounds = {float(dict(labels)["le"]): count for labels, count in buckets.items() if here(dict(labels))}
    return [f"{quantile(bounds, share) * 1000:,.0f}" if bounds else "–" for share in SHARES]
