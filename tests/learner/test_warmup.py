"""The shipped script, dialogues composed from it, and a policy that learns to speak."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from learner.cli import demo_file
from learner.config import load
from learner.model import rows_of
from learner.tiny import build_tokenizer
from learner.warmup import KINDS, WarmupSettings, compose, load_script, segments_of, warm_up
from tests.learner.small import SCRIPT, policy, tokenizer
from trainer_client.chat.tokens import Renderer

SETTINGS = WarmupSettings(steps=40, batch=8, turns=3, learning_rate=1e-2)


def test_the_demos_script_has_lines_of_every_kind_for_its_scenario() -> None:
    config = load(demo_file())
    script = load_script(config.warmup.script)
    assert (script.collection, script.scenario) == (config.server.collection, config.server.scenario)
    assert {exchange.kind for exchange in script.exchanges} == set(KINDS)
    assert len(script.styles) > 1
    assert len({exchange.agent for exchange in script.exchanges}) == len(script.exchanges)


def test_every_line_of_the_demo_survives_its_tokenizer_and_fits_a_turn() -> None:
    config = load(demo_file())
    script = load_script(config.warmup.script)
    words = build_tokenizer(script.texts())
    for line in script.texts():
        ids = words.encode(line, add_special_tokens=False)
        assert words.decode(ids) == line
        assert words.unk_token_id not in ids
    longest = max(len(words.encode(exchange.agent, add_special_tokens=False)) for exchange in script.exchanges)
    assert longest < config.model.max_tokens


def test_dialogues_are_repeatable() -> None:
    composed = [compose(SCRIPT, 3, random.Random(5)) for _ in range(2)]
    assert composed[0] == composed[1]
    assert len(composed[0].exchanges) == 3


def test_a_style_decides_what_is_said_early_and_late() -> None:
    kinds = {exchange.agent: exchange.kind for exchange in SCRIPT.exchanges}
    for seed in range(20):
        said = [kinds[agent] for agent, _ in compose(SCRIPT, 8, random.Random(seed)).exchanges]
        assert set(said[:4]) == {"good"}
        assert set(said[-3:]) <= {"chatter", "rude"}


def test_no_line_comes_twice_while_there_are_others() -> None:
    said = [agent for agent, _ in compose(SCRIPT, 2, random.Random(5)).exchanges]
    assert len(set(said)) == 2


def test_only_the_agents_lines_are_copied() -> None:
    words = tokenizer()
    renderer = Renderer(words)
    dialogue = compose(SCRIPT, 3, random.Random(5))
    segments = segments_of(dialogue, renderer, words)
    said = [renderer.spoken(list(segment.ids)).text for segment in segments if segment.sampled]
    assert said == [agent for agent, _ in dialogue.exchanges]
    assert int(rows_of([segments], 0).sampled.sum()) == sum(len(s.ids) for s in segments if s.sampled)


def test_warming_up_lowers_the_loss_and_is_repeatable() -> None:
    words = tokenizer()
    runs = [warm_up(policy(words), SCRIPT, words, SETTINGS, seed=1) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0][-1] < 0.5 * runs[0][0]


def test_a_script_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    content = {
        "collection": "c",
        "scenario": "s",
        "openings": ["hello"],
        "styles": [{"name": "plain", "weight": 1, "early": {"good": 1}, "late": {"good": 1}}],
        "exchanges": [{"kind": "good", "agent": "tell me", "persona": ["yes"]}],
    }
    path.write_text(json.dumps(content))
    assert load_script(str(path)).exchanges[0].agent == "tell me"
    content["exchanges"] = [{"kind": "splendid", "agent": "tell me", "persona": ["yes"]}]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="kind"):
        load_script(str(path))


def test_an_unknown_script_is_named() -> None:
    with pytest.raises(ValueError, match="nothing-like-it"):
        load_script("nothing-like-it")
