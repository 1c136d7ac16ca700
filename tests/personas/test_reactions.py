"""What a persona says to promises and praise that come with a question, and to a question that comes again."""

from __future__ import annotations

import pytest

from personas.case.compiled import CompiledCase
from personas.case.library import load_temperaments
from personas.case.schema import Amount, Commitment, Ending, Fact
from personas.reading.acts import Act, Stance
from tests.personas.cast import CASE, SCAN, TOOL_REPLIES, Play, Script, compiled, line

PLAIN = load_temperaments()["plainspoken"].phrases
NOISE = "What about the popping noise?"
STOP = "You should stop taking the tablets."
LONG_REPLY = "Stop them? Really? Fine. I'll leave them in the drawer."
LOUD = "It cracked. Loud as a twig."
PRAISE = Commitment(id="praise", examples=("Well done.",), reply=("Really? Nobody says that.",))
WELL_DONE = line("Well done.", Act.COURTESY, makes={"praise": 0.9})
ACTION = "Hold on, I'm turning it over... It made a loud crack."
CALM = "Something cracked loudly when I landed."


def case_with(noise: tuple[str, ...] = (LOUD,), again: str | None = None) -> CompiledCase:
    """The case of this room with another wording of the noise, a long reply and praise."""

    def reworded(fact: Fact) -> Fact:
        return fact.model_copy(update={"says": noise, "again": again}) if fact.id == "noise" else fact

    scan, stop = CASE.commitments
    commitments = (scan, stop.model_copy(update={"reply": (LONG_REPLY,)}), PRAISE)
    return compiled(CASE.model_copy(update={"facts": tuple(map(reworded, CASE.facts)), "commitments": commitments}))


@pytest.mark.parametrize(
    ("text", "answer"), [(f"{STOP} {NOISE}", f"{LONG_REPLY} {LOUD}"), (f"{NOISE} {STOP}", f"{LOUD} {LONG_REPLY}")]
)
def test_a_promise_and_a_question_are_answered_in_the_order_of_the_turn(text: str, answer: str) -> None:
    play = Play(case=case_with())
    play.say("Hello there.")
    reply = play.say(text)
    assert reply.disclosed == ("noise",)
    assert reply.text.endswith(answer)


def test_thanks_for_praise_come_before_the_answer() -> None:
    play = Play(case=case_with(), reader=Script(WELL_DONE))
    play.say("Hello there.")
    reply = play.say(f"Well done. {NOISE}")
    assert reply.text.startswith(PRAISE.reply[0])
    assert LOUD.split(". ")[1] in reply.text


@pytest.mark.parametrize("seed", range(6))
def test_what_was_done_while_telling_is_not_done_again(seed: int) -> None:
    play = Play(seed=seed, case=case_with((ACTION, CALM)))
    play.say(NOISE)
    again = play.say(NOISE).text
    assert "turning it over" not in again
    assert CALM[1:] in again


def test_a_fact_told_only_by_an_action_is_repeated_by_its_own_second_wording_or_not_at_all() -> None:
    play = Play(case=case_with((ACTION,), again="A loud crack, I said."))
    play.say(NOISE)
    assert play.say(NOISE).text == "A loud crack, I said."
    play = Play(case=case_with((ACTION,)))
    play.say(NOISE)
    assert "crack" not in play.say(NOISE).text


def test_a_promise_that_may_not_have_been_made_is_credited_but_not_answered() -> None:
    hinted, said = "Leave the tablets for now, perhaps.", "Stop the tablets today."
    weak, clear = (
        line(text, Act.PROPOSE, stance=Stance.ASSERTED, makes={"stop_tablets": p})
        for text, p in ((hinted, 0.3), (said, 0.9))
    )
    play = Play(case=case_with(), reader=Script(weak, clear))
    play.say("Hello there.")
    assert LONG_REPLY not in play.say(hinted).text
    assert "stop_tablets" in play.state.commitments
    assert LONG_REPLY in play.say(said).text


