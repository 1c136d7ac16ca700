"""Features of a conversation for learned judges: vectors of its sentences, counts of its words, by who said them when.

Sentences are encoded one by one as `segments` reads them and kept, so in an episode only what is new is encoded.
Who said a sentence, and where, is told by the block of features it enters; where an agent is known by the answers it
got, its own sentences enter one that can only cost (`misconduct`). A row depends on its own conversation
alone: there is no padding, and there are no batch statistics.

Which blocks there are, and their emphasis, was chosen on human-judged data (docs/quality.md).
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from personas.text.memory import Memory
from personas.text.wording import tokens
from reward_server.encoders.encoder import AwaitableEncoder, TextEncoder, Vectors, bytes_of, meaning_width
from reward_server.reward_models import misconduct, segments, wordings
from reward_server.reward_models.conversation import Conversation, Reads
from reward_server.reward_models.segments import MessageSegments
from reward_server.reward_models.wordings import HeardWordings

__all__ = ["ConversationFeaturiser"]

METHOD = "features/4"
EMPHASIS: Mapping[str, float] = {
    "reply": 1.0,
    "reply_most": 1.0,
    "reply_least": 1.0,
    "agent": 1.0,
    "opening": 0.5,
    "persona": 0.5,
    "match": 0.5,
    "scenario": 0.3,
    "reply_words": 1.0,
    "reply_style": 4.0,
    "agent_style": 1.5,
    "reply_numbers": 6.0,
    "mean_numbers": 3.0,
    "first_numbers": 1.0,
    "talk": 6.0,
    "reply_tone": 2.0,
    "misconduct": 3.0,
}
"""The blocks in order, and how freely a head may use their columns once these are standardised: a few telling counts
would otherwise drown among hundreds of directions of meaning."""
KINDS: tuple[tuple[str, ...], ...] = (
    ("reply", "reply_most", "reply_least", "agent", "opening", "persona"),
    ("match", "scenario"),
    ("reply_words",),
    ("reply_style", "agent_style"),
    ("reply_numbers", "mean_numbers", "first_numbers", "talk"),
    ("reply_tone",),
    ("misconduct",),
)
"""Blocks of one nature: meaning, products with what was heard, words, style, plain numbers, tone, own remarks."""
STYLE = ("reply_style", "agent_style", "talk")
"""Blocks that tell how something is said, and how much, rather than what."""
MANNER = ("reply_most", "reply_least", "reply_words", "reply_tone")
"""Blocks that tell manner or length beside what is said: the extremes of many sentences are larger."""
ALL, CONTENT, MEANING = "all", "content", "meaning"
"""The names of `readings`."""
COSTS = ("misconduct",)
"""Blocks that may only lower a value."""
REMEMBERED, CACHE_BYTES = 20_000, 128_000_000
"""Sentence vectors kept."""
_TALK = 4


@dataclass(frozen=True, slots=True)
class _Read:
    """The part of a conversation that is read."""

    messages: Sequence[MessageSegments]
    scenario: Sequence[str]
    remarks: Sequence[str]
    """The agent's own sentences, where they may only cost."""
    is_too_much: bool
    """Whether it said more than is read: no text shall push another out, so that counts as the worst there is."""

    @property
    def segments(self) -> Iterator[str]:
        """All that has to be encoded."""
        yield from self.scenario
        yield from (segment for message in self.messages for segment in message.segments)
        yield from self.remarks


