"""The scripted provider itself: spoiling, scripts, and what it notices."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx2
import pytest

from benchmarks.scripted_provider import Asked, Fail, Mode, ScriptedProvider, spoil
from tests.llm.asking import GOOD

BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}


async def post(server: ScriptedProvider, path: str = "/v1/chat/completions", **changes: Any) -> httpx2.Response:
    async with httpx2.AsyncClient() as client:
        return await client.post(server.url + path, json=BODY | changes)


def test_each_way_of_spoiling_changes_its_field_alone() -> None:
    (found,) = json.loads(spoil(Mode.WRONG_IDS, GOOD))["found"]
    assert found == {**GOOD["found"][0], "id": "nobody"}
    assert json.loads(spoil(Mode.OUT_OF_RANGE, GOOD))["found"][0]["turn"] == 9999
    assert json.loads(spoil(Mode.FOREIGN_QUOTE, GOOD))["found"][0]["quote"] != GOOD["found"][0]["quote"]
    assert math.isnan(json.loads(spoil(Mode.NAN, GOOD))["found"][0]["turn"])
    assert math.isnan(json.loads(spoil(Mode.NAN, {"met": True}))["met"])


@pytest.mark.parametrize("mode", [Mode.WRONG_IDS, Mode.OUT_OF_RANGE, Mode.FOREIGN_QUOTE, Mode.NAN])
def test_what_cannot_be_spoilt_is_refused(mode: Mode) -> None:
    with pytest.raises(ValueError, match="nothing that"):
        spoil(mode, {"text": "hello", "quote": ""})


async def test_a_function_sees_what_was_asked() -> None:
    def script(asked: Asked) -> Any:
        return {"said": f"{asked.number} {asked.dialect} {asked.system} {asked.user}"}

    with ScriptedProvider(script) as server:
        messages = [{"role": "system", "content": "Be kind."}, *BODY["messages"]]
        openai = await post(server, messages=messages)
        anthropic = await post(server, "/v1/messages", system=[{"type": "text", "text": "Be kind."}])
    said = openai.json()["choices"][0]["message"]["content"]
    assert json.loads(said) == {"said": "0 openai Be kind. Hello."}
    assert json.loads(anthropic.json()["content"][0]["text"]) == {"said": "1 anthropic Be kind. Hello."}


async def test_a_list_is_done_in_order_and_its_last_step_stays() -> None:
    with ScriptedProvider([Fail(Mode.RATE_LIMITED, retry_after_s=3), "a", "b"]) as server:
        answers = [await post(server) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [429, 200, 200, 200]
    assert answers[0].headers["retry-after"] == "3"
    assert [answer.json()["choices"][0]["message"]["content"] for answer in answers[1:]] == ["a", "b", "b"]


async def test_a_script_that_fails_is_reported_where_it_is_used() -> None:
    def script(asked: Asked) -> Any:
        raise KeyError("no such scenario")

    async def use() -> None:
        with ScriptedProvider(script) as server, pytest.raises(httpx2.RemoteProtocolError):
            await post(server)

    with pytest.raises(RuntimeError, match="the script failed"):
        await use()


async def test_another_path_is_not_there() -> None:
    with ScriptedProvider("a") as server:
        assert (await post(server, "/v1/embeddings")).status_code == 404
    assert server.asked == []
