"""Whether a text insults, in whatever spelling: as it is written, as it may be read, and as it may be meant.

Offence costs and never earns, so any of these readings is enough; the expressions are `manners`' own.
"""

from __future__ import annotations

import re

from personas import manners
from personas.clauses import CLAUSE_ENDS
from personas.english import is_english
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
    low, made_out = text.lower(), readings(text) if is_odd(text) else ()
    shown = {low, bare_words(text).lower(), without_interjections(text).lower(), *made_out}
    shown |= {_INSULTS.respelt(each) for each in shown}
    shown |= {joined for each in (low, *made_out) if (joined := _INSULTS.rejoined(each))}
    shown |= {clause for each in shown for clause in CLAUSE_ENDS.split(each)}
    if any(map(_insults, {each.strip(_EDGES) for each in shown})):
        return True
    glued = {word for word in _LONG.findall(" ".join((low, *made_out))) if not is_english(word)}
    return any(map(manners.RUN_TOGETHER.search, glued))


def _insults(low: str) -> bool:
    found = manners.RUDE.search(low)
    return found is not None and not manners.RUDE_PARDON.search(low[: found.start()])
