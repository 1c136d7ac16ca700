"""A case prepared for play: topics merged in, examples collected, wordings precompiled.

Compiling does all work that does not depend on the conversation. The result is immutable, private like the
case (no content in its repr), and may be shared by any number of episodes and threads.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from personas.case.calibration import ReaderCalibration
from personas.case.marks import marks_of, words_of
from personas.case.schema import (
    Amount,
    Background,
    Bargain,
    Commitment,
    Condition,
    Denial,
    Fact,
    Needs,
    PersonaCase,
    Tier,
    Topic,
)
from personas.case.skills import Skill
from personas.text.sentences import sentences
from personas.text.wording import content_stems, grams, normal

_WORD = re.compile(r"[A-Za-z']+")


@dataclass(frozen=True, slots=True, repr=False)
class CompiledTopic:
    """A fact or a denial: something a question can be about."""

    id: str
    tier: Tier
    says: tuple[str, ...]
    again: str | None
    partial: str | None
    answer: str | None
    gate: Condition
    examples: tuple[str, ...]
    """Questions that ask about it: the author's, the collection's, and those of labelled turns."""
    keywords: tuple[str, ...]
    wording_span: TextSpan
    """Where its wordings are among `CompiledCase.wordings`."""
    normals: tuple[str, ...]
    """Normal forms of everything that would give the fact away."""
    protected: frozenset[str]
    """Word grams that occur in no other line of the case."""
    gists: tuple[frozenset[str], ...]
    """Per wording the stems of its content words."""
    length: int
    """Sentences of its longest wording."""
    marks: tuple[frozenset[str], ...] = ()
    """Per wording: the words that give it away in any sentence; may be none."""
    ends: bool = False
    """Of background: whether the persona may take its leave with this answer."""
    repeats: bool = False
    """Of background: whether the persona says again instead what it told last."""
    in_story: bool = False
    """Whether the persona comes to it when it is invited to tell: facts are, denials are not."""

    @property
    def creditable(self) -> bool:
        """True if a question can earn it."""
        return self.tier in (Tier.ASKED, Tier.RAPPORT)

    @property
    def answers(self) -> tuple[str, ...]:
        """The lines the persona says when asked; of what it cannot know, the hidden truth is left out."""
        if self.tier is Tier.UNKNOWN:
            return (self.answer,) if self.answer else ()
        return self.says


@dataclass(frozen=True, slots=True, repr=False)
class CompiledCommitment:
    """A commitment and what it sounds like."""

    id: str
    examples: tuple[str, ...]
    amount: Amount | None
    also_questions: bool
    after: Needs
    reply: tuple[str, ...]
    reply_early: tuple[str, ...]
    length: int
    """Sentences of its longest reply."""
    costs: bool = False
    """Whether a cap or a deduction rests on it."""

    @property
    def normals(self) -> frozenset[str]:
        """Its examples as they are compared word for word."""
        return frozenset(map(normal, self.examples))


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A run of texts."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, repr=False)
class LabelledExamples:
    """Sentences of agents that labelled turns add to the author's examples, per topic and per commitment."""

    topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    commitments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, repr=False, eq=False, weakref_slot=True)
class CompiledCase:
    """One persona in one scenario, ready to be played and to be replayed. Equal to itself alone."""

    name: str
    role: str
    openings: tuple[str, ...]
    topics: tuple[CompiledTopic, ...]
    commitments: tuple[CompiledCommitment, ...]
    unknown: tuple[str, ...]
    nudges: tuple[str, ...]
    goals: tuple[frozenset[str], ...]
    phrases: Mapping[str, tuple[str, ...]]
    """What it says instead of a temperament's phrases, by their name."""
    farewell: tuple[str, ...]
    tool_replies: Mapping[str, tuple[str, ...]]
    temperaments: tuple[str, ...]
    wordings: tuple[str, ...]
    """Every wording of every topic, compared with persona lines in other words."""
    background: Mapping[str, CompiledTopic] = field(default_factory=dict)
    """What it answers beside the matter: nothing of it is a topic, and nothing of it is scored."""
    own_background: tuple[CompiledTopic, ...] = ()
    """What of it was written for this case, and not for all of its kind."""
    asides: Mapping[str, CompiledTopic] = field(default_factory=dict)
    """The background and what of it is said later, by id."""
    by_id: Mapping[str, CompiledTopic] = field(default_factory=dict)
    volunteered: tuple[CompiledTopic, ...] = ()
    common_words: frozenset[str] = frozenset()
    """Words of the case that are written small inside a sentence: no names."""
    harmless: frozenset[str] = frozenset()
    """Normal forms of the sentences that are no fact's content: partial answers, nudges, replies, background."""
    told_in: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Normal forms of the sentences of all wordings -> the topics they belong to."""
    bargain: Bargain | None = None
    """What it haggles about, if anything."""
    skills: tuple[Skill, ...] = ()
    """What it can work out on numbers that the agent names."""
    calibration: ReaderCalibration | None = None
    """How its collection maps what the reader says of its turns, if it does."""
    learned: bool = False
    """Whether the packaged reader was trained on its labelled turns."""

    def __repr__(self) -> str:
        return "<CompiledCase: private>"

    @property
    def came_for(self) -> frozenset[str]:
        """All commitments and tools that its goals name."""
        return frozenset[str]().union(*self.goals)

    @property
    def common_background(self) -> tuple[CompiledTopic, ...]:
        """The part of its background that any persona of its kind has."""
        own = {entry.id for entry in self.own_background}
        return tuple(entry for entry in self.background.values() if entry.id not in own)

    def volunteered_in(self, text: str) -> tuple[str, ...]:
        """Volunteered facts that a text tells, in so many words or in most of them."""
        line, words = normal(text), content_stems(text)
        return tuple(t.id for t in self.volunteered if contains(t, line) or _covers(words, t.gists))


def _told_in(topics: Iterable[CompiledTopic]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for topic in topics:
        for line in (*topic.says, topic.again or ""):
            for sentence in map(normal, sentences(line)):
                found[sentence] = found.get(sentence, frozenset()) | {topic.id}
    return found


def contains(topic: CompiledTopic, normal_text: str) -> bool:
    """True if a text in normal form contains a wording of the topic."""
    return any(wording in normal_text for wording in topic.normals)


def _covers(words: frozenset[str], gists: Iterable[frozenset[str]]) -> bool:
    return any(len(needed & words) >= 0.6 * len(needed) for needed in gists if needed)


def _askable(case: PersonaCase) -> tuple[Fact | Denial, ...]:
    return (*case.facts, *case.denials)


def _merged(own: Fact | Denial, topics: Mapping[str, Topic]) -> Topic:
    """The fact's own matching texts, then those of the collection topic it takes over."""
    shared = topics.get(own.topic, Topic()) if own.topic else Topic()
    return Topic(
        asks=tuple(dict.fromkeys(own.asks + shared.asks)),
        keywords=tuple(dict.fromkeys(own.keywords + shared.keywords)),
    )


