"""What a persona can work out on numbers that the agent names: rules, each with the mistake that it makes at first.

An author writes arithmetic, which a library evaluates on exact fractions. No attribute, no power and no function but
those named here can be reached from it.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from string import Formatter
from threading import Lock
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from simpleeval import InvalidExpression, SimpleEval

from personas.case.private import PrivateModel
from personas.text.numbers import fraction_name

__all__ = ["Measure", "Skill", "Value", "Way", "named", "work_out"]

Value = Fraction | str
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]

_OPERATORS: Mapping[type[ast.AST], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: Fraction(a) / Fraction(b),
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
    ast.GtE: operator.ge,
    ast.LtE: operator.le,
}
MOST_COUNTED = 10
"""So many numbers of a row are said one by one."""
_TRIAL = (24, 10, 20, 5)
"""What a way is tried with when the file is read."""


class Measure(StrEnum):
    """What a number is said to be, by its sign or the word behind it."""

    NUMBER = "number"
    MONEY = "money"
    PERCENT = "percent"
    FRACTION = "fraction"
    COUNT = "count"
    """How many of something ("which two numbers"): no number to calculate with."""
    LENGTH = "length"
    TIME = "time"
    SPEED = "speed"
    ARGUMENT = "argument"
    """In the brackets of a call: `range(1, 5)`."""


def _counted(first: Fraction, last: Fraction) -> str:
    """The whole numbers of a row, as one says them."""
    row = [str(each) for each in range(int(first), min(int(last), int(first) + MOST_COUNTED) + 1)]
    if not row:
        return "nothing"
    return ", ".join(row) if int(row[-1]) >= last else f"{', '.join(row[:3])} and so on up to {int(last)}"


def _lcm(*values: Fraction) -> Fraction:
    return Fraction(math.lcm(*map(int, values)))


_FUNCTIONS: Mapping[str, Callable[..., object]] = {"min": min, "max": max, "lcm": _lcm, "counted": _counted}


_one_parses = Lock()


@lru_cache(maxsize=4096)
def _parsed(expression: str) -> ast.expr:
    """The tree of an expression.

    One is parsed at a time: CPython 3.11 counts the depth of trees for all threads together, and two that parse at
    once may both fail with `SystemError` (its issue 106905).
    """
    with _one_parses:
        return ast.parse(expression, mode="eval").body


def _evaluated(expression: str, known: Mapping[str, Value]) -> Value:
    evaluator = SimpleEval(operators=dict(_OPERATORS), functions=dict(_FUNCTIONS), names=dict(known))
    found = evaluator.eval(expression, _parsed(expression))
    return found if isinstance(found, str) else Fraction(found)


def _parses(expression: str) -> str:
    """Checks the form of an expression; names are checked by who knows them."""
    try:
        _parsed(expression)
    except SyntaxError:
        raise ValueError(f"`{expression}` is no arithmetic: use names, numbers, + - * / and brackets") from None
    return expression


Expression = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_parses)]


class Way(PrivateModel):
    """One way to work something out, and the words for it."""

    when: Expression | None = None
    """Whether it is the way for these numbers; the first that fits is taken."""
    steps: Mapping[Name, Expression] = {}
    """Worked out in this order; each may use the names before it."""
    says: tuple[Words, ...] = Field(min_length=1, max_length=6)
    """How the persona tells it; `{price}` stands for a number, `{price:money}` and `{part:fraction}` for its form."""


class Skill(PrivateModel):
    """A rule of the case, right after the insight and with a misconception before it."""

    id: Name
    asks: tuple[Words, ...] = Field(min_length=2)
    """Turns that set such a task: they choose among skills that need the same numbers."""
    given: Mapping[Name, Measure] = Field(min_length=1, max_length=6)
    """The numbers that the agent has to name, in the order in which they are named."""
    right: tuple[Way, ...] = Field(min_length=1)
    wrong: tuple[Way, ...] = ()
    """How it goes about it before the insight; without any it makes no mistake here."""
    insight: tuple[Name | tuple[Name, ...], ...] = ()
    """The facts that it has to have told before it does it right; of a list among them, any one."""
    known: tuple[tuple[Fraction, ...], ...] = ()
    """Numbers that are the case's own, each time all that are `given`: its facts answer such a task, if they can."""
    shows: tuple[Name, ...] = ()
    """Facts that a task of this kind asks for: told with the result as soon as they may be told."""

    @model_validator(mode="after")
    def _can_be_worked_out(self) -> Self:
        trial: dict[str, Value] = {}
        for (name, measure), value in zip(self.given.items(), _TRIAL * 2, strict=False):
            trial |= named(name, measure, Fraction(1, value) if measure is Measure.FRACTION else Fraction(value))
        for way in (*self.right, *self.wrong):
            _try(way, trial)
        return self


def named(
    name: str, measure: Measure, value: Fraction, parts: tuple[int, int] | None = None
) -> Iterator[tuple[str, Value]]:
    """A given number by its name; of a fraction also what is written on top and below."""
    yield name, value
    if measure is Measure.FRACTION:
        top, bottom = parts or (value.numerator, value.denominator)
        yield from ((f"{name}_top", Fraction(top)), (f"{name}_bottom", Fraction(bottom)))


def work_out(ways: Iterable[Way], known: Mapping[str, Value]) -> tuple[str, ...] | None:
    """The numbers worked out by the first way that fits them; None where none does, or they cannot be (1 / 0)."""
    try:
        for way in ways:
            if way.when is None or _evaluated(way.when, known):
                return _words(way, known)
    except (ArithmeticError, InvalidExpression):
        return None
    return None


def _words(way: Way, known: Mapping[str, Value]) -> tuple[str, ...]:
    values = dict(known)
    for name, expression in way.steps.items():
        values[name] = _evaluated(expression, values)
    return tuple(_Teller().vformat(line, (), values) for line in way.says)


def _try(way: Way, trial: Mapping[str, Value]) -> None:
    try:
        if way.when is not None:
            _evaluated(way.when, trial)
        _words(way, trial)
    except ArithmeticError:
        return
    except (InvalidExpression, KeyError, ValueError, TypeError, IndexError) as error:
        raise ValueError(f"cannot be worked out: {error}; use the names of `given` and of earlier steps") from None


class _Teller(Formatter):
    """Numbers as people say them. Reaches no attribute and no item."""

    def get_field(self, field_name: str, args: object, kwargs: Mapping[str, Value]) -> tuple[Value, str]:
        return kwargs[field_name], field_name

    def format_field(self, value: Value, format_spec: str) -> str:
        if isinstance(value, str):
            return value
        match format_spec:
            case "":
                return _plain(value)
            case "money":
                return f"{int(value)}" if value.denominator == 1 else f"{float(value):.2f}"
            case "fraction":
                return fraction_name(value.numerator, value.denominator)
            case _:
                raise ValueError(f"`{format_spec}` is no form: money or fraction")


def _plain(value: Fraction) -> str:
    return f"{int(value)}" if value.denominator == 1 else f"{float(value):.2f}".rstrip("0").rstrip(".")