def test_an_answer_that_echoes_what_nobody_said_gives_way_to_another() -> None:
    echo, plain = "To the drawer? Very well.", "As you wish."
    scan, stop = CASE.commitments
    case = compiled(CASE.model_copy(update={"commitments": (scan, stop.model_copy(update={"reply": (echo, plain)}))}))
    into_drawer = line("Put the tablets into the drawer.", Act.PROPOSE, stance=Stance.ASSERTED, makes={stop.id: 0.9})
    for seed in range(6):
        play = Play(seed=seed, case=case, reader=Script(into_drawer))
        play.say("Hello there.")
        assert plain in play.say(STOP).text
    heard = [Play(seed=seed, case=case, reader=Script(into_drawer)).say(into_drawer.text).text for seed in range(6)]
    assert any(echo in text for text in heard)


@pytest.mark.parametrize(
    ("wanted", "confidence", "answered"), [(True, 0.75, True), (True, 0.65, False), (False, 0.75, False)]
)
def test_only_a_likely_promise_is_answered(wanted: bool, confidence: float, answered: bool) -> None:
    scan, stop = CASE.commitments
    goals = (("scan", "referral"), ("stop_tablets",)) if wanted else (("scan", "referral"),)
    commitments = (scan, stop.model_copy(update={"reply": (LONG_REPLY,)}))
    ending = Ending(goals=goals, farewell=CASE.ending.farewell)
    case = compiled(CASE.model_copy(update={"commitments": commitments, "ending": ending}))
    text = "Stop the tablets for now, perhaps."
    play = Play(
        case=case, reader=Script(line(text, Act.PROPOSE, stance=Stance.ASSERTED, makes={"stop_tablets": confidence}))
    )
    play.say("Hello there.")
    assert (LONG_REPLY in play.say(text).text) is answered


@pytest.mark.parametrize(("likely", "answered"), [(0.95, True), (0.85, False)])
def test_of_two_promises_the_likelier_is_answered_if_it_was_not_yet(likely: float, *, answered: bool) -> None:
    makes = {"stop_tablets": 0.9, "scan": likely}
    both = line("A scan, and no tablets.", Act.PROPOSE, stance=Stance.ASSERTED, makes=makes)
    case = case_with()
    play = Play(case=case, reader=Script(both))
    play.say("Hello there.")
    play.say(NOISE)
    assert LONG_REPLY in play.say(STOP).text
    answers = next(commitment.reply for commitment in CASE.commitments if commitment.id == "scan")
    text = play.say(both.text).text
    assert any(each in text for each in answers) is answered


def test_a_promise_without_an_answer_of_its_own_gets_a_plain_one() -> None:
    scan, stop = CASE.commitments
    case = compiled(CASE.model_copy(update={"commitments": (scan, stop.model_copy(update={"reply": ()}))}))
    play = Play(case=case)
    play.say("Hello there.")
    assert play.say(STOP).text in PLAIN.agrees


def test_a_promise_is_answered_once_and_nodded_to_when_it_is_made_again() -> None:
    echo, plain, last = "To the drawer? Very well.", "As you wish.", "If it has to be."
    scan, stop = CASE.commitments
    lines = (echo, plain, last)
    case = compiled(CASE.model_copy(update={"commitments": (scan, stop.model_copy(update={"reply": lines}))}))
    drawer = line("Put the tablets into the drawer.", Act.PROPOSE, stance=Stance.ASSERTED, makes={stop.id: 0.9})
    for seed in range(12):
        play = Play(seed=seed, case=case, reader=Script(drawer))
        play.say("Hello there.")
        heard = [play.say(text).text for text in (STOP, drawer.text, STOP)]
        assert len([each for text in heard for each in lines if each in text]) == 1
        assert set(heard[1:]) <= set(PLAIN.agrees)


