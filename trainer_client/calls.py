"""A call as data: method, path, body and the type of the answer, and what calls are made with.

A request is checked against the wire types here; what fails is a `BadRequest` that was never sent. The calls
themselves are in `catalog`, `episodes`, `scoring` and so on; `methods` makes each a method of every client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from trainer_client.errors import BadRequest, MalformedAnswer
from trainer_client.wire import BatchItem, CreateEpisodeRequest, ErrorDetail, Message, RewardConfig, TurnItem

AnswerT = TypeVar("AnswerT", bound=BaseModel)
RequestT = TypeVar("RequestT", bound=BaseModel)
MessageLike = Message | Mapping[str, Any]
ItemLike = BatchItem | Mapping[str, Any]
TurnLike = TurnItem | Mapping[str, Any]
EpisodeLike = CreateEpisodeRequest | Mapping[str, Any]
RewardConfigLike = RewardConfig | Mapping[str, Any]


@dataclass(frozen=True)
class Call(Generic[AnswerT]):
    """One logical call; sent as often as needed, always with the same body and key."""

    method: str
    path: str
    answer: type[AnswerT]
    body: bytes | None = field(default=None, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    in_lines: bool = False
    """Whether the answer is JSON Lines, which `lines_of` makes one object of."""

    operation: Mapping[str, str] | None = None
    """What it is over a socket, where it can go over one; the body has the rest."""

    @staticmethod
    def lines_of(body: bytes) -> dict[str, Any]:
        """The data that such an answer is parsed from."""
        text = body.decode()
        return {"text": text, "rows": [json.loads(line) for line in text.splitlines() if line]}

    def headers(self) -> dict[str, str]:
        """Headers of this call alone."""
        headers = {"Content-Type": "application/json"} if self.method in ("POST", "PATCH") else {}
        if self.idempotency_key is not None:
            headers["Idempotency-Key"] = self.idempotency_key
        return headers

    def read(self, body: bytes, request_id: str | None) -> AnswerT:
        """Parse a success; anything but the contract's shape is a `MalformedAnswer`."""
        try:
            return self.answer.model_validate(self.lines_of(body) if self.in_lines else json.loads(body))
        except (ValueError, RecursionError) as error:
            raise self.malformed(request_id) from error

    def malformed(self, request_id: str | None) -> MalformedAnswer:
        """The error of an answer that is not the contract's."""
        return MalformedAnswer(
            f"The server's answer to {self.method} {self.path} is not what the contract says.",
            code="malformed_answer",
            status=200,
            request_id=request_id,
        )


def new_key() -> str:
    """A fresh idempotency key."""
    return uuid4().hex


def post(
    path: str,
    request: BaseModel,
    answer: type[AnswerT],
    key: str | None,
    operation: Mapping[str, str] | None = None,
) -> Call[AnswerT]:
    """A POST with a key of its own, so that it can be sent again."""
    body = encoded(request.model_dump(exclude_none=True))
    return Call("POST", path, answer, body=body, idempotency_key=key or new_key(), operation=operation)


def query_of(**given: object) -> dict[str, str]:
    """The parts of a query that were given."""
    return {name: str(value) for name, value in given.items() if value is not None}


def encoded(content: Mapping[str, Any]) -> bytes:
    """A body in JSON."""
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise BadRequest(f"The request cannot be written as JSON: {error}", code="invalid_request") from error


def checked(model: type[RequestT], /, **fields: object) -> RequestT:
    """The request, or a `BadRequest` that was never sent."""
    try:
        return model.model_validate({name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        details = tuple(
            ErrorDetail(loc=list(item["loc"]), msg=item["msg"])
            for item in error.errors(include_url=False, include_context=False, include_input=False)
        )
        first = details[0]
        where = ".".join(str(part) for part in first.loc)
        raise BadRequest(f"{where}: {first.msg}", code="invalid_request", errors=details) from None


def conversation(messages: str | MessageLike | Sequence[MessageLike]) -> list[Any]:
    """Messages as a list; a text alone is one agent message."""
    if isinstance(messages, str):
        return [{"role": "assistant", "content": messages}]
    if isinstance(messages, Message | Mapping):
        return [messages]
    return list(messages)


def segment(value: str) -> str:
    """One path segment; dots alone would be resolved away by the URL parser."""
    if not value or value in (".", ".."):
        raise BadRequest("An identifier in the address is empty.", code="invalid_request")
    return quote(value, safe="")
