"""Scores rows by a reward of one's own instead of a scenario's rubric: `labs evaluate --reward module:object`.

A name alone is one of the library's, `trainer_client.rewards`. Nothing of a scenario is read, and no server is needed.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reward_server.errors import InvalidRequest
from reward_server.offline.formats import BadRow, NoAgent, RowConversation, convert
from reward_server.offline.results import Result, result_key
from reward_server.offline.rows import InputRow
from reward_server.offline.run import BATCH, SAY_WHO, ScoringTask, own_id
from reward_server.offline.workers import ScoredRows, in_batches

LIBRARY = "trainer_client.rewards"
_MOST_REASON = 200


def load_reward(name: str) -> Any:
    """The reward of this name: an object with `score`, or a callable from messages to a number.

    Raises:
        InvalidRequest: there is none, or it is no reward; one line says why.
    """
    module, separator, attribute = name.partition(":")
    if not separator:
        module, attribute = LIBRARY, name
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), attribute)
        made = found() if isinstance(found, type) else found
    except Exception as error:  # noqa: BLE001 (anybody's program)
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_REASON]
        raise InvalidRequest(f"--reward {name} cannot be loaded: {reason}") from None
    finally:
        sys.path.pop(0)
    if not callable(getattr(made, "score", None)) and not callable(made):
        raise InvalidRequest(f"--reward {name} is no reward: it needs a method `score`, or is called with messages")
    return made


class RewardWorkerPool:
    """One worker in this process, which asks a reward."""

    def __init__(self, name: str, reward: Any, task: ScoringTask) -> None:
        self._reward: Callable[[Sequence[Mapping[str, Any]]], Any] = getattr(reward, "score", reward)
        self._version = f"{name}/{getattr(reward, 'version', '1')}"
        self._task = task

    def score(self, rows: Iterable[InputRow], done: frozenset[str]) -> Generator[ScoredRows]:
        """As `WorkerPool` says."""
        for some in in_batches(rows, BATCH):
            started = time.perf_counter()
            results = [result for row in some for result in self._results(row, done)]
            worker = f"{os.uname().nodename}:{os.getpid()}"
            yield ScoredRows(results, worker, time.perf_counter() - started, self._version)

    def _results(self, row: InputRow, done: frozenset[str]) -> Iterator[Result]:
        try:
            conversations = self._read(row)
        except BadRow as error:
            message = f"{error} ({SAY_WHO})" if isinstance(error, NoAgent) else str(error)
            key = result_key(row.number, "", None, None, [])
            bad = {"key": key, "row": row.number, **own_id(row.data), "status": "error"}
            yield from () if key in done else ({**bad, "code": "bad_row", "message": message},)
            return
        for each in conversations:
            result = self._result(row, each)
            if result["key"] not in done:
                yield {**result, **self._scored(each)}

    def _read(self, row: InputRow) -> list[RowConversation]:
        if row.problem:
            raise BadRow(row.problem)
        return list(convert(row.data, self._task.format, self._task.speakers))

    def _result(self, row: InputRow, talk: RowConversation) -> Result:
        result: Result = {"key": result_key(row.number, talk.part, None, None, talk.messages), "row": row.number}
        return result | ({"part": talk.part} if talk.part else {}) | own_id(row.data)

    def _scored(self, talk: RowConversation) -> Result:
        """The outcome; what a reward raises, or a number that is none, is an error of this conversation."""
        try:
            found = self._reward(talk.messages)
            reward = _number(getattr(found, "reward", found))
        except Exception as error:  # noqa: BLE001 (anybody's program)
            message = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST_REASON]
            return {"status": "error", "code": "reward_failed", "message": message}
        components = {name: float(value) for name, value in getattr(found, "components", {}).items()}
        turns = sum(message["role"] == "assistant" for message in talk.messages)
        return {
            "turns": turns,
            "status": "success",
            "reward": reward,
            "scores": components,
            "flags": [],
            "scoring_version": self._version,
        }


def _number(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and 0.0 <= number <= 1.0):
        raise ValueError(f"a reward is a number from 0 to 1, not {number!r}")
    return number
