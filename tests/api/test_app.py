"""Starting and stopping the app, and what it says about itself."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from fastapi import FastAPI

from reward_server.auth.key_ring import KeyRing
from reward_server.auth.pepper import load_pepper
from reward_server.clock import ManualClock
from reward_server.errors import ConfigurationError, ScenarioError
from reward_server.server.app import Ports, create_app
from reward_server.settings import Settings
from reward_server.store.migrate import migrate
from reward_server.store.store import Store
from tests.contract.house import packaged_reader

COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"


class NoMatcher:
    """Everything is equally unlike everything else."""

    version = "none"

    def cosine(self, texts: Any, anchors: Any) -> Any:
        return np.zeros((len(texts), len(anchors)))


def make(data: Path, *, loads_reader: bool = False, **settings: Any) -> tuple[FastAPI, io.StringIO]:
    """An app that is still to be started; its reader is shared with others of this process unless it `loads_reader`."""
    logs = io.StringIO()
    settings = {"scenarios": COLLECTIONS} | settings
    reader = None if loads_reader else packaged_reader()
    ports = Ports(matcher=NoMatcher(), reader=reader, log_stream=logs, own_process=False)
    return create_app(Settings(data=data, **settings), ports=ports), logs


async def get(app: FastAPI, path: str) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://localhost") as http:
        return await http.get(path)


async def test_a_started_app_is_alive_and_ready(tmp_path: Path) -> None:
    app, _ = make(tmp_path, loads_reader=True)
    async with app.router.lifespan_context(app):
        assert (await get(app, "/healthz")).json()["status"] == "ok"
        ready = await get(app, "/readyz")
        assert ready.status_code == 200
        assert ready.json()["dependencies"] == dict.fromkeys(
            ("store", "encoder", "scenarios", "scoring", "event_loop"), "ok"
        )


async def test_readiness_names_what_is_missing_while_liveness_stays(tmp_path: Path) -> None:
    app, _ = make(tmp_path)
    async with app.router.lifespan_context(app):
        services = app.state.services
        await services.store.close()
        object.__setattr__(services.readiness, "fixed", {"scenarios": "missing"})
        response = await get(app, "/readyz")
        assert response.status_code == 503
        assert response.headers["retry-after"]
        data = response.json()["data"]
        assert data["code"] == "not_ready"
        assert data["errors"] == [{"loc": ["store"], "msg": "unavailable"}, {"loc": ["scenarios"], "msg": "missing"}]
        assert (await get(app, "/healthz")).status_code == 200


async def test_an_app_that_was_not_started_says_so(tmp_path: Path) -> None:
    app, _ = make(tmp_path)
    response = await get(app, "/api/v1/catalog")
    assert (response.status_code, response.json()["data"]["code"]) == (503, "not_ready")


async def test_a_lost_database_is_503(tmp_path: Path) -> None:
    app, _ = make(tmp_path)
    async with app.router.lifespan_context(app):
        await app.state.services.store.close()
        response = await get(app, "/api/v1/episodes")
        assert (response.status_code, response.json()["data"]["code"]) == (503, "store_unavailable")
        assert int(response.headers["retry-after"]) >= 1


@pytest.mark.slow
async def test_what_was_stored_is_there_after_a_restart(tmp_path: Path) -> None:
    app, _ = make(tmp_path)
    where = {"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"}
    async with app.router.lifespan_context(app):
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            episode = (await http.post("/api/v1/episodes", json=where)).json()
    again, _ = make(tmp_path)
    async with again.router.lifespan_context(again):
        response = await get(again, f"/api/v1/episodes/{episode['episode_id']}")
        assert response.json()["messages"] == [episode["initial_observation"]]


async def test_an_open_address_without_a_key_does_not_start(tmp_path: Path) -> None:
    app, _ = make(tmp_path, host="0.0.0.0")
    with pytest.raises(ConfigurationError, match="labs keys create"):
        async with app.router.lifespan_context(app):
            pass


async def test_an_open_address_with_a_key_starts_and_asks_for_it(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    await migrate(settings.database)
    store = await Store.open(settings.database)
    await KeyRing(store, ManualClock(), load_pepper(tmp_path)).create("acme")
    await store.close()
    app, _ = make(tmp_path, host="0.0.0.0")
    async with app.router.lifespan_context(app):
        assert (await get(app, "/api/v1/catalog")).status_code == 401


async def test_broken_scenarios_stop_the_start_with_file_and_line(tmp_path: Path) -> None:
    folder = tmp_path / "collections" / "broken"
    folder.mkdir(parents=True)
    (folder / "collection.yaml").write_text("schema: labs.collection/1\nquokka: 1\n")
    app, _ = make(tmp_path / "data", scenarios=tmp_path / "collections")
    with pytest.raises(ScenarioError, match=r"collection\.yaml:\d+"):
        async with app.router.lifespan_context(app):
            pass


async def test_an_unusable_data_directory_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    app, _ = make(tmp_path / "data", database_url=f"sqlite:///{tmp_path}/file/labs.sqlite")
    with pytest.raises(ConfigurationError):
        async with app.router.lifespan_context(app):
            pass


async def test_a_failed_start_leaves_nothing_running(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    app, _ = make(tmp_path, host="0.0.0.0")
    with pytest.raises(ConfigurationError):
        async with app.router.lifespan_context(app):
            pass
    assert asyncio.all_tasks() == before


async def test_the_docs_need_no_network(tmp_path: Path) -> None:
    app, _ = make(tmp_path)
    page = await get(app, "/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "http://" not in page.text
    assert "https://" not in page.text
    for asset, kind in (("swagger-ui-bundle.js", "javascript"), ("swagger-ui.css", "css"), ("favicon.png", "png")):
        assert f"/docs/assets/{asset}" in page.text
        response = await get(app, f"/docs/assets/{asset}")
        assert response.status_code == 200
        assert kind in response.headers["content-type"]
    assert (await get(app, "/openapi.json")).json()["openapi"].startswith("3.1")
    assert (await get(app, "/docs/assets/..%2fcore.py")).status_code == 404


async def test_metrics_count_requests_by_template(tmp_path: Path) -> None:
    app, _ = make(tmp_path)
    async with app.router.lifespan_context(app):
        await get(app, "/api/v1/episodes/ep_aaaaaaaaaaaaaaaaaaaaaaaa")
        page = (await get(app, "/metrics")).text
    line = 'labs_requests_total{method="GET",route="/api/v1/episodes/{episode_id}",status="404"} 1.0'
    assert line in page


def test_making_an_app_touches_nothing(tmp_path: Path) -> None:
    make(tmp_path / "data")
    assert not (tmp_path / "data").exists()
