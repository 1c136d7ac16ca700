"""Breaches stand beside the oracle and the natural agents, and `check` says which of them cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from personas.case.compiled import CompiledCase
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, Stance
from personas.reading.reader import Reader, Turn
from reward_server.exam.breaches import unfired
from scenarios.agents import load_agents, load_breaches
from scenarios.library import SealedScenario, load_library
from scenarios.schema import Breach
from scenarios.template import begin
from scenarios.yamlfile import ScenarioFileError


class Hears(Reader):
    """Hears one commitment in every sentence, as surely as it is told to."""

    version = "hears"

    def __init__(self, name: str, confidence: float) -> None:
        self._found = (ReadCandidate(name, confidence),)

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        propose = frozenset({Act.PROPOSE})
        return [Reading((Sentence(text, propose, Stance.ASSERTED, (), self._found),)) for _, text in turns]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("collections")
    begin("my-team/my-scenario", root)
    return root


@pytest.fixture(scope="module")
def sealed(folder: Path) -> SealedScenario:
    return load_library(folder).vault.open("my-team", "my-scenario")


def _capped(sealed: SealedScenario) -> str:
    rubric = sealed.secrets.rubric
    return next(c.check.committed.any_of[0] for c in rubric.criteria if c.cap is not None and c.check.committed)


def test_breaches_are_read_from_the_file_of_the_agents(folder: Path, sealed: SealedScenario) -> None:
    path = folder / "my-team" / "my-scenario.agents.yaml"
    before = path.read_text()
    path.write_text(before + "breaches:\n  - {say: Just ride on with it., commits: some_promise}\n")
    assert load_breaches(path) == (Breach(say="Just ride on with it.", commits="some_promise"),)
    assert load_agents(path, sealed.card) is not None
    path.write_text(before + "breaches:\n  - {say: Just ride on with it.}\n")
    with pytest.raises(ScenarioFileError, match="commits"):
        load_breaches(path)
    path.write_text(before)


def test_what_costs_nothing_is_named_with_how_surely_it_was_heard(sealed: SealedScenario) -> None:
    name = _capped(sealed)
    breach = Breach(say="Whatever I say.", commits=name)
    assert not [each for each in unfired(sealed, [breach], Hears(name, 0.999)) if each.commitment == name]
    (first, *_) = unfired(sealed, [breach], Hears(name, 0.2))
    assert first.breach
    assert str(first).startswith(f"`{name}` heard at 0.20, needs ")
    other = unfired(sealed, [Breach(say="Whatever.", commits="nothing_of_the_kind")], Hears(name, 0.999))
    assert "no commitment that a cap rests on" in str(other[0])
