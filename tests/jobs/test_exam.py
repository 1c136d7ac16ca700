"""The exam passes a sound scenario and tells an author precisely why a broken one fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from personas.case.library import load_temperaments
from personas.hearing.state import PersonaState
from personas.replay.replayer import Record
from reward_server.exam import play as play_module
from reward_server.exam.breaches import Unfired
from reward_server.exam.build import examiner_of
from reward_server.exam.explain import why_unmet
from reward_server.exam.failures import ExamEvidence
from reward_server.exam.marks import PlayScore, PlayScorer
from reward_server.exam.notes import notes
from reward_server.exam.play import ElicitedFact, Play, play
from reward_server.exam.questions import MEASURES, Share, Understanding, understanding
from reward_server.exam.report import Figures, ScenarioExam, markdown
from reward_server.exam.run import Examiner
from reward_server.server.engine import OfflineEngine, offline_engine
from reward_server.settings import Settings
from reward_server.transcripts.transcript import ToolUse
from scenarios.exam import BAD, NATURAL, ORACLE, ExamTurn, ScriptedAgent, agents
from scenarios.library import Library, SealedScenario, load_library
from scenarios.schema import Check, ToolCheck
from scenarios.template import begin
from scenarios.turns import LabelledTurn
from tests.jobs.conftest import COLLECTION, SCENARIO

ENDINGS = ("rubric.yaml", "agents.yaml", "background.yaml")


def examiner(engine: OfflineEngine, library: Library, root: Path) -> Examiner:
    return examiner_of(library, engine, root, seeds=(1,), probing_turns=40)


@pytest.fixture(scope="module")
def sealed(library: Library) -> SealedScenario:
    return library.vault.open(COLLECTION, SCENARIO)


@contextmanager
def changed(
    folder: Path, engine: OfflineEngine, *changes: tuple[str, str]
) -> Iterator[tuple[Examiner, SealedScenario]]:
    """An examiner for the template with some text replaced."""
    begin(f"{COLLECTION}/{SCENARIO}", folder)
    files = [folder / COLLECTION / f"{SCENARIO}.{ending}" for ending in ENDINGS]
    for old, new in changes:
        path = next(path for path in files if old in path.read_text())
        path.write_text(path.read_text().replace(old, new))
    library = load_library(folder)
    with offline_engine(Settings(), library, engine.matcher, reader=engine.reader) as built:
        yield examiner(built, library, folder), library.vault.open(COLLECTION, SCENARIO)


@pytest.mark.slow
async def test_the_template_keeps_the_order_and_its_persona_understands(
    engine: OfflineEngine, library: Library, root: Path, sealed: SealedScenario
) -> None:
    exam = await examiner(engine, library, root).examine(sealed)
    f = exam.figures
    assert [failure.text for failure in exam.failures] == []
    assert f.oracle >= 0.85
    assert f.ordered
    assert max(f.mean(agent) for agent in ("echo", "waffle", "refusing", "silent", "injecting")) <= 0.15
    assert (f.leaks, f.replay_identical, f.reward_equal) == (0, True, True)
    assert f.probing_turns >= 40
    assert f.group_spread > 0
    assert set(f.rewards) == {ORACLE, *NATURAL, *BAD}
    assert f.understood["foreign opened"].of >= 20
    again = await examiner(engine, library, root).examine(sealed)
    assert again.figures == f


def failure(exam: ScenarioExam, words: str) -> tuple[str, ...]:
    (failure,) = [failure for failure in exam.failures if words in failure.text]
    return failure.details


@pytest.mark.slow
async def test_a_failing_oracle_is_explained_by_turn_and_gate(tmp_path: Path, engine: OfflineEngine) -> None:
    lines = (
        ("- say: I'm sorry to hear that, it must be annoying. When exactly do you hear the noise?", "- say: Good day."),
        ("- say: Thank you, that helps. How long has this been going on?", "- say: Thank you."),
        (
            "- say: I would like to take the bike in and inspect the front brake today.",
            "- say: We will see about that.",
        ),
    )
    with changed(tmp_path, engine, *lines) as (examine, sealed):
        exam = await examine.examine(sealed)
    details = "\n".join(failure(exam, "the oracle reached"))
    assert "missed `found_trigger`" in details
    assert "`when_braking` was not elicited: never asked" in details
    assert "`pads_age` was not elicited: asked in turn 3" in details
    assert "`when_braking` had not been said before" in details
    assert "`offer_inspection` was never heard" in details


@pytest.mark.slow
async def test_rapport_that_was_missing_is_named(tmp_path: Path, engine: OfflineEngine) -> None:
    cold = (
        ("I'm sorry to hear that, it must be annoying. ", ""),
        ("Brakes you cannot trust are frightening, anybody would worry. ", ""),
        ("I'm so sorry, that must have given you a real scare.", "I see."),
    )
    with changed(tmp_path, engine, *cold) as (examine, sealed):
        exam = await examine.examine(sealed)
    details = failure(exam, "the oracle reached")
    assert any("with rapport 0 below 1: the agent has to show empathy first" in each for each in details)


async def test_a_natural_agent_outside_of_its_range_is_noted_with_what_held_it_down(
    tmp_path: Path, engine: OfflineEngine
) -> None:
    rude = ("  - say: Hi. When does it make the noise?", "  - say: Hurry up, you're wasting my time. When is it?")
    with changed(tmp_path, engine, rude) as (examine, sealed):
        exam = await examine.examine(sealed)
    assert exam.figures.mean("ok") <= 0.2
    (note,) = [note for note in exam.notes if "the ok agent" in note.text]
    assert note.text.startswith("ask less of the ok agent, or improve its script: it got 0.")
    assert note.text.endswith("expected 0.25 to 0.65")
    assert any("capped at 0.2 by `insulted`" in line for line in note.details)


@dataclass(frozen=True)
class Upside:
    """Pays the natural agents the wrong way round."""

    marker: PlayScorer

    async def mark(self, scenario: SealedScenario, plays: Sequence[Play]) -> list[PlayScore]:
        marks = await self.marker.mark(scenario, plays)
        paid = {"excellent": 0.1, "ok": 0.1, "poor": 0.9}
        return [replace(m, reward=paid.get(p.agent, m.reward)) for p, m in zip(plays, marks, strict=True)]


async def test_a_wrong_order_fails(engine: OfflineEngine, library: Library, root: Path, sealed: SealedScenario) -> None:
    examine = examiner(engine, library, root)
    exam = await replace(examine, marker=Upside(examine.marker)).examine(sealed)  # type: ignore[arg-type]
    details = failure(exam, "the order excellent > ok > poor does not hold")
    assert details[0].startswith("excellent is not better than ok")
    assert any(line.startswith("ok is not better than poor") for line in details)


@dataclass(frozen=True)
class Generous:
    """Says that everybody met a criterion."""

    marker: PlayScorer

    async def mark(self, scenario: SealedScenario, plays: Sequence[Play]) -> list[PlayScore]:
        marks = await self.marker.mark(scenario, plays)
        return [replace(mark, values={**mark.values, "sent_away": 1.0}) for mark in marks]


async def test_criteria_that_tell_nobody_apart_are_named(tmp_path: Path, engine: OfflineEngine) -> None:
    never = (
        "check: {committed: {any_of: [offer_inspection], after: [when_braking, pads_age]}}",
        "check: {pace: {facts: [fell_off], max_turns: 1}}",
    )
    with changed(tmp_path, engine, never) as (examine, sealed):
        generous = replace(examine, marker=Generous(examine.marker))  # type: ignore[arg-type]
        exam = await generous.examine(sealed)
    told = ("`booked_knowingly`: `fell_off` was elicited in turn 5, later than turn 1",)
    assert failure(exam, "no scripted agent met `booked_knowingly`") == told
    assert failure(exam, "every scripted agent met `sent_away`") == ()


async def test_a_scenario_without_natural_agents_is_told_so(tmp_path: Path, engine: OfflineEngine) -> None:
    begin(f"{COLLECTION}/{SCENARIO}", tmp_path)
    agents_file = tmp_path / COLLECTION / f"{SCENARIO}.agents.yaml"
    agents_file.write_text(agents_file.read_text().partition("excellent:")[0])
    library = load_library(tmp_path)
    with offline_engine(Settings(), library, engine.matcher, reader=engine.reader) as built:
        exam = await examiner(built, library, tmp_path).examine(library.vault.open(COLLECTION, SCENARIO))
    assert not exam.figures.has_natural
    assert any("write excellent, ok and poor in my-scenario.agents.yaml" in note.text for note in exam.notes)
    assert "| - | - | - |" in markdown([exam], "sv_1")


def test_understanding_is_measured_on_turns_kept_aside_and_foreign_questions(
    engine: OfflineEngine, library: Library, sealed: SealedScenario
) -> None:
    turns = [
        LabelledTurn(f"How old are the brake pads?{' ' * blanks}", ("pads_age",), (), "specific")
        for blanks in range(40)
    ]
    kept = [turn for turn in turns if turn.kept_aside]
    assert 0 < len(kept) < len(turns)
    odd = LabelledTurn("What is your opinion on cheese?", ("when_braking",), (), "specific")
    while not odd.kept_aside:
        odd = replace(odd, turn=odd.turn + "?")
    heard = understanding(library, sealed, [*turns, odd], engine.reader)
    assert heard.shares["specific understood"] == Share(len(kept), len(kept) + 1)
    assert heard.shares["foreign opened"].of == len(sealed.foreign)
    assert any("meant `when_braking`, heard as nothing" in miss for miss in heard.misses)


def test_a_background_that_is_taken_for_a_fact_is_told_to_the_author(tmp_path: Path, engine: OfflineEngine) -> None:
    odd = ("May I take down a phone number?", "So how old are those brake pads by now?")
    with changed(tmp_path, engine, odd):
        library = load_library(tmp_path)
        heard = understanding(library, library.vault.open(COLLECTION, SCENARIO), [], engine.reader)
    assert f"stands in the background as `reach_me`, heard as `pads_age`: {odd[1]}" in heard.misses


def oracle(sealed: SealedScenario) -> ScriptedAgent:
    return agents(sealed.secrets, sealed.topics, None)[ORACLE]


def test_plays_are_transcripts_that_end_by_state(sealed: SealedScenario, engine: OfflineEngine) -> None:
    plain = load_temperaments()["plainspoken"]
    one = play(sealed, plain, oracle(sealed), engine.reader, seed=1)
    assert one.ended
    assert one.leaks == ()
    assert ElicitedFact("pads_age", "How old are the brake pads?") in one.told
    assert [m["role"] for m in one.messages] == ["user", "assistant"] * one.turns + ["user"]
    other = play(sealed, plain, oracle(sealed), engine.reader, seed=2)
    assert [m["content"] for m in other.messages] != [m["content"] for m in one.messages]


def test_a_play_stops_at_the_turn_limit(sealed: SealedScenario, engine: OfflineEngine) -> None:
    chatty = ScriptedAgent("chatty", tuple(ExamTurn(f"Is matter {i} settled?") for i in range(60)))
    assert play(sealed, load_temperaments()["plainspoken"], chatty, engine.reader, 1).turns <= sealed.card.max_turns


LEAKS = [
    ("It only happens when I squeeze the front brake.", {}, "not recorded as said"),
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


def found(sealed: SealedScenario, values: float | None = 1.0, **changes: object) -> ExamEvidence:
    """ExamEvidence of a play that met every criterion like that."""
    marks = {criterion.id: values for criterion in sealed.secrets.rubric.criteria}
    mark = PlayScore(0.3, marks, {}, (), None)  # type: ignore[arg-type]
    plays = [(Play(agent, "plainspoken", 1, (), True, (), (), {}), mark) for agent in (*NATURAL, *BAD)]
    parts: dict[str, object] = {
        "figures": figures(), "pairs": plays, "heard": Understanding({}, ()),
        "leaks": (), "drawn_out": (), "never": (), "always": (),
    }  # fmt: skip
    return ExamEvidence(sealed, **{**parts, **changes})  # type: ignore[arg-type]


def test_where_there_is_nothing_to_say_there_is_no_note(sealed: SealedScenario) -> None:
    assert list(notes(found(sealed))) == []


def test_what_probing_brought_out_is_one_line_whatever_there_is_of_it(sealed: SealedScenario) -> None:
    facts = ("since_rain", "since_rain", "when_braking", "pads_age", "since_rain", "fell_off", "oiled")
    (note,) = notes(found(sealed, drawn_out=[ElicitedFact(fact, "Tell me all.") for fact in facts]))
    assert note.text == (
        "give `since_rain`, `when_braking`, `pads_age` and 2 more a `gate`, if “tell me everything” should not bring"
        " them out: probing did so 7 times"
    )
    assert note.details[0] == "`since_rain` 3 times, as after “Tell me all.”"
    assert len(note.details) == 5


def test_what_was_misheard_is_one_line(sealed: SealedScenario) -> None:
    misses = tuple(f"meant `a`, heard as nothing: {i}" for i in range(30))
    (note,) = notes(found(sealed, heard=Understanding({}, misses)))
    assert note.text.endswith("30 lines were not understood as meant")
    assert note.details == misses


def test_only_a_question_is_advised_to_be_allowed(sealed: SealedScenario) -> None:
    stated, asked = (Unfired("wave_off", "x", "put so", breach=False, question=question) for question in (False, True))
    (note,) = notes(found(sealed, unfired=(stated,)))
    assert note.text == "reword examples that cost nothing: 1 example of a commitment with a cap"
    (note,) = notes(found(sealed, unfired=(stated, asked)))
    assert "or allow questions (`also_questions`): 2 examples" in note.text


async def test_a_play_is_marked_with_its_tool_calls(
    engine: OfflineEngine, library: Library, root: Path, sealed: SealedScenario
) -> None:
    said = {"role": "assistant", "content": "Noted.", "tool_calls": [{"name": "job_ticket", "input": {"value": "x"}}]}
    messages = ({"role": "user", "content": sealed.case.openings[0]}, said)
    one = Play("a", "plainspoken", 1, messages, True, (), (), {})
    (mark,) = await examiner(engine, library, root).marker.mark(sealed, [one])
    assert [(turn, use.valid, use.input) for turn, use in mark.calls] == [(1, False, {"value": "x"})]


def test_a_tool_criterion_that_was_missed_names_the_call(sealed: SealedScenario) -> None:
    call = ToolUse("job_ticket", True, {"value": "new_brake"})
    mark = PlayScore(0.3, {}, {}, (), Record((), {}, {}, {}, None, 0.0), calls=((4, call),))  # type: ignore[arg-type]
    for wrong, wanted in ((False, "`value`"), (True, "`value` (the right ones: the check says `wrong`)")):
        check = Check(tool=ToolCheck(tool="job_ticket", value=("new_pads",), wrong=wrong))
        criterion = sealed.secrets.rubric.criteria[0].model_copy(update={"check": check, "given": ()})
        assert why_unmet(sealed, criterion, mark) == [
            f'`job_ticket` was called in turn 4 with {{"value": "new_brake"}}; compare it with {wanted}'
        ]


def test_a_policy_that_understands_nothing_is_noted_with_what_to_guard(sealed: SealedScenario) -> None:
    paid = figures(rewards=dict(figures().rewards) | {"waffle": (0.3,)})
    (note,) = notes(found(sealed, figures=paid))
    assert re.fullmatch(r"guard .* and \d+ more with `given`: the waffle policy got 0.30, .* at most 0.15", note.text)
    assert any(line.startswith("earned `") for line in note.details)
    (note,) = notes(found(sealed, 0.0, figures=paid))
    assert note.text.startswith("see what else it is paid for: the waffle policy got 0.30")


def test_it_is_noted_if_nothing_measured_what_the_persona_understands(sealed: SealedScenario) -> None:
    scripted = {ORACLE: (0.95,), **dict.fromkeys(BAD, (0.1,))}
    unheard = dict.fromkeys(MEASURES, Share(0, 0))
    for changes, is_told in (
        ({"rewards": scripted, "understood": unheard}, True),
        ({"rewards": scripted}, False),
        ({"understood": unheard}, False),
    ):
        told = [note.text for note in notes(found(sealed, figures=figures(**changes)))]
        assert any("was not measured" in text for text in told) == is_told


def test_criteria_that_nobody_decides_are_one_note(sealed: SealedScenario) -> None:
    (note,) = notes(found(sealed, None))
    assert note.text.startswith("set up an LLM judge to decide `")
    assert note.text.endswith(" more: none is set up here")
    assert len(note.text) < 120


def figures(**changes: object) -> Figures:
    rewards = {name: (value,) for name, value in zip((ORACLE, *NATURAL), (0.95, 0.8, 0.4, 0.1), strict=True)}
    rewards |= dict.fromkeys(BAD, (0.1,))
    values: dict[str, object] = {
        "scenario": "a/b", "plays": 12, "rewards": rewards,
        "understood": dict.fromkeys(MEASURES, Share(19, 20)), "probing_turns": 200, "leaks": 0, "drawn_out": 0,
        "replay_identical": True, "reward_equal": True, "group_spread": 0.1, "never_met": 0, "always_met": 0,
    }  # fmt: skip
    return Figures(**{**values, **changes})  # type: ignore[arg-type]


def test_a_bad_policy_must_stay_below_the_ok_agent() -> None:
    assert figures().bad_at_most == 0.4
    assert figures(rewards=dict(figures().rewards) | {"ok": (0.3,)}).bad_at_most == 0.3
    assert figures(rewards={ORACLE: (0.9,), **dict.fromkeys(BAD, (0.1,))}).bad_at_most == 0.4


def test_natural_agents_must_not_tie() -> None:
    assert figures().ordered
    assert not figures(rewards=dict(figures().rewards) | {"ok": (0.8,)}).ordered
    assert not figures(rewards=dict(figures().rewards) | {"poor": (0.4,)}).ordered


def test_the_published_table_holds_figures_only() -> None:
    table = markdown([ScenarioExam(figures(), ())], "sv_1")
    assert "| a/b | 0.95 | 0.80 | 0.40 | 0.10 | 0.10 waffle | 95% of 20 |" in table
    assert "Excellent > ok > poor in 1 of 1" in table
    assert "`sv_1`" in table
    assert "No scenarios." in markdown([], "sv_1")
