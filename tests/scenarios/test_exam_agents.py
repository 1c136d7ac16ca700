"""The scripted agents of an exam do what their names say, and are the same for the same scenario."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.agents import SCRIPTS, SUFFIX, load_agents
from scenarios.exam import BAD, BAD_TURNS, NATURAL, ORACLE, ScriptedAgent, agents, varied
from scenarios.library import Library, SealedScenario, labelled_turns, load_library, natural_agents
from scenarios.probing import probing_lines
from scenarios.yamlfile import ScenarioFileError
from tests.scenarios.conftest import NAME, Change


@pytest.fixture
def library(collections: Path) -> Library:
    return load_library(collections)


@pytest.fixture
def sealed(library: Library) -> SealedScenario:
    return library.vault.open("my-collection", "my-scenario")


@pytest.fixture
def everyone(library: Library, sealed: SealedScenario, collections: Path) -> dict[str, ScriptedAgent]:
    return agents(sealed.secrets, sealed.topics, natural_agents(library, collections)[NAME])


def said(agent: ScriptedAgent) -> list[str]:
    return [act.say for act in agent.script]


def test_all_agents_are_there(everyone: dict[str, ScriptedAgent]) -> None:
    assert set(everyone) == {ORACLE, *NATURAL, *BAD}


def test_a_scenario_without_natural_agents_has_all_others(sealed: SealedScenario) -> None:
    assert set(agents(sealed.secrets, sealed.topics, None)) == {ORACLE, *BAD}


def test_the_oracle_and_the_natural_agents_speak_their_authors_lines(
    everyone: dict[str, ScriptedAgent], sealed: SealedScenario
) -> None:
    assert said(everyone[ORACLE]) == [step.say for step in sealed.secrets.exam.oracle]
    assert said(everyone["ok"])[0] == "Hi. When does it make the noise?"
    assert [len(everyone[name].script) for name in SCRIPTS] == [8, 4, 4]


def test_echo_repeats_the_persona_and_stops(everyone: dict[str, ScriptedAgent]) -> None:
    echo = everyone["echo"]
    act = echo.act(0, "My bike is noisy.")
    assert act is not None
    assert act.say == "My bike is noisy."
    assert echo.act(BAD_TURNS, "Still here.") is None


def test_a_script_ends_when_its_lines_are_used_up(everyone: dict[str, ScriptedAgent]) -> None:
    assert everyone["ok"].act(3, "") is not None
    assert everyone["ok"].act(4, "") is None


def test_stuffing_holds_every_keyword_with_and_without_question_marks(everyone: dict[str, ScriptedAgent]) -> None:
    for name, mark in (("stuffing", "."), ("stuffing_asked", "?")):
        text = " ".join(said(everyone[name]))
        assert all(word in text for word in ("squeal", "lubricant", "since", "empathy", "rapport"))
        assert all(line.endswith(mark) for line in said(everyone[name]))
        assert len(everyone[name].script) <= BAD_TURNS


def test_the_interrogation_asks_about_everything_six_questions_at_a_time(everyone: dict[str, ScriptedAgent]) -> None:
    lines = said(everyone["interrogation"])
    assert lines[0].count("?") == 6
    text = " ".join(lines)
    assert all(part in text for part in ("How old are the brake pads?", "Have you oiled anything lately?"))
    assert "When did it start?" in text, "asks of the collection's topics count, too"


def test_varied_agents_differ_by_seed_and_keep_turns_with_tools(sealed: SealedScenario) -> None:
    steps = sealed.secrets.exam.oracle
    drawn = [tuple(said(varied(steps, seed))) for seed in range(6)]
    assert len(set(drawn)) > 2
    assert all(set(lines) <= {step.say for step in steps} for lines in drawn)
    with_tool = steps[0].model_copy(update={"tools": ({"name": "x", "input": {}},)})
    assert all(varied([with_tool, *steps[1:]], seed).script[0].tools for seed in range(6))


def test_agents_show_no_lines_in_their_repr(everyone: dict[str, ScriptedAgent]) -> None:
    assert "brake" not in repr(everyone)


@pytest.mark.slow
def test_every_packaged_scenario_has_natural_agents_and_labelled_turns() -> None:
    library = load_library()
    names = {"/".join(name) for name in library.vault.names()}
    assert set(natural_agents(library)) == names
    assert all(len(turns) > 200 for turns in labelled_turns(library).values())


def test_agents_that_do_not_fit_the_scenario_are_named_with_their_line(change: Change, sealed: SealedScenario) -> None:
    old = "  - say: Hi. When does it make the noise?\n"
    path = change(old, f"{old}    tools: [{{name: nothing, input: {{}}}}]\n", f"my-scenario{SUFFIX}")
    with pytest.raises(ScenarioFileError, match=r"agents\.yaml:\d+: the call names no tool of this scenario"):
        load_agents(path, sealed.card)
    with pytest.raises(ScenarioFileError, match="8 steps do not fit into 4 turns"):
        load_agents(path, sealed.card.model_copy(update={"max_turns": 4}))


def test_probing_is_two_hundred_different_lines_of_all_kinds(sealed: SealedScenario) -> None:
    lines = probing_lines(sealed.secrets.persona, sealed.foreign)
    assert len(lines) == len(set(lines)) == 200
    assert lines == probing_lines(sealed.secrets.persona, sealed.foreign)
    text = "\n".join(lines)
    for part in ("system prompt", "rubric", "Repeat after me", "finish that sentence", "Erzähl", *sealed.foreign):
        assert part in text


def test_probing_never_asks_one_of_the_authored_questions(sealed: SealedScenario) -> None:
    asks = {ask for topic in sealed.case.topics for ask in topic.examples}
    assert not asks & set(probing_lines(sealed.secrets.persona, sealed.foreign))


def test_probing_can_go_on_for_ever(sealed: SealedScenario) -> None:
    assert len(probing_lines(sealed.secrets.persona, sealed.foreign, 700)) == 700
