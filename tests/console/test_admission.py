"""Who may see what: keys, tenants, scopes, sessions, forms; nothing private for a key, in any page. In process."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from personas.reading.matcher import Matcher
from reward_server.auth.scopes import EVERY, Scope
from reward_server.console.session import LIFETIME_S
from reward_server.ids import IdPrefix, new_id
from reward_server.store.training_records import MetricRow, RunStatus, TrainingRunRow
from scenarios.library import Library
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import Client, House, Json, agent, running_house
from tests.contract.test_secrecy import PROBES, leaks, whole

__all__ = ["data", "empty_database", "house", "library", "matcher"]


class Browser:
    """Follows forms as a browser would, without running scripts."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self.seen: list[httpx2.Response] = []

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        response = await self.http.get(f"/console{path}", headers=headers)
        self.seen.append(response)
        return response

    async def token(self, path: str = "/login") -> str:
        found = re.search(r'name="token" value="(\w+)"', (await self.get(path)).text)
        assert found is not None
        return found[1]

    async def post(self, path: str, token: str | None = None, **fields: str) -> httpx2.Response:
        fields = {"token": await self.token() if token is None else token, **fields}
        response = await self.http.post(f"/console{path}", data=fields)
        self.seen.append(response)
        return response

    async def enter(self, key: str) -> httpx2.Response:
        return await self.post("/login", key=key)


