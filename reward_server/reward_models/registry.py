"""The reward models that a server has, and which of them serves.

A folder with one sub-folder for each model, named after its id, and beside them `active.json`. Activating is
replacing that one small file, so a reader sees the model before or the one after, never something between.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reward_server.errors import RewardModelNotFound, UnusableModel
from reward_server.ownership import labs_in, of_lab
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import Artefact, Card
from scenarios.spelling import OF_IDS, meant

ACTIVE = "active.json"
_ID = re.compile(r"rm_[0-9a-f]{12}")

Stamp = tuple[int, int, int] | None
"""Changes with `active.json`: time, size and inode; None while there is none."""


@dataclass(frozen=True)
class Registry:
    """One folder of models."""

    folder: Path

    def of(self, lab_id: str) -> Registry | None:
        """The lab's own models, which lie beside those that all share; None for what is no lab."""
        folder = of_lab(self.folder, lab_id)
        return None if folder is None else Registry(folder)

    def of_labs(self) -> dict[str, Registry]:
        """The labs that have models of their own, with these."""
        found = {lab_id: Registry(folder) for lab_id, folder in labs_in(self.folder).items()}
        return {lab_id: own for lab_id, own in found.items() if own.cards() or own.stamp() is not None}

    def has(self, model_id: str) -> bool:
        """True if there is a folder for this model here."""
        return _ID.fullmatch(model_id) is not None and (self.folder / model_id).is_dir()

    def cards(self) -> list[Card]:
        """The cards of all models, newest first; a folder that holds none is passed over."""
        found: list[Card] = []
        for path in sorted(self.folder.glob("rm_*")):
            with suppress(UnusableModel):
                card = artefact.read_card(path)
                if card.id == path.name:
                    found.append(card)
        return sorted(found, key=lambda card: (card.created, card.id), reverse=True)

    def open(self, model_id: str) -> Artefact:
        """A model, verified; `RewardModelNotFound`, or `UnusableModel` where its files are damaged."""
        if not self.has(model_id):
            known = (card.id for card in self.cards())
            named = f"reward model {model_id}" if _ID.fullmatch(model_id) else "such reward model"
            told = f"There is no {named}; ./labs reward-model list shows all models."
            raise RewardModelNotFound(told + meant(model_id, known, OF_IDS))
        return artefact.read(self.folder / model_id)

    def add(self, found: Artefact) -> Artefact:
        """Take a model in; one that is there already stays as it is."""
        place = self.folder / found.id
        if not place.exists():
            artefact.copy(found, place)
        return artefact.read(place)

    def active_id(self) -> str | None:
        """The id of the model that serves, or None.

        Raises:
            UnusableModel: the file that says so cannot be read.
        """
        try:
            recorded = json.loads((self.folder / ACTIVE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise UnusableModel(f"{self.folder / ACTIVE} cannot be read: activate a model again") from None
        model_id = recorded.get("id") if isinstance(recorded, dict) else None
        if not isinstance(model_id, str) or not _ID.fullmatch(model_id):
            raise UnusableModel(f"{self.folder / ACTIVE} names no model: activate a model again")
        return model_id

    def activate(self, model_id: str) -> Artefact:
        """Let a model serve from now on; it is verified first."""
        found = self.open(model_id)
        draft = self.folder / f".{ACTIVE}-{secrets.token_hex(6)}"
        try:
            draft.write_text(json.dumps({"id": model_id}) + "\n", encoding="utf-8")
            os.replace(draft, self.folder / ACTIVE)
        finally:
            draft.unlink(missing_ok=True)
        return found

    def deactivate(self) -> None:
        """Deactivate the active model."""
        (self.folder / ACTIVE).unlink(missing_ok=True)

    def remove(self, model_id: str) -> Card:
        """Delete a model, at once or not at all; `RewardModelNotFound`. What it was."""
        if not self.has(model_id):
            raise RewardModelNotFound
        place = self.folder / model_id
        card = artefact.read_card(place)
        away = self.folder / f".{model_id}-{secrets.token_hex(6)}"
        os.replace(place, away)
        shutil.rmtree(away, ignore_errors=True)
        return card

    @cached_property
    def _active(self) -> str:
        """As text: it is looked at with every request, and a `Path` costs five times as much."""
        return str(self.folder / ACTIVE)

    def stamp(self) -> Stamp:
        """The stamp that changes when another model serves; costs one `stat`."""
        try:
            status = os.stat(self._active)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
