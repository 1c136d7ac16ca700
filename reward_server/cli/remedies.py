"""Remedies that `labs doctor` knows: which settings a check looks at, and what helps against a failure of an LLM.

Tables only; the checks themselves are in `doctor`.
"""

from __future__ import annotations

from collections.abc import Mapping

from reward_server.llm.base import NO_LOGPROBS_HINT
from reward_server.llm.transport import HINTS
from reward_server.settings import PREFIX

_SCORED_BY = (
    f"{PREFIX}ENCODER",
    f"{PREFIX}SCENARIOS",
    f"{PREFIX}JUDGE_PLUGINS",
    f"{PREFIX}CLASSIFIER",
    f"{PREFIX}LLM_",
    f"{PREFIX}DECISIONS",
    f"{PREFIX}READER",
    f"{PREFIX}JUDGES",
    f"{PREFIX}SCORING_THREADS",
)
_PLACES = (f"{PREFIX}DATA", f"{PREFIX}DATABASE_URL")
NEEDS: Mapping[str, tuple[str, ...]] = {
    "encoder": (f"{PREFIX}ENCODER",),
    "scenarios": (f"{PREFIX}SCENARIOS",),
    "plug-ins": (f"{PREFIX}JUDGE_PLUGINS",),
    "classifier": (f"{PREFIX}CLASSIFIER",),
    "reward model": (f"{PREFIX}DATA", f"{PREFIX}ENCODER"),
    "scoring": (*_SCORED_BY, f"{PREFIX}DATA"),
    "calibrations": (*_SCORED_BY, f"{PREFIX}DATA"),
    "data": _PLACES,
    "database": _PLACES,
    "keys": (*_PLACES, f"{PREFIX}HOST", f"{PREFIX}PEPPER"),
    "security": (*_PLACES, f"{PREFIX}PRODUCTION", f"{PREFIX}HOSTS", f"{PREFIX}METRICS_ACCESS", f"{PREFIX}LLM_"),
    "port": (f"{PREFIX}HOST", f"{PREFIX}PORT"),
    "llm": (f"{PREFIX}LLM_",),
    "voice": (f"{PREFIX}PERSONA_VOICE", f"{PREFIX}VOICE_", f"{PREFIX}LLM_"),
    "decisions": (f"{PREFIX}DECISIONS", f"{PREFIX}READER", f"{PREFIX}JUDGES"),
}
"""What each check looks at: where that is wrong it would tell of a server that nobody asked for."""
MENDS: Mapping[str, str] = {
    **{kind.value: hint for kind, hint in HINTS.items()},
    "timeout": "check LABS_LLM_BASE_URL, or raise LABS_LLM_DEADLINE_S",
    "reset": "nothing answers at LABS_LLM_BASE_URL",
    "malformed": "the model does not follow JSON schemas; choose another",
    "rejected": "the model rejects JSON schemas (choose another) or log-probabilities (set LABS_LLM_LOGPROBS=false)",
    "no_logprobs": NO_LOGPROBS_HINT,
}
"""By the kind of the failure; against any other kind there is nothing to set."""
