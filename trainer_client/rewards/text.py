"""Rewards that need no model: length, keywords, patterns, similarity to a reference, how much the other side says."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, Literal

from trainer_client.rewards.base import NO_CONTEXT, Conversation, RewardContext, RewardFunction, RewardResult, turns_of

_MAX_PATTERN = 1000
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Texts in, one vector for each out."""


class LengthReward(RewardFunction):
    """A reward for keeping turns to a length in words. It measures length, and nothing else.

    A turn of `at_least` to `at_most` words earns 1; a shorter one its share of `at_least`, a longer one the share that
    `at_most` is of it. The reward is the mean over the agent's turns, 0 without any.
    """

    name = "length"

    def __init__(self, at_least: int = 3, at_most: int = 80) -> None:
        if not 1 <= at_least <= at_most:
            raise ValueError("lengths in words: 1 <= at_least <= at_most")
        self.at_least, self.at_most = at_least, at_most

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation."""
        lengths = [len(turn.split()) for turn in turns_of(messages, "assistant")]
        if not lengths:
            return RewardResult(0.0, reason="the agent says nothing")
        shares = [min(1.0, length / self.at_least, self.at_most / max(length, 1)) for length in lengths]
        return RewardResult(fmean(shares), {"mean_words": fmean(lengths)})


class KeywordReward(RewardFunction):
    """A reward for words that the agent uses: `any` of them, `all` of them (the share of those used), or `none`.

    A keyword is matched as whole words without regard to case. A keyword that is said is not a promise kept: an agent
    that lists the words earns as much as one that means them.
    """

    name = "keyword"

    def __init__(
        self, keywords: Sequence[str], mode: Literal["any", "all", "none"] = "any", *, at_least: int = 1
    ) -> None:
        """`at_least`: how often a keyword has to occur to count."""
        if not keywords or not all(keyword.strip() for keyword in keywords):
            raise ValueError("give at least one keyword, and no empty one")
        if mode not in ("any", "all", "none"):
            raise ValueError(f"mode is any, all or none, not {mode!r}")
        self.mode, self.at_least = mode, at_least
        self._patterns = {word: re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE) for word in keywords}

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation."""
        text = "\n".join(turns_of(messages, "assistant"))
        counts = {word: len(pattern.findall(text)) for word, pattern in self._patterns.items()}
        used = [count >= self.at_least for count in counts.values()]
        reward = {"any": float(any(used)), "all": sum(used) / len(used), "none": float(not any(used))}[self.mode]
        return RewardResult(reward, {word: float(count) for word, count in counts.items()})


class RegexReward(RewardFunction):
    """A reward for a pattern in the agent's turns (`invert`: for none).

    Patterns are RE2's: they run in time linear to the text, and have neither backreferences nor lookaround. Needs the
    package `google-re2` (extra `regex`).
    """

    name = "regex"

    def __init__(self, pattern: str, *, invert: bool = False) -> None:
        if len(pattern) > _MAX_PATTERN:
            raise ValueError(f"a pattern has at most {_MAX_PATTERN} characters")
        try:
            re2: Any = importlib.import_module("re2")
        except ImportError:
            raise ImportError("RegexReward needs google-re2: pip install 'labs-trainer-client[regex]'") from None
        try:
            self._pattern = re2.compile(pattern)
        except re2.error as error:
            raise ValueError(f"RE2 does not accept the pattern {pattern!r}: {error}") from None
        self.invert = invert

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation."""
        found = self._pattern.search("\n".join(turns_of(messages, "assistant"))) is not None
        return RewardResult(float(found != self.invert))


class SimilarityReward(RewardFunction):
    """A reward for closeness to reference texts: the best cosine of any turn with any reference, at least 0.

    Embeddings measure what a text is about. "I will refund you" and "I will not refund you" are close to each other.
    `embed` is any function from texts to vectors, or the path or name of a sentence-transformers model.
    """

    name = "similarity"

    def __init__(self, references: Sequence[str], embed: Embed | str) -> None:
        if not references:
            raise ValueError("give at least one reference")
        self._embed = _sentence_transformer(embed) if isinstance(embed, str) else embed
        self._references = [_unit(vector) for vector in self._embed(list(references))]

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation."""
        turns = [turn for turn in turns_of(messages, "assistant") if turn.strip()]
        if not turns:
            return RewardResult(0.0, reason="the agent says nothing")
        vectors = [_unit(vector) for vector in self._embed(turns)]
        best = max(_dot(vector, reference) for vector in vectors for reference in self._references)
        return RewardResult(min(1.0, max(0.0, best)))


class EngagementReward(RewardFunction):
    """A reward for how much the other side says: the mean over its replies of words / `full_words`, at most 1 each.

    It measures words, not satisfaction: an angry reply may be long. The other side's first message, which no agent has
    influenced, does not count.
    """

    name = "engagement"

    def __init__(self, full_words: int = 15) -> None:
        if full_words < 1:
            raise ValueError("full_words is at least 1")
        self.full_words = full_words

    def score(self, messages: Conversation, context: RewardContext = NO_CONTEXT) -> RewardResult:
        """Score one conversation."""
        first_agent_turn = next((n for n, message in enumerate(messages) if message.get("role") == "assistant"), None)
        replies = [] if first_agent_turn is None else turns_of(messages[first_agent_turn:], "user")
        if not replies:
            return RewardResult(0.0, reason="there is no reply to the agent")
        lengths = [len(reply.split()) for reply in replies]
        return RewardResult(fmean(min(1.0, n / self.full_words) for n in lengths), {"mean_words": fmean(lengths)})


def _sentence_transformer(model: str) -> Embed:
    try:
        package: Any = importlib.import_module("sentence_transformers")
    except ImportError:
        raise ImportError("a model by name needs sentence-transformers; or pass a function as `embed`") from None
    encoder = package.SentenceTransformer(model)
    return lambda texts: encoder.encode(list(texts)).tolist()


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(float(value) ** 2 for value in vector)) or 1.0
    return [float(value) / length for value in vector]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))
