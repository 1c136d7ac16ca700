"""pass^k of an evaluation: how likely a policy passes every one of k episodes of a scenario.

Of n episodes of which c passed, C(c, k) / C(n, k) estimates it without bias (Yao et al., "tau-bench", 2024); over
scenarios the mean is taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from math import comb
from statistics import fmean


def pass_k(rewards: Iterable[tuple[str, float]], passes_at: float) -> dict[int, float]:
    """By k (1, 2, 4, 8), for rewards of episodes by scenario; no larger k than the fewest episodes of one allow."""
    passed: defaultdict[str, list[bool]] = defaultdict(list)
    for scenario, reward in rewards:
        passed[scenario].append(reward >= passes_at)
    least = min(map(len, passed.values()), default=0)
    sizes = [k for k in (1, 2, 4, 8) if k <= least]
    return {k: fmean(comb(sum(each), k) / comb(len(each), k) for each in passed.values()) for k in sizes}
