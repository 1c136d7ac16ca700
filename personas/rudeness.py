"""Whether a text insults, in whatever spelling: as it is written, as it may be read, and as it may be meant.

Offence costs and never earns, so any of these readings is enough; the expressions are `manners`' own.
"""

from __future__ import annotations

import re

from personas import manners
from personas.clauses import CLAUSE_ENDS, STRONG_ENDS
from personas.english import is_english
from personas.idle import bare
from personas.joints import bare_words, without_interjections
from personas.legible import is_odd, readings
from personas.respelling import Vocabulary

_INSULTS = Vocabulary((manners.RUDE.pattern,))
"""The words of the rude expressions."""
_LONG = re.compile(r"(?:[^\W\d_]|'){8,}")
"""Long enough to be several words."""
_EDGES = " .!?,;:-_*~'\"|/\u2014\u2026"


def is_rude(text: str) -> bool:
    """Whether a text is rude, also where something is glued to its words or strewn between them."""
    odd = is_odd(text)
    made_out = readings(text) if odd else ()
    shown = {text, bare_words(text), without_interjections(text), *bare(text), *made_out}
    shown |= {_INSULTS.respelt(each) for each in shown}
    shown |= {joined for each in (text.lower(), *made_out) if (joined := _INSULTS.rejoined(each))}
    # A clause is no sentence: "we will find out what is wrong with you" has a rude one's words.
    ends = CLAUSE_ENDS if odd else STRONG_ENDS
    lows = {each.lower() for each in shown}
    if any(map(_insults, {each.strip(_EDGES) for low in lows for each in (low, *ends.split(low))})):
        return True
    glued = {word for word in _LONG.findall(" ".join((text.lower(), *made_out))) if not is_english(word)}
    return any(map(manners.RUN_TOGETHER.search, glued))


def _insults(low: str) -> bool:
    found = manners.RUDE.search(low)
    return found is not None and not manners.RUDE_PARDON.search(low[: found.start()])
