"""Metrics that plug-ins and training runs name: latest values and percentiles on the page, within bounds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reward_server.telemetry import own_metrics
from reward_server.telemetry.alerts.readings import page_of
from reward_server.telemetry.metrics import Metrics
from reward_server.telemetry.own_metrics import MOST_NAMES, OwnMetrics, log_metric


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    own_metrics.own_metrics._figures.clear()


def test_what_a_plug_in_logs_is_on_the_page() -> None:
    metrics = Metrics()
    for value in range(101):
        log_metric("words", value)
    page = page_of(metrics.registry)
    assert page["labs_own_words"] == {frozenset(): 100.0}
    quantiles = {dict(labels)["quantile"]: value for labels, value in page["labs_own_words_quantile"].items()}
    assert quantiles == {"0.5": 50.0, "0.95": 95.0, "0.99": 99.0}
    assert page["labs_own_words_logged_total"] == {frozenset(): 101.0}
    assert b"labs_own_words 100.0" in metrics.render()


@pytest.mark.parametrize(("name", "value"), [("Words", 1.0), ("a b", 1.0), ("", 1.0), ("words", float("nan"))])
def test_what_cannot_be_shown_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=r"must be a finite number|name is small letters"):
        log_metric(name, value)


def test_names_are_bounded() -> None:
    figures = OwnMetrics()
    for number in range(MOST_NAMES):
        figures.log(f"a{number}", 1.0)
    figures.log("a0", 2.0)
    with pytest.raises(ValueError, match="use fewer names"):
        figures.log("one_more", 1.0)


def test_a_run_is_on_the_page_while_it_goes_on() -> None:
    metrics = Metrics()
    for step in range(1, 4):
        metrics.training.note("run_a", "train", step, {"step": step, "kind": "train", "reward/mean": step / 10})
    metrics.training.note("run_a", "eval", 3, {"reward/mean": 0.7, "own/share": True})
    page = page_of(metrics.registry)
    assert page["labs_training_step"] == {frozenset({("run", "run_a")}): 3.0}
    figures = {dict(labels)["figure"]: value for labels, value in page["labs_training_figure"].items()}
    assert figures == {"reward/mean": 0.3, "eval/reward/mean": 0.7}
    medians = {
        dict(labels)["figure"]: value
        for labels, value in page["labs_training_figure_quantile"].items()
        if ("quantile", "0.5") in labels
    }
    assert medians["reward/mean"] == pytest.approx(0.2)
    metrics.training.forget("run_a")
    assert page_of(metrics.registry).get("labs_training_step", {}) == {}
