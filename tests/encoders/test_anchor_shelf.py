"""Vectors of authored texts survive on disk, and nothing on disk can change a result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from reward_server.encoders.anchor_shelf import AnchorShelf
from reward_server.encoders.encoder import EncoderMatcher

ANCHORS = ("Where does it hurt?", "When did it begin?")


class Counting:
    """An encoder that says how often it was asked."""

    version = "counting/1"
    width = 3

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += texts
        rows = [[len(text), text.count("e"), 1.0] for text in texts]
        vectors = np.array(rows, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def similarities(encoder: Counting, folder: Path) -> NDArray[np.float64]:
    return EncoderMatcher(encoder, shelf=AnchorShelf(folder)).cosine(["How long?"], ANCHORS)


def test_a_second_process_encodes_no_anchor(tmp_path: Path) -> None:
    first = similarities(Counting(), tmp_path)
    again = Counting()
    assert (similarities(again, tmp_path) == first).all()
    assert again.encoded == ["How long?"]


def test_a_variant_encodes_only_its_own_anchors(tmp_path: Path) -> None:
    encoder = Counting()
    matcher = EncoderMatcher(encoder, shelf=AnchorShelf(tmp_path))
    matcher.embed_authored(ANCHORS)
    varied = (ANCHORS[0], "When did it end?", ANCHORS[1])
    assert (matcher.embed_authored(varied) == Counting().encode(varied)).all()
    assert encoder.encoded == [*ANCHORS, "When did it end?"]


def test_other_weights_are_other_vectors(tmp_path: Path) -> None:
    similarities(Counting(), tmp_path)
    other = Counting()
    other.version = "counting/2"
    similarities(other, tmp_path)
    assert list(ANCHORS) == other.encoded[-2:] or list(ANCHORS) == other.encoded[:2]


@pytest.mark.parametrize("content", [b"", b"no vectors", np.zeros((5, 3), dtype=np.float32)])
def test_a_damaged_file_is_encoded_again(tmp_path: Path, content: bytes | NDArray[np.float32]) -> None:
    good = similarities(Counting(), tmp_path)
    (file,) = tmp_path.iterdir()
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        np.save(file, content)
    assert (similarities(Counting(), tmp_path) == good).all()


def test_a_folder_that_cannot_be_written_is_no_trouble() -> None:
    assert similarities(Counting(), Path("/proc/nowhere")).shape == (1, 2)
