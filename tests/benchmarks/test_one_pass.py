"""Reading a turn in one pass: where its texts stand among the tokens, and what their vectors depend on."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from benchmarks.one_pass.passes import Design, Pass, PassEncoder, passes_of
from benchmarks.one_pass.reading import PassVectors
from personas.reading.reader import after_line
from reward_server.encoders.minilm import EncoderCheckpoint, MiniLmEncoder, packaged_folder, read_checkpoint

Encoders = dict[Design, PassEncoder]
LINE = "I moved out in spring."
SHORT = "Why then?"
ASKING = "How is your mother, and where does she live now?"


@pytest.fixture(scope="module")
def checkpoint() -> EncoderCheckpoint:
    return read_checkpoint(packaged_folder())


@pytest.fixture(scope="module")
def encoders(checkpoint: EncoderCheckpoint) -> Encoders:
    return {design: PassEncoder(checkpoint, design) for design in get_args(Design)}


def decoded(checkpoint: EncoderCheckpoint, each: Pass) -> dict[str, str]:
    return {
        text: " ".join(checkpoint.tokenizer.decode(list(each.ids[first:last])) for first, last in ranges)
        for text, ranges in each.spans
    }


def plain(text: str) -> str:
    return "".join(text.lower().split())


def vector(encoder: PassEncoder, turn: tuple[str, str], text: str) -> np.ndarray:
    """The vector of a text of a turn, which has to stand in its passes."""
    passes = passes_of(encoder.tokenizer, turn, encoder.design)
    assert text in {own for each in passes for own, _ in each.spans}
    vectors = PassVectors(encoder)
    vectors.look(turn)
    return vectors.embed([text])[0]


def test_a_pass_holds_the_line_sentences_and_clauses(checkpoint: EncoderCheckpoint) -> None:
    [each] = passes_of(checkpoint.tokenizer, (LINE, f"{SHORT} {ASKING}"), "full")
    found = decoded(checkpoint, each)
    assert {SHORT, after_line(LINE, SHORT), ASKING} < set(found)
    assert len(found) > 4  # the clauses
    assert {plain(text): plain(said) for text, said in found.items()} == {plain(text): plain(text) for text in found}


def test_where_sentences_are_blocks_each_has_a_pass_after_the_line(checkpoint: EncoderCheckpoint) -> None:
    passes = passes_of(checkpoint.tokenizer, (LINE, f"{SHORT} {ASKING}"), "blocks")
    heads = [plain(checkpoint.tokenizer.decode(list(each.ids[1 : each.head - 1]))) for each in passes]
    assert heads == [plain(LINE), plain(LINE)]
    assert [each.spans[0][0] for each in passes] == [SHORT, ASKING]


@pytest.mark.parametrize("text", [SHORT, after_line(LINE, SHORT)])
def test_a_sentence_depends_on_the_others_where_all_is_seen_alone(encoders: Encoders, text: str) -> None:
    one, other = (LINE, f"{ASKING} {SHORT}"), (LINE, f"Hello. {SHORT} That sounds hard.")
    blocks = [vector(encoders["blocks"], turn, text) for turn in (one, other)]
    np.testing.assert_allclose(*blocks, atol=1e-5)
    full = [vector(encoders["full"], turn, text) for turn in (one, other)]
    assert float(full[0] @ full[1]) < 0.99


def test_where_sentences_are_blocks_they_see_the_line_and_it_sees_nothing(encoders: Encoders) -> None:
    after = [vector(encoders["blocks"], (line, SHORT), SHORT) for line in (LINE, "My father died.")]
    assert float(after[0] @ after[1]) < 0.99
    encoder = encoders["blocks"]
    [short] = passes_of(encoder.tokenizer, (LINE, SHORT), "blocks")
    [asking] = passes_of(encoder.tokenizer, (LINE, ASKING), "blocks")
    line = ((1, short.head - 1),)
    of_line = [Pass(each.ids, each.head, (("", line),)) for each in (short, asking)]
    np.testing.assert_allclose(*encoder.vectors(of_line), atol=1e-5)


def test_what_sees_all_is_what_the_encoder_makes_of_these_tokens(
    checkpoint: EncoderCheckpoint, encoders: Encoders
) -> None:
    encoder = encoders["full"]
    [each] = passes_of(encoder.tokenizer, (LINE, SHORT), "full")
    whole = Pass(each.ids, each.head, (("", ((0, len(each.ids)),)),))
    [found] = encoder.vectors([whole])
    expected = MiniLmEncoder(*checkpoint).forward([each.ids])
    np.testing.assert_allclose(found, expected, atol=1e-6)
