"""/webhooks: messages are signed, sent to a real socket, tried again, given up, and sent again by hand."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from personas.reading.matcher import Matcher
from reward_server.auth.pepper import load_pepper
from reward_server.webhooks.delivery import (
    AT_ONCE,
    AT_ONCE_OF_A_LAB,
    AT_ONCE_OF_A_WEBHOOK,
    ATTEMPTS,
    PAUSES,
    WebhookDeliverer,
)
from reward_server.webhooks.names import NameLookups
from reward_server.webhooks.sender import WebhookSender
from scenarios.library import Library
from tests.contract.house import WHERE, Client, House, Json, assert_error, running_house
from tests.contract.test_evaluate import GOOD
from tests.contract.test_jobs import over, submit


@dataclass
class Receiver:
    """A lab's own server: keeps what it is sent, and answers as it is told."""

    port: int = 0
    status: str = "204 No Content"
    got: list[tuple[dict[str, str], str]] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    """Once it is set; until then what came waits for its answer."""
    waiting: int = 0
    drips: bool = False
    """One byte of its answer after another, without end."""

    def __post_init__(self) -> None:
        self.answers.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/events"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        headers = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
        originals = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in head.splitlines()[1:] if line}
        body = (await reader.readexactly(int(headers["content-length"]))).decode()
        self.got.append((originals, body))
        self.waiting += 1
        await self.answers.wait()
        self.waiting -= 1
        if self.drips:
            writer.write(b"HTTP/1.1 200 OK\r\nX-Endless: ")
            with suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"x")
                    await writer.drain()
                    await asyncio.sleep(0.01)
            return writer.close()
        writer.write(f"HTTP/1.1 {self.status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        return writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    made = Receiver()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    made.answers.set()
    server.close()
    await server.wait_closed()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture
async def slow() -> AsyncIterator[Receiver]:
    """A receiver that has not answered yet."""
    async with receiving() as made:
        made.answers.clear()
        yield made


@pytest.fixture
async def inner(data: Path, matcher: Matcher, library: Library) -> AsyncIterator[House]:
    """A server whose operator allows receivers in his own network."""
    async with running_house(data, matcher, library, webhook_private_addresses=True) as running:
        running.clock.advance(datetime.now(UTC) - running.clock.now())
        yield running


@pytest.fixture
async def lab(inner: House) -> AsyncIterator[Client]:
    async with inner.client() as client:
        yield client


@pytest.fixture
async def deliverer(inner: House) -> AsyncIterator[WebhookDeliverer]:
    sender = WebhookSender(private=True, names=NameLookups())
    yield WebhookDeliverer(inner.store, sender, load_pepper(inner.settings.data), inner.clock, inner.metrics)
    await sender.close()


async def add(lab: Client, url: str, **fields: object) -> Json:
    return await lab.ok("POST", "/webhooks", {"url": url, **fields})


async def messages(lab: Client, hook: Json) -> list[Json]:
    found: list[Json] = (await lab.ok("GET", f"/webhooks/{hook['webhook_id']}/deliveries"))["data"]
    return found


async def test_a_finished_batch_is_told_signed_as_the_standard_says(
    inner: House, lab: Client, receiver: Receiver, deliverer: WebhookDeliverer
) -> None:
    hook = await add(lab, receiver.url, events=["evaluation_batch.finished"])
    await add(lab, receiver.url, events=["job.finished"])
    items = [{"id": "good", **WHERE, "messages": GOOD}, {"id": "bad", **WHERE, "messages": []}]
    scored = await lab.ok("POST", "/batch/evaluate", {"items": items})
    assert await deliverer.send_due() == 1
    [(headers, body)] = receiver.got
    told = Webhook(hook["secret"]).verify(body, headers)
    assert told["type"] == "evaluation_batch.finished"
    assert told["data"] == {"items": 2, "scored": 1, "failed": 1, "scoring_version": scored["scoring_version"]}
    with pytest.raises(WebhookVerificationError):
        Webhook(hook["secret"]).verify(body.replace('"items":2', '"items":3'), headers)
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    [message] = await messages(lab, hook)
    assert message["message_id"] == headers["webhook-id"]
    assert (message["state"], message["attempts"], message["last_status"]) == ("delivered", 1, 204)
    assert await deliverer.send_due() == 0


async def test_a_failed_message_is_tried_again_and_given_up_and_can_be_sent_again(
    inner: House, lab: Client, receiver: Receiver, deliverer: WebhookDeliverer
) -> None:
    receiver.status = "503 Service Unavailable"
    hook = await add(lab, receiver.url)
    sent = await lab.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
    for pause in PAUSES:
        assert await deliverer.send_due() == 1
        inner.clock.advance(pause - timedelta(seconds=1))
        assert await deliverer.send_due() == 0
        inner.clock.advance(timedelta(seconds=1))
    assert (await messages(lab, hook))[0]["state"] == "pending"
    assert await deliverer.send_due() == 1
    [message] = await messages(lab, hook)
    assert (message["state"], message["attempts"], message["last_status"]) == ("dead", ATTEMPTS, 503)
    inner.clock.advance(timedelta(days=2))
    assert await deliverer.send_due() == 0
    receiver.status = "200 OK"
    path = f"/webhooks/{hook['webhook_id']}/deliveries/{sent['message_id']}/resend"
    assert (await lab.ok("POST", path))["state"] == "pending"
    assert await deliverer.send_due() == 1
    page = (await lab.http.get("/metrics")).text
    for state, count in (("pending", ATTEMPTS - 1), ("dead", 1), ("delivered", 1)):
        assert f'labs_webhook_attempts_total{{state="{state}"}} {count}.0' in page
    assert (await messages(lab, hook))[0]["state"] == "delivered"
    assert {headers["webhook-id"] for headers, _ in receiver.got} == {sent["message_id"]}
    assert len(receiver.got) == ATTEMPTS + 1


async def test_no_redirect_is_followed_and_a_receiver_that_is_gone_is_left_alone(
    lab: Client, receiver: Receiver, deliverer: WebhookDeliverer
) -> None:
    receiver.status = f"302 Found\r\nLocation: {receiver.url}"
    hook = await add(lab, receiver.url)
    await lab.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
    await deliverer.send_due()
    assert len(receiver.got) == 1
    assert (await messages(lab, hook))[0]["last_error"] == "redirect"
    receiver.status = "410 Gone"
    second = await add(lab, receiver.url)
    await lab.ok("POST", f"/webhooks/{second['webhook_id']}/test")
    await deliverer.send_due()
    assert (await messages(lab, second))[0]["state"] == "dead"
    assert "disabled_at" in await lab.ok("GET", f"/webhooks/{second['webhook_id']}")


async def test_of_two_servers_one_sends_and_what_a_killed_one_took_is_sent_later(
    inner: House, lab: Client, receiver: Receiver, deliverer: WebhookDeliverer
) -> None:
    hook = await add(lab, receiver.url)
    for _ in range(5):
        await lab.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
    assert sum(await asyncio.gather(deliverer.send_due(), deliverer.send_due())) == 5
    assert len(receiver.got) == 5
    await lab.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
    now = inner.clock.now()
    due = await inner.store.read(lambda unit: unit.webhooks.due(now, 10))
    assert len(await inner.store.write(lambda unit: unit.webhooks.claim(due, now + timedelta(minutes=1)))) == 1
    assert await deliverer.send_due() == 0
    inner.clock.advance(timedelta(minutes=1))
    assert await deliverer.send_due() == 1


async def until(happens: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not happens():  # noqa: ASYNC110 (a receiver tells nobody)
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_a_slow_receiver_holds_up_nobody_else(
    inner: House, lab: Client, receiver: Receiver, slow: Receiver, deliverer: WebhookDeliverer
) -> None:
    late = await add(lab, slow.url)
    for _ in range(2 * AT_ONCE):
        await lab.ok("POST", f"/webhooks/{late['webhook_id']}/test")
    sending = asyncio.create_task(deliverer.send_due())
    await until(lambda: slow.waiting == AT_ONCE_OF_A_WEBHOOK)
    hook = await add(lab, receiver.url)
    for count in range(1, 4):
        await lab.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
        await until(lambda count=count: len(receiver.got) == count)
    assert slow.waiting == AT_ONCE_OF_A_WEBHOOK
    slow.answers.set()
    assert await sending == 2 * AT_ONCE + 3
    assert {each["state"] for each in await messages(lab, late)} == {"delivered"}


@pytest.mark.slow
async def test_a_lab_has_few_of_the_places(inner: House, slow: Receiver, deliverer: WebhookDeliverer) -> None:
    keys = {name: await inner.key(name) for name in ("many", "one")}
    inner.end_development_mode()
    async with inner.client(keys["many"]) as many, inner.client(keys["one"]) as one:
        for _ in range(10):
            hook = await add(many, slow.url)
            for _ in range(2):
                await many.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
        sending = asyncio.create_task(deliverer.send_due())
        await until(lambda: slow.waiting == AT_ONCE_OF_A_LAB)
        hook = await add(one, slow.url)
        await one.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
        await until(lambda: slow.waiting == AT_ONCE_OF_A_LAB + 1)
    slow.answers.set()
    assert await sending == 21


async def test_an_answer_that_never_ends_is_a_timeout(inner: House, lab: Client, receiver: Receiver) -> None:
    receiver.drips = True
    hook = await add(lab, receiver.url)
    await lab.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
    sender = WebhookSender(private=True, names=NameLookups(), timeout_s=0.5)
    pepper = load_pepper(inner.settings.data)
    assert await WebhookDeliverer(inner.store, sender, pepper, inner.clock, inner.metrics).send_due() == 1
    await sender.close()
    assert (await messages(lab, hook))[0]["last_error"] == "timeout"


async def test_the_secret_is_shown_once_and_is_not_in_the_database(
    inner: House, lab: Client, receiver: Receiver
) -> None:
    body = {"url": receiver.url}
    hook = await lab.ok("POST", "/webhooks", body, headers={"Idempotency-Key": "k"})
    assert hook["secret"].startswith("whsec_")
    again = await lab.ok("POST", "/webhooks", body, headers={"Idempotency-Key": "k"})
    assert (again["webhook_id"], again["secret"]) == (hook["webhook_id"], hook["secret"])
    for path in ("/webhooks", f"/webhooks/{hook['webhook_id']}"):
        assert "whsec" not in json.dumps(await lab.ok("GET", path))
    with sqlite3.connect(inner.settings.data / "labs.sqlite") as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert hook["webhook_id"] in dump
    assert hook["secret"].removeprefix("whsec_") not in dump
    assert hook["secret"] not in inner.logs.getvalue()


async def test_a_deleted_webhook_takes_its_messages_along(
    lab: Client, receiver: Receiver, deliverer: WebhookDeliverer
) -> None:
    hook = await add(lab, receiver.url)
    await lab.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
    assert (await lab.ok("DELETE", f"/webhooks/{hook['webhook_id']}"))["url"] == receiver.url
    assert await deliverer.send_due() == 0
    assert receiver.got == []
    assert_error(await lab.call("GET", f"/webhooks/{hook['webhook_id']}"), 404, "webhook_not_found")


async def test_inner_addresses_are_refused_when_added_and_when_sent(labs: Client, house: House) -> None:
    for url in ("http://8.8.8.8/x", "https://127.0.0.1/x", "https://169.254.169.254/x", "https://localhost/x", "x"):
        data = assert_error(await labs.call("POST", "/webhooks", {"url": url}), 400, "invalid_request")
        assert data["errors"][0]["loc"] == ["url"]
        never = url in ("https://169.254.169.254/x", "x")  # no setting allows these
        assert ("LABS_WEBHOOK_PRIVATE_ADDRESSES=true" in data["errors"][0]["msg"]) is not never
    assert_error(
        await labs.call("POST", "/webhooks", {"url": "https://8.8.8.8/x", "events": ["all"]}), 400, "invalid_request"
    )
    hook = await add(labs, "https://8.8.8.8/x")
    await labs.ok("POST", f"/webhooks/{hook['webhook_id']}/test")
    with sqlite3.connect(house.settings.data / "labs.sqlite") as connection:
        connection.execute("UPDATE webhook SET url = 'https://127.0.0.1:9/x'")
    connection.close()
    sender = WebhookSender(private=False, names=NameLookups())
    await WebhookDeliverer(house.store, sender, b"p" * 32, house.clock, house.metrics).send_due()
    await sender.close()
    assert (await messages(labs, hook))[0]["last_error"] == "refused_address"


async def test_a_finished_job_is_told(lab: Client, receiver: Receiver, deliverer: WebhookDeliverer) -> None:
    hook = await add(lab, receiver.url, events=["job.finished"])
    job = await submit(lab, {**WHERE, "messages": GOOD}, {**WHERE, "messages": []})
    await over(lab, job)
    assert await deliverer.send_due() == 1
    [(headers, body)] = receiver.got
    told = Webhook(hook["secret"]).verify(body, headers)["data"]
    counts = {"total": 2, "done": 1, "failed": 1, "dead": 0}
    assert told == {"job_id": job["job_id"], "type": "evaluate", "status": "completed", **counts}


async def test_a_job_that_came_to_nothing_is_told_as_failed(
    lab: Client, receiver: Receiver, deliverer: WebhookDeliverer
) -> None:
    hook = await add(lab, receiver.url, events=["job.finished"])
    job = await over(lab, await submit(lab, {**WHERE, "messages": []}))
    assert await deliverer.send_due() == 1
    [(headers, body)] = receiver.got
    told = Webhook(hook["secret"]).verify(body, headers)["data"]
    assert (told["status"], told["done"], told["error"]) == ("failed", 0, job["error"])
