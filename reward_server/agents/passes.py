"""pass^k: how likely an agent passes every one of k attempts at a scenario.

Of n seeds of which c passed, C(c, k) / C(n, k) estimates it without bias (Yao et al., "tau-bench", 2024); over
scenarios the mean is taken. pass^1 is the share that passes; what falls fast with k is luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, fsum

PASSES_AT = 0.7
"""The least reward of a seed that passes, unless the caller names another."""


def pass_k(seeds: Sequence[tuple[int, int]]) -> dict[str, float]:
    """By k (1, 2, 4, 8), for scenarios with so many seeds of which so many passed.

    No larger k than the scenario with the fewest seeds allows.
    """
    least = min((n for n, _ in seeds), default=0)
    sizes = [k for k in (1, 2, 4, 8) if k <= least]
    return {str(k): round(fsum(comb(c, k) / comb(n, k) for n, c in seeds) / len(seeds), 4) for k in sizes}
