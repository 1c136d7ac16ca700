"""A language-model provider on loopback that does what a script says; speaks Anthropic Messages and OpenAI chat.

    with ScriptedProvider(lambda asked: {"verdicts": []}) as server:
        settings = Settings(llm_provider="openai", llm_base_url=server.url, llm_model="scripted", …)

`server.url` serves both dialects: `POST /v1/messages` (Anthropic) and `POST [/v1]/chat/completions` (OpenAI, vLLM).

The script is one step, a list of steps (one per request; the last is kept for all that follow), or a function
from `Asked` to a step. A step is

* any JSON value: the model's answer; a `str` is sent as the answer's text as it is,
* `Say(...)`: the same with token log-probabilities, a stop reason, a usage or a status of its own,
* `Fail(mode, good)`: one of the fourteen ways to fail; `good` is the answer that WRONG_IDS, OUT_OF_RANGE, NAN and
  FOREIGN_QUOTE spoil (see `spoil`),
* `Held(step)`: the step, once `server.release()` was called.

`Asked` is a request as the model sees it: `dialect`, `system`, `user`, `schema` (JSON schema), `model`, `body` (all
that was sent), `headers`, `number` (0, 1, …). Recorded: `server.asked`, `server.most_at_once` (requests in work at the
same time), `server.left` (requests whose client hung up before it had its answer). `await server.until(lambda: …)`
waits until what was recorded makes the condition true. A script that raises makes the `with` block raise.
It knows nothing about rubrics and checks no key.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Self

Dialect = Literal["anthropic", "openai"]
Json = Any

WAIT_S = 20.0
HUGE_BYTES = 64 * 1024 * 1024
"""How much a HUGE answer offers; whoever limits what it reads hangs up long before."""
CHUNK = b" " * 65_536
ESTIMATED_CHARACTERS_PER_TOKEN = 4
NO_LOGPROBS: Sequence[tuple[str, Mapping[str, float]]] = ()
"""Of a server that leaves them out though it is asked for them."""


class Mode(StrEnum):
    """The fourteen ways to fail."""

    RATE_LIMITED = "429"
    OVERLOADED = "529"
    TIMEOUT = "timeout"
    """The request is read and nothing is said."""
    RESET = "reset"
    HANG = "hang"
    """The response begins and does not end."""
    REFUSAL = "refusal"
    TRUNCATION = "truncation"
    MALFORMED = "malformed"
    WRONG_IDS = "wrong_ids"
    OUT_OF_RANGE = "out_of_range"
    NAN = "nan"
    HUGE = "huge"
    EMPTY = "empty"
    FOREIGN_QUOTE = "foreign_quote"


SPOILING = frozenset({Mode.WRONG_IDS, Mode.OUT_OF_RANGE, Mode.NAN, Mode.FOREIGN_QUOTE})
"""Modes that need a good answer to spoil."""


@dataclass(frozen=True, slots=True)
class Say:
    """An answer, or a response that is no answer (`status`, `raw`)."""

    answer: Json = None
    stop: str | None = None
    """`stop_reason` or `finish_reason`; default: the dialect's word for a finished answer."""
    refusal: str | None = None
    """OpenAI's field of that name."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    usage: bool = True
    """Whether the response says how many tokens were used."""
    logprobs: Sequence[tuple[str, Mapping[str, float]]] | None = None
    """For OpenAI: each token with the log-probabilities of its alternatives. Where they are asked for and not given
    here, the model is sure of its words, booleans being tokens of their own; `NO_LOGPROBS` keeps them back."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """Sent as the whole body."""


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail in this way."""

    mode: Mode
    good: Json = None
    retry_after_s: float | None = None
    """Header of the 429 and the 529."""


