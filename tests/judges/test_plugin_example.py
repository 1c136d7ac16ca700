"""The example of the docs, installed as its README says, served and used over HTTP."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reward_server.errors import ConfigurationError, ScenarioError
from reward_server.server.app import Ports, create_app
from reward_server.settings import Settings
from tests.scoring.builders import WordMatcher

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "judge_plugin"
COLLECTIONS = ROOT / "tests" / "data" / "collections"
WHERE = {"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"}
JARGON = """      - id: quokka_jargon
        family: best_practices
        dimension: D2_GoalProgress
        points: -3
        about: quokka-about talked over the customer's head.
        check: {plugin: {name: jargon, options: {words: [presta, tubeless]}}}
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the example was installed into, offline."""
    source, target = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    offline = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *offline, "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    """The collections of the tests, one scenario of them with a check of the plug-in."""
    root = tmp_path / "collections"
    shutil.copytree(COLLECTIONS, root)
    path = root / "bike-shop" / "flat-tyre.yaml"
    text = path.read_text()
    assert "    criteria:\n" in text
    path.write_text(text.replace("    criteria:\n", f"    criteria:\n{JARGON}", 1))
    return root


@asynccontextmanager
async def served(data: Path, scenarios: Path, plugins: str) -> AsyncIterator[httpx2.AsyncClient]:
    settings = Settings(data=data / "data", scenarios=scenarios, judge_plugins=plugins)
    app = create_app(settings, ports=Ports(own_process=False, matcher=WordMatcher()))
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield client


async def evaluated(client: httpx2.AsyncClient, *said: str, **config: Any) -> Any:
    messages = [{"role": "assistant" if i % 2 == 0 else "user", "content": text} for i, text in enumerate(said)]
    body = {**WHERE, "messages": messages, "reward_config": config}
    response = await client.post("/api/v1/evaluate", json=body)
    assert response.status_code == 200, response.text
    return response.json()


PLAIN = (
    "How did it happen?",
    "I rode over broken glass behind the station.",
    "I will put in a new tube, with the same valve, and have it ready on Friday.",
    "A new tube sounds right to me.",
)
JARGONED = tuple(text.replace("same valve", "same Presta valve") for text in PLAIN)
BRIEF = {"combine": "weighted_sum", "parts": [{"judge": "brevity"}]}


async def test_it_is_installed_and_serves(
    installed: Path, collections: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(installed))
    async with served(tmp_path, collections, "jargon, brevity") as client:
        plain, jargoned = await evaluated(client, *PLAIN), await evaluated(client, *JARGONED)
        assert jargoned["scores"]["D2_GoalProgress"] < plain["scores"]["D2_GoalProgress"]
        assert plain["metadata"]["judge"] == "state+rule+local+jargon"
        rambling = " ".join(["So tell me"] * 30) + "?"
        brief = await evaluated(client, *PLAIN, rambling, composite=BRIEF, skip_safety_gate=True)
        assert brief["reward"] == round(2 / 3, 4)
        assert brief["metadata"]["judge"] == "brevity"
        assert "scores" not in brief
        refused = await client.post(
            "/api/v1/evaluate",
            json={
                **WHERE,
                "messages": [{"role": "assistant", "content": "Hi."}],
                "reward_config": {"composite": {"combine": "min", "parts": [{"judge": "jargon"}]}},
            },
        )
        assert (refused.status_code, refused.json()["data"]["code"]) == (400, "invalid_reward_config")
        version = plain["scoring_version"]
    async with served(tmp_path, collections, "jargon") as client:
        assert (await evaluated(client, *PLAIN))["scoring_version"] != version


@pytest.mark.slow
async def test_it_has_to_be_installed_named_and_given_options_it_accepts(
    installed: Path, collections: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="No installed package offers the judge plug-in `jargon`"):
        async with served(tmp_path, collections, "jargon"):
            pass
    monkeypatch.syspath_prepend(str(installed))
    with pytest.raises(ScenarioError, match="bike-shop/flat-tyre needs the judge `jargon`, which this server lacks"):
        async with served(tmp_path, collections, ""):
            pass
    path = collections / "bike-shop" / "flat-tyre.yaml"
    path.write_text(path.read_text().replace("{words: [presta, tubeless]}", "{phrases: [presta]}"))
    with pytest.raises(ScenarioError, match="gives the judge `jargon` options that it refuses"):
        async with served(tmp_path, collections, "jargon"):
            pass