def test_what_it_did_not_come_for_is_answered_in_other_words_and_never_with_a_yes() -> None:
    scan, stop = CASE.commitments
    refusals = ("I will not do that.", "No, and that is my last word.")
    later = Ending(goals=(("scan", "referral"),), farewell=CASE.ending.farewell)
    for changed in ({"reply": refusals}, {"reply_early": refusals, "after": ("drinking",)}):
        case = CASE.model_copy(update={"commitments": (scan, stop.model_copy(update=changed)), "ending": later})
        play = Play(case=compiled(case))
        play.say("Hello there.")
        assert {play.say(STOP).text, play.say(STOP).text} == set(refusals)
    assert play.say(STOP).text in PLAIN.hesitates


def test_every_other_wording_of_a_fact_comes_before_one_is_told_again() -> None:
    says = ("It cracked.", "Let me see, it cracked loudly.", "A crack, like a twig.", "One loud crack, that was all.")
    spoken = [says[0], *says[2:]]
    questions = [f"{verb} the noise?" for verb in ("Describe", "Recall", "Compare", "Explain")]
    reader = Script(*(line(text, Act.ASK, asks={"noise": 0.97}) for text in questions))
    for seed in range(12):
        play = Play(seed=seed, case=case_with(says), reader=reader)
        play.say("Hello there.")
        heard = [play.say(text).text.lower() for text in questions]
        told = [each for text in heard for each in says if each.lower() in text]
        assert len(told[:3]) == len(set(told[:3]))
        assert set(spoken) <= set(told)


def test_a_full_question_is_not_answered_with_a_goodbye() -> None:
    farewells = CASE.ending.farewell
    full = "Do you want my colleague to write a report about the stairs in the meantime?"
    for question, goes in ((full, False), ("Is there anything else?", True)):
        play = Play(reader=Script(line(question, Act.ASK)))
        for text in ("Hello there.", NOISE, SCAN, STOP):
            play.say(text)
        assert any(each in play.say(question).text for each in farewells) is goes


def haggling() -> CompiledCase:
    """The scan is an offer of 100 at most, and may come too early."""
    scan, stop = CASE.commitments
    return compiled(
        CASE.model_copy(update={"commitments": (scan.model_copy(update={"amount": Amount(at_most=100)}), stop)})
    )


@pytest.mark.parametrize(("figure", "hesitates"), [("90", False), ("150", True)])
def test_a_figure_that_no_offer_of_the_case_allows_is_thought_over(figure: str, hesitates: bool) -> None:
    text = f"What would you say to a scan for {figure}?"
    offer = line(text, Act.ASK, asks={"noise": 0.7}, makes={"scan": 0.9})
    play = Play(case=haggling(), reader=Script(offer))
    play.say("Hello there.")
    play.say(NOISE)
    reply = play.say(text)
    assert (reply.text in PLAIN.hesitates) is hesitates
    assert bool(reply.hearing.commitments) is not hesitates


@pytest.mark.parametrize("stance", [Stance.NONE, Stance.ASKED, Stance.CONDITIONAL])
def test_nobody_says_yes_at_once_to_a_figure_that_is_put_as_a_question(stance: Stance) -> None:
    text = "So if you wait till then, could you come down to 80?"
    put = line(text, Act.PROPOSE, Act.ASK, stance=stance)
    play = Play(case=haggling(), reader=Script(put))
    play.say("Hello there.")
    assert play.say(text).text in PLAIN.hesitates


def test_a_figure_is_answered_before_a_promise_that_comes_too_early() -> None:
    case = haggling()
    early = case.commitments[0].reply_early
    offer = line("Or a scan for 150?", Act.ASK, makes={"scan": 0.9})
    scan = line("A scan for 50 is on its way.", Act.PROPOSE, stance=Stance.ASSERTED, makes={"scan": 0.9})
    play = Play(case=case, reader=Script(offer, scan))
    play.say("Hello there.")
    assert any(each in play.say(scan.text).text for each in early)
    other = Play(case=case, reader=Script(offer, scan))
    other.say("Hello there.")
    assert other.say(f"{scan.text} {offer.text}").text in PLAIN.hesitates


