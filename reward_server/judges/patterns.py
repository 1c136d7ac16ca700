"""The authored regular expressions of rules, compiled once.

All are read alike: ignoring case, over cleaned text. Patterns that could run for long are refused when
a scenario is loaded (`scenarios.patterns`), so searching needs no deadline here.
"""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=8192)
def compiled(pattern: str) -> re.Pattern[str]:
    """The compiled form of an authored pattern."""
    return re.compile(pattern, re.IGNORECASE)