class ConversationFeaturiser:
    """Conversations in, features out. Blocking, thread-safe, deterministic."""

    def __init__(self, encoder: TextEncoder, remembered: int = REMEMBERED, *, reads: Reads = "answers") -> None:
        """Args: reads: what an agent earns by in a scenario."""
        self._encoder = encoder
        self._reads: Reads = reads
        self._known: Memory[str, Vectors] = Memory(remembered, size_bytes=CACHE_BYTES, cost=bytes_of)
        styles = len(wordings.COMMON) + len(wordings.MARKS)
        counts = {"reply_words": wordings.BUCKETS, "reply_style": styles, "agent_style": styles, "talk": _TALK}
        counts |= dict.fromkeys(("reply_numbers", "mean_numbers", "first_numbers"), wordings.NUMBERS)
        self._meaning = meaning_width(encoder)
        counts["reply_tone"] = encoder.width - self._meaning
        counts["misconduct"] = len(misconduct.SAMPLES)
        self._widths = {name: counts.get(name, self._meaning) for name in EMPHASIS}

    @cached_property
    def version(self) -> str:
        """Changes whenever a feature may."""
        constants = (
            segments.VERSION,
            wordings.COMMON,
            wordings.MARKS,
            wordings.BUCKETS,
            sorted(EMPHASIS.items()),
            misconduct.SAMPLES,
        )
        own = hashlib.sha256(repr(constants).encode()).hexdigest()[:8]
        return f"{METHOD}/{self._reads}/{own}/{self._encoder.version}"

    @property
    def width(self) -> int:
        """The number of features of a conversation."""
        return sum(self._widths.values())

    @property
    def emphasis(self) -> NDArray[np.float32]:
        """Shape (width,): multiply standardised columns by it before a head with one common penalty is fitted."""
        return np.concatenate([np.full(self._widths[name], EMPHASIS[name], dtype=np.float32) for name in EMPHASIS])

    @property
    def kinds(self) -> NDArray[np.intp]:
        """Shape (width,): the place in KINDS of the block that each feature is of."""
        of = {name: number for number, names in enumerate(KINDS) for name in names}
        return np.concatenate([np.full(self._widths[name], of[name], dtype=np.intp) for name in EMPHASIS])

    @property
    def costs(self) -> NDArray[np.bool_]:
        """Shape (width,): the features that may only lower a value."""
        return np.concatenate([np.full(self._widths[name], name in COSTS) for name in EMPHASIS])

    @cached_property
    def readings(self) -> Mapping[str, NDArray[np.bool_]]:
        """The features left out, shape (width,): none; style and counts; all but meaning and what was taken up."""
        blocks = self.blocks
        nothing = np.zeros(self.width, dtype=np.bool_)
        style = nothing.copy()
        for name in STYLE:
            style[blocks[name]] = True
        for name in ("reply_numbers", "mean_numbers", "first_numbers"):
            style[blocks[name].start : blocks[name].start + wordings.COUNTS] = True
        manner = style.copy()
        for name in MANNER:
            manner[blocks[name]] = True
        return {ALL: nothing, CONTENT: style, MEANING: manner}

    @property
    def relations(self) -> Mapping[str, int]:
        """Places of the numbers that set the reply beside the message it answers."""
        start = self.blocks["reply_numbers"].start
        return {name: start + place for name, place in wordings.RELATIONS.items()}

    @property
    def blocks(self) -> Mapping[str, slice]:
        """The place of each block of features."""
        places, start = {}, 0
        for name, width in self._widths.items():
            places[name] = slice(start, start + width)
            start += width
        return places

    def features(self, conversations: Sequence[Conversation]) -> NDArray[np.float32]:
        """Shape (len(conversations), width); a row depends on its own conversation alone."""
        read = [self._read(conversation) for conversation in conversations]
        known = self._vectors(segment for each in read for segment in each.segments)
        rows = np.zeros((len(conversations), self.width), dtype=np.float32)
        for row, each in zip(rows, read, strict=True):
            blocks = self._blocks(each.messages, each.scenario, known)
            if each.remarks:
                blocks["misconduct"] = misconduct.likeness(self._matrix(each.remarks, known), self._samples)
            if each.is_too_much:
                blocks["misconduct"] = np.ones(len(misconduct.SAMPLES), dtype=np.float32)
            for name, place in self.blocks.items():
                if name in blocks:
                    row[place] = blocks[name]
        return rows

    def forget(self) -> None:
        """Give back the memory of sentence vectors; they are computed again where they are needed."""
        self._known.clear()

    async def prepare(self, conversations: Sequence[Conversation]) -> None:
        """Have encoded what `features` will need, together with what others wait for; no thread waits meanwhile."""
        if isinstance(self._encoder, AwaitableEncoder):
            missing = await asyncio.to_thread(self._unknown, conversations)
            if missing:
                self._remember(missing, await self._encoder.encoded(missing))

    def _read(self, conversation: Conversation) -> _Read:
        by_answers = segments.by_answers(conversation, self._reads)
        remarks = segments.remarks(conversation) if by_answers else ()
        is_too_much = len(remarks) > segments.MAX_REMARKS
        return _Read(
            messages=segments.read(conversation, self._reads),
            scenario=segments.sentences(conversation.scenario),
            remarks=() if is_too_much else remarks,
            is_too_much=is_too_much,
        )

    @cached_property
    def _samples(self) -> Vectors:
        return self._matrix(misconduct.SAMPLES, self._vectors(misconduct.SAMPLES))

    def _unknown(self, conversations: Sequence[Conversation]) -> list[str]:
        """The segments that were not encoded yet."""
        read = [self._read(conversation) for conversation in conversations]
        segments = [segment for each in read for segment in each.segments]
        if "_samples" not in self.__dict__ and any(each.remarks for each in read):
            segments += misconduct.SAMPLES
        found = self._known.recall(segments)
        return [segment for segment in dict.fromkeys(segments) if segment not in found]

    def _remember(self, segments: Sequence[str], vectors: Vectors) -> dict[str, Vectors]:
        # Two threads may encode the same text once each, with equal results. A view would keep a whole batch alive.
        fresh = {text: row.copy() for text, row in zip(segments, vectors, strict=True)}
        self._known.keep(fresh)
        return fresh

    def _vectors(self, segments: Iterable[str]) -> Mapping[str, Vectors]:
        wanted = list(dict.fromkeys(segments))
        found = self._known.recall(wanted)
        missing = [segment for segment in wanted if segment not in found]
        if missing:
            found |= self._remember(missing, self._encoder.encode(missing))
        return found

    def _matrix(self, segments: Sequence[str], known: Mapping[str, Vectors]) -> Vectors:
        return np.stack([known[text][: self._meaning] for text in segments]) if segments else self._nothing()

    def _nothing(self) -> Vectors:
        return np.zeros((0, self._meaning), dtype=np.float32)

    def _blocks(
        self, messages: Sequence[MessageSegments], scenario: Sequence[str], known: Mapping[str, Vectors]
    ) -> dict[str, Vectors]:
        """The blocks of one conversation; those about an agent that said nothing are left out, and stay 0."""
        matrices = [self._matrix(message.segments, known) for message in messages]
        turns = [index for index, message in enumerate(messages) if message.party == "agent"]
        spoken = [index for index in turns if messages[index].segments]
        others = [
            m.mean(0) for m, message in zip(matrices, messages, strict=True) if message.party == "persona" and len(m)
        ]
        blocks = {"talk": _talk(messages, len(turns), len(spoken))}
        if others:
            blocks["persona"] = np.mean(others, axis=0)
        if not spoken:
            return blocks
        means = [matrices[index].mean(0) for index in spoken]
        agent = np.mean(means, axis=0)
        last = spoken[-1]
        reply, said = " ".join(messages[last].segments), " ".join(t for i in spoken for t in messages[i].segments)
        numbers = np.stack([self._numbers(messages, matrices, index) for index in spoken])
        matches = [
            own * heard
            for own, index in zip(means, spoken, strict=True)
            if (heard := _heard(messages, matrices, index)) is not None
        ]
        blocks |= {
            "reply": means[-1],
            "reply_most": matrices[last].max(0),
            "reply_least": matrices[last].min(0),
            "agent": agent,
            "opening": means[0],
            "reply_words": wordings.hashed(reply),
            "reply_style": wordings.shares(reply),
            "agent_style": wordings.shares(said),
            "reply_numbers": numbers[-1],
            "mean_numbers": numbers.mean(0),
            "first_numbers": numbers[0],
            "reply_tone": np.mean([known[text][self._meaning :] for text in messages[last].segments], axis=0),
        }
        scale = math.sqrt(self._meaning)  # products of entries of unit vectors are as small as they are many
        if matches:
            blocks["match"] = np.mean(matches, axis=0) * scale
        if scenario:
            blocks["scenario"] = self._matrix(scenario, known).mean(0) * agent * scale
        return blocks

    def _numbers(self, messages: Sequence[MessageSegments], matrices: Sequence[Vectors], index: int) -> Vectors:
        latest = _latest(messages, index)
        before = [m for m in matrices[:index] if len(m)]
        words = [tokens(" ".join(message.segments)) for message in messages[:index]]
        all_words = [word for line in words for word in line]
        heard = HeardWordings(
            words=frozenset(all_words),
            latest=frozenset(words[latest]) if latest is not None else frozenset(),
            figures=frozenset(wordings.figures_in(all_words)),
        )
        return wordings.exchange_numbers(
            messages[index].segments,
            matrices[index],
            matrices[latest] if latest is not None else self._nothing(),
            np.concatenate(before) if before else self._nothing(),
            heard,
        )


def _latest(messages: Sequence[MessageSegments], index: int) -> int | None:
    """The place of the other party's last message before a turn."""
    return next((i for i in range(index - 1, -1, -1) if messages[i].party == "persona"), None)


def _heard(messages: Sequence[MessageSegments], matrices: Sequence[Vectors], index: int) -> Vectors | None:
    """The mean vector of what a turn answers to."""
    latest = _latest(messages, index)
    return matrices[latest].mean(0) if latest is not None and len(matrices[latest]) else None


def _talk(messages: Sequence[MessageSegments], turns: int, spoken: int) -> Vectors:
    """The length of the conversation, and how often the agent said nothing."""
    words = [sum(len(tokens(text)) for text in message.segments) for message in messages if message.party == "persona"]
    silent = 1.0 - spoken / turns if turns else 1.0
    return np.array([math.log1p(turns), silent, math.log1p(sum(words)), math.log1p(max(words, default=0))], np.float32)
