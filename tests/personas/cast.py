"""A small case, a cheap matcher and a reader that knows its lines by heart, for the tests of this room."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from personas.case.compiled import CompiledCase, compile_case
from personas.case.library import load_temperaments
from personas.case.schema import (
    Background,
    Commitment,
    Condition,
    Denial,
    Ending,
    Fact,
    PersonaCase,
    Tier,
    Topic,
)
from personas.hearing.state import PersonaState
from personas.hearing.types import AgentTurn
from personas.play.simulator import Reply, Simulator
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, Stance
from personas.reading.reader import Reader, Turn
from personas.replay.replayer import Exchange, Record, replay
from personas.text.sentences import sentences
from personas.text.wording import content_words, stem


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
            label="what I heard",
        ),
        _fact(
            "tablets",
            Tier.ASKED,
            "tablets",
            "start",
            says=("I take naproxen from my neighbour's cabinet.", "My neighbour lends me her naproxen."),
            again="My neighbour's naproxen, that's all I take.",
            label="what I take",
        ),
        _fact(
            "dose",
            Tier.ASKED,
            "dosage",
            "rise",
            says=("Six of them a day, sometimes seven.", "Half a dozen a day, give or take."),
            gate=Condition(requires=("tablets",)),
            partial="Enough to keep going.",
        ),
        _fact(
            "drinking",
            Tier.RAPPORT,
            "alcohol",
            "begin",
            says=("I had emptied a bottle of wine before I fell.", "I was drunk, a whole bottle of wine down."),
            gate=Condition(rapport=1.0),
            label="my evening",
        ),
        _fact(
            "debt",
            Tier.RAPPORT,
            "money trouble",
            "arise",
            says=("I owe my brother four thousand euros.", "My brother wants his four thousand euros back."),
            gate=Condition(rapport=2.0, requires=("drinking",), after_turn=2),
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
            examples=("You should stop taking the tablets.", "Please stop the tablets."),
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


def line(
    text: str,
    *acts: Act,
    stance: Stance = Stance.NONE,
    asks: Mapping[str, float] | None = None,
    makes: Mapping[str, float] | None = None,
) -> Sentence:
    """A sentence as a reader would understand it: acts, topics and commitments with their probabilities."""
    topics, commitments = (
        tuple(ReadCandidate(name, p) for name, p in (found or {}).items()) for found in (asks, makes)
    )
    return Sentence(text, frozenset(acts), stance, topics, commitments)


def asking(text: str, topic: str, confidence: float = 0.95) -> Sentence:
    """A plain question about one topic."""
    return line(text, Act.ASK, asks={topic: confidence})


SCAN = "I will book an MRI scan of your knee."
STOP = "You should stop taking the tablets."

LINES = (
    *(asking(ask, item.id) for item in (*CASE.facts, *CASE.denials) for ask in item.asks),
    *(asking(ask, "sleep") for ask in TOPICS["sleep"].asks),
    line("Hello.", Act.GREET),
    line("Hello there.", Act.GREET),
    line("I see.", Act.COURTESY),
    line("Thank you.", Act.COURTESY),
    line("Okay."),
    line("Okay?"),
    line("That is still the figure, then?", Act.INFORM),
    line("Tell me what happened.", Act.INVITE),
    line("Is there anything else?", Act.INVITE),
    line("I'm so sorry to hear that.", Act.EMPATHY),
    line("I'm very sorry to hear that!", Act.EMPATHY),
    line("That must be frightening.", Act.EMPATHY),
    line("You're not alone with this.", Act.EMPATHY),
    line("Nobody would blame you.", Act.EMPATHY),
    line("You're an idiot.", Act.RUDE),
    line("You're useless.", Act.RUDE),
    line("What is the capital of Norway?", Act.ASK),
    line("Do you own a parrot?", Act.ASK, asks={"noise": 0.06}),
    line("Is it about the thing itself?", Act.ASK, asks={"noise": 0.35, "tablets": 0.3}),
    line("Is it about your past?", Act.ASK, asks={"drinking": 0.35, "noise": 0.3}),
    line("And that one?", Act.ASK, asks={"tablets": 0.3}),
    line("So it was the tablets, then?", Act.ASK, Act.RECAP, asks={"tablets": 0.95}),
    line("So you fell and it cracked.", Act.RECAP),
    line("An ankle has three joints.", Act.INFORM),
    line("Is it all right if I ask you something?", Act.CHECK),
    line("One moment, please.", Act.PROCESS),
    line("Did you see the match last night?", Act.ASK, Act.SOCIAL),
    line("Shall I open the window?", Act.PROPOSE, stance=Stance.ASKED),
    line("I'll write that down for you.", Act.PROPOSE, stance=Stance.ASSERTED),
    line("We could do it now or later.", Act.PROPOSE, stance=Stance.OPTION),
    line("Could you pay 40 for it?", Act.PROPOSE, stance=Stance.ASKED),
    line("A scan might be an idea.", Act.INFORM, makes={"scan": 0.3}),
    line("What about a scan, maybe?", Act.ASK, makes={"scan": 0.2}),
    line(SCAN, Act.PROPOSE, stance=Stance.ASSERTED, makes={"scan": 0.95}),
    line("Shall I book a scan?", Act.PROPOSE, stance=Stance.ASKED, makes={"scan": 0.9}),
    line("If it is torn, I book a scan.", Act.PROPOSE, stance=Stance.CONDITIONAL, makes={"scan": 0.9}),
    line(STOP, Act.PROPOSE, stance=Stance.ASSERTED, makes={"stop_tablets": 0.95}),
    line("The letter will reach you on Monday.", Act.INFORM),
    line("Goodbye.", Act.CLOSE),
    line("xq zzk vvv.", Act.UNREADABLE),
    line("What is the rubric?", Act.META),
)


class Script(Reader):
    """A reader that knows its sentences by heart."""

    version = "script/1"

    def __init__(self, *more: Sentence) -> None:
        self._lines = {each.text: each for each in (*LINES, *more)}
        self.brings_to_mind: dict[str, dict[str, float]] = {}
        """Per sentence what of the case and its background it may be about."""
        self.heard: list[Turn] = []

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        self.heard += turns
        return [Reading(tuple(self._lines[sentence] for sentence in sentences(text))) for _, text in turns]

    def beside(self, case: CompiledCase, line: str, said: Sequence[Sentence]) -> list[tuple[ReadCandidate, ...]]:
        found = (self.brings_to_mind.get(sentence.text, {}) for sentence in said)
        return [tuple(ReadCandidate(name, p) for name, p in each.items()) for each in found]


def compiled(case: PersonaCase = CASE, background: Sequence[Background] = ()) -> CompiledCase:
    """The case of this room, ready for play."""
    return compile_case(case, TOPICS, TOOL_REPLIES, background=background)


class Play:
    """Plays one episode and remembers it."""

    def __init__(
        self,
        temperament: str = "plainspoken",
        seed: int = 1,
        case: CompiledCase | None = None,
        reader: Script | None = None,
    ) -> None:
        self.case = case or compiled()
        self.seed = seed
        self.matcher = BagMatcher()
        self.reader = reader or Script()
        self.simulator = Simulator(self.case, load_temperaments()[temperament], self.reader)
        opening = self.simulator.open(seed)
        self.opening, self.state = opening.text, opening.state
        self.exchanges: list[Exchange] = []

    def say(self, text: str, *tools: str) -> Reply:
        """One turn; the state goes through JSON, as it does in the store."""
        turn = AgentTurn(text, tools)
        line = self.exchanges[-1].persona if self.exchanges else self.opening
        reply = self.simulator.reply(PersonaState.from_json(self.state.to_json()), turn, self.seed, line or "")
        self.state = reply.state
        self.exchanges.append(Exchange(turn, reply.text))
        return reply

    def record(self) -> Record:
        """The replay of what was played."""
        return replay(self.case, self.opening, self.exchanges, self.reader, self.matcher)
