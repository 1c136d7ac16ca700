"""One reply to each prompt, scored by /batch/evaluate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from learner.config import ConfigError
from learner.conversations import RowError
from learner.metrics import read_metrics
from learner.run import open_run
from learner.single_turn import read_prompts
from tests.learner.stage import StageServer, refusal
from tests.learner.test_loop import config, records, run

SINGLE: dict[str, Any] = {"rollout": {"groups": 2, "group_size": 6, "single_turn": True}}


class Evaluator(StageServer):
    """A stage that scores conversations, too; items whose text holds `unscored` fail."""

    def __init__(self) -> None:
        super().__init__(turns=2)
        self.items: list[dict[str, Any]] = []
        self.unscored: set[int] = set()

    def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
        if not path.endswith("/batch/evaluate"):
            return super().answer(method, path, body)
        results = []
        for item in json.loads(body)["items"]:
            self.items.append(item)
            if len(self.items) in self.unscored:
                results.append({"id": item["id"], "status": "error", "message": "No.", "code": "judge_failed"})
                continue
            reward = float("tell" in item["messages"][-1]["content"])
            metadata = {"scenario_name": "S", "evaluation_time_ms": 1, "judge": "local"}
            scored = {"evaluation_id": "ev_1", "reward": reward, "scores": {"D1_Talk": reward}, "metadata": metadata}
            results.append({"id": item["id"], "status": "success", **scored})
        answer = {"results": results, "scoring_version": "1", "total_time_ms": 1, "request_id": "req_1"}
        return httpx2.Response(200, json=answer)


def test_replies_to_openings_learn_what_is_rewarded(tmp_path: Path) -> None:
    server = Evaluator()
    changes = {"rollout": {**SINGLE["rollout"], "groups": 4}, "evaluation": {"episodes": 32}}
    run(config(tmp_path, 9, **changes), tmp_path / "run", server)
    held_out = records(tmp_path / "run", "eval")
    assert held_out[-1]["reward/mean"] > held_out[0]["reward/mean"] + 0.2
    assert [message["role"] for message in server.items[0]["messages"]] == ["user", "assistant"]
    assert server.items[0]["messages"][0]["content"].startswith("hello, I am number")
    # One episode for each seed, ended at once, and none for the replies of a group.
    assert len(server.created) == 32 + 9 * 4
    assert server.received == []
    assert "tell" in (tmp_path / "run" / "samples" / "update-0009.txt").read_text()


def test_prompts_of_a_file_are_answered_and_some_are_held_out(tmp_path: Path) -> None:
    rows = [{"messages": [{"role": "user", "content": f"hello, I am number {number}"}]} for number in range(8)] + [
        {
            "messages": [
                {"role": "user", "content": "hello, I am number 9"},
                {"role": "assistant", "content": "go away!"},
                {"role": "user", "content": "yes, that is so 5"},
            ]
        }
    ]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    server = Evaluator()
    changes = {"rollout": {**SINGLE["rollout"], "prompts": str(tmp_path / "prompts.jsonl")}}
    run(config(tmp_path, 6, **changes, data={"held_out_share": 0.25}), tmp_path / "run", server)
    assert server.created == []
    evaluated, trained = server.items[:8], server.items[8 : 8 + 12]
    heard = [{json.dumps(item["messages"][:-1]) for item in items} for items in (evaluated, trained)]
    assert heard[0].isdisjoint(heard[1])
    assert len(heard[0]) == 2


def test_a_reply_that_is_not_scored_is_counted_and_in_no_mean(tmp_path: Path) -> None:
    server = Evaluator()
    server.unscored = {9, 10}
    run(config(tmp_path, 1, **SINGLE), tmp_path / "run", server)
    [first] = [record for record in read_metrics(tmp_path / "run" / "metrics.jsonl") if record["kind"] == "train"]
    assert (first["episodes/errored"], first["episodes/scored"]) == (2, 10)


def test_a_prompt_whose_seed_is_refused_leaves_its_group_empty(tmp_path: Path) -> None:
    class Refusing(Evaluator):
        def _create(self, content: dict[str, Any]) -> httpx2.Response:
            if len(self.created) == 8:
                self.created.append(content)
                return refusal(403, "forbidden")
            return super()._create(content)

    run(config(tmp_path, 1, **SINGLE), tmp_path / "run", Refusing())
    [first] = records(tmp_path / "run", "train")
    assert (first["episodes/errored"], first["episodes/scored"]) == (6, 6)


def test_a_prompt_without_room_for_a_turn_leaves_its_group_empty(tmp_path: Path) -> None:
    rows = [{"messages": [{"role": "user", "content": text}]} for text in ("hello", "hello there " * 300)]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    changes = {"rollout": {**SINGLE["rollout"], "prompts": str(tmp_path / "prompts.jsonl")}}
    server = Evaluator()
    small = config(tmp_path, 1, **changes, data={"held_out_share": 0.0}, model={"context": 256})
    run(small, tmp_path / "run", server)
    [first] = records(tmp_path / "run", "train")
    assert (first["episodes/errored"], first["episodes/scored"]) == (6, 6)
    assert {item["messages"][0]["content"] for item in server.items} == {"hello"}


@pytest.mark.parametrize(
    "messages", [[], [{"role": "assistant", "content": "hi"}], [{"role": "user", "content": "a"}] * 2]
)
def test_a_row_that_is_no_prompt_is_named(messages: list[dict[str, str]], tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text(json.dumps({"messages": messages}))
    with pytest.raises(RowError, match="row 1"):
        read_prompts(tmp_path / "prompts.jsonl")


def test_prompts_without_single_turns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="single_turn"):
        open_run(config(tmp_path, 1, rollout={"prompts": "x.jsonl"}), tmp_path / "run", lambda line: None)


@pytest.mark.slow
def test_a_tiny_model_learns_what_to_say_first_from_the_real_server(tmp_path: Path) -> None:
    """Two minutes: a server of its own, and the preset `single-turn`."""
    from benchmarks.processes import labs_server, running
    from learner.cli import main

    server = labs_server(tmp_path)
    with running(server):
        changes = ["run.updates=10", "evaluation.every=10"]
        command = ["train", "single-turn", "--url", server.url, "--out", str(tmp_path / "run")]
        assert main([*command, *(part for change in changes for part in ("--set", change))]) == 0
    before, after = records(tmp_path / "run", "eval")
    doubt = 2 * (before["reward/standard_error"] ** 2 + after["reward/standard_error"] ** 2) ** 0.5
    assert after["reward/mean"] - before["reward/mean"] > doubt
    assert after["fluency/broken"] <= 0.05
