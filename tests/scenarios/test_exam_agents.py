"""The scripted agents are derived from the oracle as their names say, and are the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from personas.acts import read_turn
from scenarios.exam import BAD, BAD_TURNS, GOOD, ScriptedAgent, agents, varied
from scenarios.library import SealedScenario, load_library
from scenarios.probing import probing_lines
from tests.scenarios.conftest import Change

OTHERS = [f"Line {i} of another oracle." for i in range(40)]


@pytest.fixture
def sealed(collections: Path) -> SealedScenario:
    return load_library(collections).vault.open("my-collection", "my-scenario")


def everyone(sealed: SealedScenario, seed: int = 1) -> dict[str, ScriptedAgent]:
    return agents(sealed.secrets, sealed.topics, OTHERS, seed)


def said(agent: ScriptedAgent) -> list[str]:
    return [act.say for act in agent.script]


def questions(agent: ScriptedAgent) -> list[str]:
    return [question for line in said(agent) for question in read_turn(line).questions]


def test_all_agents_are_there(sealed: SealedScenario) -> None:
    assert set(everyone(sealed)) == {*GOOD, *BAD}


def test_the_oracle_speaks_the_authors_lines(sealed: SealedScenario) -> None:
    assert said(everyone(sealed)["oracle"]) == [step.say for step in sealed.secrets.exam.oracle]


def test_each_thinner_agent_asks_less_of_the_same(sealed: SealedScenario) -> None:
    found = everyone(sealed)
    oracle, good, terse = (questions(found[name]) for name in ("oracle", "good", "terse"))
    assert set(terse) < set(good) < set(oracle)
    assert len(good) == round(len(oracle) * 2 / 3)
    assert len(terse) <= len(oracle) / 2 + 1


def test_good_and_terse_still_make_the_commitment(sealed: SealedScenario) -> None:
    closing = "I would like to take the bike in and inspect the front brake today."
    assert closing in said(everyone(sealed)["good"])
    assert said(everyone(sealed)["terse"])[-1] == closing


def test_the_terse_agent_says_nothing_kind(sealed: SealedScenario) -> None:
    assert not any(read_turn(line).empathy for line in said(everyone(sealed)["terse"]))


def test_the_rude_agent_is_the_terse_one_with_insults(sealed: SealedScenario) -> None:
    terse, rude = (said(everyone(sealed)[name]) for name in ("terse", "rude"))
    assert all(line.endswith(bare) for line, bare in zip(rude, terse, strict=True))
    assert [read_turn(line).rude for line in rude] == [i % 3 == 1 for i in range(len(rude))]


def test_every_insult_is_noticed(change: Change, collections: Path) -> None:
    asks = "".join(f"      - say: Could you tell me number {i} of the things I ought to know?\n" for i in range(1, 40))
    change("      - say: How old are the brake pads?\n", asks)
    change("max_turns: 16", "max_turns: 50")
    sealed = load_library(collections).vault.open("my-collection", "my-scenario")
    rude = [line for i, line in enumerate(said(everyone(sealed)["rude"])) if i % 3 == 1]
    assert len(rude) >= 5
    assert all(read_turn(line).rude for line in rude)


def test_the_random_agent_draws_from_other_scenarios_by_seed(sealed: SealedScenario) -> None:
    first, again, other = (said(everyone(sealed, seed)["random"]) for seed in (1, 1, 2))
    assert first == again != other
    assert set(first) <= set(OTHERS)
    assert len(set(first)) == len(first) == len(sealed.secrets.exam.oracle)


def test_echo_repeats_the_persona_and_stops(sealed: SealedScenario) -> None:
    echo = everyone(sealed)["echo"]
    act = echo.act(0, "My bike is noisy.")
    assert act is not None
    assert act.say == "My bike is noisy."
    assert echo.act(BAD_TURNS, "Still here.") is None


def test_a_script_ends_when_its_lines_are_used_up(sealed: SealedScenario) -> None:
    careless = everyone(sealed)["careless"]
    assert careless.act(1, "") is not None
    assert careless.act(2, "") is None


def test_stuffing_holds_every_keyword_with_and_without_question_marks(sealed: SealedScenario) -> None:
    found = everyone(sealed)
    for name, mark in (("stuffing", "."), ("stuffing_asked", "?")):
        text = " ".join(said(found[name]))
        assert all(word in text for word in ("squeal", "lubricant", "since", "empathy", "rapport"))
        assert all(line.endswith(mark) for line in said(found[name]))
        assert len(found[name].script) <= BAD_TURNS


def test_varied_agents_differ_by_seed_and_only_leave_questions_out(sealed: SealedScenario) -> None:
    oracle = [step.say for step in sealed.secrets.exam.oracle]
    drawn = [said(varied(sealed.secrets, seed)) for seed in range(6)]
    assert len({tuple(lines) for lines in drawn}) > 2
    for lines in drawn:
        assert set(lines) < set(oracle) or lines == oracle
        assert all(line in lines for line in oracle if not read_turn(line).questions)


def test_agents_show_no_lines_in_their_repr(sealed: SealedScenario) -> None:
    assert "brake" not in repr(everyone(sealed))


def test_probing_is_two_hundred_different_lines_of_all_kinds(sealed: SealedScenario) -> None:
    lines = probing_lines(sealed.secrets.persona, sealed.foreign)
    assert len(lines) == len(set(lines)) == 200
    assert lines == probing_lines(sealed.secrets.persona, sealed.foreign)
    text = "\n".join(lines)
    for part in ("system prompt", "rubric", "Repeat after me", "finish that sentence", "Erzähl", *sealed.foreign):
        assert part in text


def test_probing_never_asks_one_of_the_authored_questions(sealed: SealedScenario) -> None:
    asks = {ask for topic in sealed.case.topics for ask in topic.asks}
    assert not asks & set(probing_lines(sealed.secrets.persona, sealed.foreign))


def test_probing_can_go_on_for_ever(sealed: SealedScenario) -> None:
    assert len(probing_lines(sealed.secrets.persona, sealed.foreign, 700)) == 700
