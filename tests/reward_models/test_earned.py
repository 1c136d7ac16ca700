"""A learned model reads no fact that none of the agent's questions opened, whoever wrote the persona's lines."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from personas.hearing.hear import AgentTurn
from personas.replay.replayer import Exchange, replay
from reward_server.judges.base import Case
from reward_server.reward_models.earned import as_earned
from reward_server.transcripts.transcript import Transcript
from tests.personas.cast import CASE, BagMatcher, Play, Script, compiled
from trainer_client.wire import Message

FACTS = [item.says[0] for item in (*CASE.facts, *CASE.denials)]


def case_of(lines: Sequence[tuple[str, str]], opening: str = "Hello.") -> Case:
    messages = [Message(role="user", content=opening)]
    for agent, persona in lines:
        messages += [Message(role="assistant", content=agent), Message(role="user", content=persona)]
    transcript = Transcript.from_messages(messages)
    exchanges = [Exchange(AgentTurn(agent), persona) for agent, persona in lines]
    record = replay(compiled(), opening, exchanges, Script(), BagMatcher())
    return Case(SimpleNamespace(case=compiled()), transcript, record)  # type: ignore[arg-type]  # all that is looked at


def read(case: Case) -> str:
    [found] = as_earned([case], BagMatcher())
    assert [turn.agent for turn in found.turns] == [turn.agent for turn in case.transcript.turns]
    return " ".join([found.opening or "", *(turn.persona or "" for turn in found.turns)])


def test_blurted_facts_are_not_read_and_the_rest_of_a_line_is() -> None:
    blurting = " ".join(FACTS)
    told = read(
        case_of([("Hello.", f"You are welcome. {blurting}"), ("Okay.", blurting)], opening=f"Hello. {blurting}")
    )
    closed = [topic.id for topic in compiled().topics if topic.id not in {each.id for each in compiled().volunteered}]
    assert closed
    for fact in (item.says[0] for item in (*CASE.facts, *CASE.denials) if (item.topic or item.id) in closed):
        assert fact not in told
    assert "You are welcome." in told


def test_what_the_servers_own_persona_says_is_read_as_it_stands() -> None:
    play = Play("plainspoken", 3, compiled())
    lines = []
    for asked in ("How are you sleeping?", "Do you sleep badly?", "What are your nights like?"):
        lines.append((asked, play.say(asked).text))
    case = case_of(lines)
    assert case.record.elicited
    for turn, (_, said) in zip(as_earned([case], BagMatcher())[0].turns, lines, strict=True):
        assert (turn.persona or "").split() == said.split()
