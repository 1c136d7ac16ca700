"""An OpenAI-compatible chat server that files each prompt into a folder and waits for an answer written by hand.

    python -m benchmarks.mailbox_provider mail --port 8770
    LABS_DECISIONS=chat LABS_DECISIONS_URL=http://127.0.0.1:8770/v1 LABS_DECISIONS_MODEL=mailbox …

A prompt is `mail/0001.json`: its messages, the JSON schema or the choices that the answer is held to, and what log-
probabilities are wanted. The answer is `mail/0001.answer.json`, one of

* `{"text": "..."}` or `{"text": {...}}`: what the model says; JSON is checked against the schema,
* `{"probabilities": {"Yes": 0.9, "No": 0.1}}`: of a question for one label; each becomes a log-probability.

An answer that does not fit is renamed `0001.refused.json`, with the reason beside it in `0001.why.txt`, and another is
waited for. The same prompt is asked once: answers are kept by content, so a run can be repeated without a hand. Write
an answer under another name and rename it, so that none is read half.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema

LOOK_S = 0.2
LEAST = 1e-6
"""What stands for a probability of 0, which has no logarithm."""
ABOUT_ONE = 0.02


class Mailbox:
    """A folder of prompts and answers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The completion, once somebody has written an answer that fits."""
        asked = _asked(body)
        path = self._filed(asked)
        while True:
            written = path.with_suffix(".answer.json")
            if written.exists():
                try:
                    given = json.loads(written.read_text(encoding="utf-8"))
                    return _completion(body, asked, given)
                except (ValueError, jsonschema.ValidationError) as error:
                    written.rename(path.with_suffix(".refused.json"))
                    reason = error.message if isinstance(error, jsonschema.ValidationError) else str(error)
                    path.with_suffix(".why.txt").write_text(f"{reason}\n", encoding="utf-8")
            time.sleep(LOOK_S)

    def _filed(self, asked: dict[str, Any]) -> Path:
        """Where this prompt lies: filed now, or before."""
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        with self._lock:
            index = self._folder / "index.json"
            known: dict[str, str] = json.loads(index.read_text()) if index.exists() else {}
            name = known.setdefault(digest, f"{len(known) + 1:04d}")
            path = self._folder / f"{name}.json"
            if not path.exists():
                path.write_text(json.dumps(asked, indent=1, ensure_ascii=False), encoding="utf-8")
                index.write_text(json.dumps(known, indent=1))
        return path


def _asked(body: dict[str, Any]) -> dict[str, Any]:
    """What an answer depends on, as somebody reads it."""
    shape = body.get("response_format") or {}
    constraint = body.get("structured_outputs") or {}
    found = {
        "messages": body["messages"],
        "schema": (shape.get("json_schema") or {}).get("schema"),
        "choices": constraint.get("choice"),
        "logprobs": bool(body.get("logprobs")),
        "most_tokens": body.get("max_completion_tokens", body.get("max_tokens")),
    }
    return {name: value for name, value in found.items() if value not in (None, False)}


def _completion(body: dict[str, Any], asked: dict[str, Any], given: Any) -> dict[str, Any]:
    """The answer as a server sends it; `ValueError` where it does not fit what was asked."""
    if not isinstance(given, dict):
        raise ValueError("an answer is an object with `text` or `probabilities`")  # noqa: TRY004 (its text is wrong)
    if "probabilities" in given:
        text, tokens = _label(asked, given["probabilities"])
    else:
        text, tokens = _text(asked, given.get("text")), None
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
        "logprobs": None if tokens is None else {"content": tokens},
    }
    usage = {"prompt_tokens": len(json.dumps(asked)) // 4, "completion_tokens": max(1, len(text) // 4)}
    return {"id": "mail", "object": "chat.completion", "model": body.get("model"), "choices": [choice], "usage": usage}


def _text(asked: dict[str, Any], said: Any) -> str:
    if said is None:
        raise ValueError("an answer is an object with `text` or `probabilities`")
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    if "schema" in asked:
        jsonschema.validate(json.loads(text), asked["schema"])
    if "choices" in asked:
        raise ValueError(f"write `probabilities` of {', '.join(asked['choices'])}")
    return text


def _label(asked: dict[str, Any], given: Any) -> tuple[str, list[dict[str, Any]]]:
    if not isinstance(given, dict) or not all(isinstance(p, (int, float)) and 0 <= p <= 1 for p in given.values()):
        raise ValueError("`probabilities` are numbers from 0 to 1, by label")
    if "choices" in asked and not set(given) <= set(asked["choices"]):
        raise ValueError(f"only these are labels: {', '.join(asked['choices'])}")
    if abs(sum(given.values()) - 1) > ABOUT_ONE:
        raise ValueError("the probabilities do not come to 1")
    rows = [{"token": label, "logprob": math.log(max(p, LEAST))} for label, p in given.items()]
    rows.sort(key=lambda row: -float(str(row["logprob"])))
    return str(rows[0]["token"]), [{**rows[0], "top_logprobs": rows}]


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """The server, on loopback."""
    mailbox = Mailbox(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            found = mailbox.answer(body) if self.path.endswith("/chat/completions") else None
            raw = json.dumps(found or {"error": {"message": "no such route"}}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: prompts are private."""

    found = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    found.daemon_threads = True
    return found


def main() -> None:
    """Serve until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8770)
    given = parser.parse_args()
    print(f"http://127.0.0.1:{given.port}/v1 files prompts into {given.folder}", flush=True)
    server(given.folder, given.port).serve_forever()


if __name__ == "__main__":
    main()
