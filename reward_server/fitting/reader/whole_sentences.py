"""Whole sentences for the fluency model: those of the packaged turns, labels and backgrounds, and of text files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from personas.reading.acts import Act
from personas.text.sentences import sentences
from reward_server.fitting.reader.dataset import ActRow, ReaderRow
from scenarios.library import Library

LEAST_WORDS, MOST_WORDS = 2, 45
_NO_SPEECH = {Act.UNREADABLE, Act.META}
LABELLED = "labelled sentences"

Sources = dict[str, list[str]]
"""Sentences by where they come from."""


def packaged_sentences(library: Library, rows: Iterable[ReaderRow], acts: Iterable[ActRow]) -> Sources:
    """Those of the turns that are not kept aside and of the backgrounds, by scenario, and the labelled ones."""
    rows = list(rows)
    aside = {sentence for row in rows if row.turn.kept_aside for sentence in sentences(row.turn.turn)}
    texts: dict[str, list[str]] = {LABELLED: [row.text for row in acts if _NO_SPEECH.isdisjoint(map(Act, row.acts))]}
    for row in rows:
        texts.setdefault("/".join(row.key), []).append(row.turn.turn)
    for key in dict.fromkeys(row.key for row in rows):
        for entry in library.vault.open(*key).case.own_background:
            texts["/".join(key)] += [*entry.examples, *entry.says]
    return {
        name: [sentence for sentence in _whole(sources) if sentence not in aside] for name, sources in texts.items()
    }


def sentences_of_file(path: Path) -> list[str]:
    """The sentences of a text file."""
    return _whole(path.read_text(encoding="utf-8").splitlines())


def _whole(texts: Iterable[str]) -> list[str]:
    """The distinct sentences that are neither a word nor a page."""
    whole = dict.fromkeys(sentence for text in texts for sentence in sentences(text))
    return [sentence for sentence in whole if LEAST_WORDS <= len(sentence.split()) <= MOST_WORDS]
