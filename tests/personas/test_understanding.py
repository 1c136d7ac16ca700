"""The meaning of an agent's words is worked out once, for one case and one matcher."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from personas.memory import KEPT_CHARS
from personas.understanding import not_yet_understood, understand
from tests.personas.cast import BagMatcher, compiled

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
