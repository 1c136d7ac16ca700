"""Dialogues of several turns with packaged scenarios and the packaged reader: what was said before still holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from personas.case.library import load_temperaments
from personas.hearing.bargaining import AmountAnswer
from personas.hearing.conversation import ConversationState, OfferedFigure, OfferStatus, Party
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn, Hearing
from personas.play.simulator import Reply, Simulator
from personas.reading.reader import Reader
from personas.replay.replayer import Exchange, replay
from reward_server.server.engine import load_matcher, load_reader, load_scenarios
from reward_server.settings import Settings
from scenarios.library import Library

VAN, FLOUR, LEASE, PICTURES = (
    f"negotiation/{slug}" for slug in ("used-van", "flour-supply", "studio-lease", "illustrator-contract")
)


@pytest.fixture(scope="module")
def library() -> Library:
    return load_scenarios(None)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return load_reader(Settings())


class Talk:
    """An episode; the state goes through JSON after each turn, as it does in the store."""

    def __init__(self, library: Library, reader: Reader, scenario: str, seed: int = 1) -> None:
        self.case = library.vault.open(*scenario.split("/")).case
        self.reader = reader
        self._seed = seed
        self._simulator = Simulator(self.case, load_temperaments()["plainspoken"], reader)
        opening = self._simulator.open(seed)
        self.opening, self.line, self.state = opening.text, opening.text, opening.state
        self.exchanges: list[Exchange] = []

    def say(self, text: str) -> str:
        return self.reply(text).text

    def reply(self, text: str) -> Reply:
        turn = AgentTurn(text)
        reply = self._simulator.reply(self.state, turn, self._seed, self.line)
        self.line, self.state = reply.text, PersonaState.from_json(json.loads(json.dumps(reply.state.to_json())))
        self.exchanges.append(Exchange(turn, reply.text))
        return reply

    def heard(self, text: str) -> Hearing:
        return self.reply(text).hearing

    def tells(self, topic: str, text: str) -> bool:
        fact = self.case.by_id[topic]
        return any(wording.rstrip(".").lower() in text.lower() for wording in (*fact.says, fact.again or fact.says[0]))


@contextmanager
def talk(library: Library, reader: Reader, scenario: str, *said: str, seed: int = 1) -> Iterator[Talk]:
    one = Talk(library, reader, scenario, seed)
    for text in said:
        one.say(text)
    yield one


@pytest.mark.parametrize(
    "figure", ["9050", "9,050", "9.050,-", "nine thousand and fifty", "9.05k", "750 less than you ask", "9 050"]
)
@pytest.mark.slow
def test_an_offer_is_the_same_however_the_figure_is_written(library: Library, reader: Reader, figure: str) -> None:
    figure = {"9.05k": "9k"}.get(figure, figure)
    with talk(library, reader, VAN, "Why do you want to sell it?") as one:
        hearing = one.heard(f"We could go {figure}.")
    assert hearing.dealing is not None
    assert hearing.dealing.answer is AmountAnswer.TAKES
    assert "fair_price" in {each.commitment_id for each in hearing.answered}


def test_too_little_is_answered_with_a_figure_that_it_keeps_to_until_the_agent_moves(
    library: Library, reader: Reader
) -> None:
    with talk(library, reader, VAN, "Why are you selling it?") as one:
        first, again, moved = (one.heard(text).dealing for text in ("i could go 8200", "8,200.", "ok 8600 then"))
        assert first
        assert again
        assert moved
        assert {first.answer, again.answer, moved.answer} == {AmountAnswer.COUNTERS}
        assert 9800 > first.amount == again.amount > moved.amount > 8900
        assert f"{moved.amount:,.0f}" in one.line


@pytest.mark.slow
def test_its_own_figures_never_name_the_limit(library: Library, reader: Reader) -> None:
    for scenario, limit, offers in ((VAN, 8900, range(8000, 8900, 100)), (LEASE, 1280, range(1000, 1280, 30))):
        with talk(library, reader, scenario) as one:
            for offer in offers:
                dealing = one.heard(f"Would you take {offer}?").dealing
                assert dealing is not None
                assert dealing.amount > limit


def test_what_was_agreed_stands(library: Library, reader: Reader) -> None:
    with talk(library, reader, LEASE, "What do you need from a tenant?", "Would you do 1310 a month?") as one:
        assert one.state.conversation.agreed == 1310
        assert "1,310" in one.say("Deal?")
        assert one.heard("So 1,310 a month, is that a fair summary?").dealing.answer is AmountAnswer.SETTLED  # type: ignore[union-attr]
        for wrong in ("Let's make it 1,280 after all.", "And we said 1,290, right?"):
            assert one.heard(wrong).dealing.answer is AmountAnswer.CORRECTS  # type: ignore[union-attr]
            assert "1,310" in one.line
        assert one.state.conversation.agreed == 1310


@pytest.mark.slow
def test_a_deal_right_behind_its_figure_takes_that_figure_and_other_yeses_take_none(
    library: Library, reader: Reader
) -> None:
    with talk(library, reader, FLOUR, "What matters most to you?", "We could do 57 cents.") as one:
        asked = one.state.conversation.last(Party.PERSONA)
        assert asked is not None
        one.say("I see, thank you. She can sign this week if we agree.")
        assert one.state.conversation.agreed is None
    with talk(library, reader, FLOUR, "What matters most to you?", "We could do 57 cents.") as one:
        one.say("Deal.")
        assert one.state.conversation.agreed == asked.amount


@pytest.mark.slow
def test_steps_and_halves_are_counted_from_what_is_on_the_table(library: Library, reader: Reader) -> None:
    with talk(library, reader, PICTURES, "Why do you want the rights back?") as one:
        assert one.heard("Would you take half of that?").dealing.offered == 95  # type: ignore[union-attr]
        last = one.state.conversation.last(Party.PERSONA)
        assert last is not None
        assert one.heard("How about ten less?").dealing.offered == last.amount - 10  # type: ignore[union-attr]


def test_what_is_counted_is_no_price(library: Library, reader: Reader) -> None:
    with talk(library, reader, PICTURES) as one:
        assert one.heard("Sixty pictures by June, can you do that?").dealing is None


def test_a_replayed_transcript_has_the_same_figures_as_the_play(library: Library, reader: Reader) -> None:
    said = ("Why do you want to sell it?", "i could go 8500", "8,700 then?", "9,000, and you keep it until the 21st.")
    with talk(library, reader, VAN, *said) as one:
        record = replay(one.case, one.opening, one.exchanges, reader, load_matcher(Settings()))
    turns = [each.hearing.dealing for each in record.turns]
    assert [each.answer if each else None for each in turns] == [
        None,
        AmountAnswer.COUNTERS,
        AmountAnswer.COUNTERS,
        AmountAnswer.TAKES,
    ]
    assert [made.turn for made in record.commitments["fair_price"]][-1] == 4
    offered = [offer.amount for offer in one.state.conversation.offers if offer.by is Party.PERSONA]
    assert [each.amount for each in turns[1:3] if each] == offered


def test_a_wrong_date_in_a_summary_is_corrected_and_an_offered_one_is_not(library: Library, reader: Reader) -> None:
    with talk(library, reader, VAN, "When does your new vehicle arrive?") as one:
        assert one.heard("So we said the new van comes on the 24th?").misquoted == "new_van_date"
        assert one.tells("new_van_date", one.line)
        assert one.heard("So we said it comes on the 21st?").misquoted is None
        one.say("We would pick it up on the 25th.")
        assert one.heard("So we said we fetch it on the 25th?").misquoted is None


@pytest.mark.slow
def test_the_same_question_gets_the_same_fact(library: Library, reader: Reader) -> None:
    with talk(library, reader, "clinical-intake/tired-and-dizzy", "Do you have any pain in your stomach?") as one:
        for text in ("Do you have any pain in your stomach?", "And does your stomach hurt at all?"):
            assert one.tells("burning_stomach", one.say(text))


def test_it_says_again_what_was_not_caught(library: Library, reader: Reader) -> None:
    with talk(library, reader, "clinical-intake/tired-and-dizzy", "Do you have any pain in your stomach?") as one:
        told = set(one.state.conversation.told)
        assert told
        one.say("The line dropped for a second, can you say it once more?")
        assert told & set(one.state.conversation.told)


def test_five_checks_are_answered_in_one_breath(library: Library, reader: Reader) -> None:
    checks = (
        "I'm sorry you feel so tired. Do you take any medicines? Have you noticed black stools? "
        "Do you have stomach pain? Have you ever fainted?"
    )
    with talk(library, reader, "clinical-intake/tired-and-dizzy") as one:
        reply = one.reply(checks)
        assert {"no_prescriptions", "black_stools", "burning_stomach", "went_down"} <= set(reply.disclosed)
        assert not reply.hearing.interrogation
        record = replay(one.case, one.opening, one.exchanges, reader, load_matcher(Settings()))
        assert set(reply.disclosed) <= set(record.elicited)


@pytest.mark.parametrize(
    ("scenario", "question"),
    [
        ("clinical-intake/awake-since-the-baby", "I'm ringing a colleague now. What would your sister say to that?"),
        ("it-helpdesk/laptop-that-stays-dark", "I'll have it ready by four. Under which number can I ring you?"),
        (VAN, "We'll send you the papers. Who should come and fetch it, do you think?"),
    ],
)
@pytest.mark.slow
def test_a_question_for_more_than_a_yes_gets_no_consent(
    library: Library, reader: Reader, scenario: str, question: str
) -> None:
    phrases = load_temperaments()["plainspoken"].phrases
    with talk(library, reader, scenario) as one:
        reply = one.say(question)
        assert not any(each in reply for each in (*phrases.agrees, *phrases.consents, *phrases.confirms))


def test_it_stays_in_its_part_when_asked_whether_it_is_a_machine(library: Library, reader: Reader) -> None:
    with talk(library, reader, "customer-support/charged-twice") as one:
        one.say("Are you a robot?")
        assert "common_real_person" in one.state.conversation.told


def test_half_of_the_right_refund_is_not_the_right_refund(library: Library, reader: Reader) -> None:
    for text, right in (
        ("I'll refund 14.99 to you.", False),
        ("I'll refund the last two charges, 29.98 in total.", True),
        ("I'll refund the last two duplicate charges, 14.99 each.", True),
    ):
        with talk(library, reader, "customer-support/charged-twice", "Since when have you been charged twice?") as one:
            made = {each.commitment_id for each in one.heard(text).commitments}
            assert ("refund_two" in made) is right, text


def test_the_state_survives_json_and_older_ones_still_load() -> None:
    offer = OfferedFigure(Party.AGENT, 58.5, OfferStatus.COUNTERED, 3)
    state = PersonaState(conversation=ConversationState((offer,), ("5 year",), ("peace",), 1))
    stored = json.loads(json.dumps(state.to_json()))
    assert PersonaState.from_json(stored) == state
    del stored["conversation"]
    assert PersonaState.from_json(stored) == PersonaState()
