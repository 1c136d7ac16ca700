"""A file of conversations is scored once each, whatever interrupts the run and whatever its rows hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reward_server.errors import InvalidRequest, JudgeFailed
from reward_server.offline import workers
from reward_server.offline.report import summarise, write_report
from reward_server.offline.results import RESULTS, ResultsFile
from reward_server.offline.rows import InputRow, read_rows
from reward_server.offline.run import ScoringTask
from reward_server.offline.scoring import score_rows
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.scorer import Scorer
from reward_server.server.engine import OfflineEngine
from scenarios.library import Library
from tests.jobs.conftest import COLLECTION, SCENARIO, Here
from trainer_client.wire import Message

Rows = Callable[..., Path]
TASK = ScoringTask(COLLECTION, SCENARIO)

GOOD_TALK = [
    {"role": "user", "content": "Hi, my bike makes a dreadful noise and I need it looked at."},
    {"role": "assistant", "content": "When exactly do you hear the noise?"},
    {"role": "user", "content": "It only happens when I squeeze the front brake."},
    {"role": "assistant", "content": "How old are the brake pads?"},
    {"role": "user", "content": "I have never changed the brake pads in four years."},
]
POOR_TALK = [{"role": "user", "content": "Hi, my bike."}, {"role": "assistant", "content": "Goodbye."}]


async def scored(
    scorer: Scorer, out: Path, path: Path, task: ScoringTask = TASK, resume: bool = False
) -> list[dict[str, Any]]:
    with ResultsFile(out, scorer.scoring_version, resume) as results:
        await asyncio.to_thread(score_rows, results, read_rows(path), Here(scorer, task))
        return list(results.read())


async def test_results_are_what_the_scorer_says(engine: OfflineEngine, rows: Rows, tmp_path: Path) -> None:
    path = rows({"id": "a", "messages": GOOD_TALK}, {"id": "b", "messages": POOR_TALK})
    first, second = await scored(engine.scorer, tmp_path / "out", path)
    messages = [Message.model_validate(message) for message in GOOD_TALK]
    transcript = engine.scorer.read(COLLECTION, SCENARIO, messages, "assistant")
    (alone,) = await engine.scorer.score([ScoreRequest(COLLECTION, SCENARIO, transcript)])
    assert isinstance(alone, Scored)
    assert (first["id"], first["status"], first["reward"]) == ("a", "success", alone.reward)
    assert first["scores"] == dict(alone.scores)
    assert first["reward"] > second["reward"]


async def test_bad_rows_are_counted_and_never_fatal(engine: OfflineEngine, rows: Rows, tmp_path: Path) -> None:
    path = rows(
        {"messages": GOOD_TALK},
        "{broken",
        {"messages": "x"},
        [1],
        {"messages": [{"role": "assistant", "content": "x" * 10_001}]},
        {"messages": [{"role": "assistant", "content": "a\x00b"}]},
        '{"messages": [{"role": "assistant", "content": "\\ud800"}]}',
        {"messages": [{"role": "user", "content": "Hello."}]},
        {"messages": POOR_TALK, "collection_slug": "absent", "scenario_slug": "absent"},
        {"messages": POOR_TALK},
    )
    found = await scored(engine.scorer, tmp_path / "out", path)
    codes = [result.get("code", "scored") for result in found]
    bad = ["bad_row"] * 3 + ["invalid_request"] * 3 + ["bad_row", "collection_not_found"]
    assert codes == ["scored", *bad, "scored"]
    assert all("reward" not in result for result in found if result["status"] == "error")


async def test_rows_may_name_their_own_scenario(engine: OfflineEngine, rows: Rows, tmp_path: Path) -> None:
    path = rows(
        {"messages": POOR_TALK, "collection_slug": COLLECTION, "scenario_slug": SCENARIO}, {"messages": POOR_TALK}
    )
    own, none = await scored(engine.scorer, tmp_path / "out", path, ScoringTask(None, None))
    assert own["status"] == "success"
    assert none["code"] == "no_scenario"


async def test_an_interrupted_run_goes_on_without_scoring_twice(
    engine: OfflineEngine, rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "BATCH", 2)
    talks = [
        {"messages": [*GOOD_TALK[: 1 + 2 * (i % 3)], {"role": "assistant", "content": f"Goodbye {i}."}]}
        for i in range(7)
    ]
    path = rows(*talks)
    whole = await scored(engine.scorer, tmp_path / "whole", path)

    class Interrupted(Exception):
        pass

    def stop_at_four(number: int) -> None:
        if number >= 4:
            raise Interrupted

    out = tmp_path / "out"
    with ResultsFile(out, engine.scorer.scoring_version, resume=False) as results, pytest.raises(Interrupted):
        await asyncio.to_thread(score_rows, results, read_rows(path), Here(engine.scorer, TASK), stop_at_four)
    with (out / RESULTS).open("a") as stream:
        stream.write('{"key": "torn')
    counting = Counting(engine.scorer)
    resumed = await scored(counting, out, path, resume=True)  # type: ignore[arg-type]
    assert counting.scored == 3
    assert resumed == whole


class Counting:
    """A scorer that counts what it is asked."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self.scoring_version = scorer.scoring_version
        self.read = scorer.read
        self.scored = 0

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Unscored]:
        self.scored += len(requests)
        return await self._scorer.score(requests)


