"""The scoring version changes with whatever a reward depends on, and with nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from personas.case.library import load_temperaments
from personas.case.temperament import Temperament
from reward_server.judges.panel import Panel
from reward_server.judges.rule import RuleJudge
from reward_server.judges.state import StateJudge
from reward_server.scoring.version import guests_digest, rubric_version, scoring_version
from reward_server.transcripts import revisions
from scenarios.library import Library
from tests.scoring.builders import WordMatcher, WordReader, a_library, a_panel


class OtherReader(WordReader):
    """Names itself differently."""

    version = "words/2"


class OtherMatcher(WordMatcher):
    """Names itself differently."""

    version = "words/2"


def named(
    library: Library | None = None,
    matcher: WordMatcher | None = None,
    panel: Panel | None = None,
    reader: WordReader | None = None,
    temperaments: Mapping[str, Temperament] | None = None,
    guests: Mapping[str, str] | None = None,
) -> str:
    return scoring_version(
        library or a_library(),
        reader or WordReader(),
        matcher or WordMatcher(),
        panel or a_panel(),
        temperaments or load_temperaments(),
        conversation_judges=guests,
    )


def test_it_is_short_and_stable() -> None:
    assert named() == named()
    assert named().startswith("sv_")
    assert len(named()) == 15


def test_it_follows_each_part() -> None:
    fewer = {slug: each for slug, each in load_temperaments().items() if slug != "guarded"}
    others = [
        named(library=dataclasses.replace(a_library(), digest="1" * 64)),
        named(matcher=OtherMatcher()),
        named(panel=Panel([StateJudge(), RuleJudge()])),
        named(temperaments=fewer),
        named(reader=OtherReader()),
    ]
    assert len({named(), *others}) == 6


def test_judges_of_whole_conversations_are_a_part_of_their_own() -> None:
    models = [{"reward_model": "rm_a"}, {"reward_model": "rm_b"}, {"reward_model": "rm_a", "politeness": "1"}]
    versions = [named(guests=guests) for guests in models]
    assert len({named(), *versions}) == 4
    assert {rubric_version(each) for each in (named(), *versions)} == {named()}
    assert [each.removeprefix(f"{named()}_") for each in versions] == [guests_digest(guests) for guests in models]
    assert rubric_version(named(matcher=OtherMatcher(), guests=models[0])) != named()


def test_it_follows_revisions_and_no_program_text() -> None:
    raised = {**revisions.REVISIONS, "scoring.gates": revisions.REVISIONS["scoring.gates"] + 1}
    before = revisions.digest_of(revisions.REVISIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revisions, "REVISIONS", raised)
        assert revisions.digest_of(raised) != before
    assert revisions.digest_of(revisions.REVISIONS) == before == revisions.engine_digest()
    assert set(revisions.ASKING) < set(revisions.REVISIONS)
