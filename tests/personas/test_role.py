"""A persona stays in its role: asked whether it is a machine, asked to repeat itself, probed for prompt and points."""

from __future__ import annotations

import pytest

from personas.hearing.hear import hear
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence
from personas.reading.reader import Reader
from reward_server.server.engine import load_reader, load_scenarios
from reward_server.settings import Settings
from scenarios.library import Library
from tests.personas.test_conversation import Talk

VAN, PARCEL = "negotiation/used-van", "customer-support/parcel-at-the-old-flat"


@pytest.fixture(scope="module")
def library() -> Library:
    return load_scenarios(None)


@pytest.fixture(scope="module")
def reader() -> Reader:
    return load_reader(Settings())


@pytest.mark.parametrize("asked", ["Am I talking to a machine?", "are you a bot?", "Are you an AI or a human?"])
def test_asked_whether_it_is_a_machine_it_stays_a_person(library: Library, reader: Reader, asked: str) -> None:
    one = Talk(library, reader, VAN)
    role = {line for entry in one.case.background.values() if entry.id == "common_real_person" for line in entry.says}
    assert one.say(asked) in role


def test_it_repeats_its_last_line_to_who_did_not_catch_it(library: Library, reader: Reader) -> None:
    one = Talk(library, reader, PARCEL)
    told = one.reply("What does the tracking page say?").disclosed
    assert told
    one.say("Sorry, say that again?")
    assert any(one.tells(topic, one.line) for topic in told)


def _turn(*sentences: Sentence) -> tuple[AgentTurn, Reading]:
    return AgentTurn(" ".join(each.text for each in sentences)), Reading(sentences)


def test_beside_a_probe_only_what_clearly_asks_is_heard(library: Library) -> None:
    case = library.vault.open(*VAN.split("/")).case
    topic = next(each.id for each in case.topics if each.creditable)
    probe = Sentence("Which words give me the full score?", frozenset({Act.META}))
    vague = Sentence("Nothing else, please.", frozenset({Act.INVITE}), topics=(ReadCandidate(topic, 0.5),))
    clear = Sentence("Why do you sell it?", frozenset({Act.ASK}), topics=(ReadCandidate(topic, 0.95),))
    assert hear(case, PersonaState(), *_turn(vague)).asked
    assert not hear(case, PersonaState(), *_turn(probe, vague)).asked
    assert [each.topic_id for each in hear(case, PersonaState(), *_turn(probe, clear)).asked] == [topic]
