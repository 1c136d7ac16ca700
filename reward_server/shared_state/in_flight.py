"""One turn at a time per episode, within this process.

Whoever asks first owns the turn. The same request sent again meanwhile joins it and gets the same answer;
any other is refused. An owner that fails or is cancelled frees the episode and hands its joiners an error
that they may retry. Between replicas `locks` do the same, and the store's own check decides.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from reward_server.errors import LabsError, TurnInProgress, Unavailable

Answer = TypeVar("Answer")


class _Turn(Generic[Answer]):
    """A turn being answered: the owner settles it once, everybody else waits for that."""

    def __init__(self, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.settled = asyncio.Event()
        self.answers: list[Answer] = []
        self.failure: BaseException | None = None


class TurnEntry(Generic[Answer]):
    """A request's part in a turn: it either owns the turn or has joined it."""

    def __init__(self, turn: _Turn[Answer], *, is_owner: bool) -> None:
        self._turn = turn
        self.is_owner = is_owner

    def answer(self, value: Answer) -> None:
        """The owner's answer; call it once the turn is stored."""
        if not self.is_owner or self._turn.settled.is_set():
            raise RuntimeError("only the owner answers a turn, and only once")
        self._turn.answers.append(value)
        self._turn.settled.set()

    def fail(self, error: LabsError) -> None:
        """The owner got an error instead."""
        self._turn.failure = error

    async def joined_answer(self) -> Answer:
        """The owner's answer, for one who joined; the owner's error if it had one."""
        await self._turn.settled.wait()
        for answer in self._turn.answers:
            return answer
        raise _error_for_joiner(self._turn.failure)


class InFlightTurns(Generic[Answer]):
    """The turns that are being answered right now."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn[Answer]] = {}

    @contextmanager
    def enter(self, episode_id: str, fingerprint: str) -> Iterator[TurnEntry[Answer]]:
        """Own the episode's turn, or join the same request; `TurnInProgress` if it is another one."""
        turn = self._turns.get(episode_id)
        if turn is not None:
            if turn.fingerprint != fingerprint:
                raise TurnInProgress
            yield TurnEntry(turn, is_owner=False)
            return
        turn = self._turns[episode_id] = _Turn(fingerprint)
        try:
            yield TurnEntry(turn, is_owner=True)
        except BaseException as error:
            turn.failure = error
            raise
        finally:
            del self._turns[episode_id]
            turn.settled.set()


def _error_for_joiner(failure: BaseException | None) -> LabsError:
    """An error object of the joiner's own: a shared one would collect the tracebacks of everybody."""
    if isinstance(failure, LabsError):
        return copy.copy(failure)
    return Unavailable("The request that was answering this turn did not finish; send it again.")
