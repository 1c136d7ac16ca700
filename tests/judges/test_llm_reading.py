"""What a model answered is believed only where the transcript bears it out."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from reward_server.judges.reading import JudgeAnswer, PairAnswer, evidence_for, find_quote, read_pair
from reward_server.llm.base import LlmFailed
from tests.scoring.builders import a_transcript

SAID = "I’m  so sorry to hear\nthat, Ms. Miller — the ROOFER comes at 8:30."


@pytest.mark.parametrize(
    ("quote", "literal"),
    [
        (SAID, SAID[:-1]),
        ("I'm so sorry to hear that", "I’m  so sorry to hear\nthat"),
        ("the roofer comes at 8:30.", "the ROOFER comes at 8:30"),
        ("“so sorry to hear…”", "so sorry to hear"),
        ("...hear that, ms. miller — the", "hear\nthat, Ms. Miller — the"),
        ("  SO   SORRY  TO  ", "so sorry to"),
    ],
)
def test_spaces_case_and_quotation_marks_may_differ(quote: str, literal: str) -> None:
    found = find_quote(SAID, quote)
    assert found == literal
    assert found in SAID


@pytest.mark.parametrize(
    "quote",
    [
        "",
        "…",
        "  ",
        "so sorry",
        "I’m so so",
        "I am so sorry to hear that",
        "sorry to hear ... the roofer comes",
        "orry to hear that",
        "so sorry to hea",
        "sorry to hear that Ms Miller",
        "a b c",
    ],
)
def test_words_that_were_not_said_or_prove_nothing_are_no_quote(quote: str) -> None:
    assert find_quote(SAID, quote) is None


def test_a_short_turn_may_be_quoted_whole() -> None:
    assert find_quote("Shut up!", "shut up!") == "Shut up!"
    assert find_quote("Shut up, or else.", "shut up") is None


def test_a_passage_is_found_where_its_words_are_whole() -> None:
    assert find_quote("another one to hear; one to hear it", "one to hear it") == "one to hear it"


@pytest.mark.parametrize("text", ["straße ist ja lang genug", "İstanbul is where it began", "ﬁnd the ﬁrst leak now"])
def test_letters_that_grow_when_case_is_folded_are_quoted_to_the_letter(text: str) -> None:
    assert find_quote(f"So: {text} and so on", text.casefold()) == text


@pytest.mark.parametrize(
    ("said", "quote"),
    [
        ("I am s\u200bo sor\u00adry for you", "i am so sorry for you"),
        ("The cafe\u0301 is open today", "the caf\u00e9 is open today"),
        ("\uff39\uff4f\uff55 can count on me", "you can count on me"),
        ("we \ufb01x the \ufb01rst leak now", "we fix the first leak now"),
        ("I\u00a0will\u2003send someone", "i will send someone"),
    ],
)
def test_what_looks_the_same_is_the_same_and_kept_as_it_was_written(said: str, quote: str) -> None:
    assert find_quote(f"Well, {said}.", quote) == said


def test_a_long_quote_is_kept_as_far_as_evidence_goes() -> None:
    line = "the water runs down the wall " * 40
    evidence = evidence_for(a_transcript(line), 1, line)
    assert len(evidence.quote) == 300
    assert line.startswith(evidence.quote)


@pytest.mark.parametrize(
    "change",
    [{"met": 1}, {"met": "true"}, {"met": None}, {"turn": 1.0}, {"turn": "1"}, {"quote": None}, {"score": 0.7}],
)
def test_nothing_is_coerced_into_a_verdict(change: dict[str, object]) -> None:
    answer = {"id": "c1", "reason": "-", "turn": 1, "quote": "-", "met": True}
    JudgeAnswer.model_validate_json(json.dumps({"verdicts": [answer]}))
    with pytest.raises(ValidationError) as failure:
        JudgeAnswer.model_validate_json(json.dumps({"verdicts": [answer | change]}))
    assert "-" not in str(failure.value.errors(include_input=False)[0].get("input", ""))


def test_a_number_is_no_verdict() -> None:
    with pytest.raises(ValidationError):
        JudgeAnswer.model_validate_json('{"verdicts": 0.8}')


def pair(better: str, turn: int | None, quote: str) -> PairAnswer:
    return PairAnswer.model_validate({"reason": "-", "better": better, "turn": turn, "quote": quote})


def test_the_better_one_of_a_pair_is_quoted_from_its_own_transcript() -> None:
    shown = a_transcript("Where does it come in?"), a_transcript("Put a bucket under it.")
    assert read_pair(pair("Y", 1, "put a bucket under"), shown) == "Y"
    assert read_pair(pair("neither", None, ""), shown) == "neither"
    with pytest.raises(LlmFailed, match="provider failed") as failure:
        read_pair(pair("X", 1, "put a bucket under"), shown)
    assert failure.value.kind == "foreign_quote"


@pytest.mark.parametrize("word", ["A", "tie", "x", "Response X", ""])
def test_a_pair_has_three_answers(word: str) -> None:
    with pytest.raises(ValidationError):
        pair(word, None, "")
