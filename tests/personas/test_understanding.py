"""The meaning of an agent's words is worked out once, for one case and one matcher."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from personas.acts import read_turn
from personas.memory import KEPT_CHARS
from personas.understanding import not_yet_understood, understand
from tests.personas.cast import CASE, BagMatcher, compiled

ASK = "What about the popping noise?"
OFFER = "I will book an MRI scan of your knee."


class DeafMatcher(BagMatcher):
    """Nothing is like anything."""

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        return np.zeros((len(texts), len(anchors)))


class BrokenMatcher(BagMatcher):
    """Fails while it is broken."""

    broken = True

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        if self.broken:
            raise ZeroDivisionError
        return super().cosine(texts, anchors)


def test_topics_commitments_and_comfort_are_told_apart() -> None:
    [meant] = understand(compiled(), BagMatcher(), [f"That sounds awful. {ASK} {OFFER} Who won the cup?"])
    assert [(q.text, q.match.topic_id if q.match else None, q.stray) for q in meant.questions] == [
        (ASK, "noise", False),
        ("Who won the cup?", None, True),
    ]
    assert [(commitment.id, quote) for commitment, quote in meant.commitments] == [("scan", OFFER)]
    assert [(comfort.gist, comfort.courteous) for comfort in meant.comforts] == [("sounds awful", False)]


def test_all_texts_take_one_call_and_known_ones_none() -> None:
    case, matcher = compiled(), BagMatcher()
    first = understand(case, matcher, [ASK, OFFER, ASK])
    assert matcher.calls == 1
    assert not_yet_understood(case, matcher, [ASK, OFFER]) == []
    again = understand(case, matcher, [OFFER, ASK])
    assert matcher.calls == 1
    assert again == [first[1], first[0]]
    assert first[0] is first[2]


def test_another_matcher_and_another_case_understand_for_themselves() -> None:
    case = compiled()
    assert understand(case, BagMatcher(), [ASK])[0].questions[0].match is not None
    assert understand(case, DeafMatcher(), [ASK])[0].questions[0].match is None
    other, matcher = compiled(), BagMatcher()
    understand(case, matcher, [ASK])
    assert not_yet_understood(other, matcher, [ASK]) == [ASK]


def test_long_texts_are_understood_but_not_kept() -> None:
    case, matcher = compiled(), BagMatcher()
    text = f"{ASK} {'Well. ' * KEPT_CHARS}"
    assert understand(case, matcher, [text])[0].questions[0].match is not None
    assert not_yet_understood(case, matcher, [text])[0] == ASK


def test_a_failure_leaves_nothing_behind() -> None:
    case, matcher = compiled(), BrokenMatcher()
    with pytest.raises(ZeroDivisionError):
        understand(case, matcher, [ASK])
    matcher.broken = False
    assert understand(case, matcher, [ASK])[0].questions[0].match is not None


def test_what_is_private_shows_in_no_repr() -> None:
    [meant] = understand(compiled(), BagMatcher(), [ASK])
    assert "noise" not in repr(meant).replace(ASK, "")
    assert "noise" not in repr(meant.questions[0]).replace(ASK, "")


@pytest.mark.parametrize("before", ["I see. " * 40, "Well, " + "and so on and on, " * 30])
def test_a_promise_is_heard_however_much_stands_before_it(before: str) -> None:
    [meant] = understand(compiled(), BagMatcher(), [f"{before}you should stop taking the tablets."])
    assert [commitment.id for commitment, _ in meant.commitments] == ["stop_tablets"]
    [hedged] = understand(compiled(), BagMatcher(), [f"{before}don't stop taking the tablets."])
    assert hedged.commitments == ()


@pytest.mark.parametrize(
    "text",
    [
        "Yuo shoudl stop takign the tabltes.",
        "You sho uld st op tak ing the tab lets.",
        "youshouldstoptakingthetablets.",
        "You should stop taking the tablets?",
        "You should stop taking the tablets, does it hurt?",
        "You should stop taking the tablets what hurts?",
        "``You should stop taking the t\u2605blets``",
    ],
)
def test_a_promise_in_odd_spelling_is_muttered_at_least(text: str) -> None:
    [meant] = understand(compiled(), BagMatcher(), [text])
    assert "stop_tablets" in {commitment.id for commitment, _ in (*meant.commitments, *meant.muttered)}


@pytest.mark.parametrize("text", ["If you stop taking the tablets, does it hurt?", "Does Tabea stop you at the table?"])
def test_what_is_none_is_not_muttered(text: str) -> None:
    [meant] = understand(compiled(), BagMatcher(), [text])
    assert meant.commitments == meant.muttered == ()


class NearMatcher(BagMatcher):
    """Every text is so much like every other."""

    def __init__(self, near: float) -> None:
        super().__init__()
        self.near = near

    def cosine(self, texts: Sequence[str], anchors: Sequence[str]) -> NDArray[np.float64]:
        return np.full((len(texts), len(anchors)), self.near)


IN_OTHER_WORDS = "I would like to have it scanned by my colleague upstairs this week."
STRAY = "Please scan pages from glossy magazines covering winter holidays around Norway and Iceland."
HINTING = CASE.commitments[0].model_copy(update={"patterns": (r"\bscan\w*\b",)})


@pytest.mark.parametrize("text", ["Scan that.", f"{'I will see. ' * 30}Scan that.", "It is late, and you scan it."])
def test_words_of_a_commitment_in_a_sentence_about_something_else_are_heard_but_vague(text: str) -> None:
    case = compiled(CASE.model_copy(update={"commitments": (HINTING,)}))
    for near, vague in ((0.24, {"scan"}), (0.26, set())):
        [meant] = understand(case, NearMatcher(near), [text])
        assert [commitment.id for commitment, _ in meant.commitments] == ["scan"]
        assert meant.vague == vague


@pytest.mark.parametrize(
    ("text", "near", "vague"),
    [
        ("We scan the knee with a song.", 0.5, set()),
        ("We scan the garden with a song.", 0.5, {"scan"}),
        ("We scan the garden with a song.", 0.6, set()),
        ("We scan the 120 knees in 2026.", 0.5, set()),
    ],
)
def test_a_sentence_with_several_words_of_nobody_is_about_something_else(
    text: str, near: float, vague: set[str]
) -> None:
    case = compiled(CASE.model_copy(update={"commitments": (HINTING,)}))
    [meant] = understand(case, NearMatcher(near), [text])
    assert [commitment.id for commitment, _ in meant.commitments] == ["scan"]
    assert meant.vague == vague


def test_a_part_of_a_sentence_is_compared_alone() -> None:
    case = compiled(CASE.model_copy(update={"commitments": (HINTING,)}))
    long = "Pages from glossy magazines covering winter holidays stay, and we will arrange an MRI scan, and snow falls."
    [meant] = understand(case, BagMatcher(), [long])
    assert [commitment.id for commitment, _ in meant.commitments] == ["scan"]
    assert meant.vague == set()


def test_so_many_parts_are_compared_and_no_more() -> None:
    case = compiled(CASE.model_copy(update={"commitments": (HINTING,)}))
    text = " ".join(f"Number {n}, scan it." for n in range(300))
    assert len(not_yet_understood(case, BagMatcher(), [text])) < 150
    [meant] = understand(case, BagMatcher(), [text])
    assert [commitment.id for commitment, _ in meant.commitments] == ["scan"]


@pytest.mark.parametrize(
    "text",
    [
        "It is not true that I will book an MRI scan of your knee.",
        "I will book an MRI scan of your knee. Only joking.",
        "A colleague of mine once said: I will book an MRI scan of your knee.",
        "Knee your of scan MRI an book will I.",
    ],
)
def test_what_is_not_meant_is_only_muttered(text: str) -> None:
    [meant] = understand(compiled(), BagMatcher(), [text])
    assert meant.commitments == ()
    assert [commitment.id for commitment, _ in meant.muttered] == ["scan"]


def test_a_later_sentence_that_means_it_is_the_one_that_is_quoted() -> None:
    case = compiled(CASE.model_copy(update={"commitments": (HINTING,)}))
    [meant] = understand(case, BagMatcher(), [f"{STRAY} I will book an MRI scan of your knee."])
    assert [quote for _, quote in meant.commitments] == ["I will book an MRI scan of your knee."]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=12), max_size=12).map(" ".join))
@example("\u0437\u0430\u043a\u0430\u04379269\u044f")
@example("\u7b2c29\u53f7\u623f\u95f4")
@example("\u24fa \u043e\u043e\u2152\u0456\u0445\u0443\u0441")
def test_whatever_is_written_can_be_read(text: str) -> None:
    [meant] = understand(compiled(), BagMatcher(), [text])
    assert meant.reading == read_turn(text)
