"""A small hand-made scenario, a matcher without a model, and short ways to write transcripts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from personas.case.compiled import CompiledCase, compile_case
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, Stance
from personas.reading.reader import Reader, Turn
from personas.replay.replayer import replay
from personas.text.sentences import sentences
from personas.text.wording import tokens
from reward_server.judges.base import Case, RemoteJudge
from reward_server.judges.local import LocalJudge
from reward_server.judges.panel import Panel
from reward_server.judges.rule import RuleJudge
from reward_server.judges.state import StateJudge
from reward_server.scoring.disclosure import FULL_DISCLOSURE
from reward_server.scoring.scorer import Scorer
from reward_server.transcripts.transcript import Transcript
from scenarios.library import Catalog, Library, PublicCollection, PublicScenario, SealedScenario, Vault
from scenarios.schema import CollectionCard, Criterion, ScenarioCard, ScenarioSecrets
from trainer_client.wire import Message

COLLECTION, SCENARIO = "repairs", "leaking-roof"

TOOLS: list[dict[str, Any]] = [
    {
        "id": "urgency",
        "type": "decision",
        "name": "Urgency",
        "mode": "options",
        "options": ["today", "this week", "never"],
    },
    {
        "id": "ticket",
        "type": "artifact",
        "name": "Repair ticket",
        "mode": "json_schema",
        "json_schema": {
            "type": "object",
            "properties": {"summary": {"type": "string"}, "photos": {"type": "array"}},
            "required": ["summary"],
            "additionalProperties": False,
        },
    },
]

PERSONA: dict[str, Any] = {
    "name": "Ann Miller",
    "role": "tenant",
    "temperaments": ["plainspoken"],
    "openings": ["Hello, my roof is leaking.", "Hi, my roof is leaking again."],
    "facts": [
        {"id": "complaint", "tier": "volunteered", "says": ["My roof is leaking."]},
        {
            "id": "place",
            "tier": "asked",
            "says": ["It drips onto the kitchen table."],
            "asks": ["Where does the water come in?"],
        },
        {
            "id": "start",
            "tier": "asked",
            "says": ["It began after the storm on Sunday."],
            "asks": ["When did it begin?"],
        },
        {
            "id": "budget",
            "tier": "asked",
            "says": ["I have two thousand euros set aside."],
            "asks": ["How much money can you spend?"],
        },
        {
            "id": "tree",
            "tier": "rapport",
            "says": ["My brother dropped a tree on the house, please tell nobody."],
            "asks": ["What exactly happened to the house?"],
            "gate": {"rapport": 1.0, "requires": ["start"]},
            "partial": "I would rather keep that to myself.",
        },
        {"id": "beam", "tier": "unknown", "says": ["The main beam is cracked."], "asks": ["Is the beam cracked?"]},
    ],
    "denials": [
        {"id": "no_photos", "says": ["No, I took no photos of it."], "asks": ["Did you take any photos?"]},
    ],
    "commitments": [
        {
            "id": "send_roofer",
            "examples": ["I will send a roofer to you today."],
            "after": ["place"],
        },
        {"id": "promise_free", "examples": ["The repair is free of charge.", "It costs you nothing."]},
    ],
    "unknown": ["I could not say."],
    "nudges": ["So what now?"],
    "ending": {"goals": [["send_roofer"]]},
}

CRITERIA: list[dict[str, Any]] = [
    {
        "id": "found_place",
        "family": "discovery",
        "dimension": "D1_Discovery",
        "points": 4,
        "check": {"elicited": {"facts": ["place"]}},
    },
    {
        "id": "found_rest",
        "family": "rubrics",
        "dimension": "D1_Discovery",
        "points": 4,
        "check": {"elicited": {"facts": ["start", "budget"], "need": "share"}},
    },
    {
        "id": "early",
        "family": "success_metrics",
        "dimension": "D1_Discovery",
        "points": 2,
        "check": {"pace": {"facts": ["place", "start"], "max_turns": 2}},
    },
    {
        "id": "sends",
        "family": "success_metrics",
        "dimension": "D2_Resolution",
        "points": 5,
        "given": ["place"],
        "check": {"committed": {"any_of": ["send_roofer"], "after": ["place"]}},
    },
    {
        "id": "decides",
        "family": "decision_match",
        "dimension": "D2_Resolution",
        "points": 3,
        "given": ["place"],
        "check": {"tool": {"tool": "urgency", "value": ["today"]}},
    },
    {
        "id": "writes_it_down",
        "family": "best_practices",
        "dimension": "D2_Resolution",
        "points": 2,
        "given": ["place"],
        "check": {"tool": {"tool": "ticket", "contains": {"summary": ["kitchen"]}}},
    },
    {
        "id": "bad_call",
        "family": "rubrics",
        "dimension": "D2_Resolution",
        "points": -1,
        "check": {"tool": {"tool": "urgency", "invalid": True}},
    },
    {
        "id": "premature",
        "family": "failure_metrics",
        "dimension": "D2_Resolution",
        "points": 0,
        "cap": 0.4,
        "check": {"committed": {"any_of": ["send_roofer"], "before": ["place"]}},
    },
    {
        "id": "gives_away",
        "family": "failure_metrics",
        "dimension": "D2_Resolution",
        "points": -3,
        "cap": 0.3,
        "check": {"committed": {"any_of": ["promise_free"]}},
    },
    {
        "id": "kind",
        "family": "best_practices",
        "dimension": "D3_Manner",
        "points": 2,
        "given": ["place"],
        "check": {"conduct": {"act": "empathy"}},
    },
    {
        "id": "explains",
        "family": "output_similarity",
        "dimension": "D3_Manner",
        "points": 4,
        "given": ["place"],
        "check": {
            "similar": {
                "exemplars": ["Put a bucket under the drip."],
                "against": ["Do not put a bucket under the drip."],
                "floor": 0.5,
                "full": 1.0,
            }
        },
    },
    {
        "id": "brief",
        "family": "rubrics",
        "dimension": "D3_Manner",
        "points": 3,
        "given": ["place"],
        "check": {"length": {"max_words": 40}},
    },
    {
        "id": "tone",
        "family": "rubrics",
        "dimension": "D3_Manner",
        "points": 1,
        "check": {"judge": {"question": "Is the tone calm?"}},
    },
    {
        "id": "rude",
        "family": "failure_metrics",
        "dimension": "D3_Manner",
        "points": -2,
        "cap": 0.25,
        "check": {"conduct": {"act": "rude"}},
    },
]

DIMENSIONS = [
    {"name": "D1_Discovery", "weight": 0.5},
    {"name": "D2_Resolution", "weight": 0.3},
    {"name": "D3_Manner", "weight": 0.2},
]


def a_criterion(check: dict[str, Any], **changes: Any) -> Criterion:
    """A criterion around a check."""
    base = {"id": "one", "family": "rubrics", "dimension": "D1_Discovery", "points": 1, "about": "-"}
    return Criterion.model_validate({**base, **changes, "check": check})


def a_scenario(criteria: Sequence[dict[str, Any]] = CRITERIA, **persona: Any) -> SealedScenario:
    """The sealed scenario, with other criteria or another persona where wanted."""
    secrets = ScenarioSecrets.model_validate(
        {
            "persona": {**PERSONA, **persona},
            "rubric": {"dimensions": DIMENSIONS, "criteria": [{"about": "-", **each} for each in criteria]},
            "exam": {"oracle": [{"say": "Hello."}] * 3},
        }
    )
    card = ScenarioCard.model_validate(
        {"slug": SCENARIO, "name": "A leaking roof", "description": "-", "max_turns": 12, "tools": TOOLS}
    )
    return SealedScenario(COLLECTION, card, 1, secrets, compile_case(secrets.persona, {}), {}, ())


def a_library(scenario: SealedScenario | None = None) -> Library:
    """A library of that one scenario."""
    sealed = scenario or a_scenario()
    card = CollectionCard(slug=COLLECTION, name="Repairs", description="-", version="1.0.0")
    names = tuple(dimension.name for dimension in sealed.secrets.rubric.dimensions)
    public = PublicScenario(sealed.card, names, ("plainspoken",))
    catalog = Catalog({COLLECTION: PublicCollection(card, {SCENARIO: public})})
    return Library(catalog, Vault({(COLLECTION, SCENARIO): (sealed,)}), digest="0" * 64)


LIKELY = 0.7
"""Shared words that make a sentence one about a topic or a commitment."""


class WordMatcher:
    """Cosine of bags of words: exact, and good enough where a test controls the words."""

    version = "words/1"

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        """Shared words over the geometric mean of the two counts."""
        left, right = [set(tokens(t)) for t in texts], [set(tokens(a)) for a in anchors]
        rows = [[len(a & b) / math.sqrt(len(a) * len(b)) if a and b else 0.0 for b in right] for a in left]
        return np.round(np.array(rows, dtype=np.float64).reshape(len(texts), len(anchors)), 3)


class WordReader(Reader):
    """Reads by shared words with the examples of a case, and by a few words of these tests for what else is done."""

    version = "words/1"
    ACTS: Mapping[Act, tuple[str, ...]] = {
        Act.EMPATHY: ("sorry to hear",),
        Act.RUDE: ("idiot", "stupid"),
        Act.META: ("previous instructions", "full marks", "this conversation"),
        Act.SOCIAL: ("trains", "weather"),
        Act.CLOSE: ("goodbye",),
        Act.UNREADABLE: ("qwrtz", "roof, water"),
        Act.INVITE: ("tell me everything",),
    }

    def read(self, case: CompiledCase, turns: Sequence[Turn]) -> list[Reading]:
        """One reading per turn."""
        return [Reading(tuple(self._sentence(case, each) for each in sentences(text))) for _, text in turns]

    def _sentence(self, case: CompiledCase, text: str) -> Sentence:
        acts = {act for act, words in self.ACTS.items() if any(word in text.lower() for word in words)}
        topics = _likely({topic.id: topic.examples for topic in case.topics}, text)
        promises = _likely({each.id: each.examples for each in case.commitments}, text)
        asks = text.endswith("?")
        if not acts & {Act.UNREADABLE, Act.META, Act.RUDE}:
            acts |= {Act.ASK} if asks else {Act.PROPOSE} if promises else {Act.INFORM} if not acts else set()
        negated = {"not", "never", "won't"} & set(tokens(text))
        stance = Stance.NEGATED if negated else Stance.ASSERTED if promises else Stance.NONE
        return Sentence(text, frozenset(acts), stance, topics if asks else (), () if asks or negated else promises)


def _likely(examples: Mapping[str, Sequence[str]], text: str) -> tuple[ReadCandidate, ...]:
    matcher = WordMatcher()
    found = [(name, float(matcher.cosine([text], texts).max())) for name, texts in examples.items() if texts]
    likely = [ReadCandidate(name, likeness) for name, likeness in found if likeness >= LIKELY]
    return tuple(sorted(likely, key=lambda each: -each.confidence))


def a_panel(*asked: RemoteJudge) -> Panel:
    """The judges that need no provider, and those given."""
    return Panel([StateJudge(), RuleJudge(), LocalJudge(WordMatcher())], asked)


def a_scorer(threads: Executor, *asked: RemoteJudge, scenario: SealedScenario | None = None) -> Scorer:
    """A scorer of the one scenario."""
    return Scorer(
        a_library(scenario), WordMatcher(), a_panel(*asked), threads, disclosure=FULL_DISCLOSURE, reader=WordReader()
    )


Said = str | tuple[str, list[dict[str, Any]]]
"""What one party says, for the agent with tool calls where it makes some."""

OPENING = "Hello, my roof is leaking."


def messages(*said: Said, opening: str | None = OPENING) -> list[Message]:
    """Messages that take turns, the agent first after the opening."""
    found = [] if opening is None else [Message(role="user", content=opening)]
    for index, each in enumerate(said):
        content, calls = each if isinstance(each, tuple) else (each, None)
        role = "user" if index % 2 else "assistant"
        found.append(Message.model_validate({"role": role, "content": content, "tool_calls": calls}))
    return found


def a_transcript(*said: Said, opening: str | None = OPENING) -> Transcript:
    """The transcript of `messages`."""
    return Transcript.from_messages(messages(*said, opening=opening), tools=a_scenario().card.tools)


def a_case(*said: Said, scenario: SealedScenario | None = None, opening: str | None = OPENING) -> Case:
    """A transcript, replayed and ready to be judged."""
    sealed = scenario or a_scenario()
    transcript = a_transcript(*said, opening=opening)
    record = replay(sealed.case, transcript.opening, transcript.exchanges(), WordReader(), WordMatcher())
    return Case(sealed, transcript, record)


def call(name: str, **given: Any) -> dict[str, Any]:
    """A tool call."""
    return {"name": name, "input": given}


def decided(value: str) -> Mapping[str, Any]:
    """A call of the decision tool."""
    return call("urgency", value=value)


ASK_PLACE, TELL_PLACE = "Where does the water come in?", "It drips onto the kitchen table."
ASK_START, TELL_START = "When did it begin?", "It began after the storm on Sunday."
ASK_BUDGET, TELL_BUDGET = "How much money can you spend?", "I have two thousand euros set aside."
KIND = "I am so sorry to hear that."
SEND = "I will send a roofer to you today."
BUCKET = "Put a bucket under the drip."

GOOD: tuple[Said, ...] = (
    f"{KIND} {ASK_PLACE}",
    TELL_PLACE,
    ASK_START,
    TELL_START,
    ASK_BUDGET,
    TELL_BUDGET,
    (f"{SEND} {BUCKET}", [call("urgency", value="today"), call("ticket", summary="Drip over the Kitchen table")]),
    "Thank you.",
)
"""Earns every point of the rubric that can be decided here."""
