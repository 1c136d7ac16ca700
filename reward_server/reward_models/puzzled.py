"""Answers that say that the other party did not follow: to such a turn there was no answer.

The other party writes them, not the agent that is judged, so fixed expressions do. An answer that tells anything
besides is an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from personas.wording import any_of, plain, tokens, words_of
from reward_server.reward_models.small_talk import SAYS_NOTHING

_THAT = r"(?=$|[.,!?;]| (?:that|this|it|you|what|at all|a word|any of)\b)"
_PUZZLED = re.compile(
    any_of(
        rf"\b(?:(?:do|did|could)(?:n't| not)|can(?:'t|not)|not sure(?: that)? i)(?: \w+)? (?:understand|follow|get)"
        rf"{_THAT}",
        r"(?:\bno idea|n't know|\bnot (?:know|sure)) what (?:you\b|that(?:'s| is| was)?\b(?! means)|to say to that)",
        r"\bwhat (?:do|did) you mean\b|\bwhat (?:does|did) that mean\b(?! for)|\bwhat was that\b",
        r"(?:n't|\bnot) make (?:any |much )?sense\b|\bma(?:kes|de) no sense\b",
        r"\b(?:can|could)(?:n't|'t|not) (?:do anything with|make (?:anything|head or tail) of) (?:that|this|it)\b",
        r"\blost me there\b|\bover my head\b|\bgibberish\b|\bmeant for me\b|\bcome again\b|\bpardon\b",
        r"\b(?:say|put) (?:that|it) (?:again|plainly|differently|more|another way|in)\b|\bi(?:'m| am) confused\b",
    ),
    re.IGNORECASE,
)
_OTHER_WORDS = SAYS_NOTHING | words_of(
    """afraid asking chat doesn't english excuse follow good guess happen hm huh like mean normal often ordinary
    plain plainly puzzled re simple simply sorry straight supposed there um went"""
)


def is_puzzled(sentences: Sequence[str]) -> bool:
    """Whether an answer says that it did not follow, and nothing else."""
    lost = [_is_lost(sentence) for sentence in sentences]
    return any(lost) and all(
        found or _OTHER_WORDS.issuperset(tokens(sentence)) for found, sentence in zip(lost, sentences, strict=True)
    )


def _is_lost(sentence: str) -> bool:
    rest, found = _PUZZLED.subn(" ", plain(sentence))
    return bool(found) and _OTHER_WORDS.issuperset(tokens(rest))
