"""Hashes of conversations a model was trained on: enough to notice them again, too little to read them.

One line for each conversation of the training and validation parts, sorted, in a file of the artefact: SHA-256 over
who said what, without labels, scenario, letter case and the width of gaps, so that a row is known again when it comes
with other labels, in a part of its file, or in another form. Whoever has a conversation can find out whether it is
among them; nobody can read them.
"""

from __future__ import annotations

from collections.abc import Iterable

from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import Dataset, Labelled, PreferredPair

ROWS = "rows-2.sha256"
"""Has the version of the hash in it: of a model with hashes of another one (`rows.sha256`: parts of a conversation were
joined by characters that texts may hold) it is not known what it was trained on, which is said."""


def pack_rows(parts: Iterable[Dataset]) -> dict[str, bytes]:
    """The file of the artefact."""
    found = sorted({_hash(conversation) for part in parts for conversation in part.conversations()})
    return {ROWS: "".join(f"{each}\n" for each in found).encode()}


def trained_rows(artefact: Artefact, dataset: Dataset) -> int | None:
    """The number of rows with a conversation that the model was trained on; None for a model without such hashes."""
    content = artefact.extras.get(ROWS)
    if content is None:
        return None
    known = frozenset(content.decode("ascii", "replace").split())
    return sum(any(_hash(each) in known for each in _conversations(row)) for row in dataset.rows())


def _conversations(row: Labelled | PreferredPair) -> tuple[Conversation, ...]:
    return (row.conversation,) if isinstance(row, Labelled) else (row.chosen, row.rejected)


def _hash(conversation: Conversation) -> str:
    said = (ConversationMessage(each.party, " ".join(each.text.split()).casefold()) for each in conversation.turns)
    return Conversation(tuple(said)).digest
