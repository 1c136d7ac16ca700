"""Rules that would keep damaged questions from paying, compared on turns that are kept aside.

    python -m benchmarks.damaged_questions [--write]

A damaged sentence pays if the reader takes it for a question about a topic. Beside the bar of the fluency model, three
rules are tried: one that asks clauses and whole sentence to agree, one with another bar where a sentence pays, and a
classifier of all that the reader knows of a sentence. Thresholds of the last are chosen on other scenarios than those
that it is measured on.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.fluency import aside
from benchmarks.report import Table, environment, write
from personas.hearing.hear import ASKED
from personas.reading.features import topic_features
from personas.reading.fluency import SURELY, Fluency, is_judged
from personas.reading.heads import ReaderHeads, load_heads
from personas.reading.index import index_of
from personas.reading.reader import heard_of
from personas.text.sentences import clauses, sentences
from reward_server.encoders.encoder import EncoderMatcher
from reward_server.fitting.reader.corruptions import Corruptor
from reward_server.reader.build import packaged_fluency
from reward_server.reader.encoder import artefact_bytes, load_reader_encoder
from reward_server.server.engine import load_scenarios
from scenarios.library import Library

DIFFERS = 0.2
"""A clause is this much likelier about a topic than its sentence."""
HALF_SURE = 0.95
WHERE_IT_PAYS, ELSEWHERE = 0.983, 0.992
"""Bars that together take no more whole sentences for broken than one of .99."""
ALLOWED = 0.006
Column = NDArray[np.float64]
Choice = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Measured:
    """What the models say of sentences."""

    broken: Choice
    """Whether each was made from whole ones."""
    fluency: Column
    """The probability that it is broken."""
    topic: Column
    """Of the topic that it is most likely about."""
    differs: Column
    """How much likelier a clause is about that topic than the whole sentence."""
    all_known: NDArray[np.float64]
    first_half: Choice
    """Whether its scenario is in the first half."""

    @property
    def pays(self) -> Choice:
        """Those that are heard as a question about something."""
        return self.topic >= ASKED


def said(library: Library) -> Iterator[tuple[str, list[str], list[str]]]:
    """By scenario its whole sentences, and broken ones made of them."""
    kept = aside(library)
    corruptor = Corruptor(kept, random.Random(1))
    for name, whole in kept.items():
        made = (corruptor.broken(name, each) for each in whole)
        broken = [each.text for each in made if each and is_judged(each.text) and len(sentences(each.text)) == 1]
        yield name, whole, broken


def measured(library: Library, heads: ReaderHeads, embedder: EncoderMatcher, fluency: Fluency) -> Measured:
    """Read them all."""
    rows: list[list[float]] = []
    for name, whole, broken in said(library):
        index = index_of(library.vault.open(*name.split("/")).case, embedder)
        half = hashlib.sha256(name.encode()).digest()[0] % 2
        texts = [*whole, *broken]
        wanted = list(dict.fromkeys([*texts, *(part for each in texts for part in clauses(each))]))
        vectors = dict(zip(wanted, embedder.embed(wanted), strict=True))
        acts = heads.acts_of(np.stack([vectors[each] for each in texts]))
        for place, (text, does, p) in enumerate(zip(texts, acts, fluency.probabilities(texts), strict=True)):
            heard = heard_of("", text, vectors, does)
            topics = heads.topics_of(topic_features(index, heard)).reshape(len(heard), -1)
            best = int(topics.max(axis=0).argmax())
            likely, alone = float(topics[:, best].max()), float(topics[0, best])
            rows.append([place >= len(whole), half, p, likely, likely - alone, len(text.split()), *does.tolist()])
    table = np.array(rows)
    return Measured(table[:, 0] > 0, table[:, 2], table[:, 3], table[:, 4], table[:, 2:], table[:, 1] > 0)


def learned(given: Measured) -> Choice:
    """What a classifier takes for broken: fitted on one half of the scenarios, and used on the other."""
    scores = np.zeros(len(given.broken))
    found = np.zeros(len(given.broken), dtype=np.bool_)
    logits = np.log(given.fluency.clip(1e-6) / (1 - given.fluency).clip(1e-6))
    known = np.column_stack([logits, given.all_known[:, 1:]])
    for half in (given.first_half, ~given.first_half):
        fitted = make_pipeline(StandardScaler(), LogisticRegression(C=0.3, max_iter=3_000))
        fitted.fit(known[half & given.pays], given.broken[half & given.pays])
        scores[~half] = fitted.decision_function(known[~half])
    for half in (given.first_half, ~given.first_half):
        bar = np.quantile(scores[half & given.pays & ~given.broken], 1 - ALLOWED)
        found[~half] = scores[~half] > bar
    return found & given.pays


def rules(given: Measured) -> Sequence[tuple[str, Choice]]:
    """What each rule takes for broken."""
    surely = given.fluency >= SURELY
    apart = (given.fluency >= HALF_SURE) & (given.differs >= DIFFERS)
    return (
        (f"fluency {SURELY}, as it is", surely),
        (f"or {HALF_SURE} and a clause differs by {DIFFERS}", surely | (given.pays & apart)),
        ("a clause differs, whatever the fluency", surely | (given.pays & (given.differs >= DIFFERS))),
        (
            f"{WHERE_IT_PAYS} where it pays, {ELSEWHERE} elsewhere",
            np.where(given.pays, given.fluency >= WHERE_IT_PAYS, given.fluency >= ELSEWHERE),
        ),
        ("a classifier of all that is known, where it pays", learned(given)),
    )


def table_of(given: Measured) -> Table:
    """False alarms, and broken sentences that would have paid, by rule."""
    head = ["rule", "whole taken for broken", "of those that pay", "broken that pay: found"]
    counts = f"{(~given.broken).sum()} whole sentences, {(given.broken & given.pays).sum()} broken ones that pay"
    table = Table(counts, head)
    for name, found in rules(given):
        whole, paying = found[~given.broken].mean(), found[~given.broken & given.pays].mean()
        table.add(name, f"{whole:.2%}", f"{paying:.2%}", f"{found[given.broken & given.pays].mean():.0%}")
    return table


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="also write benchmarks/results/damaged_questions.md")
    given = options.parse_args()
    raw = artefact_bytes()
    embedder = EncoderMatcher(load_reader_encoder(raw))
    text = table_of(measured(load_scenarios(None), load_heads(raw), embedder, packaged_fluency())).text()
    print(text)
    if given.write:
        write("damaged_questions", f"{environment()}\n\n{text}")


if __name__ == "__main__":
    main()
