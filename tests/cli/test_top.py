"""`labs top`: what it shows of a page, and what it says where there is none."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from reward_server.cli.top import scraped, top, view
from reward_server.errors import ConfigurationError
from reward_server.telemetry.alerts.readings import Readings
from reward_server.telemetry.metrics import Metrics

KEY = "lab_operator_key"


@pytest.fixture
def metrics() -> Metrics:
    metrics = Metrics()
    for _ in range(100):
        metrics.requests.labels("/api/v1/evaluate", "POST", "200").inc()
        metrics.request_seconds.labels("/api/v1/evaluate", "POST").observe(0.015)
    metrics.turns.inc(7)
    metrics.redis_lost.set(1)
    return metrics


@pytest.fixture
def url(metrics: Metrics) -> Iterator[str]:
    """A server that shows the page to an operator's key."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == f"Bearer {KEY}"
            self.send_response(200 if known else 401)
            self.end_headers()
            self.wfile.write(metrics.render() if known else b"")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def shown(seen: Readings, over_s: float | None, width: int = 140) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(view(seen, over_s))
    return console.export_text()


def test_on_a_usual_terminal_no_name_is_cut(url: str) -> None:
    now, work, _ = shown(Readings(scraped(url, KEY), {}), None, 80).split("└")[:3]
    assert "…" not in now + work
    assert all(word in work for word in ("evaluations", "abstain", "turned"))


def test_it_shows_rates_percentiles_and_what_is_lost(url: str) -> None:
    page = scraped(url, KEY)
    in_all = shown(Readings(page, {}), None)
    [route] = [line for line in in_all.splitlines() if "/api/v1/evaluate" in line]
    assert [cell.strip() for cell in route.strip("│").split("│")] == [
        "POST /api/v1/evaluate",
        "100",
        "0",
        "15",
        "20",
        "20",
    ]
    assert "lost" in in_all
    # Between two looks at the same page nothing has happened.
    assert "/api/v1/evaluate" not in shown(Readings(page, page), 2.0)


def test_in_a_pipe_no_line_is_wrapped_and_no_name_is_cut(
    url: str, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = f"/api/v1/{'quokka/' * 30}{{id}}"
    metrics.requests.labels(long, "GET", "200").inc()
    monkeypatch.setenv("COLUMNS", "40")
    app = typer.Typer()
    app.command()(top)
    printed = CliRunner().invoke(app, ["--url", url, "--key", KEY, "--once"]).output
    [route] = [line for line in printed.splitlines() if "quokka" in line]
    assert f"GET {long}" in route
    assert "…" not in printed


def test_without_a_key_or_a_server_it_says_what_to_do(url: str) -> None:
    with pytest.raises(ConfigurationError, match="LABS_API_KEY"):
        scraped(url, None)
    with pytest.raises(ConfigurationError, match="--url"):
        scraped("http://127.0.0.1:9", KEY)
