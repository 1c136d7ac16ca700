"""Scenarios of a lab's own over HTTP: checked as a job, versioned, in use in every call, and nobody else's business."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reward_server.auth.scopes import Scope
from scenarios.template import begin
from tests.contract.house import Client, House, Json, assert_error
from tests.rubrics.talks import LOGS, RUBRIC

CARD = yaml.safe_dump(
    {
        "schema": "labs.collection/1",
        "public": {"slug": "repairs", "name": "Repairs", "description": "Repairs.", "version": "0.1.0"},
    }
)
EVERYTHING = list(Scope)
SECRET = "until we have looked at the brakes"


def files(**changes: Any) -> dict[str, str]:
    return {"collection.yaml": CARD, "answers.yaml": yaml.safe_dump({**RUBRIC, **changes})}


async def pushed(client: Client, content: dict[str, str], collection: str = "repairs") -> Json:
    """Push, and wait for the check."""
    made = await client.ok("POST", "/scenarios", {"collection": collection, "files": content})
    for _ in range(600):
        found = await client.ok("GET", f"/scenarios/{collection}?version={made['version']}")
        if found["status"] != "checking":
            return found
        await asyncio.sleep(0.2)
    raise AssertionError("the check never ended")


@pytest.mark.slow
async def test_a_collection_is_checked_and_then_in_use_for_its_lab_alone(house: House) -> None:
    acme, rival = [await house.key(lab, scopes=EVERYTHING) for lab in ("acme", "rival")]
    async with house.client(acme) as owner, house.client(rival) as other:
        found = await pushed(owner, files())
        assert (found["collection"], found["version"], found["status"]) == ("repairs@acme", 1, "passed")
        where = {"collection_slug": "repairs@acme", "scenario_slug": "answers"}
        scored = await owner.ok("POST", "/evaluate", {**where, "messages": LOGS["excellent"]})
        assert scored["reward"] > 0.9
        assert "repairs@acme" in json.dumps(await owner.ok("GET", "/catalog"))
        models = (await owner.http.get("/v1/models")).json()
        assert "judge:repairs@acme/answers" in {each["id"] for each in models["data"]}
        board = await owner.ok("GET", "/leaderboard?collection_slug=repairs%40acme")
        assert board["scoring_version"] == scored["scoring_version"]

        # Of another lab's, nothing is there, not even that it is.
        assert_error(
            await other.call("POST", "/evaluate", {**where, "messages": LOGS["good"]}), 404, "collection_not_found"
        )
        assert_error(await other.call("POST", "/episodes", where), 404, "collection_not_found")
        assert_error(
            await other.call("GET", "/leaderboard?collection_slug=repairs%40acme"), 404, "collection_not_found"
        )
        assert_error(await other.call("GET", "/collections/repairs%40acme"), 404, "collection_not_found")
        for name in ("repairs", "repairs@acme"):
            assert_error(await other.call("GET", f"/scenarios/{name}"), 404, "collection_not_found")
            assert_error(await other.call("DELETE", f"/scenarios/{name}"), 404, "collection_not_found")
        seen = json.dumps(
            [await other.ok("GET", path) for path in ("/catalog", "/scenarios", "/preferences", "/drift")]
        )
        seen += (await other.http.get("/v1/models")).text + (await other.http.get("/ors/list_environments")).text
        assert "acme" not in seen

        # The private half is in the author's pull and nowhere else.
        assert SECRET in (await owner.ok("GET", "/scenarios/repairs"))["files"]["answers.yaml"]
        job = await owner.ok("GET", f"/jobs/{(await owner.ok('GET', '/jobs'))['data'][0]['job_id']}")
        results = (await owner.http.get(f"/api/v1/jobs/{job['job_id']}/results")).text
        shown = (
            json.dumps([job, scored, await owner.ok("GET", "/catalog"), await owner.ok("GET", "/scenarios")]) + results
        )
        for text in (shown, house.logs.getvalue(), (await owner.call("GET", "/metrics")).text):
            assert SECRET not in text
            assert "keeps_them_safe" not in text


@pytest.mark.slow
async def test_versions_replace_each_other_once_they_pass(house: House) -> None:
    async with house.client(await house.key("acme", scopes=EVERYTHING)) as owner:
        where = {"collection_slug": "repairs@acme", "scenario_slug": "answers"}
        await pushed(owner, files())
        first = await owner.ok("POST", "/evaluate", {**where, "messages": LOGS["good"]})
        again = await owner.ok("POST", "/scenarios", {"collection": "repairs", "files": files()})
        assert (again["version"], again["status"]) == (1, "passed")
        assert "job_id" not in again

        logs = "".join(
            json.dumps({"grade": grade, "messages": LOGS[name]}) + "\n" for name, grade in (("good", 1), ("poor", 2))
        )
        failed = await pushed(owner, {**files(), "answers.logs.jsonl": logs})
        assert (failed["version"], failed["status"]) == (2, "failed")
        assert "its reward is not" in failed["findings"][0]
        still = await owner.ok("POST", "/evaluate", {**where, "messages": LOGS["good"]})
        assert still["scoring_version"] == first["scoring_version"]

        await pushed(owner, files(version=2))
        later = await owner.ok("POST", "/evaluate", {**where, "messages": LOGS["good"]})
        assert later["scoring_version"] != first["scoring_version"]
        assert (await owner.ok("GET", "/scenarios/repairs?version=1"))["version"] == 1

        await owner.ok("DELETE", "/scenarios/repairs")
        gone = await owner.call("POST", "/evaluate", {**where, "messages": LOGS["good"]})
        assert_error(gone, 404, "collection_not_found")


@pytest.mark.slow
async def test_a_scenario_with_a_persona_is_played(house: House, tmp_path: Path) -> None:
    begin("shop/noise", tmp_path)
    content = {path.name: path.read_text() for path in (tmp_path / "shop").iterdir()}
    async with house.client(await house.key("acme", scopes=EVERYTHING)) as owner:
        found = await pushed(owner, content, "shop")
        assert found["findings"] == []
        episode = await owner.ok("POST", "/episodes", {"collection_slug": "shop@acme", "scenario_slug": "noise"})
        turn = await owner.say(episode, "When exactly do you hear the noise?")
        assert turn["scoring_version"] == episode["scoring_version"]
        assert turn["reward"] >= 0


async def test_what_is_wrong_is_said_at_once_and_nothing_is_kept(house: House) -> None:
    async with house.client(await house.key("acme", scopes=EVERYTHING)) as owner:
        bad = {**files(), "answers.yaml": "schema: labs.rubric/1\nname: x\n"}
        response = await owner.call("POST", "/scenarios", {"collection": "repairs", "files": bad})
        error = assert_error(response, 400, "invalid_request")
        assert any(each["msg"].startswith("answers.yaml:") for each in error["errors"])
        for name in ("../answers.yaml", "a/b.yaml", "x.py"):
            sneaky = {"collection": "repairs", "files": {**files(), name: "x"}}
            assert_error(await owner.call("POST", "/scenarios", sneaky), 400, "invalid_request")
        plugin = files(criteria=[{"id": "a", "dimension": "D1_Finding", "check": {"plugin": {"name": "x"}}}])
        assert_error(
            await owner.call("POST", "/scenarios", {"collection": "repairs", "files": plugin}), 400, "invalid_request"
        )
        assert (await owner.ok("GET", "/scenarios"))["data"] == []


async def test_it_takes_the_scope_author(house: House) -> None:
    key = await house.key("acme", scopes=[scope for scope in Scope if scope is not Scope.AUTHOR])
    async with house.client(key) as trainer:
        body = {"collection": "repairs", "files": files()}
        assert_error(await trainer.call("POST", "/scenarios", body), 403, "insufficient_scope")
        assert_error(await trainer.call("GET", "/scenarios/repairs"), 403, "insufficient_scope")
        job = {"type": "check_scenarios", "items": [{"collection": "repairs", "version": 1}]}
        assert_error(await trainer.call("POST", "/jobs", job), 403, "insufficient_scope")
