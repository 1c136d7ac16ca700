"""Looks up the names that labs give, so that no lab can keep another one, or the server's own calls, from looking up.

A name server that does not answer holds a thread for long after its caller has given up. So these lookups have threads
of their own, and what a lab has given up counts among the few that it may have at once.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections import defaultdict
from concurrent.futures import Future
from functools import partial

from reward_server.limits.fair_threads import lab_at_work

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
RESOLVE_S = 5.0
AT_ONCE = 4
"""Lookups of one lab; more wait, and have no answer after `RESOLVE_S`."""


class NameLookups:
    """The lookups of all labs; whose a lookup is says the task that asks (`fair_threads.lab_at_work`)."""

    def __init__(self) -> None:
        self._places: defaultdict[str, asyncio.Semaphore] = defaultdict(partial(asyncio.Semaphore, AT_ONCE))

    async def addresses(self, host: str, port: int) -> list[Address]:
        """All addresses of a name; none where it has none, or where none is known in time."""
        place = self._places[lab_at_work()]
        try:
            async with asyncio.timeout(RESOLVE_S):
                await place.acquire()
                found: Future[list[Address]] = Future()
                asked = asyncio.wrap_future(found)
                asked.add_done_callback(lambda _: place.release())
                # No pool: the server does not wait for such a thread when it stops.
                threading.Thread(target=_look_up, args=(host, port, found), daemon=True).start()
                return await asyncio.shield(asked)
        except TimeoutError:
            return []


def _look_up(host: str, port: int, found: Future[list[Address]]) -> None:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        found.set_result([ipaddress.ip_address(entry[4][0]) for entry in entries])
    except (OSError, ValueError):  # `UnicodeError` is a `ValueError`
        found.set_result([])
