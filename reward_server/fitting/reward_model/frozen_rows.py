"""The rows of the store that a training began with, kept with its state: the store may have grown before it goes on.

The file holds conversations: nobody else may read it, and it goes with the state once the training is finished.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reward_server.fitting.reward_model.interrupted import checkpoint_folder
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import Dataset, Labelled, PreferredPair

ROWS = "rows.json"


def packed(dataset: Dataset, asked: str) -> bytes:
    """The rows as a file; `asked` names what was asked of the store."""
    return json.dumps({"asked": asked, **asdict(dataset)}).encode()


def frozen_rows(out: Path, asked: str) -> Dataset | None:
    """The rows of an interrupted training for this folder; None where none were kept, or others were asked for."""
    try:
        kept: dict[str, Any] = json.loads((checkpoint_folder(out) / ROWS).read_text())
        if kept["asked"] != asked:
            return None
        return Dataset(
            tuple(_labelled(row) for row in kept["labelled"]),
            tuple(_preferred(row) for row in kept["preferred"]),
            kept["grouped_by"],
            tuple(kept["notes"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _labelled(row: dict[str, Any]) -> Labelled:
    fixed = {"conversation": _conversation(row["conversation"]), "ratings": tuple(row["ratings"])}
    return Labelled(**{**row, **fixed})


def _preferred(row: dict[str, Any]) -> PreferredPair:
    return PreferredPair(**{**row, "chosen": _conversation(row["chosen"]), "rejected": _conversation(row["rejected"])})


def _conversation(stored: dict[str, Any]) -> Conversation:
    return Conversation(tuple(ConversationMessage(**turn) for turn in stored["turns"]), stored["scenario"])
