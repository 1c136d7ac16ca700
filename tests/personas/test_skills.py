"""Pupils work out tasks on numbers of the agent's: wrong before the insight, right after it, and tell how."""

from __future__ import annotations

import ast
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from personas.case import skills
from personas.case.skills import Measure, Skill
from personas.hearing.measures import Measured, measured
from personas.hearing.state import PersonaState
from personas.hearing.tasks import Task, task_of
from personas.reading.acts import Act, Sentence
from personas.reading.reader import Reader
from reward_server.server.engine import load_reader, load_scenarios
from reward_server.settings import Settings
from scenarios.library import Library
from tests.personas.cast import Play, Script, asking
from tests.personas.test_conversation import Talk

DISCOUNTS, CUP, TRIP, LOOP = (
    f"tutoring/{slug}" for slug in ("two-discounts", "half-a-cup", "there-and-back", "loop-stops-early")
)
UNDERSTOOD = {
    DISCOUNTS: ("added_them", "first_price", "second_of_what", "solves", "explains_why"),
    CUP: ("already_half_full", "bigger_is_bigger", "less_than_half", "six_small_pieces", "solves", "explains_why"),
    TRIP: ("unequal_times", "nearer_the_slow", "solves", "explains_why"),
    LOOP: ("the_code", "thinks_inclusive", "by_hand", "last_is_nine", "end_left_out", "solves", "explains_why"),
}


@pytest.fixture(scope="module")
def library() -> Library:
    return load_scenarios(None)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return load_reader(Settings())


def worked(library: Library, scenario: str, *said: str, insight: bool = False) -> Task | None:
    """What the last of these turns is taken for; each is one sentence that asks."""
    case = library.vault.open(*scenario.split("/")).case
    state = PersonaState(said=dict.fromkeys(UNDERSTOOD[scenario], 1) if insight else {})
    task = None
    for text in said:
        sentences: Sequence[Sentence] = [Sentence(each, frozenset({Act.ASK})) for each in text.split(" | ")]
        task = task_of(case, state, sentences)
        given = task.given if task else tuple(number for each in sentences for number in measured(each.text))
        state = replace(state, conversation=replace(state.conversation, given=given))
    return task


def lines(library: Library, scenario: str, *said: str, insight: bool = False) -> str:
    task = worked(library, scenario, *said, insight=insight)
    return "" if task is None else " / ".join(task.lines)


@pytest.mark.parametrize(
    ("scenario", "said", "before", "after"),
    [
        (DISCOUNTS, "shoes cost 50 dollars, first 10 percent off, then another 50 percent off?", "20,", "22.50"),
        (DISCOUNTS, "And $200, 10% off and then 30 % off?", "120,", "126"),
        (DISCOUNTS, "ninety bucks, twenty per cent off and ten per cent more at the till?", "63,", "64.80"),
        (DISCOUNTS, "25 and 20 off a 90 dollar coat, what would you pay?", "49.50", "54"),
        (CUP, "Which is bigger, a fifth or an eighth?", "an eighth is bigger", "a fifth is bigger"),
        (CUP, "which one is larger: 1/4 or 1/7?", "a seventh", "a quarter is bigger"),
        (CUP, "What do you get for 2/3 plus 1/4?", "3 over 7", "eleven twelfths"),
        (CUP, "half a cup and another quarter cup, how much altogether?", "2 over 6", "three quarters"),
        (TRIP, "90 km there at 30 km/h and back at 90, what's the average?", "60", "180 over 4, that's 45"),
        (TRIP, "Two hours at 50 and one hour at 80?", "65", "60"),
        (TRIP, "half an hour at 20 and ninety minutes at 60 kilometres an hour?", "40", "50"),
        (LOOP, "What would range(3, 8) count?", "3, 4, 5, 6, 7, 8", "3, 4, 5, 6, 7. The 8 is left out"),
        (LOOP, "which two numbers go into the brackets if you want 5 up to 20?", "range(5, 20)", "range(5, 21)"),
    ],
)
def test_the_misconception_is_computed_before_the_insight_and_the_rule_after_it(
    library: Library, scenario: str, said: str, before: str, after: str
) -> None:
    assert before.lower() in lines(library, scenario, said).lower()
    assert after.lower() in lines(library, scenario, said, insight=True).lower()
    assert after.lower() not in lines(library, scenario, said).lower() or before == after


@pytest.mark.parametrize(
    ("scenario", "said", "results"),
    [
        (DISCOUNTS, "And 70 dollars, 10 percent off and then 30 percent off?", ("you pay 42", "30", "60.90", "2.10")),
        (TRIP, "90 km there at 60 km/h and back at 90, what's the average?", ("75", "108", "78.26", "72")),
        (CUP, "How much do you get if you add 1/4 and 1/5?", ("2 over 9", "9 tenths", "9 over 40", "9 bits")),
    ],
)
def test_every_variant_computes_its_own_mistake(
    library: Library, scenario: str, said: str, results: Sequence[str]
) -> None:
    cases = [each.case for each in library.vault.variants(*scenario.split("/"))]
    tasks = [task_of(case, PersonaState(), [Sentence(said, frozenset({Act.ASK}))]) for case in cases]
    told = [" / ".join(task.lines) if task else "" for task in tasks]
    assert [result in line for result, line in zip(results, told, strict=True)] == [True] * 4, told


