"""What scores: the matcher on the text encoder, the panel of judges, and the scorer on both.

The server and the offline commands build their scorer here, so that a transcript gets the same number from all
of them. Importing this module loads no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import scenarios.yamlfile
from personas.library import load_temperaments
from personas.matcher import Matcher
from reward_server.errors import ScenarioError
from reward_server.judges.local import LocalJudge
from reward_server.judges.panel import Panel
from reward_server.judges.rule import RuleJudge
from reward_server.judges.state import StateJudge
from reward_server.scoring.scorer import Scorer
from reward_server.settings import Settings
from scenarios.library import Library, load_library


def load_scenarios(root: Path | None) -> Library:
    """The scenarios below `root` (default: the packaged ones); `ScenarioError` names file and line."""
    try:
        return load_library(root)
    except scenarios.yamlfile.ScenarioError as error:
        raise ScenarioError(str(error)) from None


def load_matcher(settings: Settings, looked_up: Callable[[int, int], None] | None = None) -> Matcher:
    """The matcher on the text encoder; blocking. `looked_up` is told of the hits and misses of its cache."""
    from reward_server.reward_models.anchor_shelf import AnchorShelf
    from reward_server.reward_models.encoder import EncoderMatcher, load_encoder

    shelf = AnchorShelf(settings.anchors)
    return EncoderMatcher(load_encoder(settings.encoder), looked_up=looked_up, shelf=shelf)


def build_scorer(library: Library, matcher: Matcher, threads: Executor) -> Scorer:
    """The scorer with every judge that needs no provider."""
    panel = Panel([StateJudge(), RuleJudge(), LocalJudge(matcher)])
    return Scorer(library, matcher, panel, threads, load_temperaments())


@dataclass(frozen=True)
class OfflineEngine:
    """Matcher and scorer of a command that runs without a server."""

    matcher: Matcher
    scorer: Scorer


@contextmanager
def offline_engine(settings: Settings, library: Library, matcher: Matcher | None = None) -> Iterator[OfflineEngine]:
    """An engine on its own threads, for the time of one command; it loads a matcher if none is handed in."""
    matcher = matcher or load_matcher(settings)
    with ThreadPoolExecutor(settings.scoring_threads, thread_name_prefix="labs-scoring") as threads:
        yield OfflineEngine(matcher, build_scorer(library, matcher, threads))
