"""Pages of a list that is at hand as a whole, with the cursors of `api.cursor`.

Without a limit the whole list is one page: so it was before there were pages, and such lists are short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field

from reward_server.api.context import Body
from reward_server.api.cursor import CursorCodec, Position
from reward_server.api.query import QueryModel
from reward_server.store.records import EpisodeCursor

T = TypeVar("T")


def _digits(text: object) -> object:
    """Refuse what the validating library would read as a number, too: `1_0`, `1.0`, ` 1`."""
    if isinstance(text, str) and not (text.isascii() and text.isdigit()):
        raise ValueError("must be a whole number")
    return text


def plain_text(text: str) -> str:
    """Refuse what no database takes, or what came as bytes that are no text."""
    if "\x00" in text:
        raise ValueError("text must not contain NUL characters")
    if "\ufffd" in text:  # the framework's substitute for such bytes, as of a lone surrogate
        raise ValueError("must be valid Unicode text")
    return text


PageLimit = Annotated[int, Field(ge=1, le=100), BeforeValidator(_digits)]
"""Entries of a page, as a query gives it."""


class PageQuery(QueryModel):
    """Query of such a list."""

    limit: PageLimit | None = Field(default=None, description="Entries per page; without it, all that follow.")
    cursor: str | None = Field(default=None, description="`next_cursor` of the page before.")


@dataclass(frozen=True)
class Pager:
    """The cursors of one list and one lab."""

    cursors: CursorCodec
    lab_id: str
    prefix: str
    """What ids of the list begin with."""

    def page(self, entries: Sequence[T], query: PageQuery, position: Callable[[T], Position]) -> tuple[list[T], Body]:
        """The entries of a page, and `next_cursor` where there is another one; entries are the newest first.

        Raises:
            InvalidCursor: the cursor is not one of this list and lab.
        """
        after = None if query.cursor is None else self.cursors.read(self.lab_id, query.cursor, self.prefix)
        rest = [entry for entry in entries if after is None or position(entry) < after]
        shown = rest[: query.limit]
        if len(shown) == len(rest):
            return shown, {}
        return shown, {"next_cursor": self.cursors.write(self.lab_id, position(shown[-1]))}


def after_of(cursors: CursorCodec, lab_id: str, cursor: str | None, prefix: str) -> EpisodeCursor | None:
    """Where a page of a list in the store begins; `InvalidCursor` for one that is not of this list and lab."""
    if cursor is None:
        return None
    position = cursors.read(lab_id, cursor, prefix)
    return EpisodeCursor(created_at=position.created_at, episode_id=position.id)
