"""What joins a reply to its request, weighed beside a head of preferences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from reward_server.reward_models.heads import Heads
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.relations import FOLDS, HEAD, MIN_PAIRS, Weighed, weighed

WIDTH = 60
RELATIONS = {"cosine": 0, "late": 1}


def pairs(count: int = 400, *, told: float, seed: int = 1) -> ExampleMatrices:
    """Better and worse rows: feature 0 tells the better one as far as `told` says, 2 and 3 tell it a little."""
    source = np.random.default_rng(seed)
    chosen, rejected = (source.normal(size=(count, WIDTH)).astype(np.float32) for _ in range(2))
    chosen[:, 0] += told
    chosen[:, 2:4] += 0.7
    ones = np.ones(count, dtype=np.float32)
    nothing = np.zeros((0, WIDTH), dtype=np.float32)
    return ExampleMatrices(nothing, np.zeros((0, 1), dtype=np.float32), chosen, rejected, ones, ones)


def heads_on(rows: ExampleMatrices, fold: int = -1) -> Heads:
    """Least squares on differences, which believes a few telling features as little as all others."""
    differences = (rows.chosen[:] - rows.rejected[:]).astype(np.float64)
    differences[:, 0] *= 0.05
    strong = np.linalg.solve(
        differences.T @ differences + 200.0 * np.eye(WIDTH), differences.T @ np.ones(len(differences))
    )
    strong[0] *= 0.05
    ones = np.ones(WIDTH, dtype=np.float32)
    weights = strong[None, :].astype(np.float32)
    return Heads(("score",), 0 * ones, 2 * ones, 2 * weights, np.zeros(1, np.float32), link="preference")


def found(
    rows: ExampleMatrices, fitted: Callable[[ExampleMatrices, int], Heads] = heads_on, **changes: object
) -> Weighed | None:
    groups = [f"g{place // 4}" for place in range(len(rows.chosen))]
    given: dict[str, object] = {"judged": len(rows.chosen), "relations": RELATIONS, "fitted": fitted} | changes
    return weighed(heads_on(rows), rows, groups, **given)  # type: ignore[arg-type]


def right(heads: Heads, rows: ExampleMatrices) -> float:
    margins = heads.raw(rows.chosen)[:, 0] - heads.raw(rows.rejected)[:, 0]
    return float((margins > 0).mean())


def test_a_measure_that_tells_the_better_reply_is_believed_on_other_pairs_too() -> None:
    rows, others = pairs(told=1.5), pairs(told=1.5, seed=2)
    both = found(rows)
    assert both is not None
    assert both.weights["cosine"] > 0.3 > both.weights["late"]
    assert both.weights[HEAD] > 0.0
    assert right(both.heads, others) > right(heads_on(rows), others) + 0.05


def test_the_result_is_the_head_and_the_measures_in_one_linear_head() -> None:
    rows = pairs(told=1.5)
    own, both = heads_on(rows), found(rows)
    assert both is not None
    changed = np.flatnonzero(both.heads.weights[0] != own.weights[0])
    assert set(changed) <= set(RELATIONS.values())
    assert (both.heads.weights[0] >= own.weights[0]).all()


def test_a_measure_that_people_contradict_leaves_the_head_as_it_was() -> None:
    assert found(pairs(told=-1.5), relations={"cosine": 0}) is None


def test_weights_are_learned_from_what_heads_said_of_dialogues_they_did_not_see() -> None:
    rows = pairs(told=1.5)
    seen: dict[int, int] = {}

    def fitted(some: ExampleMatrices, fold: int) -> Heads:
        seen[fold] = len(some.chosen)
        own = {row.tobytes() for row in some.chosen[:]}
        groups = {place // 4 for place, row in enumerate(rows.chosen[:]) if row.tobytes() in own}
        assert 4 * len(groups) == len(some.chosen)
        return heads_on(some)

    assert found(rows, fitted) is not None
    assert sorted(seen) == list(range(FOLDS))
    assert sum(seen.values()) == (FOLDS - 1) * len(rows.chosen)


def test_only_judged_pairs_decide() -> None:
    """Behind 200 pairs in which the measure tells nothing stand 200 made ones that it tells."""
    first, second = pairs(200, told=-1.0), pairs(200, told=3.0, seed=3)
    both = ExampleMatrices(
        first.features,
        first.labels,
        np.concatenate([first.chosen[:], second.chosen[:]]),
        np.concatenate([first.rejected[:], second.rejected[:]]),
        np.ones(400, np.float32),
        np.ones(400, np.float32),
    )
    only = {"cosine": 0}
    assert found(both, judged=200, relations=only) is None
    assert found(both, relations=only) is not None


def test_too_few_pairs_labels_and_measures_that_never_vary_change_nothing() -> None:
    rows = pairs(told=1.5)
    assert found(rows, judged=MIN_PAIRS - 1) is None
    none: Mapping[str, int] = {}
    assert found(rows, relations=none) is None
    head = heads_on(rows)
    groups = [f"g{place}" for place in range(len(rows.chosen))]
    for other in (replace(head, link="identity"), replace(head, scale=np.full(WIDTH, np.inf, np.float32))):
        assert weighed(other, rows, groups, judged=400, relations=RELATIONS, fitted=heads_on) is None
