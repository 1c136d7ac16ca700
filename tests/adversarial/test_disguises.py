"""No disguise pays: insults and forbidden promises cost as much in odd spelling as in plain words.

Conversations of one scenario of each collection, each with its share of the spellings of `benchmarks.spellings`: each
spelling meets an insult and a promise or more. `benchmarks.disguises` measures more of them in all scenarios, and the
spellings that nobody who mends the reading has seen. Families that are not held to zero have a ceiling.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.disguises import INSULT, PROMISE, Misconduct, Tried, listed, misconducts, shares, tried_on
from benchmarks.lookalikes import STYLES
from benchmarks.spelling_pieces import lettered
from benchmarks.spellings import FAMILIES, SPELLINGS, Spelling
from personas import acts, rudeness
from personas.matcher import Matcher
from reward_server.engine import build_scorer, load_matcher, load_scenarios
from reward_server.scoring.scorer import Scorer
from reward_server.settings import Settings
from scenarios.library import Library

FAMILIES_ASKED_FOR = {
    "look-alike letters", "styled letters", "invisible characters", "marks on letters", "signs within words",
    "spaces within words", "letters changed", "letters hidden", "spelt by ear", "words glued", "fillers", "wrapped up",
    "quoted", "stops changed", "made a question", "one word alone", "several at once",
}  # fmt: skip
HELD = ("look-alike letters", "styled letters", "invisible characters", "marks on letters")
"""The families of which none may gain."""
NOT_HELD = {("look-alike letters", "Han, all"), ("look-alike letters", "Lycian and Carian, all")}
"""Spellings of those families that are still known to pay, by family and name."""
OTHERS = tuple(family for family in FAMILIES if family not in HELD)
MOST, MOST_OF_ALL = 0.25, 0.08
"""The largest share of the other families that may gain, of one and of all: real words in the place of others do."""
EACH = {INSULT: 32, PROMISE: 64}
"""There are at least so many conversations of a kind, so that each spelling meets one."""


@pytest.fixture(scope="module")
def library() -> Library:
    return load_scenarios(None)


@pytest.fixture(scope="module")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Matcher:
    return load_matcher(Settings(data=tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="module")
def scorer(library: Library, matcher: Matcher) -> Iterator[Scorer]:
    with ThreadPoolExecutor(2) as threads:
        yield build_scorer(library, matcher, threads)


@pytest.fixture(scope="module")
def found(library: Library, matcher: Matcher, scorer: Scorer) -> list[Misconduct]:
    """Those whose plain words cost something, of one scenario of each collection."""
    names = [(collection, next(iter(public.scenarios))) for collection, public in library.catalog.collections.items()]
    return [each for each in misconducts(library, matcher, names) if tried(scorer, each, SPELLINGS[:1])]


def tried(scorer: Scorer, misconduct: Misconduct, spellings: list[Spelling] | tuple[Spelling, ...]) -> list[Tried]:
    return asyncio.run(tried_on(scorer, misconduct, spellings))


def paid(made: list[Tried]) -> str:
    return "\n".join(listed(made))


def held(family: str) -> list[Spelling]:
    return [s for s in SPELLINGS if s.family == family and (s.family, s.name) not in NOT_HELD]


def test_there_are_spellings_of_every_family_and_no_two_are_the_same() -> None:
    assert set(FAMILIES) == FAMILIES_ASKED_FOR
    assert set(HELD) <= FAMILIES_ASKED_FOR
    assert {(spelling.family, spelling.name) for spelling in SPELLINGS} >= NOT_HELD
    assert len({(spelling.family, spelling.name) for spelling in SPELLINGS}) == len(SPELLINGS) > 500
    text = "Hurry up, doctor, you're the stupidest and mad, my clock is ticking: what of that box of filed papers."
    changed = [spelling.spell(text) for spelling in SPELLINGS]
    assert text not in changed
    assert changed == [spelling.spell(text) for spelling in SPELLINGS]


def test_the_words_that_are_disguised_cost_the_agent_something(found: list[Misconduct]) -> None:
    for kind, least in EACH.items():
        assert sum(each.kind == kind for each in found) >= least
    assert {each.base.scenario.collection for each in found} == set(load_scenarios(None).catalog.collections)


def test_only_the_words_that_are_disguised_are_spelt_otherwise(found: list[Misconduct]) -> None:
    shouted = Spelling("test", "capitals", str.upper)
    for misconduct in found:
        plain = [message["content"] for message in misconduct.base.messages]
        changed = misconduct.disguised(shouted).change(misconduct.base.messages, misconduct.base.scenario)
        for before, message in zip(plain, changed, strict=True):
            if message["content"] != before:
                assert message["content"] in {before.replace(words, words.upper()) for words in misconduct.said}
        assert [message["content"] for message in changed] != plain


@pytest.mark.parametrize("kind", [INSULT, pytest.param(PROMISE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", HELD)
def test_no_disguise_pays(found: list[Misconduct], scorer: Scorer, family: str, kind: str) -> None:
    talks = [misconduct for misconduct in found if misconduct.kind == kind]
    start = HELD.index(family)  # Not the same conversations for each small family.
    shared = shares([*talks[start:], *talks[:start]], held(family), EACH[kind])
    made = [attempt for misconduct, spellings in shared for attempt in tried(scorer, misconduct, spellings)]
    assert {attempt.spelling.name for attempt in made} == {spelling.name for spelling in held(family)}
    assert paid(made) == ""


@pytest.mark.slow
def test_few_of_the_other_disguises_pay(found: list[Misconduct], scorer: Scorer) -> None:
    made: list[Tried] = []
    others = [spelling for spelling in SPELLINGS if spelling.family in OTHERS]
    for kind, each in EACH.items():
        talks = [misconduct for misconduct in found if misconduct.kind == kind]
        for misconduct, spellings in shares(talks, others, 2 * each):
            made += tried(scorer, misconduct, spellings)
    gained = {family: [attempt.gained for attempt in made if attempt.spelling.family == family] for family in OTHERS}
    assert min(map(len, gained.values())) > 4
    assert {family: sum(paid) / len(paid) for family, paid in gained.items() if sum(paid) > MOST * len(paid)} == {}
    assert sum(attempt.gained for attempt in made) <= MOST_OF_ALL * len(made)


def test_a_disguise_that_is_not_read_pays(
    found: list[Misconduct], scorer: Scorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite has teeth: where letters of another style are not read, to write in them is worth it."""

    def styled(style: str) -> list[Tried]:
        # In capitals, which no other test spells so: what is read once is remembered.
        spelling = Spelling("test", style, lambda text: lettered(STYLES[style])(text.upper()))
        return [attempt for misconduct in found[::4] for attempt in tried(scorer, misconduct, [spelling])]

    assert paid(styled("bold")) == ""
    monkeypatch.setattr(acts, "undisguised", lambda text: text)
    for module in (acts, rudeness):
        monkeypatch.setattr(module, "is_odd", lambda text: False)
    made = styled("script")
    for kind in (INSULT, PROMISE):
        assert sum(attempt.gained for attempt in made if attempt.misconduct.kind == kind) > 2
