"""Normalisation windows of a request: read before anything new is stored, so no reward is in its own window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reward_server.clock import Clock
from reward_server.errors import FieldProblem, InvalidRequest
from reward_server.scoring.normalise import WindowRange, normalised, parse_windows
from reward_server.store.records import Stats
from reward_server.store.store import Store
from trainer_client.wire import EvaluateRequest

Standing = Mapping[tuple[str, str], Stats]
"""Statistics by normalisation key and window."""


class WindowReader:
    """Reads the statistics that requests ask for."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def check(self, request: EvaluateRequest) -> None:
        """`InvalidRequest` for windows that are malformed or have no key."""
        if request.normalization_windows is None:
            return
        if request.normalization_key is None:
            problem = FieldProblem(("normalization_windows",), "Windows need a normalization_key.")
            raise InvalidRequest(errors=[problem])
        parse_windows(request.normalization_windows, self._clock.now())

    async def read(self, lab_id: str, requests: Iterable[EvaluateRequest]) -> Standing:
        """Each window once, all from one state of the store."""
        wanted = self._wanted(requests)
        if not wanted:
            return {}
        async with self._store.reading() as unit:
            return {
                (key, window.spec): await unit.evaluations.window(lab_id, key, since=window.since, last=window.last)
                for key, window in wanted
            }

    def _wanted(self, requests: Iterable[EvaluateRequest]) -> list[tuple[str, WindowRange]]:
        now = self._clock.now()
        ranges: dict[tuple[str, str], tuple[str, WindowRange]] = {}
        for request in requests:
            key = request.normalization_key
            if key is not None:
                for window in parse_windows(request.normalization_windows or (), now):
                    ranges[key, window.spec] = (key, window)
        return list(ranges.values())


def standings(request: EvaluateRequest, reward: float, standing: Standing) -> dict[str, object] | None:
    """The `normalized` field; None when no windows were asked for."""
    key = request.normalization_key
    if key is None or not request.normalization_windows:
        return None
    windows: dict[str, object] = {}
    for spec in request.normalization_windows:
        stats = standing[key, spec]
        # Not `exclude_none`: a z that cannot be computed is null on the wire.
        windows[spec] = normalised(reward, stats.n, stats.mean, stats.std).model_dump()
    return windows
