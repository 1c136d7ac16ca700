"""The error tree: every class has a code of its own, and the tree drawn in the module is the tree."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_server import errors
from reward_server.errors import FieldProblem, InvalidRequest, LabsError, RateLimited, StoreUnavailable, in_a_line


def tree(root: type[LabsError] = LabsError) -> Iterator[type[LabsError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child)


def test_codes_are_stable_words_and_belong_to_one_class() -> None:
    codes = [error.code for error in tree()]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


def test_the_drawing_shows_every_class_with_its_code() -> None:
    drawn = dict(re.findall(r"^[ │├└─]*(\w+) +(\w+)", errors.__doc__ or "", re.MULTILINE))
    assert {error.__name__: error.code for error in tree()}.items() <= drawn.items()


def test_no_code_is_given_anywhere_else() -> None:
    """A code is part of the contract, so all of them stand in one place."""
    elsewhere = []
    for path in Path(errors.__file__).parent.rglob("*.py"):
        classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
        for each in classes:
            named = [
                t.id for node in each.body if isinstance(node, ast.Assign) for t in node.targets if hasattr(t, "id")
            ]
            if {"code", "default_message"} & set(named) and path.name != "errors.py":
                elsewhere.append(f"{path.name}: {each.name}")
    assert elsewhere == []


@pytest.mark.parametrize("error", list(tree()))
def test_every_error_has_a_message_for_people(error: type[LabsError]) -> None:
    assert error().message == str(error()) == error.default_message
    assert error("something else").message == "something else"
    assert "default_message" in vars(error)


def test_an_item_is_told_the_first_thing_that_is_wrong_and_where() -> None:
    problems = [FieldProblem(("messages", 0), "Is required."), FieldProblem((), "Must be an object.")]
    assert in_a_line(InvalidRequest(errors=problems)) == "messages.0: Is required."
    assert in_a_line(InvalidRequest(errors=problems[1:])) == "Must be an object."
    assert in_a_line(StoreUnavailable("m")) == "m"


@pytest.mark.parametrize(
    "error",
    [InvalidRequest("m", [FieldProblem(("a", 0), "bad")]), RateLimited(retry_after_s=9), StoreUnavailable("m")],
)
def test_a_copy_says_the_same(error: LabsError) -> None:
    assert vars(copy.copy(error)) == vars(error)
