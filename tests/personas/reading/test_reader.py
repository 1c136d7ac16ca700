"""The local reader with a cheap embedder and random heads: what holds whatever was learned."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest

from personas.case.compiled import CompiledCase, compile_case
from personas.case.schema import Background
from personas.reading.acts import Act, ReadCandidate, Sentence
from personas.reading.embedder import Vectors
from personas.reading.features import is_elliptic
from personas.reading.heads import ACTS, STANCES, Network, ReaderHeads
from personas.reading.reader import VERBATIM, LocalReader, after_line
from personas.text.wording import content_words, stem
from tests.personas.cast import CASE, TOPICS, compiled

WIDTH = 48
TOPIC_FEATURES, COMMITMENT_FEATURES = 13 + 7, 8 + 5


class BagEmbedder:
    """Unit vectors of hashed word stems."""

    version = "bag/1"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return np.stack([self._vector(text) for text in texts])

    embed_authored = embed

    async def prefetched(self, texts: Sequence[str]) -> None:
        self.embed(texts)

    def _vector(self, text: str) -> Vectors:
        vector = np.full(WIDTH, 1e-3, dtype=np.float32)
        for word in content_words(text):
            digest = hashlib.blake2b(stem(word).encode(), digest_size=2).digest()
            vector[int.from_bytes(digest, "big") % WIDTH] += 1
        return vector / np.linalg.norm(vector)


def network(inputs: int, outputs: int, seed: int) -> Network:
    draw = np.random.default_rng(seed)
    sizes = [(8, inputs), (8, 8), (outputs, 8)]
    layers = tuple(
        (draw.normal(size=(2, *size)).astype("f4"), draw.normal(size=(2, size[0])).astype("f4")) for size in sizes
    )
    return Network(np.zeros(inputs, "f4"), np.ones(inputs, "f4"), layers)


def heads(seed: int = 0) -> ReaderHeads:
    shared = 8 + len(ACTS) + len(STANCES)
    return ReaderHeads(
        f"random{seed}",
        network(WIDTH, len(ACTS) + len(STANCES), seed),
        network(TOPIC_FEATURES + shared, 1, seed),
        network(COMMITMENT_FEATURES + shared, 1, seed),
        network(TOPIC_FEATURES + shared, 1, seed),
    )


def said(*texts: str) -> list[Sentence]:
    return [Sentence(text, frozenset({Act.ASK})) for text in texts]


def test_the_background_is_compared_beside_the_topics() -> None:
    walks = Background(
        id="walks", asks=("Do you walk much?", "Do you walk far?", "How far do you walk?"), says=("Far.",)
    )
    reader, case = LocalReader(BagEmbedder(), heads()), compiled(background=(walks,))
    [of_one, of_none] = reader.beside(case, "It hurts.", said("Do you walk much?", "xq"))
    assert {each.id for each in (*of_one, *of_none)} <= {"walks", *case.by_id}
    assert [each.confidence for each in of_one] == sorted((each.confidence for each in of_one), reverse=True)
    another = LocalReader(BagEmbedder(), heads())
    assert another.beside(case, "It hurts.", said("xq", "Do you walk much?")) == [of_none, of_one]
    assert reader.beside(compiled(), "", said("Do you walk much?")) == [()]
    assert reader.read(case, [("", "Do you walk much?")]) == reader.read(compiled(), [("", "Do you walk much?")])


def test_what_any_persona_answers_takes_nothing_from_what_the_case_answers() -> None:
    walks = Background(id="walks", asks=("Do you walk much?", "Do you walk far?", "How far?"), says=("Far.",))
    strolls = walks.model_copy(update={"id": "strolls"})
    reader = LocalReader(BagEmbedder(), heads())
    own = compile_case(CASE, TOPICS, background=(walks,))
    both = compile_case(CASE, TOPICS, background=(walks,), common=(strolls,))
    [alone], [beside] = (reader.beside(case, "It hurts.", said("Do you walk much?")) for case in (own, both))
    assert {each for each in beside if each.id != "strolls"} == set(alone)


def test_what_was_compared_with_the_background_is_remembered_by_case_line_and_sentence() -> None:
    walks = Background(id="walks", asks=("Do you walk much?", "Do you walk far?", "How far?"), says=("Far.",))
    reader, case = LocalReader(BagEmbedder(), heads()), compiled(background=(walks,))
    embedder = reader._embedder
    assert isinstance(embedder, BagEmbedder)
    first = reader.beside(case, "It hurts.", said("Do you walk?", "Do you walk?"))
    held = reader.held_bytes
    embedder.embedded.clear()
    assert reader.beside(case, "It hurts.", said("Do you walk?")) == first[:1] == first[1:]
    assert embedder.embedded == []
    reader.beside(case, "It aches.", said("Do you walk?"))
    reader.beside(compiled(background=(walks,)), "It hurts.", said("Do you walk?"))
    assert embedder.embedded.count("Do you walk?") == 2
    assert reader.held_bytes > held


@pytest.fixture
def case() -> CompiledCase:
    return compiled()


TURNS = [("", "How are you sleeping? Is it bad at night?"), ("I sleep badly.", "Since when?"), ("", "I'm so sorry.")]


def test_a_reading_does_not_depend_on_what_else_is_read(case: CompiledCase) -> None:
    together = LocalReader(BagEmbedder(), heads()).read(case, TURNS)
    alone = [LocalReader(BagEmbedder(), heads()).read(case, [turn])[0] for turn in reversed(TURNS)]
    assert together == alone[::-1]


def test_a_turn_is_embedded_once(case: CompiledCase) -> None:
    embedder = BagEmbedder()
    reader = LocalReader(embedder, heads())
    reader.read(case, TURNS)
    before = len(embedder.embedded)
    assert reader.texts(case, TURNS) == []
    reader.read(case, TURNS)
    assert len(embedder.embedded) == before


def test_an_elliptic_sentence_is_read_behind_the_end_of_the_persona_s_line(case: CompiledCase) -> None:
    embedder = BagEmbedder()
    LocalReader(embedder, heads()).read(case, [("It hurts. I sleep badly.", "Since when?")])
    assert any(text.endswith("I sleep badly. Since when?") for text in embedder.embedded)
    assert after_line("I sleep badly.", "Since when?") != "Since when?"
    assert not is_elliptic("Which tablets does your doctor prescribe for the pain?")


def test_candidates_come_with_the_likeliest_first(case: CompiledCase) -> None:
    for seed in range(6):
        for reading in LocalReader(BagEmbedder(), heads(seed)).read(case, TURNS):
            for sentence in reading.sentences:
                confidences = [each.confidence for each in sentence.topics]
                assert confidences == sorted(confidences, reverse=True)
                assert all(0 < value <= 1 for value in confidences)


def confidence(found: Sequence[ReadCandidate], name: str) -> float:
    return next((each.confidence for each in found if each.id == name), 0.0)


def test_an_author_s_example_is_heard_word_for_word_as_what_it_was_written_for(case: CompiledCase) -> None:
    for seed in range(4):
        reader = LocalReader(BagEmbedder(), heads(seed))
        [reading] = reader.read(case, [("", "we will arrange an mri scan! Would you call the popping noise serious?")])
        promise, question = reading.sentences
        assert confidence(promise.commitments, "scan") >= VERBATIM
        assert confidence(question.topics, "noise") >= VERBATIM


def test_an_example_that_two_share_or_that_says_nothing_of_its_own_is_left_to_the_heads() -> None:
    shared, bare = "Would you call the popping noise serious?", "And since then?"
    facts = tuple(
        fact.model_copy(update={"asks": (*fact.asks, *extra)})
        for fact in CASE.facts
        for extra in [{"tablets": (shared,), "dose": (bare,)}.get(fact.id, ())]
    )
    case = compiled(CASE.model_copy(update={"facts": facts}))
    for text, name in ((shared, "noise"), (shared, "tablets"), (bare, "dose")):
        likely = {
            confidence(LocalReader(BagEmbedder(), heads(seed)).read(case, [("", text)])[0].sentences[0].topics, name)
            for seed in range(4)
        }
        assert min(likely) < VERBATIM


def test_an_unreadable_sentence_is_about_nothing(case: CompiledCase) -> None:
    found = [
        sentence
        for seed in range(12)
        for reading in LocalReader(BagEmbedder(), heads(seed)).read(case, TURNS)
        for sentence in reading.sentences
        if sentence.does(Act.UNREADABLE)
    ]
    assert found
    assert all(each.topics == each.commitments == () and each.acts == {Act.UNREADABLE} for each in found)


def test_an_empty_turn_reads_as_nothing(case: CompiledCase) -> None:
    [reading] = LocalReader(BagEmbedder(), heads()).read(case, [("Hello?", " \n ")])
    assert reading.sentences == ()
    assert reading.legibility == 1.0


def test_a_case_without_commitments_is_read() -> None:
    [reading] = LocalReader(BagEmbedder(), heads()).read(
        compiled(CASE.model_copy(update={"commitments": ()})), TURNS[:1]
    )
    assert [each.text for each in reading.sentences] == ["How are you sleeping?", "Is it bad at night?"]
    assert all(each.commitments == () for each in reading.sentences)


@pytest.mark.parametrize(("of_part", "consoles"), [(0.95, True), (0.8, False)])
def test_a_sentence_consoles_if_a_part_of_it_clearly_does(
    case: CompiledCase, monkeypatch: pytest.MonkeyPatch, of_part: float, *, consoles: bool
) -> None:
    sure = {"Hello Robin, that sounds dreadful.": 0.1, "Hello Robin": 0.0, "that sounds dreadful.": of_part}
    embedder, given = BagEmbedder(), heads()
    of_vector = {embedder._vector(text).tobytes(): value for text, value in sure.items()}

    def acts_of(self: ReaderHeads, vectors: Vectors) -> Vectors:
        found = np.zeros((len(vectors), len(ACTS) + len(STANCES)), "f4")
        found[:, ACTS.index(Act.EMPATHY)] = [of_vector[np.asarray(vector).tobytes()] for vector in vectors]
        return found

    monkeypatch.setattr(ReaderHeads, "acts_of", acts_of)
    [reading] = LocalReader(embedder, given).read(case, [("", "Hello Robin, that sounds dreadful.")])
    assert reading.any(Act.EMPATHY) is consoles