@asynccontextmanager
async def visiting(house: House) -> AsyncIterator[Browser]:
    transport = httpx2.ASGITransport(app=house.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield Browser(http)


@asynccontextmanager
async def entered(house: House, **made: Any) -> AsyncIterator[Browser]:
    """Somebody who has entered a key at a server that asks for keys."""
    key = await house.key(**made)
    house.end_development_mode()
    async with visiting(house) as browser:
        await browser.enter(key)
        yield browser


async def test_without_a_key_one_is_asked_for_and_then_the_page(house: House) -> None:
    key = await house.key()
    house.end_development_mode()
    async with visiting(house) as browser:
        sent = await browser.get("/episodes?status=active")
        assert sent.status_code == 303
        assert sent.headers["location"] == "/console/login?next=%2Fconsole%2Fepisodes%3Fstatus%3Dactive"
        entered = await browser.post("/login", key=key, next="/console/episodes?status=active")
        assert entered.headers["location"] == "/console/episodes?status=active"
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert key not in cookie
        assert (await browser.get("/episodes?status=active")).status_code == 200


@pytest.mark.parametrize("wanted", ["https://evil.example", "//evil.example", "/console/\\evil", "/consolex", "/docs"])
async def test_nobody_is_sent_elsewhere(house: House, wanted: str) -> None:
    key = await house.key()
    async with visiting(house) as browser:
        assert (await browser.post("/login", key=key, next=wanted)).headers["location"] == "/console"


async def test_a_wrong_key_is_one_line_and_many_of_them_are_held_up(house: House) -> None:
    await house.key()
    house.end_development_mode()
    async with visiting(house) as browser:
        refused = await browser.enter("lab_wrong")
        assert refused.status_code == 401
        assert "This key is not valid." in refused.text
        assert "lab_wrong" not in refused.text
        statuses = [(await browser.enter("lab_wrong")).status_code for _ in range(25)]
        assert statuses[-1] == 429


async def test_a_session_ends_by_itself_and_with_its_key(house: House) -> None:
    key = await house.key(scopes=EVERY)
    house.end_development_mode()
    async with visiting(house) as browser:
        await browser.enter(key)
        assert (await browser.get("/episodes")).status_code == 200
        house.clock.advance(timedelta(seconds=LIFETIME_S + 1))
        assert (await browser.get("/episodes")).headers["location"].startswith("/console/login")
        await browser.enter(key)
        partial = await browser.get("/episodes", **{"HX-Request": "true"})
        assert partial.status_code == 200
        await house.app.state.services.keys.revoke((await house.app.state.services.keys.list())[0].key_id)
        after = await browser.get("/episodes", **{"HX-Request": "true"})
        assert after.headers["hx-redirect"].startswith("/console/login")


async def test_leaving_forgets_the_key(house: House) -> None:
    async with entered(house) as browser:
        token = await browser.token("")
        await browser.post("/logout", token)
        assert (await browser.get("")).status_code == 303


async def test_a_change_needs_the_token_of_its_session(house: House) -> None:
    async with visiting(house) as browser, visiting(house) as other:
        begin = "/scenarios/bike-shop/flat-tyre"
        assert (await browser.post(begin, "")).status_code == 403
        assert (await browser.post(begin, await other.token())).status_code == 403
        begun = await browser.post(begin)
        assert begun.status_code == 303
        assert "/console/play/ep_" in begun.headers["location"]
        sent = await browser.http.post(f"/console{begin}", json={"token": await browser.token()})
        assert sent.status_code == 400


async def test_another_lab_finds_nothing(house: House) -> None:
    acme, rival = await house.key("acme", scopes=EVERY), await house.key("rival", scopes=EVERY)
    async with house.client(acme) as labs:
        episode = (await labs.create())["episode_id"]
        await labs.say({"episode_id": episode}, "How did the marmalade happen?")
    async with visiting(house) as browser:
        await browser.enter(rival)
        for path in (f"/episodes/{episode}", f"/episodes/{episode}/reasons", f"/play/{episode}"):
            assert (await browser.get(path)).status_code == 404
        assert (await browser.get(f"/compare?id={episode}&id={episode}")).status_code == 404
        assert episode not in (await browser.get("/episodes?text=marmalade")).text
        assert "0 scored" in (await browser.get("/charts")).text
        assert (await browser.post(f"/play/{episode}/turns", content="Hello")).status_code == 404
        assert (await browser.post(f"/play/{episode}/end")).status_code == 404
        await browser.enter(acme)
        assert episode in (await browser.get("/episodes?text=marmalade")).text


async def test_a_key_opens_what_its_calls_open(house: House) -> None:
    async with entered(house, scopes={Scope.SCORE}) as browser:
        refused = await browser.get("/episodes")
        assert refused.status_code == 403
        assert "train" in refused.text
        assert (await browser.get("/evaluations")).status_code == 200


async def test_a_page_counts_against_the_rate_of_its_key(house: House) -> None:
    async with entered(house, rate_per_minute=3) as browser:
        statuses = [(await browser.get("/episodes")).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]


async def test_off_means_that_there_is_none(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library, console="off") as house, visiting(house) as browser:
        assert (await browser.get("")).status_code == 404
        assert (await browser.get("/assets/console.js")).status_code == 404


async def test_pages_run_no_script_but_files_of_ours(house: House) -> None:
    async with visiting(house) as browser:
        for path in ("", "/login", "/episodes", "/nowhere"):
            response = await browser.get(path)
            policy = response.headers["content-security-policy"]
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert "<script>" not in response.text
            assert response.headers["cache-control"] == "no-store"
        assert (await browser.get("/nowhere")).status_code == 404


async def _everything(browser: Browser, labs: Client) -> None:
    """Every page, after a talk that earned nothing, and one by `/evaluate`."""
    episode = await labs.create(config={"seed": 1})
    for probe in PROBES:
        await labs.turn(episode, probe)
    other = await labs.create(config={"seed": 2})
    await labs.turn(other, agent("I will put in a new tube.", {"name": "nope", "input": {}}))
    messages = [{"role": "assistant", "content": probe} for probe in PROBES]
    where = {"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"}
    scored = await labs.ok("POST", "/evaluate", {**where, "messages": messages})
    for path in (
        "",
        "/scenarios/bike-shop/flat-tyre",
        "/scenarios/bike-shop/unknown",
        f"/play/{episode['episode_id']}",
        f"/play/{other['episode_id']}",
        f"/episodes/{episode['episode_id']}",
        f"/episodes/{episode['episode_id']}/reasons",
        f"/evaluations/{scored['evaluation_id']}",
        f"/compare?id={episode['episode_id']}&id={scored['evaluation_id']}",
        "/episodes",
        "/episodes?cap=scope",
        "/evaluations",
        "/charts",
        "/scenarios/bike-shop/flat-tyre/private",
        "/author",
        "/author/own/bike-shop",
        "/author/files/bike-shop",
        "/label",
        "/label/export",
        "/leaderboard",
        "/agreement",
        "/jobs",
        "/training",
        "/models",
        "/webhooks",
        "/usage",
        "/keys",
        "/audit",
        "/health",
        "/nowhere",
    ):
        await browser.get(path)
        await browser.get(path, **{"HX-Request": "true"})
    call = {"content": "What are you scored by?", "tool": "repair"}
    await browser.post(f"/play/{other['episode_id']}/turns", **call)
    await browser.post(f"/play/{other['episode_id']}/turns", **call, **{"repair.value": "new_tube"})
    await browser.post(f"/play/{other['episode_id']}/end")


@pytest.mark.parametrize("full_scores", [False, True])
async def test_no_canary_in_any_page(data: Path, matcher: Matcher, library: Library, full_scores: bool) -> None:
    """Also with full scores: reasons are told in the words of the conversation."""
    async with running_house(data, matcher, library, log_level="debug") as house:
        key = await house.key(full_scores=full_scores, scopes=EVERY)
        async with house.client(key) as labs, visiting(house) as browser:
            await browser.enter(key)
            await _everything(browser, labs)
            assert {200, 303, 403, 404} <= {response.status_code for response in browser.seen}
            assert not [(str(r.request.url), found) for r in browser.seen if (found := leaks(whole(r)))]
            reasons = [r.text for r in browser.seen if r.url.path.endswith("/reasons")]
            assert all(("Who decided what" in text) is full_scores for text in reasons)
            capped = [r.text for r in browser.seen if r.url.path == "/console/charts"]
            assert all(("<h2>Caps</h2>" in text) is full_scores for text in capped)
        assert not leaks(house.logs.getvalue())


async def test_training_curves_of_a_run(house: House) -> None:
    rows: list[Json] = [
        {"kind": "train", "step": step, "reward/mean": step / 10, "update/entropy": 2.0} for step in (1, 2)
    ]
    run_id = new_id(IdPrefix.TRAINING_RUN)
    run = TrainingRunRow(
        training_run_id=run_id,
        lab_id="development",
        status=RunStatus.RUNNING,
        name="<i>first</i>",
        config={"run": {"updates": 9}},
        client_metadata=None,
        collections=None,
        steps=9,
        created_at=house.clock.now(),
    )
    async with house.store.transaction() as unit:
        await unit.training_runs.add(run)
        metrics = [MetricRow(step=each["step"], kind=each["kind"], record=each) for each in rows]
        await unit.training_runs.add_metrics("development", run_id, metrics)
    async with visiting(house) as browser:
        assert "&lt;i&gt;first&lt;/i&gt;" in (await browser.get("/training")).text
        page = await browser.get(f"/training/{run_id}")
        assert "Entropy" in page.text
        assert 'hx-trigger="every 4s"' in page.text
        await browser.post(f"/training/{run_id}/stop")
        assert "stopping" in (await browser.get(f"/training/{run_id}")).text


async def test_whoever_runs_the_server_sees_the_names(house: House) -> None:
    """The same pages without keys hold the canaries: the search above looks at the right place."""
    async with house.client() as labs, visiting(house) as browser:
        episode = await labs.create()
        await labs.turn(episode, "How did it happen?")
        assert leaks((await browser.get(f"/episodes/{episode['episode_id']}/reasons")).text)