async def test_a_finished_run_that_is_resumed_scores_nothing(engine: OfflineEngine, rows: Rows, tmp_path: Path) -> None:
    path = rows({"messages": GOOD_TALK}, "{broken")
    first = await scored(engine.scorer, tmp_path / "out", path)
    counting = Counting(engine.scorer)
    assert await scored(counting, tmp_path / "out", path, resume=True) == first  # type: ignore[arg-type]
    assert counting.scored == 0


async def test_equal_conversations_in_two_rows_are_two_results(
    engine: OfflineEngine, rows: Rows, tmp_path: Path
) -> None:
    found = await scored(engine.scorer, tmp_path / "out", rows({"messages": POOR_TALK}, {"messages": POOR_TALK}))
    assert [result["row"] for result in found] == [1, 2]
    assert found[0]["reward"] == found[1]["reward"]


async def test_a_failed_judge_leaves_no_number(rows: Rows, tmp_path: Path, engine: OfflineEngine) -> None:
    class Failing(Counting):
        async def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Unscored]:
            return [Unscored(JudgeFailed()) for _ in requests]

    (found,) = await scored(Failing(engine.scorer), tmp_path / "out", rows({"messages": GOOD_TALK}))  # type: ignore[arg-type]
    assert (found["status"], found["code"]) == ("error", "judge_failed")
    assert "reward" not in found


def test_results_are_not_overwritten_without_resume(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text('{"key": "a", "scoring_version": "sv_1"}\n')
    with pytest.raises(InvalidRequest, match="--resume"):
        ResultsFile(tmp_path, "sv_1", resume=False)


def test_results_of_two_scoring_versions_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text('{"key": "a", "scoring_version": "sv_1"}\n')
    with pytest.raises(InvalidRequest, match="sv_1"):
        ResultsFile(tmp_path, "sv_2", resume=True)


def test_a_damaged_results_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text('{"key": "a"}\nnonsense\n')
    with pytest.raises(InvalidRequest, match=r"results\.jsonl:2 is damaged"):
        ResultsFile(tmp_path, "sv_1", resume=True)


def result(row: int, reward: float, part: str = "") -> dict[str, Any]:
    base = {"row": row, "status": "success", "reward": reward, "scores": {"D1_X": reward}, "turns": 2, "flags": []}
    return {**base, "collection_slug": "c", "scenario_slug": "s", **({"part": part} if part else {})}


def test_the_summary_counts_and_averages(tmp_path: Path) -> None:
    failed = {"row": 3, "status": "error", "code": "bad_row"}
    summary = summarise([result(1, 0.2), result(2, 0.6), failed], "talks.jsonl", "sv_1")
    assert (summary["conversations"], summary["scored"], summary["errors"]) == (3, 2, {"bad_row": 1})
    assert summary["rewards"]["mean"] == 0.4
    assert summary["rewards"]["std"] == 0.2
    assert summary["scenarios"]["c/s"]["conversations"] == 2
    assert "pairs" not in summary


def test_the_summary_compares_chosen_and_rejected_answers() -> None:
    found = [result(1, 0.5, "chosen"), result(1, 0.2, "rejected"), result(2, 0.1, "chosen"), result(2, 0.1, "rejected")]
    found.append(result(3, 0.9, "chosen"))
    assert summarise(found, "x", "sv_1")["pairs"] == {"pairs": 2, "chosen_higher": 1, "ties": 1, "rejected_higher": 0}


def test_a_run_that_tells_nothing_apart_says_so(tmp_path: Path) -> None:
    equal = summarise([result(1, 0.0), result(2, 0.0)], "x", "sv_1")
    write_report(tmp_path, equal, [0.0, 0.0])
    assert "tells nothing apart" in (tmp_path / "report.md").read_text()
    assert "warning" not in summarise([result(1, 0.0), result(2, 0.1)], "x", "sv_1")
    assert "warning" not in summarise([result(1, 0.0)], "x", "sv_1")


def test_the_report_has_figures_and_plots(tmp_path: Path) -> None:
    summary = summarise([result(1, 0.2), result(2, 0.6)], "talks.jsonl", "sv_1")
    write_report(tmp_path, summary, [0.2, 0.6])
    assert json.loads((tmp_path / "summary.json").read_text()) == summary
    report = (tmp_path / "report.md").read_text()
    assert "2 of 2 conversations were scored under scoring version `sv_1`" in report
    assert "| D1_X | 0.4 |" in report
    for plot in ("reward_histogram.png", "dimensions.png"):
        assert plot in report
        assert (tmp_path / plot).read_bytes().startswith(b"\x89PNG")


def test_a_run_in_which_nothing_was_scored_is_reported_without_plots(tmp_path: Path) -> None:
    write_report(tmp_path, summarise([{"row": 1, "status": "error", "code": "bad_row"}], "x", "sv_1"), [])
    assert "| bad_row | 1 |" in (tmp_path / "report.md").read_text()
    assert not (tmp_path / "reward_histogram.png").exists()


def test_progress_reaches_the_last_row(engine: OfflineEngine, tmp_path: Path, library: Library) -> None:
    heard: list[int] = []
    rows = [InputRow(1, {"messages": GOOD_TALK}), InputRow(2, problem="broken"), InputRow(3, {"messages": POOR_TALK})]
    with ResultsFile(tmp_path, engine.scorer.scoring_version, resume=False) as results:
        assert score_rows(results, rows, Here(engine.scorer, TASK), heard.append).failed == 1
    assert heard[-1] == 3
