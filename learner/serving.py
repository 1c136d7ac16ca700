"""An OpenAI-compatible endpoint for one small policy: `/v1/models` and `/v1/chat/completions`, streams included.

One conversation speaks at a time, from the policy's own distribution, so what it says here is what it says in training.
"""

from __future__ import annotations

import hmac
import json
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from pydantic import ValidationError

from learner.generate.hf import HfGenerator
from learner.generate.session import Completion, Continuation
from learner.stored import StoredPolicy
from learner.support import Truncation
from trainer_client.chat.dialogue import ChatError, Dialogue, read_chat, read_tools
from trainer_client.chat.tokens import SpokenTokens, TemplateError
from trainer_client.chat.tools import message_of
from trainer_client.wire import ToolCall

MOST_BYTES = 4_000_000
COLDEST = 1e-4
"""What a temperature of 0 becomes: the likeliest token, but for ties."""


class RefusedError(ValueError):
    """A request that cannot be answered."""


@dataclass(frozen=True)
class ServedReply:
    """One turn."""

    text: str
    finish_reason: str
    prompt_tokens: int
    turn: Completion
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()

    def message(self) -> dict[str, Any]:
        """In the form of OpenAI."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.thought:
            message["reasoning_content"] = self.thought
        if self.calls:
            message["content"] = self.text or None
            message["tool_calls"] = [
                {
                    "id": f"call_{uuid.uuid4().hex[:24]}",
                    "type": "function",
                    "function": {"name": call.name, "arguments": json.dumps(call.input, ensure_ascii=False)},
                }
                for call in self.calls
            ]
        return message


class PolicyServer:
    """Answers chats with a stored policy."""

    def __init__(self, stored: StoredPolicy) -> None:
        self.stored = stored
        self._room = threading.Lock()
        self._chance = np.random.SeedSequence()

    def reply(self, body: Mapping[str, Any]) -> ServedReply:
        """The next turn of a chat; raises RefusedError."""
        dialogue, tools = _chat(body)
        temperature = _number(body, "temperature", 1.0, low=0.0, high=10.0)
        wanted = body.get("max_completion_tokens") or body.get("max_tokens") or self.stored.max_tokens
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise RefusedError("max_tokens must be a positive integer")
        own = self.stored.truncation
        truncation = Truncation(
            _number(body, "top_p", own.top_p, low=1e-9, high=1.0),
            int(_number(body, "top_k", own.top_k, low=-1, high=10**9)),  # vLLM writes -1 for all
        )
        seed = body.get("seed")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise RefusedError("seed must be an integer")
        try:
            renderer = self.stored.renderer
            if dialogue.system or tools:
                renderer = renderer.within(dialogue.system, tools)
            said = [renderer.written(turn.text, turn.calls, turn.thought) for turn in dialogue.said]
            ids = renderer.prompt(dialogue.heard, said, dialogue.results)
        except TemplateError as error:
            raise RefusedError(str(error)) from None
        with self._room:
            policy = self.stored.policy(max(temperature, COLDEST))
            policy.truncation = truncation
            generator = HfGenerator(policy, max_tokens=wanted)
            if generator.context is not None and len(ids) + wanted > generator.context:
                raise RefusedError(
                    f"the conversation and max_tokens need {len(ids) + wanted} tokens, but the context of the model has"
                    f" {generator.context}"
                )
            noise = self._chance.spawn(1)[0] if seed is None else np.random.SeedSequence(abs(seed))
            turn = generator.start().step({0: Continuation(ids, noise)})[0]
        return _reply(renderer.spoken(list(turn.ids)), "stop" if turn.ended else "length", len(ids), turn)


def _chat(body: Mapping[str, Any]) -> tuple[Dialogue, list[dict[str, Any]]]:
    """The dialogue so far, and the tools that may be called."""
    try:
        dialogue, tools = read_chat(body.get("messages")), read_tools(body.get("tools"))
    except ChatError as error:
        raise RefusedError(str(error)) from None
    if not dialogue.awaits_policy:
        raise RefusedError("the last message must be the user's, or the results of the assistant's tool calls")
    return dialogue, [] if body.get("tool_choice") == "none" else tools


def _reply(spoken: SpokenTokens, finish_reason: str, prompt_tokens: int, turn: Completion) -> ServedReply:
    try:
        message = message_of(spoken.aloud)
    except ValidationError:  # longer than a server takes: that is for whoever asked to see
        message = None
    calls = (message.tool_calls or ()) if message else ()
    return ServedReply(
        text=message.content if message else spoken.aloud,
        finish_reason="tool_calls" if calls else finish_reason,
        prompt_tokens=prompt_tokens,
        turn=turn,
        thought=spoken.thought,
        calls=tuple(calls),
    )


def listen(stored: StoredPolicy, host: str, port: int, api_key: str | None = None) -> ThreadingHTTPServer:
    """A server that is bound and not yet serving."""
    speaker = PolicyServer(stored)

    class Handler(_Handler):
        pass

    Handler.speaker, Handler.api_key = speaker, api_key

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    return Server((host, port), Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    speaker: PolicyServer
    api_key: str | None

    def log_message(self, *_: object) -> None:
        """Say nothing: what people talk about is in no log."""

    def do_GET(self) -> None:
        """Answer with the name of the model."""
        if not self._is_known():
            return
        if self.path.rstrip("/") != "/v1/models":
            self._refuse(404, f"unknown path {self.path}; use /v1/chat/completions")
            return
        model = {"id": self.speaker.stored.name, "object": "model", "created": 0, "owned_by": "learner"}
        self._answer(200, {"object": "list", "data": [model]})

    def do_POST(self) -> None:
        """A turn of a chat."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > MOST_BYTES:
            self.close_connection = True
            self._refuse(413, "the body is too large")
            return
        content = self.rfile.read(length)
        if not self._is_known():
            return
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._refuse(404, f"unknown path {self.path}; use /v1/chat/completions")
            return
        try:
            body = _object(json.loads(content))
            reply = self.speaker.reply(body)
        except (RefusedError, UnicodeDecodeError, json.JSONDecodeError) as error:
            self._refuse(400, str(error))
            return
        if body.get("stream"):
            self._stream(reply)
        else:
            self._answer(200, self._completion(reply, wants_logprobs=body.get("logprobs") is True))

    def _completion(self, reply: ServedReply, *, wants_logprobs: bool) -> dict[str, Any]:
        used = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": len(reply.turn.ids)}
        choice = {"index": 0, "message": reply.message(), "finish_reason": reply.finish_reason}
        return {
            **self._head("chat.completion"),
            "choices": [{**choice, "logprobs": self._logprobs(reply) if wants_logprobs else None}],
            "usage": {**used, "total_tokens": sum(used.values())},
        }

    def _logprobs(self, reply: ServedReply) -> dict[str, Any]:
        """Of each token, under the distribution it was sampled from."""
        tokenizer = self.speaker.stored.tokenizer
        content = []
        for token, value in zip(reply.turn.ids, reply.turn.logp, strict=True):
            text = tokenizer.decode([token], skip_special_tokens=False, clean_up_tokenization_spaces=False)
            content.append({"token": text, "logprob": value, "bytes": [*text.encode()], "top_logprobs": []})
        return {"content": content}

    def _stream(self, reply: ServedReply) -> None:
        head = self._head("chat.completion.chunk")
        parts: list[dict[str, Any]] = [
            {"delta": _delta(reply.message()), "finish_reason": None},
            {"delta": {}, "finish_reason": reply.finish_reason},
        ]
        lines = [json.dumps({**head, "choices": [{"index": 0, **part}]}) for part in parts]
        self._send(200, "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode(), "text/event-stream")

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": kind,
            "created": int(time.time()),
            "model": self.speaker.stored.name,
        }

    def _is_known(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if self.api_key is None or hmac.compare_digest(given, self.api_key.encode()):
            return True
        self._refuse(401, "the key is missing or wrong")
        return False

    def _refuse(self, status: int, message: str) -> None:
        kind = "invalid_request_error" if status < 500 else "server_error"
        self._answer(status, {"error": {"message": message, "type": kind, "param": None, "code": None}})

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _delta(message: Mapping[str, Any]) -> dict[str, Any]:
    """A whole message as the one part of a stream: its calls are numbered there."""
    calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls", ()))]
    return {**message, "tool_calls": calls} if calls else dict(message)


def _object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise RefusedError("the body must be a JSON object")
    return body


def _number(body: Mapping[str, Any], name: str, default: float, *, low: float, high: float) -> float:
    value = default if body.get(name) is None else body[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise RefusedError(f"{name} must be a number from {low:g} to {high:g}")
    return float(value)
