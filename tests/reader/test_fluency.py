"""The fluency model: trained, written, read again; and the packaged one on speech that nobody broke."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from safetensors.numpy import load

from benchmarks.fluency import PAIRS
from personas.reading.embedder import Vectors
from personas.reading.fluency import HEAD, MAX_CHARS, MIN_WORDS, Fluency, is_judged
from personas.reading.heads import network_of
from personas.text.sentences import sentences
from reward_server.encoders.minilm import packaged_folder, read_checkpoint
from reward_server.fitting.reader.dataset import packaged_acts, packaged_turns
from reward_server.fitting.reader.fluency import train_fluency
from reward_server.fitting.reader.whole_sentences import packaged_sentences, sentences_of_file
from reward_server.reader.build import packaged_fluency
from scenarios.library import load_library
from scenarios.lint import COLLECTIONS
from tests.reader.test_corruptions import ASKED, ORDERED

ARTEFACT_BYTES = 8_000_000


@pytest.fixture(scope="module")
def packaged() -> Fluency:
    return packaged_fluency()


@pytest.mark.slow
def test_it_learns_to_tell_broken_sentences_and_its_artefact_is_read_again() -> None:
    losses: list[float] = []
    raw = train_fluency(
        read_checkpoint(packaged_folder()),
        {"a": ASKED, "b": ORDERED},
        steps=40,
        progress=lambda step, of, loss: losses.append(loss),
    )
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    assert len(raw) < ARTEFACT_BYTES
    assert network_of(load(raw), HEAD).logits(load(raw)["fluency.mean"][None]).shape == (1, 1, 1)
    model = packaged_fluency(raw=raw)
    whole = model.probabilities(ASKED)
    broken = model.probabilities(["What colour are your doctor about the", "Do you take any to the until drive"])
    assert max(whole) < min(broken)


def test_without_sentences_there_is_nothing_to_learn() -> None:
    with pytest.raises(ValueError, match="no sentences"):
        train_fluency(read_checkpoint(packaged_folder()), {"a": []}, steps=2)


@pytest.mark.slow
def test_what_it_says_does_not_depend_on_what_else_is_asked(packaged: Fluency) -> None:
    texts = [line for pair in json.loads(PAIRS.read_text()) for line in pair.values()]
    together = packaged.probabilities(texts)
    assert together == [packaged_fluency().probabilities([text])[0] for text in texts]


def test_a_trained_policys_broken_turns_are_seen_and_their_fluent_twins_are_not(packaged: Fluency) -> None:
    pairs = json.loads(PAIRS.read_text())
    fluent = [each for pair in pairs for each in sentences(pair["fluent"])]
    broken = [pair for pair in pairs if packaged.broken(sentences(pair["broken"]))]
    assert packaged.broken(fluent) == frozenset()
    assert len(broken) >= 3


@pytest.mark.slow
def test_hardly_a_line_of_the_packaged_agents_is_taken_for_broken(packaged: Fluency) -> None:
    said = [
        each
        for path in sorted(COLLECTIONS.glob("*/*.agents.yaml"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if " say: " in line
        for each in sentences(line.partition("say: ")[2].strip("\"'"))
    ]
    assert len(said) > 500
    taken = packaged.broken(said)
    assert len(taken) <= len(said) // 200, sorted(taken)


def test_fragments_and_very_long_sentences_are_not_judged(packaged: Fluency) -> None:
    assert not is_judged("What colour"[:11])
    assert not is_judged("so " * MAX_CHARS)
    assert MIN_WORDS == 3
    assert packaged.broken(["to the"]) == frozenset()


def test_what_it_said_of_a_sentence_is_remembered(packaged: Fluency) -> None:
    texts = [each for pair in json.loads(PAIRS.read_text()) for each in sentences(pair["broken"])]
    embedded: list[str] = []

    class Counting:
        version = packaged.embedder.version

        def embed(self, asked: Sequence[str]) -> Vectors:
            embedded.extend(asked)
            return packaged.embedder.embed(asked)

        embed_authored = embed

        async def prefetched(self, asked: Sequence[str]) -> None:
            self.embed(asked)

    model = Fluency(Counting(), packaged.head, packaged.digest)
    found = model.broken(texts)
    assert found == packaged.broken(texts)
    count, held = len(embedded), model.held_bytes
    assert model.broken(texts) == found
    asyncio.run(model.prefetched(texts))
    assert len(embedded) == count
    assert held > 0


def test_sentences_kept_aside_teach_nothing() -> None:
    library = load_library(only=["tutoring/half-a-cup"])
    rows = [row for row in packaged_turns(COLLECTIONS, library) if row.collection == "tutoring"]
    aside = {each for row in rows if row.turn.kept_aside for each in sentences(row.turn.turn)}
    found = packaged_sentences(library, rows, packaged_acts())
    assert aside
    assert not aside & {each for texts in found.values() for each in texts}
    assert set(found) == {"tutoring/half-a-cup", "labelled sentences"}


def test_a_text_file_is_cut_into_sentences(tmp_path: Path) -> None:
    path = tmp_path / "talk.txt"
    path.write_text("How are you? I am well.\nWhy?\nI am well.\n")
    assert sentences_of_file(path) == ["How are you?", "I am well."]
