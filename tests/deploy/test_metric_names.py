"""Every metric that dashboards, Prometheus rules and the docs name is on the page of a live server."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from personas.reading.matcher import Matcher
from reward_server.telemetry.alerts.rules import RULES
from scenarios.library import Library
from tests.contract.house import running_house

ROOT = Path(__file__).parents[2]
RULE_FILE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yml").read_text())
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if page.name != "training.md")
"""Columns of a trainer's data set are named like metrics, too."""
NAME = re.compile(r"(?<![\w:/.-])(?:labs|process)_[a-z_]+[a-z]\b")
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


@pytest.fixture
async def live(data: Path, matcher: Matcher, library: Library) -> set[str]:
    """The names of all samples that the page of a running server has, or will have with the first of its kind."""
    async with running_house(data, matcher, library) as house, house.client() as labs:
        page = (await labs.http.get("/metrics")).text
    families = list(text_string_to_metric_families(page))
    assert len(families) > 25
    return {family.name + suffix for family in families for suffix in SUFFIXES.get(family.type, ("",))}


def expressions() -> list[str]:
    rules = [rule for group in RULE_FILE["groups"] for rule in group["rules"]]
    targets = [
        target["expr"]
        for dashboard in DASHBOARDS
        for panel in json.loads(dashboard.read_text())["panels"]
        for target in panel["targets"]
    ]
    return [rule["expr"] for rule in rules] + targets


async def test_every_name_in_rules_and_dashboards_is_on_the_page(live: set[str]) -> None:
    assert len(expressions()) > 40
    for expression in expressions():
        assert set(NAME.findall(re.sub(r'"[^"]*"', "", expression))) <= live, expression


async def test_every_metric_in_the_docs_is_on_the_page(live: set[str]) -> None:
    known = live | {name.removesuffix("_total") for name in live} | {name.removesuffix("_count") for name in live}
    quoted = [name for page in PAGES for name in re.findall(r"`(labs_[a-z_]+)", page.read_text())]
    assert len(quoted) > 10
    # `labs_own_NAME` stands for what plug-ins log.
    assert set(quoted) - {"labs_own_"} <= known


def test_recorded_names_are_recorded() -> None:
    recorded = {rule["record"] for group in RULE_FILE["groups"] for rule in group["rules"] if "record" in rule}
    used = {name for expression in expressions() for name in re.findall(r"labs:[a-z_:0-9]+", expression)}
    assert used <= recorded


def test_prometheus_has_the_alerts_of_the_server() -> None:
    alerts = {
        rule["alert"]: rule["labels"]["severity"]
        for group in RULE_FILE["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    assert alerts.pop("LabsDown") == "critical"
    named = {"Labs" + "".join(part.title() for part in rule.name.split("_")): rule.level for rule in RULES}
    assert alerts == named
