"""`labs top`: what a running server does at this moment, from its metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table

from reward_server.cli.tables import wide_console
from reward_server.errors import ConfigurationError
from reward_server.telemetry.alerts.readings import LabelFilter, Page, Readings, quantile

SHARES = (0.5, 0.95, 0.99)


def top(
    url: Annotated[
        str, typer.Option(envvar="LABS_URL", help="URL of the server, for example http://127.0.0.1:8321.")
    ] = "http://127.0.0.1:8321",
    key: Annotated[
        str | None, typer.Option(envvar="LABS_API_KEY", help="An operator's key, if /metrics needs one.")
    ] = None,
    every: Annotated[float, typer.Option(min=0.5, max=60.0, help="Seconds between updates.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit.")] = False,
) -> None:
    """Watch a running server: requests, latencies, turns, rewards, judges, cost, queues. Ctrl-C ends it."""
    console = wide_console()
    before = scraped(url, key)
    if once:
        console.print(view(Readings(before, {}), None))
        return
    with Live(console=console, auto_refresh=False) as live:
        live.update(view(Readings(before, {}), None), refresh=True)
        while True:
            time.sleep(every)
            now = scraped(url, key)
            live.update(view(Readings(now, before), every), refresh=True)
            before = now


def scraped(url: str, key: str | None) -> Page:
    """The samples of the page, by name; `ConfigurationError` if it cannot be had."""
    import httpx2
    from prometheus_client.parser import text_string_to_metric_families

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        answered = httpx2.get(f"{url.rstrip('/')}/metrics", headers=headers, timeout=5.0)
    except (httpx2.HTTPError, httpx2.InvalidURL):
        raise ConfigurationError(f"No server answers at {url}: set the address with --url") from None
    if answered.status_code in (httpx2.codes.UNAUTHORIZED, httpx2.codes.FORBIDDEN):
        raise ConfigurationError("/metrics needs an operator's key: set it in LABS_API_KEY")
    if not answered.is_success:
        raise ConfigurationError(f"{url}/metrics answered HTTP {answered.status_code}")
    page: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    for family in text_string_to_metric_families(answered.text):
        for sample in family.samples:
            page.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return page


def view(seen: Readings, over_s: float | None) -> Group:
    """Everything; per second over the time between two looks, or in all since the start."""
    per = "in all" if over_s is None else "a second"

    def rate(name: str, wanted: LabelFilter = lambda _labels: True) -> str:
        grown = seen.grown(name, wanted)
        return f"{grown:,.0f}" if over_s is None else f"{grown / over_s:,.1f}"

    return Group(_state(seen), _work(rate, per), _routes(seen, rate, per))


def _state(seen: Readings) -> Table:
    table = Table("memory MB", "in work", "store waits", "queue s", "loop late s", "Redis", "alerts", title="now")
    alerts = sum(seen.now.get("labs_alerts_firing", {}).values())
    table.add_row(
        f"{seen.level('process_resident_memory_bytes') / 1e6:,.0f}",
        f"{seen.level('labs_requests_in_work'):.0f}",
        f"{seen.level('labs_store_waiting'):.0f}",
        f"{seen.level('labs_scoring_queue_seconds'):.1f}",
        f"{seen.level('labs_loop_lag_seconds'):.2f}",
        "lost" if seen.level("labs_redis_lost") else "ok",
        f"{alerts:.0f}",
    )
    return table


def _work(rate: Callable[..., str], per: str) -> Table:
    names = {
        "turns": "labs_turns_total",
        "evaluations": "labs_evaluations_total",
        "rewards": "labs_rewards_count",
        "judges abstain": "labs_judge_abstentions_total",
        "judges fail": "labs_judge_failures_total",
        "LLM calls": "labs_llm_attempts_total",
        "LLM USD": "labs_llm_cost_usd_total",
        "turned away": "labs_turned_away_total",
        "over a limit": "labs_rate_limited_total",
    }
    # In two lines and close together they fit into 80 columns; nine wider ones are cut.
    table = Table(*(name.replace(" ", "\n", 1) for name in names), title=per, padding=(0, 1, 0, 0))
    table.add_row(*(rate(name) for name in names.values()))
    return table


def _routes(seen: Readings, rate: Callable[..., str], per: str) -> Table:
    table = Table("route", per, "5xx", *(f"p{share * 100:.0f} ms" for share in SHARES), title="requests")
    found = {(dict(labels)["method"], dict(labels)["route"]) for labels in seen.now.get("labs_requests_total", {})}
    for method, route in sorted(found, key=lambda each: each[::-1]):

        def here(labels: Mapping[str, str], method: str = method, route: str = route) -> bool:
            return labels["method"] == method and labels["route"] == route

        def failed(labels: Mapping[str, str], here: LabelFilter = here) -> bool:
            return here(labels) and labels["status"].startswith("5")

        if seen.grown("labs_requests_total", here):
            row = [rate("labs_requests_total", here), rate("labs_requests_total", failed)]
            table.add_row(f"{method} {route}", *row, *_quantiles(seen, here))
    return table


def _quantiles(seen: Readings, here: LabelFilter) -> list[str]:
    bounds: dict[float, float] = {}
    for labels in seen.now.get("labs_request_seconds_bucket", {}):
        if here(dict(labels)):
            grown = seen.grown("labs_request_seconds_bucket", lambda each, wanted=labels: each == dict(wanted))  # type: ignore[misc]
            bounds[float(dict(labels)["le"])] = grown
    return [f"{quantile(bounds, share) * 1000:,.0f}" if bounds else "-" for share in SHARES]
