"""The key of a kept decision holds the program that decides: whatever it imports that reads or writes words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.resources import files

import pytest

from reward_server.judges import verdict_cache
from reward_server.judges.verdict_cache import DECIDING, key_of

DECIDES_NOTHING = {
    *("reward_server.judges.cascade", "reward_server.judges.verdict_cache", "reward_server.judges.verdict_memory"),
    *("reward_server.llm.base", "reward_server.llm.single_flight"),
    *("personas.case", "personas.compiled", "personas.hearing", "personas.matcher", "personas.memory"),
    "personas.replay",
}
"""Interfaces, memories and what was made of a transcript for other judges."""
PACKAGES = tuple(DECIDING)


def imported(module: str) -> Iterator[str]:
    package, _, name = module.rpartition(".")
    for node in ast.walk(ast.parse((files(package) / f"{name}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.rpartition(".")[0] in PACKAGES:
            yield node.module
        elif isinstance(node, ast.ImportFrom) and node.module in PACKAGES:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def test_modules_that_are_imported_by_name_are_seen() -> None:
    assert {"personas.lexicon", "personas.manners", "personas.disguise"} <= set(imported("personas.acts"))


def test_whatever_decides_is_part_of_the_key() -> None:
    named = {f"{package}.{name}" for package, names in DECIDING.items() for name in names}
    needed = {other for module in named for other in imported(module)}
    assert needed - named - DECIDES_NOTHING == set()


def test_another_program_gives_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict_cache._program.cache_clear()
    before = key_of({"criterion": "a"})
    assert before == key_of({"criterion": "a"}) != key_of({"criterion": "b"})
    fewer = {**DECIDING, "personas": DECIDING["personas"][:-1]}
    monkeypatch.setattr(verdict_cache, "DECIDING", fewer)
    verdict_cache._program.cache_clear()
    try:
        assert key_of({"criterion": "a"}) != before
    finally:
        verdict_cache._program.cache_clear()
