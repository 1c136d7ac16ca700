"""How learned judges are fitted for LLMBar's subsets, in two ways that never show a judge the instructions it is asked.

"Other subsets": on the other three, without any instruction that also occurs in this one; no pair of its kind was
seen. "Own kind, too": ten-fold by instruction over all subsets, so with nine tenths of the pairs of its own, which is
how a reward model is used; over several divisions into folds, because one division decides a few hundredths.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import numpy as np

from benchmarks.quality import two_levels
from benchmarks.quality.figures import Floats, folds_of, wins
from benchmarks.quality.two_levels import Compared, Margins, together
from reward_server.reward_models.features import ConversationFeaturiser

FOLDS = 10
DIVISIONS = 5
LEVELS = {"large": "head on all features", "small": "head on seven comparisons", "both": "head of two levels"}
OTHERS, OWN = "other subsets", "own kind, too"


def judge_of(level: str, training: str) -> str:
    """The name of a learned judge."""
    return f"{LEVELS[level]}, {training}"


def on_others(featuriser: ConversationFeaturiser, subsets: Mapping[str, Compared], name: str) -> two_levels.TwoLevels:
    """Heads for a subset, fitted on the pairs of the others."""
    own = set(subsets[name].groups)
    parts = []
    for other, pairs in subsets.items():
        if other != name:
            parts.append(pairs.part(np.flatnonzero([group not in own for group in pairs.groups])))
    return two_levels.fit(featuriser, together(parts))


def with_own_kind(featuriser: ConversationFeaturiser, subsets: Mapping[str, Compared]) -> dict[str, dict[str, Floats]]:
    """By level and subset, what heads say of the pairs whose instructions they did not see, (divisions, n)."""
    everything = together(list(subsets.values()))
    ends = np.cumsum([len(pairs.groups) for pairs in subsets.values()])[:-1]
    divisions = [_held_out(featuriser, everything, division) for division in range(DIVISIONS)]
    said: dict[str, dict[str, Floats]] = {}
    for level in LEVELS:
        margins = np.stack([getattr(division, level) for division in divisions])
        said[level] = dict(zip(subsets, np.split(margins, ends, axis=1), strict=True))
    return said


def _held_out(featuriser: ConversationFeaturiser, pairs: Compared, division: int) -> Margins:
    margins = Margins(*(np.zeros(len(pairs.groups)) for _ in LEVELS))
    for fold, (train, test) in enumerate(folds_of(pairs.groups, FOLDS, salt=f"division {division}: ")):
        step = f"{division * FOLDS + fold + 1} of {DIVISIONS * FOLDS}"
        print(f"\r  llmbar: fold {step} ", end="", file=sys.stderr, flush=True)
        said = two_levels.fit(featuriser, pairs.part(train)).margins(pairs.part(test))
        for level in LEVELS:
            getattr(margins, level)[test] = getattr(said, level)
    print(file=sys.stderr)
    return margins


def same_winner(one: Floats, other: Floats) -> float:
    """How often the same output wins when both have changed places."""
    return float((wins(one) == 1.0 - wins(other)).mean())
