"""Reads misspelt words as what they were meant for, so far as it is among words that somebody looks for.

Only what is no English word is respelt, and only as one of a small vocabulary: of insults, or of what a case calls a
commitment. A name or a drug that nobody looks for stays as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from threading import Lock

from symspellpy import SymSpell, Verbosity

from personas.english import is_english, is_nearly_english, parted
from personas.wording import FUNCTION_WORDS, words_of

_LONGEST_WORD, _GLUED = 28, 5
"""Letters of a word at most; and at least, before it may be several words."""
_LONGEST_TOKEN = 400
_MANY = 400
"""Tokens of a text that are looked at."""
_TEXTING = {
    "u": "you", "b": "be", "ur": "you are", "r": "are", "ya": "you", "yu": "you", "yo": "you", "yr": "your",
    "yer": "your", "y": "why", "n": "and", "da": "the", "ls": "is", "im": "i'm", "cuz": "because", "pls": "please",
    "plz": "please", "ppl": "people", "wat": "what", "wot": "what", "dis": "this", "dat": "that", "gonna": "going to",
    "gotta": "have to", "wanna": "want to", "tho": "though", "luv": "love", "sum1": "someone", "any1": "anyone",
    "yoor": "your", "yore": "your", "ee": "i", "ees": "is", "iz": "is", "wuz": "was", "woz": "was", "duz": "does",
    "cos": "because", "coz": "because", "shud": "should", "cud": "could", "wud": "would", "hav": "have",
    "giv": "give", "wiv": "with", "wid": "with", "dey": "they", "dere": "there", "dem": "them", "ze": "the",
    "zis": "this", "zat": "that", "zat's": "that's", "dat's": "that's", "wen": "when", "wat's": "what's",
    "wots": "what's", "yas": "yes", "fer": "for", "teh": "the", "hte": "the", "sed": "said", "av": "have",
    "'ave": "have", "thru": "through",
}  # fmt: skip
SIGNS_FOR_LETTERS = "0134578@$!|\u00a3\u20ac"
FOR_LETTERS = str.maketrans(SIGNS_FOR_LETTERS, "oieastbasille")
_ONE_FOR_L = str.maketrans("1", "l")
_SAME_SHAPE = (
    ("l", "i"),
    ("i", "l"),
    ("rn", "m"),
    ("cl", "d"),
    ("vv", "w"),
    ("ph", "f"),
    ("oo", "u"),
    ("ee", "i"),
    ("ck", "k"),
    ("z", "s"),
)
_SOUNDS = tuple(
    (re.compile(written), sound)
    for written, sound in (
        (r"^kn", "n"), (r"^wr", "r"), (r"wh", "w"), (r"ph|gh(?=t?$)", "f"), (r"tion", "shn"), (r"[sc]h", "S"),
        (r"c(?=[eiy])", "s"), (r"ck|[cq]", "k"), (r"x", "ks"), (r"z", "s"), (r"mb$", "m"), (r"dg", "j"), (r"ft$", "t"),
    )
)  # fmt: skip
"""Ways to write a consonant, each as one sign for its sound."""
_VOWELS = re.compile(r"[aeiouy]+")
_TWICE = re.compile(r"(.)\1+")
_CORE = re.compile(r"[^\W\d_].*[^\W\d_]|[^\W\d_]", re.DOTALL)
_SIGNS = ".,;:?\"'()"
_STOPS = ".,;:?!"
_BETWEEN = re.compile(r"[^a-z]+")
_ESCAPE = re.compile(r"\\[a-zA-Z]")
_WORD = re.compile(r"[a-z][a-z']*[a-z]|[a-z]")
_SHORT, _TELLING = 4, 4
"""Letters of a name that is near something by chance; and of a word at least that shows what letters hold."""
_AROUND = 3
"""Words beside those that are none which belong to the same expression, and between two of them."""
_GLUES = "xqzj"
"""Letters that begin or end few words."""
_BEFORE_NO_NAME = words_of("a an so very too such really be being")
_KEPT = 8192
"""Tokens of which it is remembered how they are read."""
_WHOLE = words_of("a i")
"""Words of one letter."""


class Vocabulary:
    """Words that are looked for in misspelt ones."""

    def __init__(self, texts: Iterable[str]) -> None:
        """The words of `texts`, which may be regular expressions, and those of all grammar are looked for."""
        plain = (_ESCAPE.sub(" ", text).lower() for text in texts)
        self._content = frozenset(word for text in plain for word in _WORD.findall(text)) - FUNCTION_WORDS
        everything = sorted(self._content | FUNCTION_WORDS, key=lambda word: ("'" in word, word))
        # Without its apostrophe "we'll" is another word, "don't" is none.
        contracted = {word.replace("'", ""): word for word in everything if "'" in word}
        self._meant = {bare: word for bare, word in contracted.items() if not is_english(bare)}
        self._meant |= {word: word for word in everything if "'" not in word and word not in self._meant}
        self._near = SymSpell(max_dictionary_edit_distance=2, prefix_length=7)
        for word in self._meant:
            self._near.create_dictionary_entry(word, 1)
        self._lock = Lock()
        self._known: dict[str, tuple[str, ...]] = {}
        shortest_last = sorted(self._meant, key=len, reverse=True)
        self._bones = {_bones(word): word for word in shortest_last}
        self._sounds = {_sound(word): word for word in shortest_last}
        self._shuffled = {_shuffled(word): word for word in shortest_last}
        self._beginnings = {word[:size] for word in self._meant for size in range(1, len(word))}
        self._long = tuple(sorted(word for word in self._content if len(word) >= _TELLING and "'" not in word))
        self._line = "\n".join(sorted(self._meant))

    def respelt(self, text: str) -> str:
        """The text in lower case with every misspelt word as the one that it seems to be meant for."""
        tokens = self._joined([token[:_LONGEST_TOKEN] for token in text.split()[:_MANY]])
        found: list[str] = []
        before = "."
        for token in tokens:
            # Within a sentence what has a capital is a name, but for what an article or an adverb makes something else.
            named = token[:1].isupper() and not (before[-1] in ".?!" or before in _BEFORE_NO_NAME or text.isupper())
            found += [token.lower()] if named else self._read(token.lower())
            before = token.lower()
        return " ".join(found)

    def rejoined(self, text: str) -> str | None:
        """The words of a text in lower case that was cut in other places, if any that is looked for comes to light."""
        words = text.split()[:_MANY]
        broken = [i for i, word in enumerate(words) if not is_english(word) or (len(word) == 1 and word not in _WHOLE)]
        found = [each for run in _near_each_other(broken) if (each := self._whole(words, run[0], run[-1]))]
        return " ".join(found) or None

    def _whole(self, words: Sequence[str], first: int, last: int) -> str | None:
        """The words around those that are none, put together anew."""
        around = words[max(0, first - _AROUND) : last + _AROUND + 1]
        pieces = self._pieces(_BETWEEN.sub("", "".join(around)))
        fresh = set(pieces) - set(around)
        if not (fresh & self._content or len(fresh & FUNCTION_WORDS) > 1):
            return None
        return " ".join(self._meant.get(piece, piece) for piece in pieces)

    def _pieces(self, letters: str) -> tuple[str, ...]:
        """The words of a run of letters, none if nothing in it is looked for: to part it is dear."""
        return parted(letters) if any(word in letters for word in self._long) else ()

    def _read(self, token: str) -> Sequence[str]:
        known = self._known.get(token)
        if known is None:
            tail = token[len(token.rstrip(_STOPS)) :]
            *others, last = self._words_of(token)
            known = (*others, last if last.endswith(tail) else last + tail)
            if len(self._known) < _KEPT:
                self._known[token] = known
        return known

    def _words_of(self, token: str) -> Sequence[str]:
        bare = token.strip(_SIGNS)
        if is_english(bare):
            return [token]
        for figured in dict.fromkeys((bare.translate(FOR_LETTERS), bare.translate(_ONE_FOR_L).translate(FOR_LETTERS))):
            if len(figured) > 1 and figured != bare and figured in self._meant:
                return [self._meant[figured]]
        found = _CORE.search(token)
        core = found.group() if found else ""
        if not core or is_english(core):
            return [token]
        if core in _TEXTING:
            return _TEXTING[core].split()
        meant = self._meant_by(core)
        return [meant] if meant is not None else (self._parted(core) or [token])

    def _meant_by(self, core: str) -> str | None:
        letters = _BETWEEN.sub("", core)
        if letters in self._meant:
            return self._meant[letters]
        if len(core) > _LONGEST_WORD:
            return None
        if any(map(str.isdecimal, core)):  # A code, or a word with the usual figures for letters.
            return self._within(_BETWEEN.sub("", core.translate(FOR_LETTERS)), 1) if len(core) > _SHORT else None
        found = self._filled_in(core, letters) or self._without_vowels(letters)
        return self._nearest(letters) if found is None and len(letters) >= 3 else found

    def _filled_in(self, core: str, letters: str) -> str | None:
        """The word that has a letter for each sign within the token."""
        signs = len(core) - len(letters)
        if not 0 < signs <= 6 or len(letters) < 2:
            return None
        pattern = _BETWEEN.sub(lambda found: "[a-z]" * len(found.group()), core)
        found = re.findall(rf"^{pattern}$", self._line, re.MULTILINE)
        return self._meant[min(self._rank(core, term) for term in found)[-1]] if found else None

    def _without_vowels(self, letters: str) -> str | None:
        meant = self._bones.get(letters) if len(letters) > 1 else None
        return self._meant[meant] if meant is not None else None

    def _nearest(self, letters: str) -> str | None:
        variants = tuple(dict.fromkeys((letters, *(letters.replace(*pair) for pair in _SAME_SHAPE))))
        known = next((each for each in variants if each in self._meant), None)
        if known is not None:
            return self._meant[known]
        usual = is_nearly_english(letters)
        for each in variants if len(letters) > _SHORT else (letters,):
            near = self._within(each, 2 if len(each) >= 7 and not usual else 1)
            if near is not None:
                return near
        if usual or len(letters) <= _SHORT:
            return None
        bones = _bones(letters)
        sounding = self._sounds.get(_sound(letters), "")
        meant = self._shuffled.get(_shuffled(letters)) or (sounding if abs(len(sounding) - len(letters)) <= 1 else None)
        if meant is None and len(bones) > 2:
            meant = self._bones.get(bones)
        return self._meant[meant] if meant is not None else None

    def _within(self, letters: str, most: int) -> str | None:
        """The nearest word within so many changes; none for a word of another alphabet, which has no letters left."""
        if not letters:
            return None
        with self._lock:  # A SymSpell compares words in buffers of its own.
            found = self._near.lookup(letters, Verbosity.CLOSEST, most)
        return (
            self._meant[min((item.distance, *self._rank(letters, item.term)) for item in found)[-1]] if found else None
        )

    def _rank(self, letters: str, term: str) -> tuple[bool, bool, str]:
        """Of words as near, first those that are looked for, then those with the same first letter."""
        return self._meant[term] in FUNCTION_WORDS, term[0] != letters[0], term

    def _parted(self, core: str) -> list[str] | None:
        """The words that were glued together, by nothing or by some letter, if most of them are looked for."""
        letters = _BETWEEN.sub("", core)
        if len(letters) < _GLUED:
            return None
        glues = (Counter(letters).most_common(1)[0][0], *(each for each in _GLUES if each in letters))
        for pieces in (self._pieces(letters), *(tuple(filter(None, letters.split(glue))) for glue in glues)):
            known = sum(len(piece) for piece in pieces if piece in self._meant)
            said = all(piece in self._meant or is_english(piece) for piece in pieces)
            if len(pieces) > 1 and said and known * 2 >= len(letters) - len(pieces):
                return [self._meant.get(piece, piece) for piece in pieces]
        return None

    def _joined(self, words: list[str]) -> Iterator[str]:
        """Words that were cut in two or three, whole again."""
        at = 0
        while at < len(words):
            begins = words[at].lower() in self._beginnings
            size = next((size for size in (3, 2) if begins and self._is_cut(words[at : at + size], size)), 1)
            yield "".join(words[at : at + size])
            at += size

    def _is_cut(self, pieces: Sequence[str], size: int) -> bool:
        whole = "".join(pieces).lower().strip(_SIGNS).replace("'", "")
        together = len(pieces) == size and len(whole) > 3 and whole in self._meant
        return together and not all(piece in FUNCTION_WORDS for piece in pieces)


def _near_each_other(places: Sequence[int]) -> Iterator[list[int]]:
    """Runs of two places or more with few words between them."""
    run: list[int] = []
    for place in places:
        if run and place - run[-1] > _AROUND:
            if len(run) > 1:
                yield run
            run = []
        run.append(place)
    if len(run) > 1:
        yield run


def _bones(word: str) -> str:
    """What is left of a word without vowels and doubled letters; a vowel at its beginning stays."""
    return _TWICE.sub(r"\1", word[:1] + _VOWELS.sub("", word[1:]))


def _sound(word: str) -> str:
    """Much the same for words that sound alike: the consonants by sound, and where vowels stand."""
    for written, sound in _SOUNDS:
        word = written.sub(sound, word)
    return _TWICE.sub(r"\1", _VOWELS.sub("a", word)).removesuffix("a")


def _shuffled(word: str) -> str:
    """The same for all words that differ in the order of the letters between the first and the last."""
    return f"{word[0]}{''.join(sorted(word[1:-1]))}{word[-1]}" if len(word) > 3 else word
