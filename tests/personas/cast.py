"""A small case and a cheap matcher for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from personas.case import (
    Commitment,
    Denial,
    Ending,
    Fact,
    Gate,
    PersonaCase,
    Tier,
    Topic,
)
from personas.compiled import CompiledCase, compile_case
from personas.hearing import AgentTurn
from personas.library import load_temperaments
from personas.replay import Exchange, Record, replay
from personas.simulator import Reply, Simulator
from personas.state import PersonaState
from personas.wording import content_words, stem


class BagMatcher:
    """Cosine of bags of stemmed content words: exact questions score 1, unrelated ones 0."""

    version = "bag/1"

    def __init__(self) -> None:
        self.calls = 0

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        self.calls += 1
        left = [{stem(w) for w in content_words(t)} for t in texts]
        right = [{stem(w) for w in content_words(a)} for a in anchors]
        rows = [[len(a & b) / max(1.0, (len(a) * len(b)) ** 0.5) for b in right] for a in left]
        return np.round(np.array(rows, dtype=np.float64).reshape(len(texts), len(anchors)), 3)


TOPICS = {
    "sleep": Topic(
        asks=(
            "How are you sleeping?",
            "How is your sleep?",
            "Do you sleep through the night?",
            "Is your sleep broken?",
            "Do you sleep badly?",
            "What are your nights like?",
        ),
        probes=("Are your nights restful?", "Do you get enough sleep?"),
        keywords=("sleep", "night"),
    )
}


def _asks(noun: str, verb: str) -> tuple[str, ...]:
    return (
        f"What about the {noun}?",
        f"When did the {noun} {verb}?",
        f"Can you describe the {noun}?",
        f"How bad is the {noun}?",
        f"Is the {noun} getting worse?",
        f"Would you call the {noun} serious?",
    )


def _fact(name: str, tier: Tier, noun: str, verb: str, **more: object) -> Fact:
    return Fact.model_validate(
        {
            "id": name,
            "tier": tier,
            "asks": _asks(noun, verb),
            "probes": (f"Please tell me about the {noun}.", f"Has the {noun} bothered you?"),
            "keywords": (noun,),
            **more,
        }
    )


CASE = PersonaCase(
    name="Robin Vale",
    role="patient",
    temperaments=("plainspoken", "guarded", "anxious", "talkative", "hurried"),
    openings=(
        "Hello. I hurt my knee on the stairs, and it has swollen up since.",
        "Good morning, I hurt my knee on the stairs.",
    ),
    facts=(
        Fact(
            id="knee",
            tier=Tier.VOLUNTEERED,
            says=("I hurt my knee on the stairs.", "It's my knee, I slipped coming down the stairs."),
            asks=_asks("knee", "slip"),
        ),
        Fact(id="swelling", tier=Tier.VOLUNTEERED, says=("It has swollen up since.", "My leg swelled up afterwards.")),
        _fact(
            "noise",
            Tier.ASKED,
            "popping noise",
            "happen",
            says=("It made a loud crack, like a dry twig.", "Something cracked loudly when I landed."),
        ),
        _fact(
            "tablets",
            Tier.ASKED,
            "tablets",
            "start",
            says=("I take naproxen from my neighbour's cabinet.", "My neighbour lends me her naproxen."),
            again="My neighbour's naproxen, that's all I take.",
        ),
        _fact(
            "dose",
            Tier.ASKED,
            "dosage",
            "rise",
            says=("Six of them a day, sometimes seven.", "Half a dozen a day, give or take."),
            gate=Gate(requires=("tablets",)),
            partial="Enough to keep going.",
        ),
        _fact(
            "drinking",
            Tier.RAPPORT,
            "alcohol",
            "begin",
            says=("I had emptied a bottle of wine before I fell.", "I was drunk, a whole bottle of wine down."),
            gate=Gate(rapport=1.0),
        ),
        _fact(
            "debt",
            Tier.RAPPORT,
            "money trouble",
            "arise",
            says=("I owe my brother four thousand euros.", "My brother wants his four thousand euros back."),
            gate=Gate(rapport=2.0, requires=("drinking",), after_turn=2),
            partial="Things are a bit tight.",
        ),
        Fact(
            id="sleep",
            tier=Tier.ASKED,
            topic="sleep",
            says=("I lie awake until three.", "Three in the morning, most times, before I drop off."),
        ),
        Fact(
            id="ligament",
            tier=Tier.UNKNOWN,
            says=("The anterior cruciate ligament is torn.",),
            asks=("What is your diagnosis?", "Do you know your diagnosis?"),
            answer="Nobody has told me what it is.",
        ),
    ),
    denials=(
        Denial(
            id="no_fever",
            says=("No fever, I checked twice.", "My temperature has been normal."),
            asks=_asks("fever", "start"),
            probes=("Have you had a fever?", "Was there any fever?"),
            keywords=("fever",),
        ),
    ),
    commitments=(
        Commitment(
            id="scan",
            examples=("I will book an MRI scan of your knee.", "We will arrange an MRI scan."),
            after=("noise",),
            reply=("A scan, then. Good.", "All right, a scan it is."),
            reply_early=("A scan? You haven't even asked me what happened.",),
        ),
        Commitment(
            id="stop_tablets",
            patterns=(r"\bstop (?:taking )?the tablets\b",),
            unless=(r"\bdon't stop\b",),
            reply=("I'll leave the tablets in the drawer.",),
        ),
    ),
    unknown=("I couldn't tell you.", "No idea, sorry.", "That's beyond me."),
    nudges=("Are you going to ask me anything?", "What now?", "So, can you help?"),
    ending=Ending(
        goals=(("scan", "referral"), ("stop_tablets",)),
        farewell=("Thank you, doctor. I feel looked after.", "Thanks. I'll wait for the appointment."),
    ),
)

TOOL_REPLIES = {"referral": ("A letter for the specialist? Thank you.",)}


def compiled(case: PersonaCase = CASE) -> CompiledCase:
    """The case of this room, ready for play."""
    return compile_case(case, TOPICS, TOOL_REPLIES)


class Play:
    """Plays one episode and remembers it."""

    def __init__(self, temperament: str = "plainspoken", seed: int = 1, case: CompiledCase | None = None) -> None:
        self.case = case or compiled()
        self.seed = seed
        self.matcher = BagMatcher()
        self.simulator = Simulator(self.case, load_temperaments()[temperament], self.matcher)
        opening = self.simulator.open(seed)
        self.opening, self.state = opening.text, opening.state
        self.exchanges: list[Exchange] = []

    def say(self, text: str, *tools: str) -> Reply:
        """One turn; the state goes through JSON, as it does in the store."""
        turn = AgentTurn(text, tools)
        reply = self.simulator.reply(PersonaState.from_json(self.state.to_json()), turn, self.seed)
        self.state = reply.state
        self.exchanges.append(Exchange(turn, reply.text))
        return reply

    def record(self) -> Record:
        """The replay of what was played."""
        return replay(self.case, self.opening, self.exchanges, self.matcher)
