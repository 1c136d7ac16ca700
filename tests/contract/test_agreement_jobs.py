"""Jobs that measure judges: the figures of `labs judges agree`, for what the key may see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from personas.reading.matcher import Matcher
from reward_server.fitting.agreement.read import ConversationSide, LabelledEntry
from reward_server.fitting.agreement.run import of_scores
from reward_server.fitting.process.measure_agreement import asking_nobody
from reward_server.settings import Settings
from scenarios.library import Library
from tests.contract.house import COLLECTIONS, OTHER, WHERE, Client, House, Json, assert_error, running_house
from tests.contract.test_jobs import over, results

MEASURE = "measure_agreement"
ASKS = ["How did it happen?", "When do you need it back?", "You should buy a new bike."]
WAIT_S = 300.0


@pytest.fixture
async def served(data: Path, matcher: Matcher, library: Library) -> AsyncIterator[House]:
    async with running_house(data, matcher, library, scenarios=COLLECTIONS) as running:
        yield running


def talks() -> list[Json]:
    """Labelled conversations of three kinds."""
    return [
        {
            **WHERE,
            "messages": [
                {"role": "user", "content": "Hello, my bike has a flat tyre."},
                {"role": "assistant", "content": f"Good morning. {ASKS[k % 3]} I am number {k}."},
                {"role": "user", "content": "I rode over broken glass behind the station."},
            ],
            "label": [3, 5, 1][k % 3],
        }
        for k in range(9)
    ]


async def measured(labs: Client, rows: list[Json], **options: object) -> Json:
    """The one result of such a job."""
    job = await over(labs, await labs.ok("POST", "/jobs", {"type": MEASURE, "items": rows, **options}), WAIT_S)
    [result] = await results(labs, job)
    return {**result, "job": job}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_judges_are_measured_as_they_are_served(served: House) -> None:
    rows = talks()
    async with served.client(await served.key("acme", full_scores=True)) as labs:
        served.end_development_mode()
        options = {"judges": ["rubric", "state"], "scale": [1, 5], "attacked": 2}
        result = await measured(labs, rows, agreement=options)
        assert result["status"] == "success", result
        rewards = [await labs.ok("POST", "/evaluate", {**WHERE, "messages": row["messages"]}) for row in rows]
        report = await labs.ok("GET", f"/jobs/{result['job']['job_id']}/report")
    found = result["agreement"]
    assert (found["judges"], found["entries"]) == (["rubric", "state"], 9)
    assert found["scoring_version"] == rewards[0]["scoring_version"]
    assert "notes" not in found
    sides = [ConversationSide(scores={"rubric": each["reward"]}) for each in rewards]
    entries = [
        LabelledEntry((side,), f"row {number}", (row["label"] - 1) / 4)
        for number, (side, row) in enumerate(zip(sides, rows, strict=True), 1)
    ]
    assert found["labels"]["rubric"] == of_scores(entries)["labels"]["rubric"]
    assert found["injection"]["rubric"]["order"]["n"] == 2
    assert result["report"].startswith("# Agreement of 2 judges")
    assert report["agreement"] == found
    kept = served.settings.learning / "labs" / "acme" / result["job"]["job_id"]
    async with asyncio.timeout(30.0):  # the rows go when the result is stored
        while kept.exists():  # noqa: ASYNC110 (a folder tells nobody that it is gone)
            await asyncio.sleep(0.05)


@pytest.mark.slow
async def test_scores_that_were_made_before_need_no_judge(house: House) -> None:
    rows = [{"scores": {"mine": k / 10, "theirs": k % 3 / 3}, "label": int(k > 4)} for k in range(10)]
    async with house.client(await house.key("acme")) as labs:
        house.end_development_mode()
        result = await measured(labs, rows)
        assert result["agreement"]["labels"]["mine"]["spearman"]["value"] > 0.8
        refused = await measured(labs, [{**row, "label": 7} for row in rows])
        assert (refused["status"], refused["code"]) == ("error", "invalid_request")
        assert "row 1: the label 7 is outside 0 to 1" in refused["message"]
        assert refused["job"]["error"] == refused["message"]


@pytest.mark.slow
async def test_a_key_measures_on_its_own_collections_alone(served: House) -> None:
    key = await served.key("acme", collections=[OTHER["collection_slug"]])
    served.end_development_mode()
    async with served.client(key) as labs:
        result = await measured(labs, talks(), agreement={"scale": [1, 5]})
    assert (result["code"], result["message"]) == (
        "invalid_request",
        "conversation 1: this key has no collection bike-shop.",
    )


async def test_other_judges_than_the_rubric_need_full_scores(house: House) -> None:
    async with house.client(await house.key("acme")) as labs:
        house.end_development_mode()
        body = {"type": MEASURE, "items": talks(), "agreement": {"judges": ["rubric", "state"]}}
        assert_error(await labs.call("POST", "/jobs", body), 403, "forbidden")
        wrong = {"type": "evaluate", "items": talks(), "agreement": {}}
        assert_error(await labs.call("POST", "/jobs", wrong), 400, "invalid_request")


def test_nobody_is_asked_who_costs_money() -> None:
    paid = Settings(
        llm_provider="openai", llm_model="m", classifier="http://127.0.0.1:9/classify", reader="local", judges="llm"
    )
    alone = asking_nobody(paid)
    assert (alone.llm_provider, alone.classifier, alone.encoder) == ("none", None, paid.encoder)
    assert asking_nobody(Settings()) == Settings()
