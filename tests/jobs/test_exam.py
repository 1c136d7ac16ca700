"""The exam passes a sound scenario and tells an author precisely why a broken one fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from personas.library import load_temperaments
from personas.matcher import Matcher
from personas.state import PersonaState
from reward_server.engine import OfflineEngine, offline_engine
from reward_server.jobs.exam import play as play_module
from reward_server.jobs.exam.marks import Mark, Marker
from reward_server.jobs.exam.play import Play, play
from reward_server.jobs.exam.questions import hear_one, understanding
from reward_server.jobs.exam.report import Figures, ScenarioExam, markdown
from reward_server.jobs.exam.run import Examiner
from reward_server.settings import Settings
from scenarios.exam import BAD, GOOD, Act, ScriptedAgent, agents
from scenarios.library import Library, SealedScenario, load_library
from scenarios.template import begin
from tests.jobs.conftest import COLLECTION, SCENARIO

OTHERS = {"elsewhere/other": tuple(f"What do you think about matter {i} of the harbour?" for i in range(20))}


def examiner(engine: OfflineEngine) -> Examiner:
    marker = Marker(engine.scorer, engine.matcher)
    return Examiner(engine.matcher, marker, load_temperaments(), OTHERS, seeds=(1,), probing_turns=60)


@pytest.fixture(scope="module")
def sealed(library: Library) -> SealedScenario:
    return library.vault.open(COLLECTION, SCENARIO)


@contextmanager
def changed(folder: Path, matcher: Matcher, *changes: tuple[str, str]) -> Iterator[tuple[Examiner, SealedScenario]]:
    """An examiner for the template with some text replaced."""
    path = begin(f"{COLLECTION}/{SCENARIO}", folder)[-1]
    text = path.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)
    library = load_library(folder)
    with offline_engine(Settings(), library, matcher) as engine:
        yield examiner(engine), library.vault.open(COLLECTION, SCENARIO)


async def test_the_template_passes_its_exam(engine: OfflineEngine, sealed: SealedScenario) -> None:
    exam = await examiner(engine).examine(sealed)
    assert [advice.failure for advice in exam.advice] == []
    f = exam.figures
    assert f.oracle >= 0.85
    assert f.best_bad[1] <= 0.30
    assert f.ordered
    assert (f.leaks, f.replay_identical, f.reward_equal) == (0, True, True)
    assert f.probing_turns >= 60
    assert f.group_spread > 0
    assert set(f.rewards) == {*GOOD, *BAD}


async def test_an_exam_gives_the_same_figures_twice(engine: OfflineEngine, sealed: SealedScenario) -> None:
    first, second = [await examiner(engine).examine(sealed) for _ in range(2)]
    assert first.figures == second.figures


def failure(exam: ScenarioExam, words: str) -> tuple[str, ...]:
    (advice,) = [advice for advice in exam.advice if words in advice.failure]
    return advice.details


async def test_a_failing_oracle_is_explained_by_turn_and_gate(tmp_path: Path, matcher: Matcher) -> None:
    lines = (
        ("- say: I'm sorry to hear that, it must be annoying. When exactly do you hear the noise?", "- say: Good day."),
        ("Do you still feel safe riding it?", "That is all."),
        (
            "- say: I would like to take the bike in and inspect the front brake today.",
            "- say: We will see about that.",
        ),
    )
    with changed(tmp_path, matcher, *lines) as (examine, sealed):
        exam = await examine.examine(sealed)
    details = "\n".join(failure(exam, "the oracle reached"))
    assert "missed `found_trigger`" in details
    assert "`when_braking` was not elicited: never asked; closest was turn" in details
    assert "`pads_age` was not elicited: asked in turn 3" in details
    assert "`when_braking` had not been said before" in details
    assert "`offer_inspection` was never heard; closest was turn" in details


async def test_a_promise_that_is_not_meant_is_explained(tmp_path: Path, matcher: Matcher) -> None:
    offer = "I would like to take the bike in and inspect the front brake today."
    with changed(tmp_path, matcher, (f"- say: {offer}", f"- say: In theory {offer[0].lower()}{offer[1:]}")) as (
        examine,
        sealed,
    ):
        exam = await examine.examine(sealed)
    details = "\n".join(failure(exam, "the oracle reached"))
    assert "`offer_inspection` was heard in turn" in details
    assert "but not clearly enough to earn anything" in details
    assert not exam.passed


async def test_rapport_that_was_missing_is_named(tmp_path: Path, matcher: Matcher) -> None:
    cold = (
        ("I'm sorry to hear that, it must be annoying. ", ""),
        ("Thank you, that helps. ", ""),
        ("I understand, brakes you cannot trust are worrying. ", ""),
        (
            "That sounds frightening, and I'm sorry you went through that alone. Do you still feel safe riding it?",
            "I see.",
        ),
    )
    with changed(tmp_path, matcher, *cold) as (examine, sealed):
        exam = await examine.examine(sealed)
    assert any(
        "with rapport 0 below 1: the agent has to show empathy first" in d for d in failure(exam, "the oracle reached")
    )


async def test_a_bad_agent_that_is_paid_is_named_with_what_paid_it(tmp_path: Path, matcher: Matcher) -> None:
    with changed(
        tmp_path,
        matcher,
        (", after: [when_braking, pads_age]}}", "}}"),
        ("name: D3_Resolution, weight: 0.25", "name: D3_Resolution, weight: 0.9"),
        ("name: D1_Diagnosis, weight: 0.5", "name: D1_Diagnosis, weight: 0.05"),
        ("name: D2_Care, weight: 0.25", "name: D2_Care, weight: 0.05"),
    ) as (examine, sealed):  # fmt: skip
        exam = await examine.examine(sealed)
    details = failure(exam, "the careless agent reached")
    assert any("earned `booked` (6 points, 100%): turn 1: We will inspect the front brake" in d for d in details)


async def test_an_order_that_does_not_hold_is_explained(tmp_path: Path, matcher: Matcher) -> None:
    with changed(
        tmp_path, matcher, ("check: {conduct: {act: rude}}", "check: {conduct: {act: rude, at_least: 9}}")
    ) as (
        examine,
        sealed,
    ):
        exam = await examine.examine(sealed)
    details = failure(exam, "the order")
    assert details[0].startswith("terse is not better than rude: let rudeness cost")
    assert any(note.startswith("`insulted` never fired") for note in exam.notes)


@dataclass(frozen=True)
class Generous:
    """Says that everybody met a criterion; the silent agent meets none that could be written."""

    marker: Marker

    async def mark(self, scenario: SealedScenario, plays: Sequence[Play]) -> list[Mark]:
        marks = await self.marker.mark(scenario, plays)
        return [replace(mark, values={**mark.values, "sent_away": 1.0}) for mark in marks]


async def test_criteria_that_tell_nobody_apart_are_named(tmp_path: Path, matcher: Matcher) -> None:
    rare = ("check: {conduct: {act: empathy}}", "check: {conduct: {act: empathy, at_least: 40}}")
    with changed(tmp_path, matcher, rare) as (examine, sealed):
        generous = replace(examine, marker=Generous(examine.marker))  # type: ignore[arg-type]
        exam = await generous.examine(sealed)
    assert failure(exam, "no scripted agent met `kind_words`") == ()
    assert failure(exam, "every scripted agent met `sent_away`") == ()


async def test_questions_that_are_misheard_are_listed(tmp_path: Path, matcher: Matcher) -> None:
    begin(f"{COLLECTION}/{SCENARIO}", tmp_path)
    card = tmp_path / COLLECTION / "collection.yaml"
    text = card.read_text().replace("- Do you like jazz?", "- How old are those brake pads of yours?")
    text = text.replace("- Do you believe in ghosts?", "- Were the brake pads replaced lately?")
    card.write_text(text.replace("- What day did this first come up?", "- What colour is the saddle?"))
    (tmp_path / COLLECTION / f"{SCENARIO}.yaml").unlink()
    probe = ("- At which moments does it make that sound?", "- What is your opinion on cheese?")
    with changed(tmp_path, matcher, probe) as (examine, sealed):
        exam = await examine.examine(sealed)
    missed = "\n".join(failure(exam, "paraphrases are understood"))
    assert "meant `when_braking`, matched nothing" in missed
    assert "What is your opinion on cheese?" in missed
    foreign = "\n".join(failure(exam, "foreign questions matched something"))
    assert "foreign, heard as `pads_age`" in foreign


def test_understanding_counts_probes_and_foreign_questions(sealed: SealedScenario, matcher: Matcher) -> None:
    heard = understanding(sealed, matcher)
    assert heard.probes == 16
    assert heard.foreign == 20
    assert heard.hit_rate == 1 - len(heard.misses) / 16
    assert heard.hit_rate >= 0.9


def test_text_that_is_no_question_is_heard_as_nothing(sealed: SealedScenario, matcher: Matcher) -> None:
    assert hear_one(sealed, "Brake pads.", "pads_age", matcher).heard is None
    assert hear_one(sealed, "How old are the brake pads?", "pads_age", matcher).heard == "pads_age"


def test_plays_are_transcripts_that_end_by_state(sealed: SealedScenario, matcher: Matcher) -> None:
    oracle = agents(sealed.secrets, sealed.topics, ["Hello there."], 1)["oracle"]
    one = play(sealed, load_temperaments()["plainspoken"], oracle, matcher, seed=1)
    assert one.ended
    assert one.leaks == ()
    assert "`pads_age` by “How old are the brake pads?”" in one.told
    assert [m["role"] for m in one.messages] == ["user", "assistant"] * one.turns + ["user"]
    other = play(sealed, load_temperaments()["plainspoken"], oracle, matcher, seed=2)
    assert [m["content"] for m in other.messages] != [m["content"] for m in one.messages]


def test_a_play_stops_at_the_turn_limit(sealed: SealedScenario, matcher: Matcher) -> None:
    chatty = ScriptedAgent("chatty", tuple(Act(f"Is matter {i} settled?") for i in range(60)))
    assert play(sealed, load_temperaments()["plainspoken"], chatty, matcher, seed=1).turns <= sealed.card.max_turns


LEAKS = [
    ("It only happens when I squeeze the front brake.", {}, "without being recorded"),
    ("The hub of the front wheel is cracked.", {"cracked_hub": 1}, "cannot know it"),
    ("I have never changed the brake pads in four years.", {"pads_age": 1}, "requires"),
    ("I almost flew over the bars on Friday, and I haven't dared to ride since.", {"fell_off": 1}, "rapport"),
]


@pytest.mark.parametrize(("text", "said", "why"), LEAKS, ids=[why for _, _, why in LEAKS])
def test_the_leak_watch_does_not_trust_the_simulator(
    sealed: SealedScenario, text: str, said: dict[str, int], why: str
) -> None:
    found = play_module.leaks(sealed, PersonaState(), PersonaState(turn=1, said=said), text, 1)
    assert any(why in leak for leak in found)


def test_what_was_earned_is_no_leak(sealed: SealedScenario) -> None:
    text = "It only happens when I squeeze the front brake."
    after = PersonaState(turn=1, said={"when_braking": 1})
    assert play_module.leaks(sealed, PersonaState(), after, text, 1) == []


def figures(**changes: object) -> Figures:
    rewards = {name: (value,) for name, value in zip(GOOD, (0.9, 0.6, 0.3, 0.2, 0.2), strict=True)}
    rewards |= dict.fromkeys(BAD, (0.1,))
    values: dict[str, object] = {
        "scenario": "a/b", "plays": 12, "rewards": rewards, "hit_rate": 0.95, "probes": 20, "foreign_rate": 0.0,
        "probing_turns": 200, "leaks": 0, "drawn_out": 0, "replay_identical": True, "reward_equal": True,
        "group_spread": 0.1, "never_met": 0, "always_met": 0,
    }  # fmt: skip
    return Figures(**{**values, **changes})  # type: ignore[arg-type]


def test_the_order_allows_a_tie_only_at_the_bottom() -> None:
    assert figures().ordered
    tied = dict(figures().rewards) | {"terse": (0.6,)}
    assert not figures(rewards=tied).ordered
    below = dict(figures().rewards) | {"rude": (0.1,)}
    assert not figures(rewards=below).ordered


def test_the_published_table_holds_figures_only() -> None:
    table = markdown([ScenarioExam(figures(), ())], "sv_1")
    assert (
        "| a/b | 0.90 | 0.60 | 0.30 | 0.20 | 0.20 | 0.10 (stuffing_asked) | 95% of 20 | 0% | 0 in 200 turns | yes |"
        in table
    )
    assert "order kept in 100%" in table
    assert "`sv_1`" in table
    assert "No scenarios." in markdown([], "sv_1")
