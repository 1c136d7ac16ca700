"""Tokens over HTTP: a server that takes them needs no key and is never open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jwt
from pydantic import SecretStr

from personas.reading.matcher import Matcher
from scenarios.library import Library
from tests.contract.house import House, assert_error, running_house
from tests.contract.test_evaluate import body

SECRET = "a secret of the identity provider"
TAKEN: dict[str, Any] = {
    "jwt_issuer": "https://login.example",
    "jwt_audience": "labs",
    "jwt_key": SecretStr(SECRET),
}


def token(house: House, **claims: object) -> str:
    now = int(house.clock.now().timestamp())
    issued = {"iss": "https://login.example", "aud": "labs", "sub": "ada", "lab": "acme", "exp": now + 60}
    return jwt.encode({**issued, "scope": "train", **claims}, SECRET, "HS256")


async def test_a_token_opens_what_its_scopes_say(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library, **TAKEN) as house:
        await house.key("acme")
        async with house.client(token(house)) as client:
            episode = await client.create()
            answered = await client.turn(episode, "How did it happen?")
            assert (answered.status_code, answered.headers["x-ratelimit-limit"]) == (200, "60")
            assert_error(await client.call("POST", "/evaluate", body()), 403, "insufficient_scope")
        async with house.client(token(house, lab="rival")) as stranger:
            assert_error(await stranger.call("GET", "/catalog"), 401, "unauthenticated")
        assert SECRET not in house.logs.getvalue()


async def test_a_server_that_takes_tokens_is_not_open(data: Path, matcher: Matcher, library: Library) -> None:
    async with running_house(data, matcher, library, **TAKEN) as house, house.client() as nobody:
        assert_error(await nobody.call("GET", "/catalog"), 401, "unauthenticated")


async def test_elsewhere_a_token_is_no_key(house: House) -> None:
    await house.key("acme")
    house.end_development_mode()
    async with house.client(token(house)) as client:
        assert_error(await client.call("GET", "/catalog"), 401, "unauthenticated")
