"""What a job is shown as while it waits for the next day, and after."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reward_server.jobs.service import document
from reward_server.store.job_records import JobRow, JobStatus

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def resting(until: datetime) -> JobRow:
    return JobRow(
        job_id="job_a",
        lab_id="acme",
        key_id="key_a",
        type="evaluate",
        status=JobStatus.QUEUED,
        file_id="file_a",
        params={},
        collections=None,
        full_scores=False,
        scopes=("score",),
        total=10,
        done=2,
        created_at=NOON,
        started_at=NOON,
        rests_until=until,
        rests_for="compute_exhausted",
    )


def test_a_job_that_waits_says_until_which_midnight() -> None:
    shown = document(resting(NOON + timedelta(minutes=5)), NOON)
    assert (shown["waits_for"], shown["waits_until"]) == ("compute_exhausted", "2026-01-02T00:00:00.000Z")
    assert "eta_s" not in shown


def test_after_midnight_a_job_that_nobody_has_looked_at_yet_waits_for_nothing() -> None:
    shown = document(resting(NOON + timedelta(minutes=5)), NOON + timedelta(hours=12, seconds=1))
    assert (shown["status"], "waits_for" in shown, "waits_until" in shown) == ("queued", False, False)
    assert "eta_s" not in shown  # how long it takes from its start says nothing: most of that was the wait
