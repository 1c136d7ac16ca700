"""Reads words apart that were glued together, and together what something was strewn between.

A person who reads "wellDo you have pain???" or "Do um you um have pain?" takes it for the plain question, so it is read
as that one: otherwise a sentence would be compared as another, or what it offends with be overlooked. Ordinary writing
comes back as it is, but for fillers, pictures, emphasis by asterisks and runs of full stops.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from personas.wording import FUNCTION_WORDS, any_of, words_of

PICTURE = "[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
_SUSPICIOUS = re.compile(
    any_of(
        r"[a-z\d][^\w\s]?_*[A-Z]",
        r"[A-Z]{3}[a-z]",
        r"[A-Z]{4}[AI][ ']",
        r"[?!.\u2026]{2}",
        r"[?!][^\W_]",
        r"[a-z]\.[a-z]",
        r"\s[.\u2026]+\s",
        r"[a-z]-\n",
        r"[^\s_]_+[^\s_]",
        r"[*~]\S|\S[*~]",
        r"(?<!\S)(?:[^\s,]++,++ ){5}",
        r"(?m:^)(?:\S++[ \t]*+\n){4}",
        r"\b[Uu][hm]|\b[Ee]rm|\b[Hh]+m",
        PICTURE,
    )
)
"""Without any of these there is nothing to mend; most text has none."""
_PICTURES = re.compile(f"{PICTURE}+")
_STOPS = re.compile(r"[?!.\u2026]{2,}")
_HYPHENATED = re.compile(r"(?<=[a-z])-\n[ \t]{0,8}(?=[a-z])")
_STRAY_STOPS = re.compile(r"(?<=\s)[.\u2026]+(?=\s)|^[.\u2026]+\s")
_MARKUP = re.compile(r"(?<=[^\s*])(?:\*++|~~+)(?=[\s.,;:!?)]|\Z)|(?<!\S)(?:\*++|~~+)(?=[^\s(])")
_FILLER = re.compile(r"(?<![\w'-])(?:[Uu][hm]+|[Ee]rm+|[Hh]+m+)(?![\w'-])(?:, |,$| ?)")
_TIED = re.compile(r"(?<![^\s_])[^\s_]++(?:_++[^\s_]++){2,}")
_LONG_NAME = 4
"""Words of a name of a file or a variable, at most."""
_LIST = re.compile(r"(?<!\S)(?:[^\s,]++,++ ){5,}|^(?:\S++[ \t]*+\n){4,}", re.MULTILINE)
_COMMAS = re.compile(r",(,*)")
_JOINT = re.compile(
    r"(?<![^\W_])([a-z][a-z']{1,30}|[A-Z]{2,30}(?=\W|_|.[a-z'])|[A-Z]{4,30}(?=[AI][ ']))"
    r"([^\w\s'.?!\u2026=(]?_*)(?=([A-Z][a-z']*)(?![A-Z]))"
)
"""A word, perhaps a sign, and another word that begins with a capital."""
_FIGURE = re.compile(r"(?:(?<=[.?!\n] )|^)\d{1,3}(?=[A-Z][a-z' ])")
_ENDING = any_of(
    "com|org|net|edu|gov|info|io|eu|uk|de|fr|es|js|ts|py|txt|pdf|csv|html?|json|ya?ml|docx?|xlsx?|png|jpe?g|gif|zip|exe|java|go|rs|rb|kt|cpp",
    "md|sh|log|cfg|ini|xml|sql|php|mp[34]",
)
"""Of addresses and files: no word that was glued to a full stop."""
_BEHIND_A_STOP = re.compile(
    any_of(
        r"(?<=[?!])(?=[^\W_])(?!\w+=)",
        r"(?<=[a-z]{3}\.)(?=[A-Z])",
        rf"(?<=[a-z]{{2}}\.)(?!{_ENDING}\b)(?=[a-z]{{1,20}}(?: [a-z]{{1,20}})?\W{{0,4}}_{{0,4}}[^\S\n]{{0,4}}$)",
    ),
    re.MULTILINE,
)
_SHORT = words_of("hi ah oh")
_PREFIXES = words_of("non pre mid anti post pro ex inter trans un neo all self co semi quasi ultra sub extra cross")
_HESITATION = re.compile(r"\b(?:uh-huh|u[hm]+|e[hmr]+|h+m+|huh|you know|i mean)\b", re.IGNORECASE)
_INTERJECTION = re.compile(
    r"(?<![\w'])(?:a+h+|o+h+|uh|u+m+|er+m*|h*m+|ha(?:ha)+|he(?:he)+|l(?:o+)l|xx+|ok(?:ay)?|well|like|so|please|yes|yeah|just"
    r"|basically|literally|actually|honestly|frankly|really|kinda|sorta|right|look|see|man|dude|bro|you know|i mean|and"
    r"|kind of|sort of|sir|ma'am|x)(?![\w'])",
    re.IGNORECASE,
)
"""What people say without meaning anything by it, most of it a word elsewhere."""
_SIGNS = re.compile(r"[^\w\s']+|(?<!\w)'|'(?!\w)|_+|(?<![^\W\d_])\d+(?=[^\W\d_])|(?<=[a-z])(?=[A-Z][a-z'])")
_WORD = re.compile(r"[^\W\d_]+")
_TITLE = 6
"""So many words at least, before their capitals say anything."""
_BEGINS = re.compile(r"(?:^|[.!?\u2026]\s{1,8}|\n\s{0,8})[^\W\d_]|\bi\b")
_OFTEN = 2
"""A word that stands between all others is there so many times at least."""


def unglued(text: str) -> str:
    """The text as it would ordinarily be written; the words that were said stay in their order."""
    if not _SUSPICIOUS.search(text):
        return text
    text = _HYPHENATED.sub("", text)
    text = _STOPS.sub(_one_stop, _MARKUP.sub("", _PICTURES.sub(" ", text)))
    text = _FILLER.sub("", _STRAY_STOPS.sub("", text))
    text = _TIED.sub(_untied, text)
    text = _LIST.sub(_in_line, text)
    return _BEHIND_A_STOP.sub("\n", _FIGURE.sub("", _JOINT.sub(_parted, text)))


def recased(text: str) -> str:
    """The text with capitals where sentences begin, if it is written in capitals, without any, or with too many."""
    letters = [letter for letter in text if letter.isalpha()]
    capitals = sum(letter.isupper() for letter in letters)
    words = _WORD.findall(text)
    titled = sum(word[0].isupper() for word in words)
    in_titles = titled * 5 >= len(words) * 4 and len(words) >= _TITLE
    if not letters or (0 < capitals * 2 < len(letters) and not in_titles):
        return text
    return _BEGINS.sub(lambda found: found.group().upper(), text.lower())


def bare_words(text: str) -> str:
    """Nothing but the words, without hesitations or one that stands between all others: whatever can be read out."""
    words = _SIGNS.sub(" ", _HESITATION.sub(" ", text)).split()
    counted = Counter(word.lower() for word in words)
    strewn = {word for word, times in counted.items() if times >= _OFTEN and times * 5 >= len(words) * 2}
    return " ".join(word for word in words if word.lower() not in strewn)


def without_interjections(text: str) -> str:
    """The first word, and of the others those that people do not just say while they think."""
    first, _, others = _SIGNS.sub(" ", text).strip().partition(" ")
    return " ".join((first, *_INTERJECTION.sub(" ", others).split()))


def _one_stop(found: re.Match[str]) -> str:
    return next((stop for stop in "?!" if stop in found.group()), ".")


def _untied(found: re.Match[str]) -> str:
    """A sentence that was tied together, not the name of a file or a variable."""
    tied = found.group().replace("_", " ")
    words = tied.split()
    return tied if len(words) > _LONG_NAME or _is_said(words, 2) else found.group()


def _in_line(found: re.Match[str]) -> str:
    """The words as a sentence, if they are one, not a list of things."""
    strewn = found.group() if "\n" in found.group() else _COMMAS.sub(r"\1", found.group())
    words = strewn.split()
    return f"{' '.join(words)} " if _is_said(words, 3) else found.group()


def _is_said(words: Sequence[str], one_in: int) -> bool:
    """Whether so many of the words stand in any sentence."""
    return sum(word.lower().strip(".,?!") in FUNCTION_WORDS for word in words) * one_in >= len(words)


def _parted(found: re.Match[str]) -> str:
    left, sign, right = found.group(1), found.group(2), found.group(3).lower()
    several = left.isupper() and len(left) < 4 and right.endswith("s")  # PCs, APIs
    known = (right in FUNCTION_WORDS or right in _SHORT) and not several
    begins = not found.string[: found.start()].rstrip(" ") or found.string[: found.start()].rstrip(" ")[-1] in ".?!\n"
    # Within a sentence it may be a name, as easyJet; at its beginning mmHg and non-English may.
    is_word = known or (begins and len(right) >= 3 and not (sign == "-" and left in _PREFIXES))
    return f"{left}\n" if is_word else found.group()
