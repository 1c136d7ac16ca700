"""Bargaining of a persona about a figure: yes, no, or a figure of its own that it keeps to.

Everything follows from the case, the agent's words and the figures before, so whoever replays a transcript finds the
persona at the same figure as it was in play. Its limit stays a secret: no figure of its own reaches it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from personas.case.compiled import CompiledCase, CompiledCommitment
from personas.case.schema import Bargain, all_hold
from personas.hearing.amounts import resolved
from personas.hearing.conversation import ConversationState, OfferedFigure, OfferStatus, Party
from personas.hearing.state import PersonaState
from personas.reading.acts import Act, Sentence, Stance
from personas.text.wording import content_stems

__all__ = ["AmountAnswer", "FigureRule", "dealing_of", "figure_of", "offers_after"]

PLAUSIBLE = (0.3, 1.35)
"""A number counts as a figure of the bargain from this share of what is asked to that."""
GIVES_WAY = 0.45
"""With each step the persona gives up so much of what lies between its figure and its limit."""
CLEAR = 0.5
"""A sentence that is more likely than not about a topic does not ask how the bargain stands."""
NOD, NOD_WORDS = 2, 1
"""A turn of so many sentences, with so many meaningful words each, may be no more than a yes."""
STEPS = 3
"""So often it gives way."""
ROUND = 20
"""Its figures are round: whole twentieths of the power of ten below what it asks."""
_REPORTED = (Stance.QUOTED, Stance.PAST, Stance.NEGATED)


class AmountAnswer(StrEnum):
    """The reaction to a figure."""

    TAKES = "takes"
    SETTLED = "settled"
    """It was agreed before."""
    CORRECTS = "corrects"
    """Another one was agreed."""
    COUNTERS = "counters"
    EARLY = "early"
    """The persona wants to be asked something else first."""


@dataclass(frozen=True, slots=True)
class FigureRule:
    """The reaction to the figure of a turn."""

    answer: AmountAnswer
    quote: str
    amount: float
    """What the persona answers with: what is agreed, or what it asks now."""
    offered: float | None = None
    """What the agent named; None where it asks how things stand."""

    @property
    def makes(self) -> bool:
        """True if the agent commits itself to a figure that the persona takes."""
        return self.answer in (AmountAnswer.TAKES, AmountAnswer.EARLY)


def dealing_of(case: CompiledCase, state: PersonaState, spoken: Sequence[Sentence]) -> FigureRule | None:
    """React to the last figure of a turn, or to a question of how things stand; None if there is neither."""
    if case.bargain is None:
        return None
    table = _Table(case, case.bargain, state)
    named = table.named(spoken)
    if named is not None:
        return table.taken(*named)
    return table.asked_after(spoken)


def offers_after(conversation: ConversationState, dealing: FigureRule | None, turn: int) -> tuple[OfferedFigure, ...]:
    """The figures on the table after a turn."""
    if dealing is None or dealing.answer in (AmountAnswer.SETTLED, AmountAnswer.CORRECTS):
        return conversation.offers
    statuses = {
        AmountAnswer.TAKES: OfferStatus.ACCEPTED,
        AmountAnswer.EARLY: OfferStatus.PROPOSED,
        AmountAnswer.COUNTERS: OfferStatus.COUNTERED,
    }
    offers = conversation.offers
    if dealing.offered is not None:
        offers = (*offers, OfferedFigure(Party.AGENT, dealing.offered, statuses[dealing.answer], turn))
    if dealing.answer is AmountAnswer.COUNTERS:
        offers = (*offers, OfferedFigure(Party.PERSONA, dealing.amount, OfferStatus.PROPOSED, turn))
    return offers


def figure_of(bargain: Bargain, amount: float) -> str:
    """A figure as people write it, with its unit."""
    text = f"{amount:,.0f}" if amount == round(amount) else f"{amount:,.2f}".rstrip("0")
    return f"{text} {bargain.unit}" if bargain.unit else text


class _Table:
    """The figures of one persona before a turn."""

    def __init__(self, case: CompiledCase, bargain: Bargain, state: PersonaState) -> None:
        self._bargain = bargain
        self._case = case
        self._state = state
        self._talk = state.conversation
        self._closes: CompiledCommitment = next(c for c in case.commitments if c.id == bargain.closes)
        bounds = self._closes.amount
        low, high = (bounds.at_least or 0.0, bounds.at_most or math.inf) if bounds else (0.0, math.inf)
        self._sells = bargain.asking > high
        self._limit = low if self._sells else high

    def named(self, spoken: Sequence[Sentence]) -> tuple[Sentence, float] | None:
        """The last figure of the turn that is one of the bargain, and the sentence that names it."""
        figures_named: list[tuple[Sentence, float]] = []
        own, other = self._position, self._last_offered
        if self._talk.agreed is not None:
            own = other = self._talk.agreed
        low, high = (share * self._bargain.asking for share in PLAUSIBLE)
        for sentence in spoken:
            if not self._offers(sentence):
                continue
            base = (own, other) if self._sells else (other, own)
            figures = [self._scaled(figure) for figure in resolved(sentence.text, *base)]
            figures_named += [(sentence, figure) for figure in figures if low <= figure <= high]
        # "You ask 9,800, we offer 9,000": what the persona asks is not what is offered, if anything else is.
        fresh = [pair for pair in figures_named if pair[1] != self._bargain.asking]
        best = fresh or figures_named
        return best[-1] if best else None

    def taken(self, sentence: Sentence, amount: float) -> FigureRule:
        """React to a figure."""
        agreed, quote = self._talk.agreed, sentence.text
        if agreed is not None:
            quotes = sentence.does(Act.RECAP) and amount != agreed
            if quotes or self._is_worse(amount, agreed):
                return FigureRule(AmountAnswer.CORRECTS, quote, agreed, amount)
            return FigureRule(AmountAnswer.SETTLED if amount == agreed else AmountAnswer.TAKES, quote, amount, amount)
        enough = not self._is_worse(amount, self._limit) or not self._is_worse(amount, self._position)
        if enough and not all_hold(self._closes.after, self._state.said):
            return FigureRule(AmountAnswer.EARLY, quote, self._position, amount)
        if enough:
            return FigureRule(AmountAnswer.TAKES, quote, amount, amount)
        return FigureRule(AmountAnswer.COUNTERS, quote, self._counter(amount), amount)

    def asked_after(self, spoken: Sequence[Sentence]) -> FigureRule | None:
        """Its answer to "Deal?", or to a question for its figure, where figures were named before."""
        if not self._talk.offers:
            return None
        agreed = self._talk.agreed
        for sentence in spoken:
            if agreed is not None and sentence.does(Act.CHECK) and _is_nod(sentence):
                return FigureRule(AmountAnswer.SETTLED, sentence.text, agreed)
        own, quote = self._talk.last(Party.PERSONA), spoken[-1].text if spoken else ""
        # "Deal." right behind a figure of its own takes that figure, if nothing else is said.
        latest = own is not None and own.turn >= self._state.turn - 1
        nods = (
            0 < len(spoken) <= NOD and all(map(_is_nod, spoken)) and any(s.does(Act.CHECK, Act.PROPOSE) for s in spoken)
        )
        if agreed is None and own is not None and latest and nods:
            return FigureRule(AmountAnswer.TAKES, quote, own.amount, own.amount)
        return self._asked_for_figure(spoken)

    def _asked_for_figure(self, spoken: Sequence[Sentence]) -> FigureRule | None:
        for sentence in spoken:
            if any(topic.id in self._bargain.figures for topic in sentence.topics[:1]) and sentence.does(Act.ASK):
                agreed = self._talk.agreed
                answer = AmountAnswer.COUNTERS if agreed is None else AmountAnswer.SETTLED
                return FigureRule(answer, sentence.text, self._position if agreed is None else agreed)
        return None

    def _offers(self, sentence: Sentence) -> bool:
        """True if the numbers of a sentence may be figures that the agent offers or asks about."""
        if sentence.stance in _REPORTED and not sentence.does(Act.RECAP, Act.CHECK, Act.PROPOSE):
            return False
        about = max(
            (topic.confidence for topic in sentence.topics if topic.id not in self._bargain.figures), default=0.0
        )
        made = max((commitment.confidence for commitment in sentence.commitments), default=0.0)
        return about < CLEAR or made > about

    def _scaled(self, figure: float) -> float:
        """0.61 of a euro is 61 cents."""
        return figure * 100 if figure < 2 < self._bargain.asking < 100 else figure

    def _is_worse(self, one: float, other: float) -> bool:
        return one < other if self._sells else one > other

    @property
    def _position(self) -> float:
        """Its figure: who has named its limit stands there."""
        own = self._talk.last(Party.PERSONA)
        named = any(t in self._state.said and self._case.by_id[t].creditable for t in self._bargain.figures)
        return self._limit if named else self._bargain.asking if own is None else own.amount

    @property
    def _last_offered(self) -> float:
        other = self._talk.last(Party.AGENT)
        return self._position if other is None else other.amount

    def _counter(self, amount: float) -> float:
        """Its next figure: it gives way where the agent does, a few times, and stays above its limit."""
        other, given = self._talk.last(Party.AGENT), len({o.amount for o in self._talk.offers if o.by is Party.PERSONA})
        moved = other is None or self._is_worse(other.amount, amount)
        if given >= STEPS or not moved:
            return self._position
        wanted = self._position - GIVES_WAY * (self._position - self._limit)
        step = 10 ** math.floor(math.log10(self._bargain.asking)) / ROUND
        nearest = math.ceil(wanted / step) * step if self._sells else math.floor(wanted / step) * step
        return nearest if self._is_worse(nearest, self._position) and nearest != self._limit else self._position


def _is_nod(sentence: Sentence) -> bool:
    """True if it says nothing of its own beside a yes ("Deal?", "Can we shake on that?")."""
    vague = all(topic.confidence < CLEAR for topic in sentence.topics)
    plain = not sentence.does(Act.ASK, Act.EMPATHY, Act.PROCESS) and sentence.stance is not Stance.NEGATED
    return vague and plain and len(content_stems(sentence.text)) <= NOD_WORDS
