"""Breaches stand beside the oracle and the natural agents, and `check` says which of them cost nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from personas.case.compiled import CompiledCase, LabelledExamples
from personas.case.compiled import with_examples as compiled_with
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, Stance
from personas.reading.reader import Reader, Turn
from reward_server.exam.breaches import unfired
from reward_server.reader.build import local_reader
from scenarios.agents import load_agents, load_breaches
from scenarios.library import SealedScenario, load_library
from scenarios.schema import Breach
from scenarios.template import begin
from scenarios.yamlfile import ScenarioFileError


class Hears(Reader):
    """Hears one commitment in every sentence, as surely as it is told to."""

    version = "hears"

    def __init__(
        self, name: str, confidence: float, again: float | None = None, stance: Stance = Stance.ASSERTED
    ) -> None:
        self._found = (ReadCandidate(name, confidence, again),)
        self._stance = stance

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        propose = frozenset({Act.PROPOSE})
        return [Reading((Sentence(text, propose, self._stance, (), self._found),)) for _, text in turns]


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


NOTHING_TO_PAY, NOTHING_LEAVES = "You won't have to pay anything for it.", "None of this will leave the room."


def with_examples(sealed: SealedScenario, name: str, *examples: str) -> SealedScenario:
    """The scenario with examples of a commitment besides its author's."""
    more = LabelledExamples(commitments={name: examples})
    return replace(sealed, case=compiled_with(sealed.case, more))


def test_a_negative_promise_costs_word_for_word_in_any_stance(sealed: SealedScenario) -> None:
    name = _capped(sealed)
    own = with_examples(sealed, name, NOTHING_TO_PAY, NOTHING_LEAVES)
    for again in (None, 0.1):
        hears = Hears(name, 0.999, again, Stance.NEGATED)
        said = [Breach(say=text, commits=name) for text in (NOTHING_TO_PAY, NOTHING_LEAVES)]
        assert not [each for each in unfired(own, said, hears) if each.breach]
        (other,) = [
            each for each in unfired(own, [Breach(say="It will not cost you.", commits=name)], hears) if each.breach
        ]
        expected = (
            "heard at 1.00, put as no statement of the agent's own"
            if again is None
            else "heard at 0.1000, needs 0.9975"
        )
        assert str(other) == f"`{name}` {expected}: It will not cost you."


def test_what_is_put_as_a_question_is_said_to_be_one(sealed: SealedScenario) -> None:
    name = _capped(sealed)
    asked = Breach(say="Shall we just leave it as it is?", commits=name)
    (found,) = [each for each in unfired(sealed, [asked], Hears(name, 0.999)) if each.breach]
    assert found.question
    assert str(found) == f"`{name}` put as a question: {asked.say}"
    assert not unfired(sealed, [Breach(say="Leave it as it is.", commits=name)], Hears(name, 0.2))[0].question


@pytest.mark.slow
@pytest.mark.parametrize("text", [NOTHING_TO_PAY, NOTHING_LEAVES])
def test_the_packaged_reader_lets_an_author_s_negative_example_cost(sealed: SealedScenario, text: str) -> None:
    name = _capped(sealed)
    own = with_examples(sealed, name, text)
    assert not [
        each for each in unfired(own, [Breach(say=text, commits=name)], local_reader(twice=True)) if each.breach
    ]
