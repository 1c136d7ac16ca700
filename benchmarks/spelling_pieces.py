"""How a text can be respelt: what is changed in it, and where. Each piece makes a function of a text."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import cycle

from benchmarks.lookalikes import Alphabet

Spell = Callable[[str], str]


# --- where in a text ------------------------------------------------------------------------------


def words(change: Spell) -> Spell:
    """Each word, with the signs that touch it."""
    return lambda text: re.sub(r"\S+", lambda found: change(found[0]), text)


def runs(change: Spell) -> Spell:
    """Each run of letters."""
    return lambda text: re.sub(r"[A-Za-z]+", lambda found: change(found[0]), text)


def long_runs(change: Spell, least: int = 4) -> Spell:
    """Each run of letters that is not too short to be changed and read on."""
    return runs(lambda word: change(word) if len(word) >= least else word)


def sentences(change: Spell) -> Spell:
    """Each sentence."""
    return lambda text: " ".join(change(each) for each in re.split(r"(?<=[.?!])\s+", text))


def stops(sign: str) -> Spell:
    """Another sign where a sentence ends."""
    return lambda text: re.sub(r"[.?!]+(?=\s|$)", lambda _: sign, text)


def replaced(*pairs: tuple[str, str]) -> Spell:
    """Patterns, one after another, whatever their case."""

    def spell(text: str) -> str:
        for pattern, by in pairs:
            text = re.sub(pattern, by, text, flags=re.IGNORECASE)
        return text

    return spell


def in_turn(*spells: Spell) -> Spell:
    """One spelling after another."""

    def spell(text: str) -> str:
        for each in spells:
            text = each(text)
        return text

    return spell


def inside(sign: str) -> Spell:
    """A sign between all letters of a word."""
    return runs(sign.join)


def behind_each_letter(sign: str) -> Spell:
    """A sign behind every letter."""
    return runs(lambda word: "".join(letter + sign for letter in word))


def after_two(sign: str) -> Spell:
    """A sign behind the second letter of each longer word."""
    return long_runs(lambda word: word[:2] + sign + word[2:])


def halved(sign: str) -> Spell:
    """A sign in the middle of each longer word."""
    return long_runs(lambda word: word[: len(word) // 2] + sign + word[len(word) // 2 :])


def between(sign: str) -> Spell:
    """A sign in place of each space."""
    return lambda text: text.replace(" ", sign)


def around(before: str, behind: str) -> Spell:
    """Signs round each word."""
    return words(lambda word: before + word + behind)


def within(form: str) -> Spell:
    """The whole text in a form, whose place for it is @."""
    return lambda text: form.replace("@", text)


# --- look-alike letters ---------------------------------------------------------------------------


def lettered(alphabet: Alphabet) -> Spell:
    """All letters that have a double."""
    return lambda text: "".join(alphabet.get(letter, letter) for letter in text)


def vowels(alphabet: Alphabet) -> Spell:
    """The vowels alone."""
    return lettered({letter: double for letter, double in alphabet.items() if letter in "aeiouAEIOU"})


def one_a_word(alphabet: Alphabet) -> Spell:
    """The middle one of those letters of each word that have a double."""

    def change(word: str) -> str:
        places = [i for i, letter in enumerate(word) if letter in alphabet]
        if not places:
            return word
        at = places[len(places) // 2]
        return word[:at] + alphabet[word[at]] + word[at + 1 :]

    return words(change)


def every_other(*alphabets: Alphabet) -> Spell:
    """Letters from one alphabet and another in turn; an empty one leaves them as they are."""

    def spell(text: str) -> str:
        turn = cycle(alphabets)
        return "".join(next(turn).get(letter, letter) if letter.isalpha() else letter for letter in text)

    return spell
