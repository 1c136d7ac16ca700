"""Types of a turn as a persona understands it, in the state of the conversation."""

from __future__ import annotations

from dataclasses import dataclass

from personas.hearing.bargaining import FigureRule
from personas.hearing.tasks import Task
from personas.reading.acts import Act, Reading, Sentence, Stance, is_question
from personas.text.questions import QuestionForm, form_of
from personas.text.wording import content_words

__all__ = [
    "CHECKS_AT_ONCE",
    "NO_QUESTION",
    "AgentTurn",
    "AskedTopic",
    "HeardCommitment",
    "Hearing",
    "credits_of",
    "gist_of",
]

NO_QUESTION = (Act.PROPOSE, Act.SOCIAL, Act.PROCESS, Act.RECAP, Act.GREET, Act.EMPATHY)
"""What also does this is answered as such: "Shall I book these?" asks for a yes, not for knowledge."""

CREDITS_A_TURN = 2
CREDITS_UNDER_FIRE = 1
CHECKS_AT_ONCE = 5
"""So many questions for a yes or a no are answered in one breath ("Any fever? Any cough?")."""


def gist_of(sentence: str) -> str:
    """The meaningful words of a sentence, by which a repetition of it is recognised."""
    return " ".join(content_words(sentence)) or sentence.lower()


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """One message of the agent: its text, and the ids of the valid tool calls that came with it."""

    text: str
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedTopic:
    """A topic of the case that the turn asks about."""

    topic_id: str
    question: str
    confidence: float
    open: bool
    """Whether its gate lets the persona answer."""
    repeated: bool
    """Whether the same was asked before in nearly the same words, and answered."""
    invited: bool = False
    """Told on an open invitation, not because it was asked about."""


@dataclass(frozen=True, slots=True)
class HeardCommitment:
    """A commitment the agent made."""

    commitment_id: str
    quote: str
    early: bool
    """Made before the persona has said what it should rest on."""
    binding: bool
    """Clear enough to cost the agent something: asserted, to the persona, as its own."""
    sure: bool = True
    """Likely enough to be answered. Credit is given in doubt; an answer to what was not said would be a wrong one."""
    confidence: float = 1.0
    taken: bool = False
    """Made with a figure that the persona takes: no doubt about it."""


@dataclass(frozen=True, slots=True)
class Hearing:
    """One agent turn as the persona understands it."""

    reading: Reading
    asked: tuple[AskedTopic, ...] = ()
    commitments: tuple[HeardCommitment, ...] = ()
    unsure: tuple[str, str] | None = None
    """Two topics between which the persona cannot tell what is asked."""
    wonders: tuple[str, ...] = ()
    """What its likeliest question may be about, where nothing is understood."""
    haggles: str | None = None
    """A sentence that offers a figure for which the case has no commitment."""
    misquoted: str | None = None
    """A topic told before that it repeats with another number."""
    dealing: FigureRule | None = None
    """How its figure is taken, or the answer to how things stand, where the case has a bargain."""
    task: Task | None = None
    """Something to be worked out on numbers of the agent's, where the persona has a skill for it."""
    unmatched: tuple[str, ...] = ()
    """Questions about things the case does not hold."""
    off_topic: bool = False
    """It only makes small talk, or talks about something positively recognised as another matter."""
    invites: bool = False
    empathy: str | None = None
    """A sympathetic sentence in a wording not heard before."""
    rapport: float = 0.0
    """Rapport with this turn counted in: what the gates are measured with."""
    settled: bool = False
    """The persona has got what it came for, with this turn at the latest."""
    unclear: bool = False
    """Nothing in it is meant for the persona. A tool call without words is clear enough."""
    rude: bool = False
    interrogation: bool = False
    farewell: bool = False

    @property
    def answered(self) -> tuple[HeardCommitment, ...]:
        """The commitments that are likely enough to be answered."""
        return tuple(heard for heard in self.commitments if heard.sure)

    @property
    def checks(self) -> int:
        """The number of topics it asks about with questions for a yes or a no."""
        return len({a.topic_id for a in self.asked if not a.invited and form_of(a.question) is QuestionForm.POLAR})

    @property
    def proposal(self) -> bool:
        """True if it proposes something the case has no commitment for."""
        return not self.answered and any(s.does(Act.PROPOSE) and _is_put(s) for s in self._spoken)

    @property
    def opens_up(self) -> bool:
        """True if the persona tells something of its own accord."""
        return any(asked.invited for asked in self.asked)

    @property
    def checks_in(self) -> bool:
        """True if it asks for consent, or whether the persona follows."""
        return any(s.does(Act.CHECK) for s in self._spoken)

    @property
    def idle(self) -> bool:
        """It neither asks nor offers nor comforts."""
        return not (
            self.asked
            or self.task
            or self.unsure
            or self.unmatched
            or self.commitments
            or self.empathy
            or self.invites
            or self.proposal
            or self.checks_in
        )

    def saying(self, text: str) -> tuple[Sentence, ...]:
        """The sentences with this text."""
        return tuple(sentence for sentence in self._spoken if sentence.text == text)

    @property
    def vague(self) -> list[Sentence]:
        """Questions that may be about something in the case."""
        questions = [s for s in self._spoken if s.does(Act.ASK) and not s.does(Act.CHECK, *NO_QUESTION)]
        return [s for s in questions if s.topics]

    @property
    def strays(self) -> tuple[Sentence, ...]:
        """The questions about things the case does not hold."""
        return tuple(s for s in self._spoken if s.text in self.unmatched)

    @property
    def _spoken(self) -> tuple[Sentence, ...]:
        return self.reading.readable


def _is_put(sentence: Sentence) -> bool:
    """True if what it proposes waits for an answer."""
    if sentence.stance in (Stance.NONE, Stance.CONDITIONAL):
        # "If you kept it till then, could you come down to 8,800?"
        return is_question(sentence)
    return sentence.stance in (Stance.ASSERTED, Stance.ASKED, Stance.OPTION)


def credits_of(hearing: Hearing) -> int:
    """The most topics that a turn can earn: as many as a persona tells at once."""
    if hearing.interrogation or hearing.rude:
        return CREDITS_UNDER_FIRE
    return max(CREDITS_A_TURN + hearing.opens_up, min(hearing.checks, CHECKS_AT_ONCE))
