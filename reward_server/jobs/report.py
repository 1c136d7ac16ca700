"""The report of a job in a few figures: means, what changed and by how much, who won, what went wrong."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from statistics import fmean, pstdev
from typing import Any

from reward_server.store.records import JsonObject

LARGEST = 20


async def report(job_type: str, results: AsyncIterator[JsonObject]) -> JsonObject:
    """The figures of all results so far."""
    errors: Counter[str] = Counter()
    good: list[JsonObject] = []
    async for result in results:
        if result["status"] == "error":
            errors[result["code"]] += 1
        else:
            good.append(_kept(result))
    body: JsonObject = {"type": job_type, "items": len(good) + errors.total(), "errors": dict(errors)}
    if good:
        body |= _FIGURES[job_type](good)
    return body


def _kept(result: JsonObject) -> JsonObject:
    """Without what figures do not need: a job may have 100,000 results."""
    names = (
        "reward_model_id",
        "calibration_id",
        "agreement",
        "reward",
        "winner",
        "margin",
        "before",
        "after",
        "delta",
        "episode_id",
        "evaluation_id",
    )
    return {name: result[name] for name in (*names, "collection_slug", "scenario_slug") if name in result}


def _rewards(good: list[JsonObject]) -> JsonObject:
    rewards = [result["reward"] for result in good]
    return {"mean": fmean(rewards), "std": pstdev(rewards), "min": min(rewards), "max": max(rewards)}


def _winners(good: list[JsonObject]) -> JsonObject:
    wins = Counter(result["winner"] for result in good)
    shown = {name: wins[name] for name in ("a", "b", "tie")}
    return {"winners": shown, "mean_margin": fmean(result["margin"] for result in good)}


def _changes(good: list[JsonObject]) -> JsonObject:
    by_scenario: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for result in good:
        by_scenario[f"{result['collection_slug']}/{result['scenario_slug']}"].append(result)
    largest = sorted(good, key=lambda result: -abs(result["delta"]))[:LARGEST]
    return {
        **_change(good),
        "versions_before": dict(Counter(result["before"]["scoring_version"] for result in good)),
        "versions_after": dict(Counter(result["after"]["scoring_version"] for result in good)),
        "by_scenario": {name: _change(of_scenario) for name, of_scenario in sorted(by_scenario.items())},
        "largest": [_short(result) for result in largest if result["delta"]],
    }


def _change(results: list[JsonObject]) -> JsonObject:
    before, after = ([result[side]["reward"] for result in results] for side in ("before", "after"))
    deltas = [result["delta"] for result in results]
    change: JsonObject = {
        "n": len(results),
        "changed": sum(delta != 0 for delta in deltas),
        "mean_before": fmean(before),
        "mean_after": fmean(after),
        "mean_abs_delta": fmean(map(abs, deltas)),
    }
    correlation = _rank_correlation(before, after)
    return change if correlation is None else change | {"rank_correlation": correlation}


def _short(result: JsonObject) -> JsonObject:
    named: JsonObject = {name: result[name] for name in ("episode_id", "evaluation_id") if name in result}
    return {**named, "before": result["before"]["reward"], "after": result["after"]["reward"], "delta": result["delta"]}


def _rank_correlation(a: list[float], b: list[float]) -> float | None:
    """Spearman's, with mean ranks for ties; None where one side has no order."""
    x, y = _ranks(a), _ranks(b)
    mean = (len(x) + 1) / 2
    over = sum((i - mean) * (j - mean) for i, j in zip(x, y, strict=True))
    under = math.sqrt(sum((i - mean) ** 2 for i in x) * sum((j - mean) ** 2 for j in y))
    return round(over / under, 4) if under else None


def _ranks(values: list[float]) -> list[float]:
    places: defaultdict[Any, list[int]] = defaultdict(list)
    for place, value in enumerate(sorted(values), 1):
        places[value].append(place)
    return [fmean(places[value]) for value in values]


def _made(good: list[JsonObject]) -> JsonObject:
    [made] = good
    return {name: made[name] for name in ("reward_model_id", "calibration_id", "agreement") if name in made}


_FIGURES = {
    "evaluate": _rewards,
    "evaluate_agent": _rewards,
    "compare": _winners,
    "rescore": _changes,
    "train_reward_model": _made,
    "calibrate": _made,
    "measure_agreement": _made,
}
