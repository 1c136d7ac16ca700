"""Mixtures of scenarios, held-out scenarios, cards, tools: who plays where, and what the policy is told there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from learner.config import ConfigError, read
from learner.evaluation import EvaluationOptions, measure_stored, setting_of
from learner.folder import is_of_another
from learner.loop import train
from learner.run import open_run
from learner.seeds import FIRST_HELD_OUT_SEED
from learner.stages import Stages, open_stages
from learner.stored import open_stored
from tests.learner.small import tokenizer
from tests.learner.stage import StageServer, client_of, listening
from tests.learner.test_loop import config
from tests.learner.test_single_turn import Evaluator
from trainer_client.chat.tokens import Renderer
from trainer_client.chat.tools import for_template, message_of
from trainer_client.wire.episodes import ToolDefinition


class Library(StageServer):
    def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
        if path.rstrip("/").endswith("/catalog"):
            card = {"max_turns": 4, "tools": 0}
            collections = [
                {
                    "slug": collection,
                    "name": collection,
                    "description": "",
                    "version": "1",
                    "scenarios": [
                        {
                            "slug": slug,
                            "name": slug.upper(),
                            "description": f"About {slug}.",
                            **card,
                            "dimensions": ["empathy", f"of_{slug}"],
                        }
                        for slug in slugs
                    ],
                }
                for collection, slugs in (("c", ("s", "t")), ("d", ("u",)))
            ]
            return httpx2.Response(200, json={"collections": collections, "request_id": "req_1"})
        return super().answer(method, path, body)


def opened(server: dict[str, Any], **sections: Any) -> Stages:
    async def go() -> Stages:
        async with client_of(Library()) as client:
            return await open_stages(read({"server": server, **sections}), client)

    return asyncio.run(go())


def test_a_collection_stands_for_its_scenarios_and_held_out_ones_are_played_in_evaluations_alone() -> None:
    stages = opened({"scenarios": ["c"], "held_out": ["d/u"], "max_turns": 9})
    assert [stage.name for stage in stages.training] == ["c/s", "c/t"]
    assert [stage.name for stage in stages.held_out] == ["d/u"]
    assert {stage.max_turns for stage in stages.training} == {4}, "no more turns than a scenario has"
    assert [stages.of(number).name for number in range(3)] == ["c/s", "c/t", "c/s"]


@pytest.mark.parametrize("server", [{"collection": "c", "scenario": "s"}, {"scenarios": ["c/s", "c/t"]}])
def test_a_weight_of_a_dimension_that_no_training_scenario_has_is_refused_before_anything_is_played(
    server: dict[str, Any],
) -> None:
    assert opened(server, algorithm={"name": "gdpo", "dimensions": {"empathy": 2.0, "of_s": 0.5}}).of(0).name == "c/s"
    with pytest.raises(ConfigError, match=r"algorithm\.dimensions\.empaty: .* did you mean 'empathy'"):
        opened(server, algorithm={"name": "gdpo", "dimensions": {"empaty": 2.0}})
    with pytest.raises(ConfigError, match=r"dimension 'of_u' is unknown"):
        opened({**server, "held_out": ["d/u"]}, algorithm={"name": "gdpo", "dimensions": {"of_u": 1.0}})


def test_the_card_is_the_system_prompt_of_a_given_model_and_none_of_a_tiny_one() -> None:
    assert opened({"collection": "c", "scenario": "s"}).of(0).system is None
    given = opened({"collection": "c", "scenario": "s"}, model={"path": "some/model"})
    assert given.of(0).system == "S. About s."
    assert opened({"collection": "c", "scenario": "s", "system": "Be kind."}).of(0).system == "Be kind."


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({"scenarios": ["c", "e"]}, r"server\.scenarios: collection 'e' is unknown"),
        ({"scenarios": ["c/z"]}, r"server\.scenarios: 'c/z' is unknown"),
        ({"scenarios": ["c"], "held_out": ["c/t"]}, r"server\.held_out: c/t is also a training scenario"),
        ({"reward_config": {"composit": {}}}, r"server\.reward_config\.composit: unknown; did you mean 'composite'"),
    ],
)
def test_what_the_server_does_not_have_is_named(server: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        opened(server)


TOOLS = [
    ToolDefinition(id="plan", type="decision", name="The plan", mode="options", options=["tell", "wait"]),
    ToolDefinition(id="note", type="artifact", name="A note", mode="json_schema", json_schema={"type": "object"}),
]


def test_tools_go_where_the_template_has_a_place_and_into_the_system_prompt_where_not() -> None:
    tools = for_template(TOOLS)
    assert tools[0]["function"]["parameters"]["properties"]["value"]["enum"] == ["tell", "wait"]
    words = tokenizer()
    seen: list[Any] = []
    render = words.apply_chat_template

    def spy(messages: Any, **options: Any) -> str:
        seen.append((messages, options.get("tools")))
        return str(render(messages, **options))

    words.apply_chat_template = spy
    Renderer(words).within("tell me why", tools).opening("hello")
    assert seen[-1][1] is None
    assert "<tool_call>" in seen[-1][0][0]["content"]
    assert seen[-1][0][0]["content"].startswith("tell me why")
    words.chat_template = "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}" + words.chat_template
    Renderer(words).within(None, tools).opening("hello")
    assert seen[-1][1] == tools
    assert seen[-1][0][0]["role"] == "user"


@pytest.mark.parametrize(
    "written",
    [
        'Done. <tool_call>\n{"name": "plan", "arguments": {"value": "tell"}}\n</tool_call>',
        '{"name": "plan", "parameters": {"value": "tell"}}',
        '<|python_tag|>{"name": "plan", "parameters": {"value": "tell"}}',
        '[TOOL_CALLS][{"name": "plan", "arguments": {"value": "tell"}}]',
        '[{"name": "plan", "arguments": {"value": "tell"}}]',
        "<tool_call><function=plan><parameter=value>\ntell\n</parameter></function></tool_call>",
        '<tool_call>{"name": "plan", "arguments": "{\\"value\\": \\"tell\\"}"}</tool_call>',
    ],
)
def test_calls_are_read_as_models_write_them(written: str) -> None:
    message = message_of(written)
    assert message.tool_calls is not None
    assert [(call.name, call.input) for call in message.tool_calls] == [("plan", {"value": "tell"})]
    assert message.content == ("Done." if written.startswith("Done") else "")


@pytest.mark.parametrize(
    "written",
    [
        "tell me {more}",
        "<tool_call>{</tool_call>",
        '<tool_call>{"arguments": {}}</tool_call>',
        "{}",
        "[TOOL_CALLS][]",
        "[{]}]",
        "[{}]",
    ],
)
def test_what_is_no_call_stays_text(written: str) -> None:
    message = message_of(written)
    assert message.tool_calls is None
    assert message.content == written


class Varied(Evaluator):
    """`c/s` has variants of both splits, `c/t` of one, `c/u` none."""

    def __init__(self) -> None:
        super().__init__()
        self.catalog = ["s", "t", "u"]

    def _scenario(self, parts: list[str]) -> httpx2.Response:
        splits = {"s": ["eval", "train"], "t": ["train"]}.get(parts[-1])
        return httpx2.Response(200, json=super()._scenario(parts).json() | ({"splits": splits} if splits else {}))

    def answer(self, method: str, path: str, body: bytes) -> httpx2.Response:
        found = super().answer(method, path, body)
        if path.rstrip("/").endswith("/catalog"):
            content = found.json()
            for each in content["collections"][0]["scenarios"]:
                each["splits"] = self._scenario([each["slug"]]).json().get("splits")
            return httpx2.Response(200, json=content)
        return found


def splits_of(server: dict[str, Any]) -> tuple[list[str | None], list[str | None], str | None]:
    async def go() -> Stages:
        async with client_of(Varied()) as client:
            return await open_stages(read({"server": server}), client)

    found = asyncio.run(go())
    return [each.split for each in found.training], [each.split for each in found.held_out], found.told()


ONE = {"collection": "c", "scenario": "s"}


@pytest.mark.parametrize(
    ("server", "training", "held_out", "told"),
    [
        (ONE, ["train"], ["eval"], "variants: training on split 'train' of c/s; evaluating on split 'eval' of c/s"),
        ({**ONE, "scenario": "u"}, [None], [None], None),
        ({**ONE, "split": "none", "held_out_split": "none"}, [None], [None], None),
        (
            {**ONE, "split": "none"},
            [None],
            ["eval"],
            "variants: training on all variants of c/s, those of the evaluation too; evaluating on split 'eval' of c/s",
        ),
        (
            {"scenarios": ["c"]},
            ["train", "train", None],
            ["eval", None, None],
            "variants: training on split 'train' of 2 scenarios; evaluating on split 'eval' of c/s",
        ),
        (
            {"scenarios": ["c/u"], "held_out": ["c/s"]},
            [None],
            ["eval"],
            "variants: evaluating on split 'eval' of c/s",
        ),
        (
            {"scenarios": ["c/s", "c/u"], "split": "eval"},
            ["eval", None],
            ["eval", None],
            "variants: training on split 'eval' of c/s; evaluating on split 'eval' of c/s",
        ),
    ],
)
def test_a_run_trains_on_some_variants_and_is_measured_on_others(
    server: dict[str, Any], training: list[str | None], held_out: list[str | None], told: str | None
) -> None:
    assert splits_of(server) == (training, held_out, told)


@pytest.mark.parametrize("server", [{"scenarios": ["c"]}, {**ONE, "scenario": "t"}])
def test_a_split_that_a_scenario_has_no_variants_of_is_refused(server: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"server\.held_out_split: c/t has no variants of split 'eval', only of train"
    ):
        splits_of({**server, "held_out_split": "eval"})


@pytest.mark.slow
@pytest.mark.parametrize("single_turn", [False, True])
def test_the_split_is_asked_for_in_training_and_in_evaluations(single_turn: bool, tmp_path: Path) -> None:
    server = Varied()
    told: list[str] = []
    opened = open_run(config(tmp_path, 1, rollout={"single_turn": single_turn}), tmp_path / "run", lambda line: None)

    async def go() -> None:
        async with client_of(server) as client:
            await train(opened, client, told.append)

    asyncio.run(go())
    assert sum(line.startswith("variants: training on split 'train' of c/s; evaluating on") for line in told) == 1
    asked = {(each["config"]["seed"] >= FIRST_HELD_OUT_SEED, each["config"].get("split")) for each in server.created}
    assert asked == {(False, "train"), (True, "eval")}


def test_a_run_is_evaluated_on_the_variants_it_was_measured_on(tmp_path: Path) -> None:
    open_run(config(tmp_path, 1), tmp_path / "run", lambda line: None)
    server = Varied()
    with listening(server) as url:
        found = measure_stored(str(tmp_path / "run"), "last", EvaluationOptions(episodes=2, url=url))
        assert {each["config"]["split"] for each in server.created} == {"eval"}
        assert "as the run was trained" in found.played
        assert found.played[-1] == "variants: evaluating on split 'eval' of c/s"
        server.created.clear()
        asked = EvaluationOptions(episodes=2, url=url, split="none")
        found = measure_stored(str(tmp_path / "run"), "last", asked)
    assert not any("split" in each["config"] for each in server.created)
    assert "variants: all" in found.played[0]


def test_a_run_from_before_there_were_variants_goes_on_and_is_measured_on_all(tmp_path: Path) -> None:
    settings = config(tmp_path, 1)
    open_run(settings, tmp_path / "run", lambda line: None)
    path = tmp_path / "run" / "config.json"
    stored = json.loads(path.read_text())
    del stored["shape"]["server"]["split"], stored["resolved"]["server"]["held_out_split"]
    path.write_text(json.dumps(stored))
    assert setting_of(EvaluationOptions(), open_stored(tmp_path / "run", "last")).split is None
    assert not is_of_another(settings, tmp_path / "run")
    assert is_of_another(config(tmp_path, 1, server={"split": "eval"}), tmp_path / "run")
