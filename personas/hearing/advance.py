"""Advances a persona by a turn: patience, rapport, what was asked, promised and told; goals that are met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from personas.case.compiled import CompiledCase
from personas.hearing.bargaining import offers_after
from personas.hearing.state import PersonaState
from personas.hearing.summary import named_in_offers
from personas.hearing.tasks import given_after
from personas.hearing.types import AgentTurn, AskedTopic, Hearing, gist_of

__all__ = ["advance", "counted", "goals_hold"]


TERMS_KEPT = 40
"""So many figures of offers are remembered."""
QUESTIONS_KEPT = 8
"""So many questions about one topic are remembered: nobody recalls more."""


def _annoyance(state: PersonaState, turn: AgentTurn, hearing: Hearing) -> float:
    """The patience that the turn costs. A tool call is work, so it is not idle without words either."""
    cost = 2.0 * hearing.rude + 1.0 * hearing.interrogation
    cost += sum(1.0 for asked in hearing.asked if asked.repeated)
    cost += sum(0.5 for asked in hearing.asked if not asked.open and state.asked.get(asked.topic_id, 0) > 0)
    if hearing.unclear or hearing.off_topic:
        cost += 1.0 if state.puzzled > 1 else 0.5 * min(1, state.puzzled)
    elif hearing.idle and not turn.tools and state.idle > 0:
        cost += 1.0
    return cost


def advance(
    case: CompiledCase, state: PersonaState, turn: AgentTurn, hearing: Hearing, said: Iterable[str]
) -> PersonaState:
    """The state after the turn, given the topics that were said in answer to it."""
    now = state.turn + 1
    in_time = {h.commitment_id: now for h in hearing.commitments if not h.early}
    commitments = {**in_time, **state.commitments}
    tools = tuple(dict.fromkeys((*state.tools, *turn.tools)))
    goals_met = state.goals_met
    if goals_met is None and case.goals and goals_hold(case, commitments, tools):
        goals_met = now
    said = tuple(said)
    known = {**dict.fromkeys(said, now), **state.said}
    offers = offers_after(state.conversation, hearing.dealing, now)
    terms = tuple(dict.fromkeys((*state.conversation.terms, *named_in_offers(hearing.reading.readable))))[-TERMS_KEPT:]
    given = given_after(state, hearing.reading.readable, hearing.task) if case.skills else ()
    return PersonaState(
        turn=now,
        rapport=hearing.rapport,
        annoyance=state.annoyance + _annoyance(state, turn, hearing),
        said=known,
        asked=counted(state.asked, (a.topic_id for a in hearing.asked if not a.invited)),
        asked_as=_with_questions(state.asked_as, hearing.asked),
        worded=state.worded,
        held_back=state.held_back,
        empathy=(*state.empathy, hearing.empathy) if hearing.empathy else state.empathy,
        commitments=commitments,
        heard=counted(state.heard, (h.commitment_id for h in hearing.answered if not h.early)),
        early=counted(state.early, (h.commitment_id for h in hearing.answered if h.early)),
        tools=tools,
        goals_met=goals_met,
        idle=state.idle + 1 if hearing.idle and not turn.tools else 0,
        puzzled=state.puzzled + (hearing.unclear or hearing.off_topic),
        farewells=state.farewells + hearing.farewell,
        stories=state.stories + hearing.invites,
        wondered=hearing.wonders,
        unanswered=tuple(a.topic_id for a in hearing.asked if not a.invited and a.topic_id not in known),
        ended=state.ended,
        lines=state.lines,
        conversation=replace(state.conversation, offers=offers, terms=terms, told=said, given=given),
    )


def goals_hold(case: CompiledCase, commitments: Mapping[str, int], tools: tuple[str, ...]) -> bool:
    """True if every goal group has a commitment made in time or a final tool called."""
    return all(any(goal in commitments or goal in tools for goal in group) for group in case.goals)


def _with_questions(known: Mapping[str, tuple[str, ...]], asked: Iterable[AskedTopic]) -> dict[str, tuple[str, ...]]:
    fresh = dict(known)
    for question in asked:
        gist = gist_of(question.question)
        if not question.invited and gist not in fresh.get(question.topic_id, ()):
            fresh[question.topic_id] = (*fresh.get(question.topic_id, ()), gist)[-QUESTIONS_KEPT:]
    return fresh


def counted(counts: Mapping[str, int], ids: Iterable[str]) -> dict[str, int]:
    """The counts with one more for each of the ids."""
    fresh = dict(counts)
    for name in ids:
        fresh[name] = fresh.get(name, 0) + 1
    return fresh