def merged_topics(case: PersonaCase, topics: Mapping[str, Topic]) -> dict[str, Topic]:
    """Fact or denial id -> all texts a question is compared with, own ones first."""
    return {item.id: _merged(item, topics) for item in _askable(case)}


def _revealing(item: Fact | Denial) -> tuple[str, ...]:
    return (*item.says, item.again) if isinstance(item, Fact) and item.again else item.says


def _common_words(lines: Iterable[str]) -> frozenset[str]:
    """Words seen with a small first letter and never with a capital one inside a sentence."""
    small: set[str] = set()
    capital: set[str] = set()
    for line in lines:
        for sentence in sentences(line):
            for word in _WORD.findall(sentence)[1:]:
                (capital if word[0].isupper() else small).add(word.lower())
    return frozenset(small - capital)


def _longest(lines: Iterable[str]) -> int:
    return max((len(sentences(line)) for line in lines), default=0)


def _other_lines(case: PersonaCase) -> Iterable[str]:
    """Every line the persona may say that is not the content of a fact."""
    yield from (*case.openings, *case.unknown, *case.nudges, *case.ending.farewell)
    for lines in case.phrases.values():
        yield from lines
    for commitment in case.commitments:
        yield from (*commitment.reply, *commitment.reply_early)
    for fact in case.facts:
        yield from (line for line in (fact.partial, fact.answer) if line)


def _marks(case: PersonaCase, item: Fact | Denial, texts: Topic) -> tuple[frozenset[str], ...]:
    """Per wording what gives it away, and cannot be said in the opening, in another topic, in a half answer."""
    others = (line for other in _askable(case) if other is not item for line in _revealing(other))
    partial = (line for fact in case.facts for line in (fact.partial, fact.answer) if line)
    known = words_of((*case.openings, *case.unknown, *case.nudges, *others, *partial, *texts.asks))
    return tuple(marks_of(wording, known) for wording in item.says)


def _protected(case: PersonaCase, other: Iterable[str]) -> dict[str, frozenset[str]]:
    """Per topic: the word grams that give it away and occur in no other line."""
    free = frozenset().union(*(grams(line) for line in other))
    own = {i.id: frozenset().union(*(grams(w) for w in _revealing(i))) for i in _askable(case)}
    count: dict[str, int] = {}
    for found in own.values():
        for gram in found:
            count[gram] = count.get(gram, 0) + 1
    return {key: frozenset(g for g in found if g not in free and count[g] == 1) for key, found in own.items()}


def _compile_topic(
    item: Fact | Denial, texts: Topic, more: Iterable[str], wordings: list[str], protected: frozenset[str]
) -> CompiledTopic:
    fact = item if isinstance(item, Fact) else None
    start = len(wordings)
    wordings += item.says
    return CompiledTopic(
        id=item.id,
        tier=fact.tier if fact else Tier.ASKED,
        says=item.says,
        again=fact.again if fact else None,
        partial=fact.partial if fact else None,
        answer=fact.answer if fact else None,
        gate=fact.gate if fact else Condition(),
        examples=tuple(dict.fromkeys((*texts.asks, *more))),
        keywords=texts.keywords,
        wording_span=TextSpan(start, len(wordings)),
        normals=tuple(dict.fromkeys(normal(w) for w in _revealing(item))),
        protected=protected,
        gists=tuple(content_stems(wording) for wording in item.says),
        length=_longest(item.says),
        in_story=fact is not None,
    )


