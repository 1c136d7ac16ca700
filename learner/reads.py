"""Fields of an objective that have an effect, given the others.

An override without an effect would leave a user with another algorithm than the one asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from learner.algorithms import CRITIC_ADVANTAGES, TOKEN_ADVANTAGES, Objective


@dataclass(frozen=True)
class FieldCondition:
    """The condition for a field to have an effect: as it is told, and as it is tested."""

    told: str
    is_met: Callable[[Objective], bool]


def _gate(*names: str) -> FieldCondition:
    return FieldCondition(_one_of("gate", names), lambda row: row.gate in names)


def _advantage(*names: str) -> FieldCondition:
    return FieldCondition(_one_of("advantage", names), lambda row: row.advantage in names)


def _one_of(key: str, names: Collection[str]) -> str:
    return f"{key} = {' or '.join(map(repr, names))}"


_REWARD = FieldCondition("an algorithm that learns from rewards", lambda row: row.kind == "reward")
_PAIRS = FieldCondition("an algorithm that learns from pairs", lambda row: row.kind == "preference")
_RATIO = FieldCondition(
    "a gate that reads the ratio", lambda row: row.gate not in ("none", "one_sided_clamp", "gamma_weight")
)
_WHOLE_REWARD = FieldCondition("an advantage of the whole reward", lambda row: row.advantage != "dimension_z_scores")
_DISCOUNTED = FieldCondition(
    "credit = 'to_go', or an advantage per token",
    lambda row: row.advantage in TOKEN_ADVANTAGES or row.credit == "to_go",
)

_OF_PAIRS = ("margin_beta", "preference", "smoothing", "margin_weighted")
_OF_BOTH = ("kind", "positive_nll")

_NEEDS: dict[str, tuple[FieldCondition, ...]] = {
    "ratio": (
        FieldCondition(_RATIO.told, lambda row: _RATIO.is_met(row) or (row.kl == "k3_weighted" and row.beta > 0)),
    ),
    "eps_low": (_gate("clip", "clip_weight"),),
    "eps_high": (_gate("clip", "clip_weight"),),
    "ratio_cap": (_gate("clip"),),
    "dual_clip": (_gate("clip"),),
    "tau_positive": (_gate("sigmoid"),),
    "tau_negative": (_gate("sigmoid"),),
    "clamp": (_gate("one_sided_clamp"),),
    "shift": (_gate("probability_shift"),),
    "square": (_gate("probability_shift"),),
    "correction_low": (
        FieldCondition(
            _one_of("correction", ("token_mask", "geometric_mask")),
            lambda row: row.correction in ("token_mask", "geometric_mask"),
        ),
    ),
    "correction_high": (FieldCondition("a correction", lambda row: row.correction != "none"),),
    "kl": (FieldCondition("beta above 0", lambda row: row.beta > 0),),
    "beta": (FieldCondition("a KL term, such as kl = 'k3'", lambda row: row.kl != "none"),),
    "positive_nll": (FieldCondition("rewards or pairs to learn from", lambda row: row.kind != "imitation"),),
    "positive_from": (FieldCondition("positive_nll above 0", lambda row: row.positive_nll > 0),),
    "max_tokens": (FieldCondition("aggregation = 'constant'", lambda row: row.aggregation == "constant"),),
    "credit": (_WHOLE_REWARD,),
    "gamma": (_WHOLE_REWARD, _DISCOUNTED),
    "kl_reward": (_advantage(*TOKEN_ADVANTAGES),),
    "overlong": (_WHOLE_REWARD,),
    "lam": (_advantage("gae"),),
    "alpha": (_advantage("gae_length_adaptive"),),
    "critic_lam": (_advantage(*CRITIC_ADVANTAGES),),
    "critic_rate": (_advantage(*CRITIC_ADVANTAGES),),
    "critic_warmup": (_advantage(*CRITIC_ADVANTAGES),),
    "value_clip": (_advantage(*CRITIC_ADVANTAGES),),
}

_OFF: dict[str, tuple[str, object]] = {"beta": ("kl", "none"), "kl": ("beta", 0.0)}
"""Fields that work as a pair, with the value of the other that turns both off."""


def missing_need(name: str, row: Objective, given: Collection[str]) -> str | None:
    """The condition that field `name` misses to have an effect in this row; None if it has one.

    `given` are the fields that were set: a KL term that was turned off by one of its two fields is no mistake.
    """
    if name in _OFF:
        other, off = _OFF[name]
        if other in given and getattr(row, other) == off:
            return None
    for need in (*_kinds(name), *_NEEDS.get(name, ())):
        if not need.is_met(row):
            return need.told
    return None


def _kinds(name: str) -> tuple[FieldCondition, ...]:
    if name in _OF_PAIRS:
        return (_PAIRS,)
    return () if name in _OF_BOTH else (_REWARD,)
