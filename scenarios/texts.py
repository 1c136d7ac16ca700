"""Checks of the agent's words by rule: keywords, and regular expressions of an engine that cannot be made to run long.

Patterns are written by whoever writes a rubric, and a lab may send one in a request. RE2 searches in time linear in
the text, whatever the pattern; what it cannot do that way (look-around, back-references) it does not know. A pattern
that is malformed, too long, too large once compiled, or found in empty text is refused where it is read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal, Self

import re2
from pydantic import Field, field_validator, model_validator

from personas.case.private import PrivateModel
from personas.case.schema import Line
from personas.text.wording import normal

MAX_PATTERN_CHARACTERS = 400
MAX_PROGRAM_BYTES = 1 << 15
"""Of a compiled pattern: a pattern of so many repeats of repeats is slow on long texts, linear or not."""
MALFORMED = (
    "is no regular expression of RE2, or too large: check brackets and repeats; look-ahead, look-behind and "
    "back-references do not exist there"
)
EMPTY = "is found in empty text, so it would always be found: make a part of it compulsory"

Where = Literal["any", "first", "last"]
"""Which agent turns are looked at: all of them, the first, or the last."""


class KeywordCheck(PrivateModel):
    """Rule: words and phrases, found as whole words whatever their case and punctuation.

    A criterion that earns looks for `any` and `all` in what the agent says to the other side in sentences of its own;
    lists of words are none. `none`, and a criterion that costs, looks at everything that the agent said.
    """

    any: tuple[Line, ...] = Field(default=(), max_length=60)
    all: tuple[Line, ...] = Field(default=(), max_length=60)
    none: tuple[Line, ...] = Field(default=(), max_length=60)
    at_least: int = Field(default=1, ge=1, le=60)
    """So many different ones of `any`."""
    at_most: int | None = Field(default=None, ge=0, le=1000)
    """How often words of `any` and `all` may be said in all."""
    where: Where = "any"

    @model_validator(mode="after")
    def _can_be_decided(self) -> Self:
        named = (*self.any, *self.all, *self.none)
        if not named:
            raise ValueError("a keyword check names words under `any`, `all` or `none`")
        if not all(normal(each).strip() for each in named):
            raise ValueError("each keyword must hold a letter or a digit")
        if self.any and self.at_least > len(self.any):
            raise ValueError("`at_least` asks for more words than `any` has")
        return self


class RegexCheck(PrivateModel):
    """Rule: a regular expression of RE2, searched in the agent's turns; which of their words, `KeywordCheck` says."""

    pattern: str = Field(min_length=1, max_length=MAX_PATTERN_CHARACTERS)
    ignore_case: bool = True
    at_least: int = Field(default=1, ge=0, le=1000)
    """How often it must be found; 0 with `at_most` for what must not be said."""
    at_most: int | None = Field(default=None, ge=0, le=1000)
    where: Where = "any"

    @field_validator("pattern")
    @classmethod
    def _is_sound(cls, pattern: str) -> str:
        try:
            found = compiled(pattern, ignore_case=True).search("")
        except re2.error:
            raise ValueError(MALFORMED) from None
        if found:
            raise ValueError(EMPTY)
        return pattern

    @model_validator(mode="after")
    def _can_be_decided(self) -> Self:
        if self.at_most is None and self.at_least == 0:
            raise ValueError("`at_least: 0` needs `at_most`, or it is always met")
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError("`at_most` is less than `at_least`")
        return self


@lru_cache(maxsize=2048)
def compiled(pattern: str, *, ignore_case: bool) -> Any:
    """The pattern as RE2 compiles it; `re2.error` where it cannot."""
    options = re2.Options()
    options.max_mem = MAX_PROGRAM_BYTES
    options.log_errors = False
    options.case_sensitive = not ignore_case
    return re2.compile(pattern, options)
