"""Cuts sentences where something else is said in them, so that a statement is found wherever it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from personas import lexicon
from personas.wording import any_of

BEGINNING = re.compile(r"(?<=[a-z,;:]) (?=[A-Z][a-z'])")
"""Where another sentence seems to begin, without a stop before it."""
STRONG_ENDS = re.compile(r"[;:()\[\]{}|<>\"`=\u2014\u2013?!]+|\s[-/]+\s")
"""Signs behind which another sentence may stand."""
CLAUSE_ENDS = re.compile(
    rf"{STRONG_ENDS.pattern}|,|\s(?=(?:what|when|where|which|who|why|how) )"
    r"|\s(?=(?:do|does|did|have|has|are|is|was|were|can|could|will|would|should) (?:you|your|it|this|that|there|we) )"
)
"""Where a clause may end, written in small letters."""
_HEDGED = re.compile(r"\b(?:if|unless|whether|not|never|nothing|nobody|cannot|without|instead|rather|suppose)\b|n't\b")
"""What may take back, or make conditional, what the clause behind it says."""
_CONDITION = re.compile(r"(?:if|unless|whether|when|once|suppose|before|after|until)\b")
_NO_STATEMENTS = (lexicon.QUESTION_START, lexicon.AUX_START, _CONDITION)
_LEAD = re.compile(
    any_of(
        r"(?:do|did|would|have|don't|can|could) you (?:know|believe|heard?|see|imagine|think)(?: (?:it|that|this))?",
        r"(?:whether|if) you (?:like|want|believe|ask|mind|know|will|see|please)(?: (?:it|me|that))?(?: or not)?",
        r"if not now, when|(?:today|now) or never|not to (?:say|mention)|not that (?:it|this) matters|no matter",
        r"i (?:can't|cannot|couldn't) (?:say|put) it (?:otherwise|better|differently)|to be (?:honest|frank|fair)",
        r"never ?mind|(?:nobody|no one) (?:says|tells you) (?:this|that|it)",
        r"for (?:now|once)|as (?:well|it were)|on top",
        r"(?:possibly|perhaps|maybe|probably|sometimes|ever|never|always|often|many|if|not|no|yes|whether|could|might|may"
        r"|or|and|so|well|look|listen|see|say|okay|ok|right|still|anyway|actually|frankly|honestly|today|now|then|but"
        r"|when|before noon)",
        r"it (?:may|might) (?:feel|seem|sound) (?:odd|strange|hard)",
        r"i mean|you know|if (?:possible|necessary)|by the way|not only (?:that|this)|not for nothing|not tomorrow",
        r"(?:maybe |perhaps )?i (?:should|ought|am supposed)(?:n't| not)? (?:to )?say (?:it|this|that|so)",
    )
)
_SIGN = r"\s*[,:;\u2013\u2014?!.]+\s*(?:but |and |so |then )?|\s+-+\s+"
_LEADS = re.compile(rf"^(?:{_LEAD.pattern}(?:{_SIGN}|\s+(?={_LEAD.pattern}[\s,:;])))+")
"""What people begin a sentence with, which says nothing of its own."""
_TAGS = re.compile(
    r"(?:[\s,;:\u2013\u2014(-]+(?:"
    + any_of(
        r"(?:or )?(?:is|are|do|does|did|will|would|can|could|have|has|was|were|should|may|might)(?:n't)?"
        r" (?:it|you|we|they|he|she|that|this|i)(?: not)?",
        r"(?:whether )?or (?:maybe |perhaps )?not|(?:if|when|as) (?:you|we) (?:ask me|like|want|please|wish|will)",
        r"if (?:possible|necessary|need be)|no need|not necessary|no|yes|right|okay|ok|eh|huh|you know|today|next week",
        r"why not|not a word more|(?:if|unless) you (?:do not|don't) mind|(?:could|might|may|can't|can) be",
        r"any ?more|with food|carry on|either|though|anyway|then|too|as well|so",
    )
    + r")[\s)]*)+[?!.]*$"
)
"""What people end one with: a question that asks for assent, or words that take nothing back."""
_ASKED = re.compile(
    r"^(?:what|how|who|why|where|when|did|do|does|is|are|was|have|has|had|would|can|could|should|will|may)\b"
    r"[^,:;?.]{1,30}[,:;]\s+"
)
"""A short question in front of what is stated ("What do you think, just take it.")."""
_BUT = re.compile(r"[\s,;]but (?:still |also |then |even so,? )?")
"""What stands behind it is said, whatever is denied before it."""
_ABOUT_YOU = re.compile(r"you(?!'ll\b| (?:can|may|might|should|could|will|must|need)\b)")
"""What asks for assent to a thing about the other is a question ("You still take it, don't you?")."""
_AROUND = " ,;:?!."
_WORDS = 4
_MOST = 0.75
"""A clause that is so much of a statement says nothing that the statement does not."""


@dataclass(frozen=True, slots=True)
class Aside:
    """A statement within a sentence, in lower case, and the sentence, whose other words may take it back."""

    clause: str
    within: str


def asides(text: str, *, whole: bool = False) -> Iterator[Aside]:
    """The clauses of a text that could stand as statements; the `whole` text is one if wished."""
    if whole and _states(bare := text.lower().strip(" ?!.")) and not _asks(bare):
        yield Aside(bare, text)
    for piece in BEGINNING.split(text):
        low = piece.lower()
        clauses = [each.strip() for each in CLAUSE_ENDS.split(low)]
        for clause, behind in zip(clauses, [*clauses[1:], ""], strict=True):
            if not _states(clause) or (not whole and len(clause) > _MOST * len(text)):
                continue
            before = low.partition(clause)[0]
            if not (_HEDGED.search(before) or _asks(before) or _CONDITION.match(behind)):
                yield Aside(clause, text)


def bare(text: str) -> Iterator[str]:
    """What a sentence states, in lower case, without what stands around it and voids nothing; nothing if that is all.

    Idle words in front and behind, a short question in front ("Do you know, just take it, isn't it?"), and what
    comes before a "but".
    """
    low = text.lower().strip()
    asks = low.endswith("?")
    whole = low.strip(_AROUND)
    for stated in (low if asks else _ASKED.sub("", low), *_BUT.split(low)[1:]):
        left = _TAGS.sub("", _LEADS.sub("", stated)).strip(_AROUND).removeprefix("but ")
        if left != whole and _states(left) and not (asks and _ABOUT_YOU.match(left)):
            yield left


def _asks(low: str) -> bool:
    """Whether a question begins there: what it lists is asked, too."""
    begun = STRONG_ENDS.split(low)[-1].strip()
    at_start = any(form.match(begun) for form in (lexicon.QUESTION_START, lexicon.AUX_START))
    return at_start or any(form.search(begun) for form in (lexicon.INVERSION, lexicon.WH_INVERSION))


def _states(clause: str) -> bool:
    return len(clause.split()) >= _WORDS and not any(form.match(clause) for form in _NO_STATEMENTS)
