"""Reading many turns in one go, with the packaged reader: each comes out as it does alone."""

from __future__ import annotations

import pytest

from reward_server.fitting.reader.dataset import after_opening, packaged_turns
from reward_server.reader.build import local_reader
from scenarios.library import load_library
from scenarios.lint import COLLECTIONS

pytestmark = pytest.mark.slow

NAMES = ("clinical-intake/tired-and-dizzy", "negotiation/used-van")
TURNS_EACH = 16


def test_turns_read_together_are_read_as_they_are_alone() -> None:
    library = load_library(only=list(NAMES))
    rows = after_opening(library, packaged_turns(COLLECTIONS, library))
    together, alone = local_reader(), local_reader()
    for name in NAMES:
        key = tuple(name.split("/"))
        case = library.vault.open(*key).case
        own = [row for row in rows if row.key == key]
        turns = [(row.turn.line, row.turn.turn) for row in own[:: len(own) // TURNS_EACH]]
        assert together.read(case, turns) == [alone.read(case, [turn])[0] for turn in turns]
