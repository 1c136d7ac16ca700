"""Fixtures of the contract tests; `house.py` says what a house is."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import httpx2
import pytest

from personas.reading.matcher import Matcher
from reward_server.reward_models.featurisers import Featurisers
from reward_server.server.engine import load_matcher
from reward_server.settings import Settings
from reward_server.webhooks.sender import SendOutcome, WebhookSender
from scenarios.library import Library, load_library
from tests.contract.house import COLLECTIONS, Client, House, Json, running_house
from tests.contract.model_shop import Shop
from tests.contract.standing import StandingHouse, standing_house


@pytest.fixture(autouse=True)
def no_delivery_leaves_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A public address is needed for a webhook that is accepted, and nobody there wants its messages."""
    send = WebhookSender.send

    async def sent(self: WebhookSender, url: str, body: str, headers: Mapping[str, str]) -> SendOutcome:
        return SendOutcome(error="unreachable") if "//8.8.8.8/" in url else await send(self, url, body, headers)

    monkeypatch.setattr(WebhookSender, "send", sent)


@pytest.fixture(autouse=True)
def no_agent_is_asked_off_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the address of an agent: a call that is cut off while it connects leaves its socket open."""
    handle = httpx2.AsyncHTTPTransport.handle_async_request

    async def handled(self: httpx2.AsyncHTTPTransport, request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "8.8.8.8":
            raise httpx2.ConnectError("unreachable", request=request)
        return await handle(self, request)

    monkeypatch.setattr(httpx2.AsyncHTTPTransport, "handle_async_request", handled)


@pytest.fixture(scope="session")
def matcher() -> Matcher:
    return load_matcher(Settings())


@pytest.fixture(scope="session")
def library() -> Library:
    return load_library(COLLECTIONS)


@pytest.fixture(scope="session")
def empty_database(migrated_sqlite: Path) -> Path:
    return migrated_sqlite


@pytest.fixture
def data(tmp_path: Path, empty_database: Path) -> Path:
    """A data directory of its own."""
    shutil.copy(empty_database, tmp_path / "labs.sqlite")
    return tmp_path


@pytest.fixture
async def house(data: Path, matcher: Matcher, library: Library) -> AsyncIterator[House]:
    async with running_house(data, matcher, library) as running:
        yield running


@pytest.fixture(scope="session")
def standing(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path, matcher: Matcher, library: Library
) -> Iterator[StandingHouse]:
    data = tmp_path_factory.mktemp("standing")
    shutil.copy(empty_database, data / "labs.sqlite")
    with standing_house(data, matcher, library) as house:
        yield house


@pytest.fixture
def serving(request: pytest.FixtureRequest) -> House | StandingHouse:
    """The house of this test: the standing one where its module says so and the test takes no `house`."""
    shares = request.node.get_closest_marker("one_house") is not None and "house" not in request.fixturenames
    house: House | StandingHouse = request.getfixturevalue("standing" if shares else "house")
    return house


@pytest.fixture
async def labs(serving: House | StandingHouse) -> AsyncIterator[Client]:
    """Development mode: no key exists and none is needed."""
    async with serving.client() as client:
        yield client


@pytest.fixture
async def episode(labs: Client) -> Json:
    return await labs.create()


@pytest.fixture(scope="session")
def featurisers() -> Featurisers:
    return Featurisers("packaged")


@pytest.fixture
def one_encoder(featurisers: Featurisers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every server would load its own encoder; has to stand before the house."""
    encoder = featurisers.encoder
    monkeypatch.setattr("reward_server.encoders.loading.load_fast_encoder", lambda *_: encoder)


@pytest.fixture
def shop(house: House, tmp_path: Path, featurisers: Featurisers) -> Shop:
    return Shop(house, tmp_path / "trained", featurisers)
