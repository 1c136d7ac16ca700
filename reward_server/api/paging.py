"""Pages of lists with the cursors of `api.cursor`: of lists at hand as a whole, and of those read page by page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field

from reward_server.api.context import Body
from reward_server.api.cursor import CursorCodec
from reward_server.api.query import QueryModel
from reward_server.store.records import PageEnd

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
    """Query of a list that is at hand as a whole.

    Without a limit the whole list is one page: so it was before there were pages, and such lists are short.
    """

    limit: PageLimit | None = Field(default=None, description="Entries per page; without it, all that follow.")
    cursor: str | None = Field(default=None, description="`next_cursor` of the page before.")


class PagedQuery(QueryModel):
    """Query of a list that is read page by page."""

    limit: PageLimit = 20
    cursor: str | None = None


class Pager:
    """The pages of one list for one lab."""

    def __init__(self, cursors: CursorCodec, lab_id: str, *prefixes: str) -> None:
        """`prefixes`: what ids of the list begin with."""
        self._cursors = cursors
        self._lab_id = lab_id
        self._prefixes = prefixes

    def after(self, cursor: str | None) -> PageEnd | None:
        """The row that a page begins after.

        Raises:
            InvalidCursor: the cursor is not one of this list and lab.
        """
        return None if cursor is None else self._cursors.read(self._lab_id, cursor, *self._prefixes)

    def following(self, end: PageEnd | None) -> Body:
        """`next_cursor`, where a page has an end that others follow."""
        return {} if end is None else {"next_cursor": self._cursors.write(self._lab_id, end)}

    def shown(self, rows: Sequence[T], limit: int | None, end_of: Callable[[T], PageEnd]) -> tuple[list[T], Body]:
        """The rows of a page, and `next_cursor` if there are more of them than the limit."""
        page = list(rows[:limit])
        return page, self.following(end_of(page[-1]) if len(page) < len(rows) else None)

    def page(self, entries: Sequence[T], query: PageQuery, end_of: Callable[[T], PageEnd]) -> tuple[list[T], Body]:
        """The same of a whole list, the newest first; raises as `after` does."""
        after = self.after(query.cursor)
        rest = [entry for entry in entries if after is None or end_of(entry) < after]
        return self.shown(rest, query.limit, end_of)
