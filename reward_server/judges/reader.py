"""Reads what an agent said as a language model is shown it, by patterns and by likeness, for every judge that asks one.

There is one for all judges of a process, so that a turn is read once. Reading by likeness runs a model and is done in
few threads of its own: conversations that wait to be read hold up no other work.

So that no conversation takes long, likeness reads a bounded number of characters of it, spread evenly over its texts:
all of the short ones, and of the others the beginning, the same length of each. What is beyond is left out unread, or
length would be a way past; as with anything left out, the model is asked with all that was said, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from personas.memory import remembered
from reward_server.judges.likeness import Likeness
from reward_server.judges.shown import Read, sentences_of, shown_of, texts_of
from reward_server.scoring.transcript import Transcript

MOST_READ = 40_000
"""Characters of what an agent said in a conversation, about 7,000 words, that are read by likeness."""
THREADS = 2

P = ParamSpec("P")
T = TypeVar("T")


class Reader:
    """What is left of texts of agents; without likeness, by patterns alone."""

    def __init__(self, likeness: Likeness | None = None) -> None:
        self._likeness = likeness
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="labs-reading")
        self._left_of: Read = shown_of if likeness is None else remembered(4096)(partial(_left_by, likeness))

    @property
    def version(self) -> str:
        """What knows pleas; part of the version of a judge."""
        return "patterns" if self._likeness is None else self._likeness.version

    def __call__(self, text: str) -> str:
        """What is left of one text, however long; blocking."""
        return self._left_of(text)

    def over(self, transcript: Transcript, memory: Read | None = None) -> Read:
        """How to read the texts of this transcript, which takes a bounded time; `memory` is one of this reader."""
        read = memory or self
        longest = None if self._likeness is None else level([*map(len, set(texts_of(transcript)))], MOST_READ)
        return read if longest is None else lambda text: read(beginning(text, longest))

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of work that reads, done in the threads for it."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **kwargs))

    async def warm(self) -> None:
        """Get ready, so that the first conversation is read as fast as the others."""
        if self._likeness is not None:
            await self.aside(self._likeness.warm)

    def close(self) -> None:
        """Read nothing more; what is being read goes on in its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _left_by(likeness: Likeness, text: str) -> str:
    return likeness.left_of(tuple(sentences_of(shown_of(text)))).strip()


def level(lengths: Collection[int], most: int) -> int | None:
    """The length that no text may have more of, for all to come to `most`; None where they do not come to that."""
    left = most
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return None


def beginning(text: str, longest: int) -> str:
    """The whole sentences at the beginning of a text that are not longer together."""
    if len(text) <= longest:
        return text
    end = 0
    for sentence in sentences_of(text):
        if end + len(sentence) > longest:
            break
        end += len(sentence)
    return text[:end]
