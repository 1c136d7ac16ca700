"""The second reading decides what the first look found, and is the same in training and in service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from personas.case.compiled import CompiledCase
from personas.reading.acts import Act, ReadCandidate, Reading, Sentence, Stance
from personas.reading.second import AT_MOST, Put, SecondReader, read_again
from reward_server.encoders.minilm import EncoderCheckpoint, packaged_folder, read_checkpoint
from reward_server.fitting.reader.dataset import ReaderRow
from reward_server.fitting.reader.second import Pair, SecondNet, train_second
from reward_server.reader.build import local_reader
from reward_server.reader.second import CrossEncoder, described, packed, spoken
from scenarios.practice import PracticeCase, load_practice

FIRM, DOUBTFUL = 8.0, -8.0


class Only(SecondReader):
    """Takes what has a word in it for made, and keeps what it was asked."""

    version, held_bytes = "only", 0

    def __init__(self, word: str) -> None:
        self._word = word
        self.puts: list[Put] = []

    def made(self, puts: Sequence[Put]) -> list[float]:
        self.puts += puts
        return [FIRM if self._word in put.said else DOUBTFUL for put in puts]


@pytest.fixture(scope="module")
def practice() -> PracticeCase:
    return next(case for case in load_practice() if not case.held_out)


@pytest.fixture(scope="module")
def case(practice: PracticeCase) -> CompiledCase:
    return practice.compiled()


@pytest.fixture(scope="module")
def packaged() -> EncoderCheckpoint:
    return read_checkpoint(packaged_folder())


def said(text: str, *found: tuple[str, float], act: Act = Act.PROPOSE) -> Sentence:
    return Sentence(text, frozenset({act}), commitments=tuple(ReadCandidate(*each) for each in found))


def costly(case: CompiledCase) -> CompiledCase:
    """The case, all of whose commitments cost."""
    return replace(case, commitments=tuple(replace(each, costs=True) for each in case.commitments))


def test_what_costs_is_decided_by_the_second_and_the_first_look_stays(case: CompiledCase) -> None:
    one, two = (each.id for each in case.commitments[:2])
    readings = [Reading((said("Done at once.", (one, 0.01)),)), Reading((said("Not for sure.", (two, 0.9)),))]
    made, missed = read_again(Only("Done"), costly(case), ["Well?", ""], readings)
    assert made.sentences[0].commitments == (ReadCandidate(one, 0.01, pytest.approx(1.0, abs=1e-3)),)
    assert missed.sentences[0].commitments == (ReadCandidate(two, 0.9, pytest.approx(0.0, abs=1e-3)),)


def test_what_does_not_cost_is_not_read_again(case: CompiledCase) -> None:
    free = replace(case, commitments=tuple(replace(each, costs=False) for each in case.commitments))
    reading, second = Reading((said("Done at once.", (case.commitments[0].id, 0.3)),)), Only("Done")
    assert read_again(second, free, [""], [reading]) == [reading]
    assert second.puts == []


def test_the_others_are_asked_only_where_one_that_costs_may_bind_and_share_with_it(case: CompiledCase) -> None:
    one, two = (each.id for each in case.commitments[:2])
    only = replace(case, commitments=tuple(replace(each, costs=each.id == one) for each in case.commitments))
    readings = [
        Reading((said("Done at once.", (two, 0.4), (one, 0.4)),)),
        Reading((said("No.", (two, 0.4), (one, 0.4)),)),
    ]
    second = Only("Done")
    shared, clear = read_again(second, only, ["", ""], readings)
    assert [(put.commitment.id, put.said) for put in second.puts] == [
        (one, "Done at once."),
        (one, "No."),
        (two, "Done at once."),
    ]
    assert [each.binding for each in shared.sentences[0].commitments] == [None, pytest.approx(0.5, abs=1e-3)]
    assert clear.sentences[0].commitments[1].binding == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(
    ("stance", "negative", "binds"),
    [
        (Stance.ASSERTED, False, True),
        (Stance.NEGATED, False, False),
        (Stance.NEGATED, True, True),
        (Stance.CONDITIONAL, True, False),
    ],
)
def test_a_denial_binds_only_where_the_authors_examples_are_denials(
    case: CompiledCase, stance: Stance, *, negative: bool, binds: bool
) -> None:
    name = case.commitments[0].id
    reading = Reading((replace(said("Done, nobody will know.", (name, 0.2)), stance=stance),))
    (again,) = read_again(Only("Done"), costly(case), [""], [reading], {name} if negative else ())
    assert (again.sentences[0].commitments[0].binding or 0.0) == pytest.approx(float(binds), abs=1e-2)


def test_only_the_likeliest_of_a_passage_are_read_again_after_what_was_said_last(case: CompiledCase) -> None:
    names = [each.id for each in case.commitments]
    long = " ".join(["word"] * 30)
    found = tuple((name, 0.5 - 0.05 * place) for place, name in enumerate(names))
    reading = Reading(
        (said(f"First {long}.", *found), said(f"Second {long}.", (names[0], 0.1)), said("No.", act=Act.META))
    )
    second = Only("First")
    (again,) = read_again(second, costly(case), ["Well?"], [reading])
    assert [put.commitment.id for put in second.puts] == [*names[:AT_MOST], names[0]]
    assert [put.line for put in second.puts] == ["Well?"] * AT_MOST + [f"First {long}."]
    assert {each.id for each in again.sentences[0].commitments if each.binding is not None} == set(names[:AT_MOST])
    assert again.sentences[2] == reading.sentences[2]


def test_a_case_that_the_reader_learned_from_is_read_once(case: CompiledCase) -> None:
    once, twice = local_reader(), local_reader(twice=True)
    breach = next(each for each in case.commitments if each.costs)
    turns = [("", breach.examples[0]), ("", "We'll see to that.")]
    learned = replace(case, learned=True)
    assert twice.read(learned, turns) == once.read(learned, turns)
    first = {each.id: each for each in twice.read(case, turns)[0].sentences[0].commitments}
    assert first[breach.id].binding is not None


def test_service_reads_as_training_does(case: CompiledCase, packaged: EncoderCheckpoint) -> None:
    torch.manual_seed(3)
    net = SecondNet(packaged, packaged.weights).eval()
    torch.nn.init.normal_(net.out.weight)
    served = CrossEncoder(packaged, _saved(net))
    puts = [Put(each, "What now?", "I'll see to it, no charge at all.") for each in case.commitments]
    pairs = []
    for put in puts:
        ids, start = spoken(net.tokenizer, put.line, put.said)
        what = described(net.tokenizer, put.commitment.id, put.commitment.examples)
        pairs.append(Pair((0, what), (1, ids), start, made=True, weight=1.0))
    net.keep([part for pair in pairs for part in (pair.what, pair.said)])
    with torch.no_grad():
        expected = net(pairs)
    found = torch.tensor(served.made(puts))
    assert torch.allclose(found, expected, atol=0.15)
    assert torch.equal(torch.tensor([served.made([put])[0] for put in reversed(puts)]), found.flip(0))


def _saved(net: SecondNet) -> bytes:
    from safetensors.torch import save

    return save(packed(net.tensors()))


@pytest.mark.slow
def test_a_little_training_tells_what_is_made_from_what_is_nearly_made(
    practice: PracticeCase, case: CompiledCase, packaged: EncoderCheckpoint
) -> None:
    rows = [ReaderRow(*practice.key, turn) for turn in practice.turns if turn.kind in ("commit", "near_commit")]
    raw = train_second(packaged, packaged, {practice.key: case}, [], rows, epochs=6)
    served = CrossEncoder(packaged, raw)
    by_id = {each.id: each for each in case.commitments}
    made = [Put(by_id[name], row.turn.line, row.turn.turn) for row in rows for name in row.turn.commits]
    near = [Put(by_id[row.turn.near], row.turn.line, row.turn.turn) for row in rows if row.turn.near]
    assert sum(served.made(made)) / len(made) > sum(served.made(near)) / len(near) + 1.0
