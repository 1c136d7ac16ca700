"""A classifier behind a URL: vLLM's `/classify` or `/pooling`, or anything that answers alike.

What goes wrong is a `JudgeFailed` with a kind and without content; after a failure of the server nothing is sent for a
few seconds, so that threads do not all wait for one that hangs.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from reward_server.classifier.chat import Chat, single
from reward_server.errors import ConfigurationError, JudgeFailed
from reward_server.logs.logger import get_logger

PATHS = ("/classify", "/pooling")
CONNECT_S = 5.0
MAX_BODY_BYTES = 8_388_608
"""Models that give a number for every token answer with some hundred thousand of them."""
ATTEMPTS = 2
PAUSE_S = 5.0
"""So long nothing is sent after the server failed."""

log = get_logger(__name__)


class RemoteClassifier:
    """Asks a server, one chat a request; the server batches them."""

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str | None = None,
        timeout_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args: url: ends in `/classify` or `/pooling`; model: the name it is served by."""
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.netloc or not parts.path.endswith(PATHS):
            raise ConfigurationError(
                "LABS_CLASSIFIER: a URL has to end in /classify or /pooling, such as http://127.0.0.1:8000/classify"
            )
        self._url = url
        self._model = model
        self._is_pooling = parts.path.endswith("/pooling")
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        # Neither a proxy of the environment nor a redirect decides where conversations and the key go.
        self._http = httpx2.Client(
            timeout=httpx2.Timeout(timeout_s, connect=CONNECT_S),
            headers=headers,
            follow_redirects=False,
            trust_env=False,
        )
        self._clock = clock
        self._silent_until = -math.inf
        named = hashlib.sha256(f"{url}\0{model}".encode()).hexdigest()[:12]
        self._version = f"classifier/http/{named}"

    @property
    def version(self) -> str:
        """Of URL and model; which weights a server has under a name, only its operator knows."""
        return self._version

    def output(self, chat: Chat) -> float:
        """A number on the model's own scale: its only output, or how far the second of two labels is ahead."""
        return output_of(self._answer(chat), is_pooling=self._is_pooling)

    def _answer(self, chat: Chat) -> Any:
        if self._clock() < self._silent_until:
            raise JudgeFailed(kind="breaker_open", retry_after_s=math.ceil(PAUSE_S))
        for attempt in range(1, ATTEMPTS + 1):
            kind, answer = self._asked(chat)
            if kind == "":
                return answer
            if kind not in {"overloaded", "reset"}:
                break
            if attempt == ATTEMPTS:
                self._silent_until = self._clock() + PAUSE_S
        if kind == "timeout":
            self._silent_until = self._clock() + PAUSE_S
        log.error("classifier_failed", kind=kind)
        raise JudgeFailed(kind=kind)

    def _asked(self, chat: Chat) -> tuple[str, Any]:
        """The failure of one attempt, or none, and the answer."""
        body = {
            "model": self._model,
            "messages": list(chat),
            "add_generation_prompt": False,
            # Logits: a sigmoid or softmax would run into its ends.
            "use_activation": False,
        }
        try:
            with self._http.stream("POST", self._url, json=body) as response:
                if response.status_code != 200:
                    return _kind_of(response.status_code), None
                read = bytearray()
                for part in response.iter_bytes():
                    read += part
                    if len(read) > MAX_BODY_BYTES:
                        return "too_large", None
            return "", httpx2.Response(200, content=bytes(read)).json()
        except httpx2.TimeoutException:
            return "timeout", None
        except httpx2.HTTPError:
            return "reset", None
        except ValueError:
            return "malformed", None


def _kind_of(status: int) -> str:
    if status == 429 or status >= 500:
        return "overloaded"
    return {401: "unauthorised", 403: "unauthorised", 404: "not_found"}.get(status, "rejected")


def output_of(answer: Any, *, is_pooling: bool) -> float:
    """The number in an answer.

    `/classify` gives `data[0].probs`, which are logits where no activation is applied; `/pooling` gives `data[0].data`,
    of models with a number for every token a list of them, of which the last counts.

    Raises:
        JudgeFailed: it holds none.
    """
    data = answer.get("data") if isinstance(answer, Mapping) else None
    if not isinstance(data, list) or len(data) != 1 or not isinstance(data[0], Mapping):
        raise JudgeFailed(kind="malformed")
    found = data[0].get("data" if is_pooling else "probs")
    while isinstance(found, list) and found and isinstance(found[-1], list):
        found = found[-1]
    if not isinstance(found, list) or not all(_is_number(each) for each in found):
        raise JudgeFailed(kind="malformed")
    return single([float(each) for each in found])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
