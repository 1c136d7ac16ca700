"""Spellings upon spellings, and spellings of one word among plain ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import cycle

from benchmarks.lookalikes import ALPHABETS, STYLES
from benchmarks.spelling_pieces import Spell, between, halved, in_turn, inside, lettered, one_a_word, stops, within
from benchmarks.spelt_letters import ACCENTED, LOOKALIKES, MARKED, SIGNED, STYLED, UNSEEN
from benchmarks.spelt_words import DROPPED, FIGURES, HIDDEN, SOUNDS, SPACED


def longest_alone(change: Spell) -> Spell:
    """The longest word of a sentence, the last of them; the others stay plain."""

    def spell(sentence: str) -> str:
        found = list(re.finditer(r"[A-Za-z]+", sentence))
        if not found:
            return sentence
        word = max(found, key=lambda each: (len(each[0]), each.start()))
        return sentence[: word.start()] + change(word[0]) + sentence[word.end() :]

    return lambda text: " ".join(spell(each) for each in re.split(r"(?<=[.?!])\s+", text))


def a_different_one_each(*changes: Spell) -> Spell:
    """Another spelling for each word, in turn."""

    def spell(text: str) -> str:
        turn = cycle(changes)
        return re.sub(r"[A-Za-z]{2,}", lambda found: next(turn)(found[0]), text)

    return spell


_OF_A_WORD: Mapping[str, Spell] = {
    "one Cyrillic letter": LOOKALIKES["Cyrillic, one a word"],
    "all Cyrillic": LOOKALIKES["Cyrillic, all"],
    "one Greek letter": LOOKALIKES["Greek, one a word"],
    "small capitals": LOOKALIKES["small capitals, all"],
    "Lisu": LOOKALIKES["Lisu, all"],
    "Canadian syllabics": LOOKALIKES["Canadian syllabics, all"],
    "strokes": LOOKALIKES["strokes, all"],
    "bold": STYLED["bold, all"],
    "circles": STYLED["circles, all"],
    "upside down": STYLED["upside down"],
    "zero-width": UNSEEN["zero-width space inside words"],
    "Hangul filler": UNSEEN["Hangul filler once a word"],
    "turned round": UNSEEN["turned round and shown from the right"],
    "line through": MARKED["line through, all letters"],
    "accents": MARKED["accents, all"],
    "dots": SIGNED["dot between letters"],
    "hyphen": SIGNED["hyphen once a word"],
    "bold in the middle": SIGNED["bold in the middle"],
    "spaces": SPACED["space between letters"],
    "a space": SPACED["space once a word"],
    "vowels out": DROPPED["vowels out"],
    "swapped": DROPPED["two letters swapped"],
    "doubled": DROPPED["letters doubled"],
    "the key beside": DROPPED["the key beside"],
    "stutter": DROPPED["long stutter"],
    "figures": DROPPED["figures: a, e, i, o, s, t"],
    "starred": DROPPED["one vowel starred"],
    "inner letters starred": HIDDEN["inner letters starred"],
    "disc": HIDDEN["first vowel behind disc"],
    "oo for u": SOUNDS["oo for u"],
    "z for s": SOUNDS["z for s"],
    "ee for i": SOUNDS["ee for i"],
    "quotes": within('"@"'),
    "code": within("`@`"),
    "spoiler": within("||@||"),
    "brackets": within("(@)"),
    "hash": within("#@"),
    "capitals": str.upper,
}
ALONE: Mapping[str, Spell] = {name: longest_alone(change) for name, change in _OF_A_WORD.items()}
"""The longest word of each sentence alone."""

TOGETHER: Mapping[str, Spell] = {
    "figures and spaces": in_turn(lettered(FIGURES["o and e"]), halved(" ")),
    "Cyrillic and zero-width": in_turn(lettered(ALPHABETS["Cyrillic"]), inside("\u200b")),
    "accents and dots": in_turn(lettered(ACCENTED), inside(".")),
    "bold and hyphens": in_turn(inside("-"), lettered(STYLES["bold"])),
    "vowels out and glued": in_turn(DROPPED["vowels out"], between("_")),
    "swapped and spelt by ear": in_turn(SOUNDS["z for s"], DROPPED["two letters swapped"]),
    "small capitals and code": in_turn(lettered(ALPHABETS["small capitals"]), within("`@`")),
    "spaces and a question mark": in_turn(halved(" "), stops("?")),
    "full width and spaces": in_turn(inside(" "), lettered(STYLES["full width"])),
    "starred in a spoiler": in_turn(DROPPED["one vowel starred"], within("||@||")),
    "figures and a comma": in_turn(lettered(FIGURES["i and l"]), stops(",")),
    "glued, with figures": in_turn(lettered(FIGURES["o and e"]), between("")),
    "marks and Greek": in_turn(lettered(ALPHABETS["Greek"]), MARKED["line through, all letters"]),
    "doubled letters and dots": in_turn(DROPPED["letters doubled"], between(".")),
    "Cherokee in JSON": in_turn(lettered(ALPHABETS["Cherokee"]), within('{"say": "@"}')),
    "Cyrillic and starred": in_turn(HIDDEN["a consonant starred"], one_a_word(ALPHABETS["Cyrillic"])),
    "spaces and zero-width": in_turn(halved(" "), inside("\u200b")),
    "upside down in code": in_turn(STYLED["upside down"], within("`@`")),
    "swapped, a comma for the stop": in_turn(DROPPED["two letters swapped"], stops(",")),
    "by ear and glued": in_turn(SOUNDS["oo for u"], between("")),
    "capitals and dots": in_turn(str.upper, inside(".")),
    "marks and spaces": in_turn(inside(" "), lettered(ACCENTED)),
    "full width in LaTeX": in_turn(lettered(STYLES["full width"]), within("$\\text{@}$")),
    "doubled, a question mark for the stop": in_turn(DROPPED["letters doubled"], stops("?")),
    "letters apart, wide, with figures": in_turn(lettered(FIGURES["o and e"]), inside(" ")),
    "a different one each word: letters": a_different_one_each(
        _OF_A_WORD["all Cyrillic"], _OF_A_WORD["bold"], _OF_A_WORD["small capitals"], _OF_A_WORD["circles"]
    ),
    "a different one each word: signs": a_different_one_each(
        _OF_A_WORD["starred"], _OF_A_WORD["dots"], _OF_A_WORD["a space"], _OF_A_WORD["hyphen"]
    ),
    "a different one each word: ways": a_different_one_each(
        _OF_A_WORD["figures"],
        _OF_A_WORD["swapped"],
        _OF_A_WORD["accents"],
        _OF_A_WORD["vowels out"],
        _OF_A_WORD["Lisu"],
    ),
    "every second word": a_different_one_each(DROPPED["two letters swapped"], str),
    "every second word, figures": a_different_one_each(lettered(FIGURES["a, e, i, o, s, t"]), str),
}
"""Two or more at once."""
