"""What a server encodes while nobody asks: every case that a seed may draw, the scenarios' own files first."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from personas.case.compiled import CompiledCase
from reward_server.server.chores import warm
from scenarios.library import load_library

SCENARIO = ("negotiation", "used-van")


class Encoded:
    """A reader and matcher that note what they were given."""

    def __init__(self) -> None:
        self.cases: list[CompiledCase] = []
        self.backgrounds: list[CompiledCase] = []
        self.texts: list[Sequence[str]] = []

    def prepare(self, given: Any) -> None:
        if isinstance(given, CompiledCase):
            self.cases.append(given)
        else:
            self.texts.append(given)

    def prepare_background(self, case: CompiledCase) -> None:
        self.backgrounds.append(case)


async def test_variants_are_encoded_too_and_last() -> None:
    library, encoded = load_library(only=["/".join(SCENARIO)]), Encoded()
    await warm(library, cast(Any, encoded), cast(Any, encoded), cast(Any, SimpleNamespace(is_busy=False)))
    cases = [scenario.case for scenario in library.vault.variants(*SCENARIO)]
    assert len(cases) > 1
    assert encoded.cases == cases
    assert encoded.backgrounds == cases
    assert {tuple(case.wordings) for case in cases} <= {tuple(texts) for texts in encoded.texts}