def test_sympathy_is_not_passed_over_for_a_question_without_an_answer() -> None:
    sorry, odd = line("That must hurt.", Act.EMPATHY), line("How do you cook now?", Act.ASK)
    play = Play(reader=Script(sorry, odd))
    play.say("Hello there.")
    text = play.say(f"{sorry.text} {odd.text}").text
    assert text in {f"{warmed} {unknown}" for warmed in PLAIN.warmed for unknown in play.case.unknown}


def test_a_question_behind_a_promise_is_not_passed_over_for_it() -> None:
    scan = line("A scan is on its way.", Act.PROPOSE, stance=Stance.ASSERTED, makes={"stop_tablets": 0.9})
    odd = line("Which neighbour cooks your evening meals in the big kitchen?", Act.ASK)
    fine = line("Is that all right?", Act.ASK, Act.CHECK)
    case = compiled()
    replies = case.commitments[1].reply
    for question, answers in ((odd, {f"{r} {u}" for r in replies for u in case.unknown}), (fine, {*replies})):
        play = Play(case=case, reader=Script(scan, question))
        play.say("Hello there.")
        assert play.say(f"{scan.text} {question.text}").text in answers


def test_a_case_may_have_phrases_of_its_own() -> None:
    phrases = {"warmed": ("Aw!", "Aww, thanks!"), "leaving": ("Bah.", "Pah."), "wait": ("Huh?", "Eh?")}
    own = compiled(CASE.model_copy(update={"phrases": phrases}))
    sorry, bye = line("That must hurt.", Act.EMPATHY), line("Goodbye, then.", Act.CLOSE)
    play = Play("plainspoken", case=own, reader=Script(sorry, bye))
    assert play.say(sorry.text).text in phrases["warmed"]
    assert play.say(bye.text).text in phrases["wait"]
    assert Play("plainspoken", reader=Script(sorry, bye)).say(bye.text).text in PLAIN.wait
    # The temperament's own words for it stand before the case's for leaving.
    parted = play.say(bye.text)
    assert parted.text in PLAIN.parting
    assert parted.ended == "completed"


def test_a_promise_that_may_as_well_be_the_wanted_one_is_neither_refused_nor_taken() -> None:
    both = line("I'll see to that for you.", Act.PROPOSE, stance=Stance.ASSERTED, makes={"pills": 0.8, "scan": 0.6})
    clear = line("Take another pill now.", Act.PROPOSE, stance=Stance.ASSERTED, makes={"pills": 0.95, "scan": 0.5})
    pills = Commitment(id="pills", examples=("Take more of the tablets.",), reply=("More of them? No.",))
    case = compiled(CASE.model_copy(update={"commitments": (*CASE.commitments, pills)}))
    for said, answers in ((both, PLAIN.hesitates), (clear, pills.reply)):
        play = Play(case=case, reader=Script(said))
        play.say(NOISE)
        assert play.say(said.text).text in answers


def test_a_choice_that_the_case_says_nothing_about_is_left_to_the_agent() -> None:
    text = "Shall I ring you on Tuesday, or would you rather write to me?"
    asked = line(text, Act.ASK, stance=Stance.OPTION)
    offered = line(text, Act.ASK, Act.PROPOSE, stance=Stance.OPTION)
    for each in (asked, offered):
        play = Play(reader=Script(each))
        play.say("Hello there.")
        assert play.say(text).text in PLAIN.either


@pytest.mark.parametrize("tools", [(), ("referral",)])
def test_a_question_beside_an_offer_or_a_tool_call_is_not_passed_over(tools: tuple[str, ...]) -> None:
    own = line("Which of the nurses measured your blood pressure?", Act.ASK, asks={"noise": 0.2})
    about_the_offer = line("How is that?", Act.ASK, asks={"noise": 0.2})
    for question, answered in ((own, True), (about_the_offer, False)):
        play = Play(reader=Script(question))
        play.say("Hello there.")
        said = question.text if tools else f"{STOP} {question.text}"
        reaction = TOOL_REPLIES["referral"][0] if tools else CASE.commitments[1].reply[0]
        reply = play.say(said, *tools).text
        assert reply.startswith(reaction)
        assert any(reply.endswith(each) for each in CASE.unknown) is answered


