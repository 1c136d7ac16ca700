"""Whether a sentence is meant as it says: what is denied, taken back, made up or word salad earns nothing.

The text encoder compares words, and hardly notices that a promise is one of somebody else's, of a song, or of no use a
sentence later, or that its words stand in no order. These are the general ways; what a denial is in one case is for
the author of the commitment to say (`unless`). What costs is read from all of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from personas.english import order
from personas.wording import any_of, tokens

_SAY = r"(?:say|says|said|saying|claim(?:s|ed)?|tells?|told|believe[sd]?|thinks?|thought|promise[sd]?|dream(?:s|t|ed)?)"
_OTHERS = any_of(
    r"(?:a|my|our) (?:colleague|friend|neighbou?r|cousin)(?: of mine)?|my (?:mother|father|brother|sister|boss)",
    r"some (?:people|say)|some(?:body|one)|others|many people|people|an? (?:king|man|woman|wise man|old man)",
)
_VOID = re.compile(
    any_of(
        # denied
        r"\b(?:not|n't|never|hardly)[ -](?:saying|claiming|suggesting|promising) (?:to say )?that\b",
        r"\b(?:not |un)(?:true|the case|so) that (?:i|we|our|you(?:'ll| will| can))\b",
        r"\b(?:lie|nonsense|wrong|false|untrue) (?:to (?:say|claim|think|believe|promise)|that)\b",
        r"\bnever (?:hear|get|see) from (?:me|us)\b|\b(?:refuse|decline) to (?:promise|say|offer|do)\b",
        r"\b(?:opposite|contrary|reverse) (?:holds|is true|is the case|of (?:this|that|it))\b",
        r"\b(?:nobody|no one|none of us)(?: here)?(?: would| will| can| could| should)?(?: ever)?"
        r" (?:say|says|said|claims?|claimed|promise[sd]?)\b|\bi (?:very much |really )?doubt (?:that|if)\b",
        r"\bnothing (?:here )?(?:has|to do)\b.{0,12}\bto do with\b",
        r"\b(?:did not|didn't|do not|don't|will not|won't|would not|wouldn't|never) (?:say|claim|tell|promise)\b"
        r"(?! (?:any|if|when|wh|you off))|\b(?:no|not the slightest) (?:chance|way|question)(?: at all)? that\b",
        # taken back
        r", or not\W*$|\bor (?:maybe|perhaps) not\W*$|\b(?:perhaps|maybe) not\b|\bwho knows\W*$|\bor so .{1,20} say\b",
        r"\b(?:only|just) (?:joking|kidding)\b|\bi(?:'ll| will| must)? take (?:that|it|this|all of it) back\b",
        r"\b(?:not|n't) count on (?:it|that)\b|\bin practice (?:nothing|it (?:never|does not|doesn't))\b",
        # somebody else's
        rf"\b(?:once|years ago|last (?:week|year)|in a (?:film|book))\b.{{0,60}}\b{_SAY}\b|\byears ago there was\b",
        rf"^(?:well, |and |so )?{_OTHERS}\b.{{0,40}}\b{_SAY}\b",
        rf"\b{_OTHERS} (?:once |always |never |often |would )?{_SAY}\b|^my (?:uncle|aunt|cat|dog|neighbou?r)\b",
        r"\brumou?r\b|\bused to be (?:usual|common)\b|\bit (?:was|is) (?:usual|common|customary) to say\b",
        r"\bone (?:could|can|might|may) (?:also )?say\b|\bin the (?:newspapers?|papers?|news)\b",
        # made up
        r"\bonce upon a time\b|\bin another life\b|\bin theory\b|\bif wishes were\b|\bin (?:my|your) dreams?\b",
        r"\bin (?:a|the) (?:film|movie|book|novel|song|poem|dream|play|fairy tale)\b",
        r"\b(?:song|poem|film|novel|fairy tale|sentence) (?:with|about|of|in which|where|that (?:goes|says))\b",
        r"\b(?:line|verse|words?) (?:of|from|in) an? (?:old )?(?:song|poem|film|book)\b",
        r"\bis an? (?:sentence|saying|phrase)\b|\bwords? \W?.{1,60} in it\W*$",
        r"\bhow nice it would be\b|\bhad you (?:come|called|asked|written)\b.{0,40}\bwould have\b",
    )
)
"""On a statement in lower case."""
_WONDERS = re.compile(r"\bwho on earth\b|\bwhy do (?:some|people)\b.{0,20}\b(?:say|think|believe)\b|\btrue or false\b")
"""On a question: what it asks about is nobody's offer."""
_RETRACTS = re.compile(
    any_of(
        r"^(?:(?:well|oh|no|but|and),? )*(?:or (?:maybe |perhaps )?not|never ?mind|scratch that|not really|as if)\W*$",
        r"^(?:(?:well|oh|no|but|and|i was|i'm|i am),? )*(?:only|just) (?:joking|kidding)\b",
        r"\bi(?:'ll| will| must)? take (?:that|it|this|all of it) back\b",
        r"\bforget (?:it|that|what i (?:just )?said)\W*$",
        r"\bnothing (?:of (?:it|that|this) )?will (?:be done|happen)(?: for you)?\W*$",
        r"\b(?:is|was) (?:that|this|it) true\b.{0,12}\?",
        r"\b(?:that|this|it|none of (?:that|it)) (?:is|was) (?:all )?(?:a lie|a joke|not true|untrue)\W*$",
        r"^none of (?:that|it|this) is true\b|\bopposite (?:is|was) true\b|^(?:but )?the answer is no\b",
        r"\bi (?:won't|will not|do not|don't|didn't|did not) mean (?:it|that|any of it)\b",
    )
)
"""A sentence that takes back the one before it."""
_WARNS = re.compile(
    r"\b(?:don't|do not|never) (?:believe|trust) (?:my next|the next|what (?:i say next|follows|comes next))\b"
)
"""A sentence that takes back the next one."""
_DISORDER = -0.5
"""Statements whose words are clearly more usual the other way round are none (`personas.english.order`)."""
_LEAST = 8
"""Words, at least, whose order says anything."""


def is_void(sentence: str) -> bool:
    """Whether a sentence is not meant as it says, whatever stands beside it."""
    return is_framed(sentence) or is_disordered(sentence)


def is_framed(sentence: str) -> bool:
    """Whether a sentence denies, takes back, reports or makes up what it says."""
    frames = _WONDERS if sentence.endswith("?") else _VOID
    return frames.search(sentence.lower()) is not None


def is_disordered(sentence: str) -> bool:
    """Whether a statement is no sentence but words that are more usual the other way round."""
    words = tokens(sentence)
    return not sentence.endswith("?") and len(words) >= _LEAST and order(words) < _DISORDER


def void_among(sentences: Sequence[str]) -> frozenset[str]:
    """Those of the sentences of a turn that are void alone, or taken back by the next or the one before."""
    void = {sentence for sentence in sentences if is_void(sentence)}
    for first, second in pairwise(sentences):
        if _RETRACTS.search(second.lower()):
            void.add(first)
        if _WARNS.search(first.lower()):
            void.add(second)
    return frozenset(void)
