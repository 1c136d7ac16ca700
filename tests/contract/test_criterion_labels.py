"""GET and POST /criterion-labels: what can be labelled, what is kept, and the file that `labs calibrate` takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reward_server.fitting.calibration.read import read
from reward_server.fitting.calibration.run import calibrate, owner_of
from tests.contract.house import WHERE, Client, House, Json, assert_error
from tests.contract.test_evaluate import BAD, GOOD

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAID = "How did it happen?"


async def evaluated(labs: Client, messages: list[Json]) -> str:
    return str((await labs.ok("POST", "/evaluate", {**WHERE, "messages": messages}))["evaluation_id"])


async def criteria(labs: Client, conversation: str) -> Json:
    return await labs.ok("GET", f"/criterion-labels/criteria?conversation_id={conversation}")


async def test_what_can_be_labelled_is_told_without_what_it_asks(labs: Client) -> None:
    episode = await labs.create()
    answer = await labs.say(episode, SAID)
    found = await criteria(labs, episode["episode_id"])
    assert found["reward"] == answer["reward"]
    assert found["scoring_version"] == answer["scoring_version"]
    names = [each["criterion"] for each in found["data"]]
    assert len(set(names)) == len(names) > 3
    assert all(each["criterion"].removeprefix(f"{each['dimension']}.").isdigit() for each in found["data"])
    assert any(each["status"] == "met" and each["quotes"] for each in found["data"])
    same = await criteria(labs, await evaluated(labs, BAD))
    assert [each["criterion"] for each in same["data"]] == names


async def test_a_label_is_kept_beside_the_verdict(labs: Client, house: House) -> None:
    conversation = await evaluated(labs, GOOD)
    judged = (await criteria(labs, conversation))["data"][0]
    quote = GOOD[1]["content"][:12].upper()
    body = {
        "conversation_id": conversation,
        "criterion": judged["criterion"],
        "met": judged["status"] != "met",
        "quote": quote,
        "labeller": "rater-7",
        "note": "<b>as I see it</b>",
    }
    first = await labs.ok("POST", "/criterion-labels", body, headers={"Idempotency-Key": "k"})
    again = await labs.ok("POST", "/criterion-labels", body, headers={"Idempotency-Key": "k"})
    assert first["id"] == again["id"]
    assert (first["status"], first["worth"]) == (judged["status"], judged["worth"])
    house.clock.advance(timedelta(seconds=1))
    second = await labs.ok("POST", "/criterion-labels", {**body, "met": not body["met"]})
    other = await labs.ok(
        "POST", "/criterion-labels", {**body, "conversation_id": await evaluated(labs, BAD), "quote": None}
    )
    page = await labs.ok("GET", "/criterion-labels?limit=2")
    assert {each["id"] for each in page["data"]} == {second["id"], other["id"]}
    rest = await labs.ok("GET", f"/criterion-labels?limit=2&cursor={page['next_cursor']}")
    assert [each["id"] for each in rest["data"]] == [first["id"]]
    of_one = await labs.ok("GET", f"/criterion-labels?conversation_id={conversation}")
    assert {each["id"] for each in of_one["data"]} == {first["id"], second["id"]}


@pytest.mark.parametrize(
    ("change", "names"),
    [({"criterion": "D9_Other.1"}, "criterion"), ({"quote": "Nobody said this."}, "quote"), ({"quote": ""}, "quote")],
)
async def test_what_is_not_there_is_named(labs: Client, change: Json, names: str) -> None:
    conversation = await evaluated(labs, GOOD)
    known = [each["criterion"] for each in (await criteria(labs, conversation))["data"]]
    body = {"conversation_id": conversation, "criterion": known[0], "met": True, **change}
    error = assert_error(await labs.call("POST", "/criterion-labels", body), 400, "invalid_request")
    assert error["errors"][0]["loc"] == [names]
    if names == "criterion":
        assert known[0] in error["errors"][0]["msg"]
    assert (await labs.ok("GET", "/criterion-labels"))["data"] == []


async def test_only_keys_with_full_scores_label(house: House) -> None:
    full, plain = await house.key("acme", full_scores=True), await house.key("acme")
    async with house.client(full) as labs, house.client(plain) as other:
        conversation = await evaluated(labs, GOOD)
        name = (await criteria(labs, conversation))["data"][0]["criterion"]
        label = {"conversation_id": conversation, "criterion": name, "met": True}
        await labs.ok("POST", "/criterion-labels", label)
        for method, path, body in (
            ("GET", f"/criterion-labels/criteria?conversation_id={conversation}", None),
            ("GET", "/criterion-labels", None),
            ("GET", "/criterion-labels/export", None),
            ("POST", "/criterion-labels", label),
        ):
            assert_error(await other.call(method, path, body), 403, "forbidden")


async def test_a_key_for_other_collections_sees_no_labels(house: House) -> None:
    full = await house.key("acme", full_scores=True)
    bound = await house.key("acme", full_scores=True, collections=["front-desk"])
    async with house.client(full) as labs, house.client(bound) as other:
        conversation = await evaluated(labs, GOOD)
        name = (await criteria(labs, conversation))["data"][0]["criterion"]
        await labs.ok("POST", "/criterion-labels", {"conversation_id": conversation, "criterion": name, "met": True})
        assert (await labs.call("GET", "/criterion-labels/export")).text
        assert (await other.ok("GET", "/criterion-labels"))["data"] == []
        assert (await other.call("GET", "/criterion-labels/export")).text == ""


@pytest.mark.slow
async def test_the_export_has_the_newest_word_of_each_person_and_calibrates(
    labs: Client, house: House, tmp_path: Path
) -> None:
    for number in range(12):
        conversation = await evaluated(labs, GOOD if number % 2 else BAD)
        for each in (await criteria(labs, conversation))["data"]:
            # People agree with the judges, but in every sixth conversation.
            met = (each["status"] == "met") != (number % 6 == 5)
            body = {"conversation_id": conversation, "criterion": each["criterion"], "labeller": "rater-7"}
            await labs.ok("POST", "/criterion-labels", {**body, "met": not met})
            house.clock.advance(timedelta(seconds=1))
            await labs.ok("POST", "/criterion-labels", {**body, "met": met})
            last = {**each, "met": met}
    response = await labs.call("GET", "/criterion-labels/export")
    rows = [json.loads(line) for line in response.text.splitlines()]
    assert len(rows) == 12 * len((await criteria(labs, conversation))["data"])
    assert rows[0]["met"] == last["met"]
    assert rows[0]["label"] == int(last["met"] == (last["worth"] == "earns"))
    assert (await labs.call("GET", "/criterion-labels/export?scoring_version=sv_other")).text == ""
    file = tmp_path / "labels.jsonl"
    file.write_text(response.text * (200 // len(rows) + 1))  # a calibration takes 200 rows
    found = read(file)
    kept = calibrate(found, "isotonic", owner_of(found, None), NOW, tmp_path / "out")
    assert kept.calibration.belongs_to == rows[0]["scoring_version"]
    [curve] = kept.calibration.maps
    assert curve.ece_after is not None
