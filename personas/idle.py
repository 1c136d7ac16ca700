"""Words around a statement that take nothing back: a person hears the statement, and so does what costs.

"Do you know, just take it, isn't it?" tells somebody to take it. What earns is read as it was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from personas.clauses import states
from personas.wording import any_of

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
        r"as you (?:may )?(?:know|can see)(?: or (?:do not|don't) know)?|in case you wonder|whether it rains or shines",
        r"if (?:you must know|i may(?: say so)?)",
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
        r"never fear|unless i am (?:not )?mistaken|no matter (?:what|how|who|when)[\w ]{0,20}|if i may(?: say so)?",
        r"whether you (?:mind|like it|want it) or not|(?:what do|do) you (?:say|think|hear me)|(?:today )?and any day",
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
        if left != whole and states(left) and not (asks and _ABOUT_YOU.match(left)):
            yield left