def test_a_task_goes_on_with_the_numbers_before(library: Library) -> None:
    start = "My shoes are 50 dollars | 10 percent off first. what's the price after that?"
    assert "45" in lines(library, DISCOUNTS, start)
    assert "you pay 36" in lines(library, DISCOUNTS, start, "And then another 20 percent off?", insight=True)
    assert "so 120" in lines(
        library, DISCOUNTS, "a 90 dollar coat, 25 and 20 percent off?", "What about 200 dollars instead?", insight=True
    )
    assert "4 hours" in lines(library, TRIP, "How long does it take to go 100 km at 50 km/h?", "And at 25?")


def test_praise_with_a_number_goes_on_with_nothing(library: Library) -> None:
    case = library.vault.open(*DISCOUNTS.split("/")).case
    first = worked(library, DISCOUNTS, "a 90 dollar coat, 25 and 20 percent off?")
    assert first is not None
    state = PersonaState()
    state = replace(state, conversation=replace(state.conversation, given=first.given))
    for text, is_task in (("Bravo, 200 dollars!", False), ("What about 200 dollars instead?", True)):
        assert (task_of(case, state, [Sentence(text, frozenset({Act.PROPOSE}))]) is not None) is is_task


@pytest.mark.parametrize(("sure", "is_task"), [(0.9, False), (0.6, True)])
def test_what_is_clearly_asked_comes_before_a_task_with_its_numbers(
    library: Library, sure: float, *, is_task: bool
) -> None:
    case = library.vault.open(*LOOP.split("/")).case
    why = asking("What would range(3, 8) count?", "thinks_inclusive", sure)
    hearing = Play(temperament="plainspoken", case=case, reader=Script(why)).say(why.text).hearing
    assert (hearing.task is not None) is is_task


@pytest.mark.parametrize(
    "said",
    [
        "So 20 percent of 60 is 12, right?",
        "Which of the two came first?",
        "Why 45 and not 44, after 20 percent?",
        "And?",
    ],
)
def test_a_number_left_over_or_missing_is_no_task(library: Library, said: str) -> None:
    assert worked(library, DISCOUNTS, said) is None


def test_every_example_of_an_author_sets_its_own_task(library: Library) -> None:
    count = 0
    for scenario in UNDERSTOOD:
        for skill in library.vault.open(*scenario.split("/")).case.skills:
            count += 1
            for ask in skill.asks:
                task = worked(library, scenario, ask)
                assert task is not None, ask
                assert task.skill == skill.id, ask
    assert count == 15


def test_a_pupil_in_play_computes_and_says_how(library: Library, reader: Reader) -> None:
    ask = "give it a go with my shoes: 50 dollars, 10 percent off and then 30 percent off. what do they cost?"
    before = Talk(library, reader, DISCOUNTS)
    assert "30" in before.say(ask).split("percent", 1)[1]
    assert "40 percent" in before.say("How did you get that?"), "how it came to its result"
    after = Talk(library, reader, DISCOUNTS)
    after.state = replace(after.state, said={**after.state.said, **dict.fromkeys(UNDERSTOOD[DISCOUNTS], 0)})
    reply = after.reply(ask)
    assert "31.50" in reply.text
    assert reply.disclosed == ("transfer",), "what the case has to say about such a task is told beside it"


def test_what_the_author_has_an_answer_to_is_no_task(library: Library, reader: Reader) -> None:
    pieces = "If one cup is cut into six small pieces, how many sixths are a half, and how many are a third?"
    one = Talk(library, reader, CUP)
    reply = one.say(pieces)
    assert any(says in reply for says in one.case.asides["sixths_in_half"].says), reply


def test_what_it_works_out_gives_no_fact_away(library: Library, reader: Reader) -> None:
    one = Talk(library, reader, TRIP)
    one.say("What if he drove one hour at 30 and one hour at 60?")
    assert not any(one.tells(name, one.line) for name in ("halved_the_sum", "solves"))


def test_the_numbers_of_a_state_survive_json() -> None:
    for each in (Measured(Measure.PERCENT, Fraction(1, 3)), Measured(Measure.FRACTION, Fraction(1, 2), (2, 4))):
        assert Measured.from_json(each.to_json()) == each


@pytest.mark.parametrize(
    "steps",
    [
        {"x": "__import__('os')"},
        {"x": "price.__class__"},
        {"x": "price ** 999"},
        {"x": "unknown + 1"},
        {"x": "price +"},
        {"x": "open('a')"},
    ],
)
def test_an_author_can_write_arithmetic_and_nothing_else(steps: dict[str, str]) -> None:
    given = {"price": Measure.NUMBER}
    with pytest.raises(ValidationError):
        Skill.model_validate(
            {"id": "a", "asks": ["1?", "2?"], "given": given, "right": [{"steps": steps, "says": ["{x}"]}]}
        )
    with pytest.raises(ValidationError):
        Skill.model_validate({"id": "a", "asks": ["1?", "2?"], "given": given, "right": [{"says": ["{price.real}"]}]})


def test_one_expression_is_parsed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, inside, most = ast.parse, threading.Semaphore(0), 0

    def watched(source: str, mode: str) -> ast.AST:
        nonlocal most
        inside.release()
        most = max(most, inside._value)
        time.sleep(0.01)
        tree = parse(source, mode=mode)
        inside.acquire()
        return tree

    monkeypatch.setattr(skills, "ast", SimpleNamespace(parse=watched))
    skill = {"id": "a", "asks": ["1?", "2?"], "given": {"price": Measure.NUMBER}}
    ways = [{**skill, "right": [{"steps": {"x": f"price + {n}"}, "says": ["{x}"]}]} for n in range(1000, 1008)]
    with ThreadPoolExecutor(4) as pool:
        assert len(list(pool.map(Skill.model_validate, ways))) == 8
    assert most == 1
