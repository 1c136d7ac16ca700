"""Pages of jobs of every type, from the start to the results; forms of jobs and keys, also refused. In process."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest

from personas.reading.matcher import Matcher
from reward_server.auth.scopes import EVERY, Scope
from reward_server.fitting.agreement.read import ConversationSide, LabelledEntry
from reward_server.fitting.agreement.run import of_scores
from reward_server.ids import IdPrefix, new_id
from reward_server.jobs.kinds import succeeded
from reward_server.store.job_claims import ItemLease
from reward_server.store.job_records import TRAIN_POLICY, JobRow, JobStatus
from scenarios.library import Library
from tests.console.test_admission import entered, visiting
from tests.contract.conftest import data, empty_database, house, library, matcher
from tests.contract.house import House, Json, running_house
from trainer_client.wire.jobs import JobType

__all__ = ["data", "empty_database", "house", "library", "matcher"]

SIDE = {"reward": 0.5, "scoring_version": "sv_000000000000"}
WHERE = {"collection_slug": "bike-shop", "scenario_slug": "flat-tyre"}
RESULTS: dict[str, Json] = {
    "evaluate": {"id": "a", "reward": 0.5},
    "evaluate_agent": {"id": "a", "reward": 0.5, **WHERE},
    "compare": {"id": "a", "winner": "a", "margin": 0.2},
    "rescore": {"episode_id": "ep_1", **WHERE, "before": SIDE, "after": SIDE, "delta": 0.0},
    "train_reward_model": {"reward_model_id": "rm_000000000000"},
    "calibrate": {"calibration_id": "cal_000000000000"},
    "measure_agreement": {"agreement": {"judges": ["rubric"], "entries": 3, "dialogues": 3}},
    "check_scenarios": {"collection": "repairs", "version": 1, "passed": False, "findings": 3},
    TRAIN_POLICY: {},
}


async def queued(house: House, kind: str) -> str:
    """A job of one item that nobody works on."""
    row = JobRow(
        job_id=new_id(IdPrefix.JOB),
        lab_id="development",
        key_id="development",
        type=kind,
        status=JobStatus.QUEUED,
        file_id=new_id(IdPrefix.FILE),
        params={},
        collections=None,
        full_scores=True,
        scopes=tuple(EVERY),
        total=1,
        created_at=house.clock.now(),
    )
    async with house.store.transaction() as unit:
        await unit.jobs.add(row)
    return row.job_id


async def finish(house: House, kind: str, result: Json | None = None) -> None:
    """Do the item of the job of that type, as its worker would."""
    now = house.clock.now()
    async with house.store.transaction() as unit:
        claim = (await unit.job_items.claim(ItemLease("token", now + timedelta(hours=1), 1), [kind], now)).claim
        assert claim is not None
        await unit.job_items.record(claim, [succeeded(0, result or RESULTS[kind])], now)


@pytest.fixture
async def idle(data: Path, matcher: Matcher, library: Library) -> AsyncIterator[House]:
    """A house whose jobs wait until a test does them."""
    async with running_house(data, matcher, library, job_workers=0) as running:
        yield running


@pytest.mark.parametrize("kind", [*get_args(JobType), TRAIN_POLICY])
async def test_a_job_of_every_type_has_a_page_and_a_report(idle: House, kind: str) -> None:
    job_id = await queued(idle, kind)
    async with visiting(idle) as browser, idle.client() as labs:
        assert (await labs.ok("GET", f"/jobs/{job_id}/report"))["items"] == 0
        assert "Nothing is finished yet." in (await browser.get(f"/jobs/{job_id}")).text
        await finish(idle, kind)
        assert (await labs.ok("GET", f"/jobs/{job_id}/report"))["items"] == 1
        page = await browser.get(f"/jobs/{job_id}")
        assert page.status_code == 200
        assert "completed" in page.text
        assert page.text.count("<tr data-item>") == 1


async def test_a_page_that_waits_for_a_job_loads_again_when_it_is_over(idle: House) -> None:
    job_id = await queued(idle, "evaluate")
    part = {"HX-Request": "true"}
    async with visiting(idle) as browser:
        waiting = await browser.get(f"/jobs/{job_id}", **part)
        assert "queued" in waiting.text
        assert "hx-refresh" not in waiting.headers
        await finish(idle, "evaluate")
        assert (await browser.get(f"/jobs/{job_id}", **part)).headers["hx-refresh"] == "true"
        assert "hx-trigger" not in (await browser.get(f"/jobs/{job_id}")).text


async def test_a_check_of_scenarios_reports_how_it_went(idle: House) -> None:
    job_id = await queued(idle, "check_scenarios")
    await finish(idle, "check_scenarios")
    async with idle.client() as labs:
        report = await labs.ok("GET", f"/jobs/{job_id}/report")
    assert (report["passed"], report["findings"]) == (False, 3)


async def test_a_measurement_of_judges_shows_its_figures(idle: House) -> None:
    sides = [ConversationSide(scores={"<b>mine": k / 10, "theirs": k % 3 / 3}) for k in range(10)]
    measured = of_scores([LabelledEntry((side,), f"row {k}", float(k > 4)) for k, side in enumerate(sides)])
    job_id = await queued(idle, "measure_agreement")
    await finish(idle, "measure_agreement", {"agreement": measured | {"notes": ["<i>Some</i> were left out."]}})
    async with visiting(idle) as browser:
        page = (await browser.get(f"/jobs/{job_id}")).text
    figures = [measured["labels"]["<b>mine"][name] for name in ("spearman", "kappa")]
    cells = [f"{each['value']:.3f} [{each['low']:.3f}, {each['high']:.3f}]" for each in figures]
    row = re.findall(r"<td[^>]*>([^<]*)</td>", page.partition('<th scope="row">&lt;b&gt;mine</th>')[2])[:2]
    assert row == cells
    assert re.findall(r"<h2>([^<]*)</h2>", page.partition("<main")[2]) == [
        "With human labels",
        "With each other",
        "Results",
    ]
    assert "<b>10</b><span>dialogues</span>" in page
    assert "&lt;i&gt;Some&lt;/i&gt; were left out." in page


MENU = 'aria-label="Console"'


async def test_a_refused_job_is_the_form_again_with_what_was_entered(house: House) -> None:
    async with visiting(house) as browser:
        refused = await browser.post("/jobs", type="compare", items='{"id": "<b>"}\nnot json')
        assert refused.status_code == 400
        assert MENU in refused.text
        assert "line 2" in refused.text
        assert "{&#34;id&#34;: &#34;&lt;b&gt;&#34;}\nnot json</textarea>" in refused.text
        assert "<option selected>compare</option>" in refused.text


async def test_a_refused_key_is_the_form_again_with_what_was_entered(house: House) -> None:
    fields = {"lab_id": "acme", "name": "<i>", "plan": "custom", "rate_per_minute": "often", "scopes": "score"}
    async with visiting(house) as browser:
        refused = await browser.post("/keys", **fields)
        assert refused.status_code == 400
        assert MENU in refused.text
        assert "Must be a whole number." in refused.text
        assert 'value="&lt;i&gt;"' in refused.text
        assert "<option selected>custom</option>" in refused.text
        assert re.findall(r'name="scopes" value="(\w+)" checked', refused.text) == ["score"]
        made = await browser.post("/keys", **fields | {"rate_per_minute": "9"})
        assert made.status_code == 200
        assert 'id="made"' in made.text
        assert 'value="acme"' not in made.text
        assert "runs in development mode" not in made.text  # with this key it does so no longer


async def test_what_is_not_there_keeps_the_menu_and_leads_back(house: House) -> None:
    async with visiting(house) as browser:
        missing = await browser.get(f"/jobs/{new_id(IdPrefix.JOB)}")
        assert missing.status_code == 404
        assert MENU in missing.text
        assert '<a class="button" href="/console/jobs">Back: Jobs</a>' in missing.text
        part = await browser.get(f"/jobs/{new_id(IdPrefix.JOB)}", **{"HX-Request": "true"})
        assert MENU not in part.text


async def test_who_has_no_access_gets_no_menu(house: House) -> None:
    async with entered(house, scopes={Scope.SCORE}) as browser:
        refused = await browser.get("/episodes")
        assert refused.status_code == 403
        assert MENU not in refused.text
