"""Which conversations a model was trained on, as hashes: enough to notice them again, too little to read them.

One line for each conversation of the training and validation parts, sorted, in a file of the artefact: SHA-256 over
who said what, without labels, scenario, letter case and the width of gaps, so that a row is known again when it comes
with other labels, in a part of its file, or in another form. Whoever has a conversation can find out whether it is
among them; nobody can read them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import Dataset, Labelled, Preferred

ROWS = "rows.sha256"


def pack_rows(parts: Iterable[Dataset]) -> dict[str, bytes]:
    """The file of the artefact."""
    found = sorted({_hash(conversation) for part in parts for conversation in part.conversations()})
    return {ROWS: "".join(f"{each}\n" for each in found).encode()}


def trained_rows(artefact: Artefact, dataset: Dataset) -> int | None:
    """How many rows hold a conversation that the model was trained on; None for a model that keeps no hashes."""
    content = artefact.extras.get(ROWS)
    if content is None:
        return None
    known = frozenset(content.decode("ascii", "replace").split())
    return sum(any(_hash(each) in known for each in _conversations(row)) for row in dataset.rows())


def _conversations(row: Labelled | Preferred) -> tuple[Conversation, ...]:
    return (row.conversation,) if isinstance(row, Labelled) else (row.chosen, row.rejected)


def _hash(conversation: Conversation) -> str:
    said = (f"{each.party}\1{' '.join(each.text.split()).casefold()}" for each in conversation.turns)
    return hashlib.sha256("\0".join(said).encode("utf-8", "replace")).hexdigest()