@dataclass(frozen=True, slots=True)
class Held:
    """Wait for `ScriptedProvider.release`, then do this."""

    step: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request."""

    number: int
    dialect: Dialect
    system: str
    user: str
    schema: Json
    """The JSON schema of the answer; None where none was asked for."""
    model: str
    body: dict[str, Any]
    headers: Mapping[str, str]


Step = Any
Script = Step | list[Step] | Callable[[Asked], Step]


class ScriptedProvider:
    """The server; a context manager. Its own event loop runs in a thread."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self._at_once = 0
        self.asked: list[Asked] = []
        self.most_at_once = 0
        self.left = 0
        self.url = ""
        self._script_errors: list[BaseException] = []

    def __enter__(self) -> Self:
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="scripted-provider")
        self._thread.start()
        self._started.wait(WAIT_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WAIT_S)
        if self._script_errors and kind is None:
            raise RuntimeError("the script failed") from self._script_errors[0]

    def release(self) -> None:
        """Let every `Held` step go on, now and from now on."""
        self._loop.call_soon_threadsafe(self._released.set)

    async def until(self, condition: Callable[[], bool], within_s: float = WAIT_S) -> None:
        """Wait until the condition holds; `TimeoutError` if it does not come to that."""
        async with asyncio.timeout(within_s):
            # The condition is about another thread, which has no event of this loop.
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.002)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._released = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024, limit=2**26)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection is always served by a task")
        self._connections.add(task)
        try:
            while await self._one_request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            # Only the end of the server cancels; the streams library would report it as a failure.
            pass
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read and answer one request; whether the connection may be used again."""
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        content = await reader.readexactly(int(headers.get("content-length", "0")))
        asked = self._record(first.split(" ")[1], headers, content)
        if asked is None:
            await _send(writer, 404, {}, b'{"error": {"type": "not_found_error", "message": "no such path"}}')
            return True
        # A client that hangs up while it waits is noticed by a read that ends; nothing else may arrive meanwhile.
        leaving = asyncio.ensure_future(reader.read(1))
        answering = asyncio.ensure_future(self._answer(asked, writer))
        try:
            await asyncio.wait({leaving, answering}, return_when=asyncio.FIRST_COMPLETED)
            return self._outcome(answering)
        finally:
            for task in (leaving, answering):
                task.cancel()
            await asyncio.gather(leaving, answering, return_exceptions=True)
            with self._lock:
                self._at_once -= 1

    def _outcome(self, answering: asyncio.Future[bool]) -> bool:
        """True if the connection may be used again; keeps account of clients that left and of scripts that failed."""
        error = answering.exception() if answering.done() else None
        if not answering.done() or isinstance(error, ConnectionError):
            with self._lock:
                self.left += 1
            return False
        if error is not None:
            self._script_errors.append(error)
            return False
        return answering.result()

    def _record(self, path: str, headers: Mapping[str, str], content: bytes) -> Asked | None:
        plain = path.partition("?")[0].removeprefix("/v1")
        if plain not in {"/messages", "/chat/completions"}:
            return None
        body = json.loads(content)
        with self._lock:
            read = _of_anthropic if plain == "/messages" else _of_openai
            asked = read(len(self.asked), body, headers)
            self.asked.append(asked)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        return asked

    def _step(self, asked: Asked) -> Step:
        script = self._script
        if isinstance(script, list):
            return script[min(asked.number, len(script) - 1)]
        return script(asked) if callable(script) else script

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> bool:
        """Do the step; whether the connection can be used again."""
        step = self._step(asked)
        if isinstance(step, Held):
            await self._released.wait()
            step = step.step
        if isinstance(step, Fail):
            return await _fail(step, asked, writer)
        await _say(step if isinstance(step, Say) else Say(step), asked, writer)
        return True


def spoil(mode: Mode, good: Json) -> str:
    """The text of an answer that would be good but for one thing.

    WRONG_IDS renames each `id`; OUT_OF_RANGE sets each `turn` to 9999 and each `score` to 7; NAN puts NaN for the first
    number (or boolean, where there is none); FOREIGN_QUOTE changes each `quote` that is not empty.

    Raises:
        ValueError: there is nothing in the answer to spoil in this way.
    """
    changes: dict[Mode, Mapping[str, Json]] = {
        Mode.WRONG_IDS: {"id": "nobody"},
        Mode.OUT_OF_RANGE: {"turn": 9999, "score": 7.0},
        Mode.FOREIGN_QUOTE: {"quote": "These words stand in no turn of anybody at all."},
    }
    if mode is Mode.NAN:
        spoilt = _with_nan(good, (int, float)) or _with_nan(good, (bool,))
    else:
        spoilt = _replaced(good, changes[mode])
    if spoilt is None or spoilt == good:
        raise ValueError(f"the good answer has nothing that {mode} could spoil")
    return json.dumps(spoilt)


def _replaced(value: Json, changes: Mapping[str, Json]) -> Json:
    if isinstance(value, dict):
        return {
            key: changes[key] if key in changes and inner not in (None, "") else _replaced(inner, changes)
            for key, inner in value.items()
        }
    return [_replaced(inner, changes) for inner in value] if isinstance(value, list) else value


def _with_nan(value: Json, kinds: tuple[type, ...]) -> Json:
    """A copy with NaN for the first value of one of the kinds; None if there is none."""
    if type(value) in kinds:
        return math.nan
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if type(value) is list else []
    for key, inner in pairs:
        changed = _with_nan(inner, kinds)
        if changed is not None:
            return {**value, key: changed} if isinstance(value, dict) else [*value[:key], changed, *value[key + 1 :]]
    return None


async def _fail(step: Fail, asked: Asked, writer: asyncio.StreamWriter) -> bool:
    waiting = {} if step.retry_after_s is None else {"retry-after": f"{step.retry_after_s:g}"}
    refused = Say(step.good if step.good is not None else "", stop="refusal")
    if asked.dialect == "openai":
        refused = Say(None, refusal="I cannot help with that.")
    cut = json.dumps(step.good) if step.good is not None else '{"a": "b"}'
    said: dict[Mode, Say] = {
        Mode.RATE_LIMITED: Say(status=429, headers=waiting, raw=_error("rate_limit_error")),
        Mode.OVERLOADED: Say(status=529, headers=waiting, raw=_error("overloaded_error")),
        Mode.REFUSAL: refused,
        Mode.TRUNCATION: Say(cut[: len(cut) // 2], stop="max_tokens" if asked.dialect == "anthropic" else "length"),
        Mode.MALFORMED: Say("I think the agent did well, so: {met"),
        Mode.EMPTY: Say(""),
    }
    if step.mode in SPOILING:
        said[step.mode] = Say(spoil(step.mode, step.good))
    if step.mode in said:
        await _say(said[step.mode], asked, writer)
        return True
    await _break(step.mode, writer)
    return False


async def _break(mode: Mode, writer: asyncio.StreamWriter) -> None:
    """The failures of the connection."""
    if mode is Mode.RESET:
        # A linger of zero turns the close into a reset.
        raw: socket.socket = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return
    if mode is Mode.TIMEOUT:
        await asyncio.Event().wait()
    started = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    if mode is Mode.HANG:
        writer.write(started + b"content-length: 1000\r\n\r\n{")
        await writer.drain()
        await asyncio.Event().wait()
    # Chunked, so that the size shows only while it is read.
    writer.write(started + b"transfer-encoding: chunked\r\n\r\n")
    for _ in range(HUGE_BYTES // len(CHUNK)):
        writer.write(b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK))
        await writer.drain()


async def _say(say: Say, asked: Asked, writer: asyncio.StreamWriter) -> None:
    body = say.raw
    if body is None:
        text = None if say.answer is None else say.answer if isinstance(say.answer, str) else json.dumps(say.answer)
        shape = _anthropic_body if asked.dialect == "anthropic" else _openai_body
        body = json.dumps(shape(say, text, asked)).encode()
    await _send(writer, say.status, say.headers, body)


async def _send(writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], body: bytes) -> None:
    lines = [f"HTTP/1.1 {status} Scripted", "content-type: application/json", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
    await writer.drain()


def _error(kind: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": "scripted failure"}}).encode()


def _tokens(given: int | None, text: str) -> int:
    return max(1, len(text) // ESTIMATED_CHARACTERS_PER_TOKEN) if given is None else given


def _anthropic_body(say: Say, text: str | None, asked: Asked) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [] if text is None else [{"type": "text", "text": text}],
        "stop_reason": say.stop or "end_turn",
        "stop_sequence": None,
    }
    if say.usage:
        body["usage"] = {
            "input_tokens": _tokens(say.input_tokens, asked.system + asked.user),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": say.cached_tokens,
            "output_tokens": _tokens(say.output_tokens, text or ""),
        }
    return body


def _openai_body(say: Say, text: str | None, asked: Asked) -> dict[str, Any]:
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text, "refusal": say.refusal},
        "finish_reason": say.stop or "stop",
        "logprobs": None,
    }
    logprobs = say.logprobs
    if logprobs is None and asked.body.get("logprobs") and text is not None:
        logprobs = [(token, {token: 0.0}) for token in re.split(r"(?<=:)( ?(?:true|false))", text) if token]
    if logprobs:
        choice["logprobs"] = {"content": [_token(token, others) for token, others in logprobs], "refusal": None}
    body = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": [choice],
    }
    if say.usage:
        read, written = _tokens(say.input_tokens, asked.system + asked.user), _tokens(say.output_tokens, text or "")
        body["usage"] = {
            "prompt_tokens": read + say.cached_tokens,
            "completion_tokens": written,
            "total_tokens": read + say.cached_tokens + written,
            "prompt_tokens_details": {"cached_tokens": say.cached_tokens},
        }
    return body


def _token(token: str, alternatives: Mapping[str, float]) -> dict[str, Any]:
    return {
        "token": token,
        "logprob": alternatives.get(token, 0.0),
        "bytes": list(token.encode()),
        "top_logprobs": [
            {"token": other, "logprob": logprob, "bytes": list(other.encode())}
            for other, logprob in alternatives.items()
        ],
    }


def _of_anthropic(number: int, body: dict[str, Any], headers: Mapping[str, str]) -> Asked:
    return Asked(
        number=number,
        dialect="anthropic",
        system=_text(body.get("system", "")),
        user="\n".join(_text(message["content"]) for message in body["messages"] if message["role"] == "user"),
        schema=(body.get("output_config") or {}).get("format", {}).get("schema"),
        model=body["model"],
        body=body,
        headers=headers,
    )


def _of_openai(number: int, body: dict[str, Any], headers: Mapping[str, str]) -> Asked:
    def said_by(*roles: str) -> str:
        return "\n".join(_text(message["content"]) for message in body["messages"] if message["role"] in roles)

    return Asked(
        number=number,
        dialect="openai",
        system=said_by("system", "developer"),
        user=said_by("user"),
        schema=(body.get("response_format") or {}).get("json_schema", {}).get("schema"),
        model=body["model"],
        body=body,
        headers=headers,
    )


def _text(content: Json) -> str:
    """The text of a message, whether it is one string or a list of blocks."""
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)