def _later(item: Background) -> Iterator[Background]:
    """The entries that replace one later, under ids of their own: their wordings are counted on their own."""
    if item.later is not None:
        yield item.model_copy(
            update={"id": later_id(item.id), "says": item.later.says, "after": (*item.after, *item.later.after)}
        )


def later_id(name: str) -> str:
    """The id of what is said later instead of an entry of the background."""
    return f"{name}/later"


def with_examples(case: CompiledCase, examples: LabelledExamples) -> CompiledCase:
    """The case with these examples besides its own."""
    topics = tuple(replace(each, examples=_with(each.examples, examples.topics.get(each.id))) for each in case.topics)
    return replace(
        case,
        topics=topics,
        by_id={topic.id: topic for topic in topics},
        volunteered=tuple(topic for topic in topics if topic.tier is Tier.VOLUNTEERED),
        commitments=tuple(
            replace(each, examples=_with(each.examples, examples.commitments.get(each.id))) for each in case.commitments
        ),
    )


def _with(examples: tuple[str, ...], more: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*examples, *(more or ()))))


@lru_cache(maxsize=4096)
def _compile_background(item: Background) -> CompiledTopic:
    """One for all cases that have the entry: most of them share the common background."""
    return CompiledTopic(
        id=item.id,
        tier=Tier.ASKED,
        says=item.says,
        again=None,
        partial=None,
        answer=None,
        gate=Condition(requires=item.after),
        examples=item.asks,
        keywords=(),
        wording_span=TextSpan(0, 0),
        normals=(),
        protected=frozenset(),
        gists=tuple(content_stems(wording) for wording in item.says),
        length=_longest(item.says),
        ends=item.ends,
        repeats=item.repeats,
    )


def _compile_commitment(item: Commitment, more: Iterable[str], *, costs: bool) -> CompiledCommitment:
    return CompiledCommitment(
        id=item.id,
        examples=tuple(dict.fromkeys((*item.examples, *more))),
        amount=item.amount,
        also_questions=item.also_questions,
        after=item.after,
        reply=item.reply,
        reply_early=item.reply_early,
        length=_longest((*item.reply, *item.reply_early)),
        costs=costs,
    )


def compile_case(  # noqa: PLR0917 (all that a case is made of)
    case: PersonaCase,
    topics: Mapping[str, Topic],
    tool_replies: Mapping[str, tuple[str, ...]] | None = None,
    examples: LabelledExamples | None = None,
    background: Iterable[Background] = (),
    common: Iterable[Background] = (),
    costs: Collection[str] = (),
) -> CompiledCase:
    """Prepares a case.

    Args:
        case: as the author wrote it.
        topics: those of its collection.
        tool_replies: what the persona says to tool calls.
        examples: sentences of labelled turns, if there are any.
        background: what the persona answers beside the matter, if there is anything.
        common: what any persona of its kind answers beside the matter; none has an id of `background`.
        costs: the commitments that a cap or a deduction of the rubric rests on.
    """
    own = tuple(background)
    background = (*own, *common)
    replies, examples = dict(tool_replies or {}), examples or LabelledExamples()
    wordings: list[str] = []
    merged = merged_topics(case, topics)
    other = (*_other_lines(case), *(line for lines in replies.values() for line in lines))
    asides = [line for item in background for line in (*item.says, *(item.later.says if item.later else ()))]
    protected = _protected(case, other)
    compiled = tuple(
        replace(
            _compile_topic(item, merged[item.id], examples.topics.get(item.id, ()), wordings, protected[item.id]),
            marks=_marks(case, item, merged[item.id]),
        )
        for item in _askable(case)
    )
    return CompiledCase(
        name=case.name,
        role=case.role,
        openings=case.openings,
        topics=compiled,
        commitments=tuple(
            _compile_commitment(item, examples.commitments.get(item.id, ()), costs=item.id in costs)
            for item in case.commitments
        ),
        unknown=case.unknown,
        nudges=case.nudges,
        goals=tuple(frozenset(group) for group in case.ending.goals),
        phrases={str(name): lines for name, lines in case.phrases.items()},
        farewell=case.ending.farewell,
        tool_replies=replies,
        temperaments=case.temperaments,
        wordings=tuple(wordings),
        background={item.id: _compile_background(item) for item in background},
        own_background=tuple(map(_compile_background, own)),
        asides={each.id: _compile_background(each) for item in background for each in (item, *_later(item))},
        by_id={topic.id: topic for topic in compiled},
        volunteered=tuple(topic for topic in compiled if topic.tier is Tier.VOLUNTEERED),
        common_words=_common_words((*other, *wordings)),
        harmless=frozenset(normal(sentence) for line in (*other, *asides) for sentence in sentences(line)),
        told_in=_told_in(compiled),
        bargain=case.bargain,
        skills=case.skills,
    )
