"""The example of a composite reward with a cascade: it passes its exam, and asks a language model only where unsure."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import CliRunner

from benchmarks.attentive import attentive, questions_of
from benchmarks.scripted_provider import ScriptedProvider
from personas.reading.matcher import Matcher
from reward_server.cli.scenarios import app
from reward_server.errors import ScenarioError
from reward_server.server.app import Ports, create_app
from reward_server.settings import Settings
from scenarios.library import load_library

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "composite_scenario"
CLEAR = "After four years the pads are worn out, and that is what squeals."
UNSURE = "Those pads have had their day, I would say."
LONG = " ".join(["So let me tell you about it at some length."] * 10)

pytestmark = pytest.mark.usefixtures("shared_encoder", "installed")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plug-in of the other example, as an installed package."""
    site = tmp_path / "site"
    site.mkdir()
    shutil.copy(ROOT / "examples" / "judge_plugin" / "plain_speech.py", site)
    about = site / "labs_plain_speech-1.0.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: labs-plain-speech\nVersion: 1.0.0\n")
    (about / "entry_points.txt").write_text("[labs.judges]\nbrevity = plain_speech:Brevity\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("LABS_JUDGE_PLUGINS", "brevity")


def talk(explanation: str) -> dict[str, Any]:
    said = (
        "Hi, my bike makes a dreadful noise and I need it looked at.",
        "When exactly do you hear the noise?",
        "It only happens when I squeeze the front brake.",
        "How old are the brake pads?",
        "I have never changed the brake pads in four years.",
        explanation,
        "So what should we do about the noise?",
    )
    messages = [{"role": "user" if i % 2 == 0 else "assistant", "content": text} for i, text in enumerate(said)]
    return {"collection_slug": "repair-desk", "scenario_slug": "squealing-brake", "messages": messages}


def test_the_conversation_of_the_walk_through_is_the_unsure_one() -> None:
    assert json.loads((EXAMPLE / "unsure.json").read_text()) == talk(UNSURE)


@asynccontextmanager
async def served(data: Path, matcher: Matcher, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    ports = Ports(own_process=False, matcher=matcher, library=load_library(EXAMPLE))
    made = create_app(Settings(data=data / "data", **settings), ports=ports)
    transport = httpx2.ASGITransport(app=made)
    async with (
        made.router.lifespan_context(made),
        httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        yield client


async def scored(client: httpx2.AsyncClient, explanation: str) -> Any:
    response = await client.post("/api/v1/evaluate", json=talk(explanation))
    assert response.status_code == 200, response.text
    return response.json()


def asking(provider: ScriptedProvider) -> dict[str, Any]:
    return {
        "llm_provider": "openai",
        "llm_model": "scripted-model",
        "llm_base_url": provider.url + "/v1",
        "llm_api_key": "scripted",
        "llm_retries": 0,
    }


@pytest.mark.slow
def test_it_passes_its_exam_with_the_figures_of_the_walk_through(tmp_path: Path) -> None:
    table = tmp_path / "table.md"
    arguments = ["check", "repair-desk", "--dir", str(EXAMPLE), "--seeds", "1", "--probing", "20"]
    result = CliRunner().invoke(app, [*arguments, "--markdown", str(table)])
    assert result.exit_code == 0, result.output
    assert "1 of 1 scenarios passed" in result.output
    [line] = [line for line in table.read_text().splitlines() if "squealing-brake" in line]
    oracle, excellent, ok, poor, bad = [cell.split()[0] for cell in line.strip("| ").split("|")][1:6]
    said = " ".join((ROOT / "docs/composite-rewards.md").read_text().split())
    assert (
        f"The exam gives the oracle {oracle}, the excellent natural agent {excellent}, the ok one {ok}, "
        f"the poor one {poor}, the best bad policy {bad}." in said
    )


async def test_without_a_language_model_the_encoder_decides_and_the_composite_holds(
    tmp_path: Path, matcher: Matcher
) -> None:
    async with served(tmp_path, matcher) as client:
        clear, unsure, long = [await scored(client, each) for each in (CLEAR, UNSURE, f"{CLEAR} {LONG}")]
    assert clear["scores"]["D3_Resolution"] > unsure["scores"]["D3_Resolution"] > 0
    assert clear["reward"] > long["reward"] > 0
    assert "brevity" in clear["metadata"]["judge"]


@pytest.mark.slow
async def test_a_language_model_is_asked_only_where_the_encoder_is_unsure(tmp_path: Path, matcher: Matcher) -> None:
    async with served(tmp_path / "plain", matcher) as client:
        plain = await scored(client, UNSURE)
    with ScriptedProvider(attentive()) as provider:
        async with served(tmp_path / "asking", matcher, **asking(provider)) as client:
            clear = await scored(client, CLEAR)
            before = len(provider.asked)
            unsure = await scored(client, UNSURE)
        assert before == 0
        assert [each["question"] for asked in provider.asked for each in questions_of(asked)] == [
            "Does the agent say that old or worn brake pads cause the noise?"
        ]
    assert unsure["scores"]["D3_Resolution"] == clear["scores"]["D3_Resolution"] > plain["scores"]["D3_Resolution"]
    assert [each["reward"] for each in (plain, unsure)] == pytest.approx([0.401, 0.434], abs=0.001)  # as the docs say


async def test_a_server_without_the_judge_says_how_to_get_it(
    tmp_path: Path, matcher: Matcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABS_JUDGE_PLUGINS", "")
    wanted = "repair-desk/squealing-brake needs the judge `brevity`, .* named in LABS_JUDGE_PLUGINS"
    with pytest.raises(ScenarioError, match=wanted):
        async with served(tmp_path, matcher):
            pass


async def test_a_scenario_that_hears_a_reward_model_says_how_to_activate_one(tmp_path: Path, matcher: Matcher) -> None:
    root = tmp_path / "collections"
    shutil.copytree(EXAMPLE, root)
    path = root / "repair-desk" / "squealing-brake.yaml"
    path.write_text(path.read_text().replace("judge: brevity", "judge: reward_model"))
    made = create_app(
        Settings(data=tmp_path / "data"), ports=Ports(own_process=False, matcher=matcher, library=load_library(root))
    )
    with pytest.raises(ScenarioError, match=r"needs the judge `reward_model`, .* \./labs reward-model activate"):
        async with made.router.lifespan_context(made):
            pass
