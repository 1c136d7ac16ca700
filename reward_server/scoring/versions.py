"""Scoring versions of this moment: of the library, and of scenarios that are only lent to it."""

from __future__ import annotations

from collections.abc import Mapping

from personas.case.temperament import Temperament
from personas.reading.matcher import Matcher
from personas.reading.reader import Reader
from reward_server.judges.panel import Panel
from reward_server.scoring.estimates import JudgeSnapshot, TakeSnapshot
from reward_server.scoring.version import scoring_version
from scenarios.library import Library, SealedScenario

LENT_VERSIONS = 4096


class ScoringVersions:
    """Hashes what rewards rest on, and remembers the hashes: one takes a while."""

    def __init__(
        self,
        library: Library,
        *,
        reader: Reader,
        matcher: Matcher,
        panel: Panel,
        temperaments: Mapping[str, Temperament],
        conversation_judges: TakeSnapshot,
    ) -> None:
        self._library = library
        self._reader = reader
        self._matcher = matcher
        self._panel = panel
        self._temperaments = temperaments
        self._take_snapshot = conversation_judges
        self._lent_versions: dict[tuple[str, str], str] = {}
        """Scoring versions of lent scenarios, by their digest and the version of all others."""
        self._versions_seen: tuple[Mapping[str, str] | None, str] = None, ""
        """Versions of the conversation judges last seen, and the scoring version they make."""

    def snapshot(self) -> JudgeSnapshot:
        """The conversation judges of this moment, and the version they make."""
        judges = self._take_snapshot()
        versions = {name: judge.version for name, judge in judges.items()}
        if versions != self._versions_seen[0]:
            self._versions_seen = versions, self._hashed(versions)
        return JudgeSnapshot(judges, self._versions_seen[1])

    def of(self, snapshot: JudgeSnapshot, scenario: SealedScenario) -> str:
        """That of a call, or one that speaks of a lent scenario instead of the library."""
        if not scenario.digest:
            return snapshot.scoring_version
        key = scenario.digest, snapshot.scoring_version
        known = self._lent_versions.get(key)
        if known is None:
            versions = {name: judge.version for name, judge in snapshot.judges.items()}
            known = self._hashed(versions, scenario.digest)
            if len(self._lent_versions) >= LENT_VERSIONS:
                self._lent_versions = {}
            self._lent_versions[key] = known
        return known

    def _hashed(self, versions: Mapping[str, str], given: str = "") -> str:
        return scoring_version(
            self._library,
            self._reader,
            self._matcher,
            self._panel,
            self._temperaments,
            conversation_judges=versions,
            given=given,
        )
