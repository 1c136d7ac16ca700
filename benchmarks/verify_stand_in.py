"""A stand-in for a verify endpoint of the kind NeMo Gym serves: the same work by request, none of its code.

One rollout a request. The body holds the dataset row, the parameters of the model call and the model's whole response;
all of it is validated and sent back with a reward, and the session is a signed cookie. No keys, no limits, no store.
The reward is a search for five words.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any, Literal

from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict

SECRET = secrets.token_bytes(32)
COOKIE = "session"
WORDS = ("serial number", "refund", "replacement", "sorry", "batch")

app = FastAPI()


class Part(BaseModel):
    """A part of a message."""

    type: Literal["output_text", "input_text"]
    text: str
    annotations: list[dict[str, Any]] = []


class Message(BaseModel):
    """What was said, or put out."""

    model_config = ConfigDict(extra="allow")

    id: str | None = None
    type: Literal["message"] = "message"
    role: Literal["system", "user", "assistant"]
    status: str | None = None
    content: str | list[Part]


class CallParams(BaseModel):
    """What the model was asked."""

    model_config = ConfigDict(extra="allow")

    input: list[Message]
    temperature: float | None = None
    max_output_tokens: int | None = None
    tools: list[dict[str, Any]] = []


class Usage(BaseModel):
    """Tokens."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class ModelResponse(BaseModel):
    """What the model answered."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["response"]
    created_at: float
    model: str
    output: list[Message]
    parallel_tool_calls: bool
    tool_choice: str
    tools: list[dict[str, Any]]
    usage: Usage


class Verify(BaseModel):
    """A rollout."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: CallParams
    response: ModelResponse


class Verified(Verify):
    """The rollout and its reward."""

    reward: float


@app.get("/ping")
async def ping() -> dict[str, str]:
    """Ready."""
    return {"status": "ok"}


@app.post("/verify", response_model=Verified)
async def verify(request: Request, body: Verify, response: Response) -> Verified:
    """The share of the words that the agent said."""
    session = request.cookies.get(COOKIE, "")
    name, _, signature = session.partition(".")
    if not hmac.compare_digest(signature, _signed(name)):
        name = secrets.token_hex(8)
    response.set_cookie(COOKIE, f"{name}.{_signed(name)}")
    said = " ".join(_text(message) for message in body.response.output if message.role == "assistant").lower()
    reward = sum(word in said for word in WORDS) / len(WORDS)
    return Verified(**body.model_dump(), reward=reward)


def _signed(name: str) -> str:
    return hmac.new(SECRET, name.encode(), hashlib.sha256).hexdigest()


def _text(message: Message) -> str:
    return message.content if isinstance(message.content, str) else " ".join(part.text for part in message.content)