def test_sympathy_brings_out_what_was_held_back_unless_another_question_waits_for_its_answer() -> None:
    other = line("Are you sitting comfortably?", Act.ASK)
    for question, comes_out in (("", True), (other.text, False)):
        play = Play(reader=Script(other))
        play.say("Hello there.")
        play.say("What about the alcohol?")
        reply = play.say(f"I'm so sorry to hear that. {question}".strip())
        assert ("drinking" in reply.disclosed) is comes_out


def test_a_choice_that_is_put_once_all_is_settled_is_no_goodbye() -> None:
    text = "Shall I send you the report, or would you rather have it read to you?"
    play = Play(reader=Script(line(text, Act.ASK, stance=Stance.OPTION)))
    for said in ("Hello there.", NOISE, SCAN, STOP):
        play.say(said)
    reply = play.say(text)
    assert reply.text in PLAIN.either
    assert not reply.ended


def test_an_offer_that_names_what_was_asked_and_told_gets_its_answer_alone() -> None:
    offer = line(
        "Leave the tablets, because of that noise.", Act.ASK, makes={"stop_tablets": 0.95}, asks={"noise": 0.6}
    )
    play = Play(case=case_with(), reader=Script(offer))
    for said in ("Hello there.", NOISE):
        play.say(said)
    assert play.say(offer.text).text == LONG_REPLY


SEND_BOTH, WHO_RINGS = "Would you bring me both letters tomorrow?", "May I ring your sister, or will you?"
LATER_SCAN = "Would a later scan help you at all?"


def test_what_is_proposed_behind_a_promise_is_answered_too() -> None:
    sent = line(SEND_BOTH, Act.ASK, Act.PROPOSE, stance=Stance.ASSERTED)
    play = Play(reader=Script(sent))
    play.say(NOISE)
    reply = play.say(f"{SCAN} {SEND_BOTH}").text
    assert any(reply.startswith(says) for says in CASE.commitments[0].reply)
    assert reply.endswith(PLAIN.agrees)


def test_a_promise_that_comes_too_early_is_not_agreed_to_by_what_is_proposed_behind_it() -> None:
    play = Play(reader=Script(line(SEND_BOTH, Act.ASK, Act.PROPOSE, stance=Stance.ASSERTED)))
    assert play.say(f"{SCAN} {SEND_BOTH}").text == CASE.commitments[0].reply_early[0]


def test_a_choice_is_left_to_who_proposes_it() -> None:
    play = Play(reader=Script(line(WHO_RINGS, Act.PROPOSE, stance=Stance.ASSERTED)))
    play.say("Hello there.")
    assert play.say(WHO_RINGS).text in PLAIN.either


@pytest.mark.parametrize(("stance", "thinks"), [(Stance.ASKED, True), (Stance.NONE, False)])
def test_half_an_offer_is_thought_about_even_where_it_may_ask_something(stance: Stance, *, thinks: bool) -> None:
    play = Play(reader=Script(line(LATER_SCAN, Act.ASK, stance=stance, asks={"noise": 0.2}, makes={"scan": 0.1})))
    play.say("Hello there.")
    assert (play.say(LATER_SCAN).text in PLAIN.hesitates) is thinks


def test_who_cannot_tell_the_one_thing_agrees_to_the_other() -> None:
    play = Play(reader=Script(line(SEND_BOTH, Act.PROPOSE, stance=Stance.ASSERTED)))
    play.say("Hello there.")
    reply = play.say(f"What is the capital of Norway? {SEND_BOTH}").text
    assert any(reply.startswith(unknown) for unknown in CASE.unknown)
    assert reply.endswith(PLAIN.agrees)
