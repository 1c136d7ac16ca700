"""Maps of a decision model's probabilities: fitted on labelled answers, one a kind, named in the version."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reward_server.decisions.maps import DecisionMaps, KindMap, load_maps, path_of, save_maps
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import AnswerProbabilities, ChoiceQuestion, Typed, YesNoQuestion, written
from reward_server.decisions.systemone import SystemOneProvider
from reward_server.errors import ConfigurationError
from reward_server.fitting.decisions.ask import LabelledAnswer
from reward_server.fitting.decisions.fit import fit_kinds
from reward_server.llm.caller import CallLimits
from tests.decisions.asked_decider import yes
from tests.decisions.servers import Served

MAP = KindMap(slope=2.0, bias=-1.0, n=50)


def test_a_map_turns_log_probabilities_and_the_answer_that_says_nothing() -> None:
    found = MAP.apply(AnswerProbabilities({"a": 0.5, "none": 0.3, "b": 0.2}))
    weights = {"a": 0.25, "none": 0.09 / math.e, "b": 0.04}
    total = sum(weights.values())
    assert found.probabilities == pytest.approx({label: weight / total for label, weight in weights.items()})
    assert KindMap(slope=1.0, bias=0.0, n=1).apply(yes(0.7)).yes == pytest.approx(0.7)
    assert MAP.apply(yes(0.0)).yes < 1e-6


def answers(says: float, truth: float, kind: str = "criterion", n: int = 400) -> list[LabelledAnswer]:
    """A model whose log-odds are `says` times what they should be, of which the no is `truth` too likely."""
    generator = np.random.default_rng(0)
    found = []
    for number in range(n):
        odds = generator.normal(0, 2)
        right = "true" if generator.random() < 1 / (1 + math.exp(-odds)) else "false"
        p = 1 / (1 + math.exp(-says * (odds - truth)))
        found.append(LabelledAnswer(kind, {"true": p, "false": 1 - p}, frozenset({right}), f"g{number % 40}"))
    return found


def test_the_map_undoes_what_is_wrong_with_a_model() -> None:
    [found] = fit_kinds(answers(says=3.0, truth=1.0))
    assert found.map is not None
    assert found.map.slope == pytest.approx(1 / 3, abs=0.08)
    assert found.map.bias == pytest.approx(-1.0, abs=0.35)
    assert found.before is not None
    assert found.after is not None
    assert found.before.error.value > 0.15
    assert found.after.error.value < 0.08
    assert found.after.right > found.before.right


def test_a_model_that_is_right_as_often_as_it_says_keeps_its_numbers() -> None:
    [found] = fit_kinds(answers(says=1.0, truth=0.0))
    moved = 1.0 if found.map is None else found.map.apply(yes(0.8)).yes
    assert found.map is None or moved == pytest.approx(0.8, abs=0.04)


def test_few_answers_or_one_side_alone_give_no_map() -> None:
    [few] = fit_kinds(answers(1.0, 0.0, n=30))
    one_sided = [each for each in answers(1.0, 0.0) if each.right == {"true"}]
    [all_yes] = fit_kinds(one_sided)
    assert few.map is None
    assert "needs 40 answers" in few.why
    assert all_yes.map is None
    assert "10 of either side" in all_yes.why


def test_kinds_are_fitted_apart() -> None:
    fits = fit_kinds([*answers(3.0, 0.0, "criterion"), *answers(0.3, 0.0, "topic")])
    slopes = {each.kind: each.map.slope for each in fits if each.map is not None}
    assert slopes["criterion"] < 0.6 < 1.5 < slopes["topic"]


def server_says(body: dict[str, Any]) -> dict[str, Any]:
    answered: dict[str, Any] = {}
    for name, asked in body["questions"].items():
        if asked["type"] == "noul":
            answered[name] = {"type": "noul", "noul": 0.8}
        else:
            shares = {"none": 0.6, "a": 0.4}
            answered[name] = {"type": "choice", "choice": "none", "confidence": 0.6, "probabilities": shares}
    return {"model": "m", "answers": answered, "usage": {"input_tokens": 1, "output_tokens": 1}}


async def test_a_model_uses_the_maps_of_its_version_for_their_kinds_alone(tmp_path: Path) -> None:
    asked: dict[str, Typed] = {
        "mapped": YesNoQuestion("Is it open?", kind="criterion"),
        "plain": YesNoQuestion("Is it open?"),
        "which": ChoiceQuestion("Which?", (("none", None), ("a", None)), "topic"),
    }
    with Served(server_says) as server:

        def model() -> DecisionModel:
            return DecisionModel(SystemOneProvider("m", None, base_url=server.url), CallLimits(), maps=tmp_path)

        bare = model()
        maps = DecisionMaps(model_version=bare.version, kinds={"criterion": MAP, "topic": MAP})
        save_maps(maps, tmp_path)
        mapping = model()
        found = await mapping.decide("It is open.", asked, lab_id="acme")
        await bare.close()
        await mapping.close()
    assert found["mapped"].yes == pytest.approx(MAP.apply(yes(0.8)).yes)
    assert found["plain"].yes == pytest.approx(0.8)
    assert found["which"].best == "a", "the prior of none is another one now"
    assert mapping.version == f"{bare.version};calibrated={maps.id}"
    assert mapping.model_version == bare.version
    assert "kind" not in json.dumps(server.bodies[0]["questions"]["mapped"])
    assert written(asked["mapped"]) == written(asked["plain"])


def test_maps_of_another_version_and_damaged_ones_are_not_used(tmp_path: Path) -> None:
    maps = DecisionMaps(model_version="systemone/m@1", kinds={"criterion": MAP})
    path = save_maps(maps, tmp_path)
    assert load_maps(tmp_path, "systemone/m@1") == maps
    assert load_maps(tmp_path, "systemone/m@2") is None
    path.replace(path_of(tmp_path, "systemone/m@2"))
    with pytest.raises(ConfigurationError, match="fit it again with"):
        load_maps(tmp_path, "systemone/m@2")
    path.write_text("{")
    with pytest.raises(ConfigurationError, match="damaged"):
        load_maps(tmp_path, "systemone/m@1")
