"""Builds the parts that score: the matcher on the text encoder, the panel of judges, and the scorer on both.

The server and the offline commands build their scorer here, so that a transcript gets the same number from all
of them. Importing this module loads no model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import scenarios.yamlfile
from personas.case.library import load_temperaments
from personas.reading.matcher import Matcher
from personas.reading.reader import LocalReader, Reader
from reward_server.classifier.build import classifier_judge
from reward_server.clock import Clock
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import Decider
from reward_server.errors import ConfigurationError, ScenarioError
from reward_server.judges.base import ComputedJudge, RemoteJudge
from reward_server.judges.decided import DecisionJudge
from reward_server.judges.decided_pair import DecidedPairs
from reward_server.judges.estimate import CLASSIFIER, REWARD_MODEL, ConversationJudge
from reward_server.judges.llm import LlmJudge
from reward_server.judges.local import LocalJudge
from reward_server.judges.pairwise import PairwiseJudge
from reward_server.judges.panel import Panel
from reward_server.judges.plugins import NO_PLUGINS, Plugins, load_plugins
from reward_server.judges.rule import RuleJudge
from reward_server.judges.state import StateJudge
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.llm.base import LanguageModel
from reward_server.llm.budget import Ledger
from reward_server.llm.caller import CallMeter
from reward_server.scoring.disclosure import FULL_DISCLOSURE, DisclosurePolicy
from reward_server.scoring.lineage import Lineage
from reward_server.scoring.scorer import Scorer
from reward_server.server.library_shelf import LibraryShelf
from reward_server.settings import Settings
from scenarios.library import Library, load_library
from scenarios.lint import COLLECTIONS

if TYPE_CHECKING:
    from reward_server.encoders.micro_batcher import MicroBatcher
    from reward_server.reward_models.service import RewardModelService


_packaged: dict[Path, Library] = {}
"""Nothing changes them while a process runs."""


def load_scenarios(root: Path | None, shelf: Path | None = None) -> Library:
    """The scenarios below `root`; `ScenarioError` names file and line.

    Args:
        root: a folder of collections; without one, those of the package, which are read once.
        shelf: where they are kept compiled between processes; without it, they are compiled anew.
    """
    try:
        if root is not None:
            return _read(root, shelf)
        return _packaged.get(COLLECTIONS) or _packaged.setdefault(COLLECTIONS, _read(COLLECTIONS, shelf))
    except scenarios.yamlfile.ScenarioFileError as error:
        raise ScenarioError(str(error)) from None


def _read(root: Path, shelf: Path | None) -> Library:
    return load_library(root) if shelf is None else LibraryShelf(shelf).load(root)


def load_matcher(
    settings: Settings,
    looked_up: Callable[[int, int], None] | None = None,
    batcher: MicroBatcher | None = None,
) -> Matcher:
    """The matcher on the text encoder; blocking.

    Args:
        settings: name the encoder.
        looked_up: is told of the hits and misses of its cache.
        batcher: whose threads encode; without one, the calling thread does.
    """
    from reward_server.encoders.anchor_shelf import AnchorShelf
    from reward_server.encoders.encoder import EncoderMatcher
    from reward_server.encoders.loading import load_encoder

    shelf = AnchorShelf(settings.anchors)
    encoder = load_encoder(settings.encoder)
    batched = None if batcher is None else batcher.over(encoder)
    return EncoderMatcher(encoder, looked_up=looked_up, shelf=shelf, batched=batched)


def load_reader(
    settings: Settings,
    looked_up: Callable[[int, int], None] | None = None,
    batcher: MicroBatcher | None = None,
) -> LocalReader:
    """The local reader of agent turns; blocking."""
    from reward_server.reader.build import local_reader

    twice = settings.reader_commitments == "twice"
    return local_reader(settings.anchors, looked_up, batcher, precision=settings.reader_precision, twice=twice)


@dataclass(frozen=True)
class Deciders:
    """The decision models of the settings: each of its uses has its own, or None."""

    reader: DecisionModel | None = None
    judges: DecisionModel | None = None

    async def close(self) -> None:
        """Close the connections of both."""
        for each in (self.reader, self.judges):
            if each is not None:
                await each.close()


def deciders_of(
    settings: Settings,
    matcher: Matcher,
    kept: VerdictCache,
    ledger: Ledger | None = None,
    *,
    meter: CallMeter | None = None,
    clock: Clock | None = None,
) -> Deciders:
    """The decision models that the reader and the judges ask; `ConfigurationError` where one cannot be used."""
    from reward_server.decisions.build import decision_model

    def made(*, wanted: bool) -> DecisionModel | None:
        cosine = matcher.cosine, matcher.version
        return decision_model(settings, cosine, kept, ledger, meter=meter, clock=clock) if wanted else None

    return Deciders(made(wanted=settings.reader != "local"), made(wanted=settings.judges == "decisions"))


def reader_of(
    settings: Settings,
    local: LocalReader,
    decider: Decider | None,
    fell_back: Callable[[str], None] = lambda kind: None,
) -> Reader:
    """The reader of agent turns for personas and scoring; called on the event loop, where a decision model is asked.

    Raises:
        ConfigurationError: a decision model shall read, and there is no event loop to ask it on.
    """
    if settings.reader == "local" or decider is None:
        return local
    from reward_server.reader.decided import CascadeReader, DecisionReader

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            f"LABS_READER={settings.reader} needs a running server: score through it, or set LABS_READER=local"
        ) from None
    falls_back = settings.reader_failure == "local"
    asking = DecisionReader(decider, local, loop, falls_back=falls_back, fell_back=fell_back)
    return asking if settings.reader == "decisions" else CascadeReader(local, asking)


def _no_reward_model() -> ConversationJudge | None:
    return None


@dataclass(frozen=True)
class ExtraJudges:
    """The judges besides the embedded ones."""

    asked: tuple[RemoteJudge, ...] = ()
    plugins: Plugins = NO_PLUGINS
    classifier: ConversationJudge | None = None
    reward_model: Callable[[], ConversationJudge | None] = _no_reward_model
    """The learned model that is active at this moment; asked at the beginning of each call."""

    def conversation_judges(self) -> Mapping[str, ConversationJudge]:
        """Those that put a number on whole conversations, by the name that composites call them."""
        own = {CLASSIFIER: self.classifier, REWARD_MODEL: self.reward_model()}
        return {**self.plugins.conversation, **{name: judge for name, judge in own.items() if judge is not None}}


NO_GUESTS = ExtraJudges()


def asked_judges(
    model: LanguageModel | None,
    settings: Settings,
    verdicts: VerdictCache,
    reader: Reader,
    decider: Decider | None = None,
) -> tuple[RemoteJudge, ...]:
    """The judge of `judge` criteria: a decision model, or else a language model, if there is one."""
    if decider is not None:
        return (DecisionJudge(decider, settings.decisions_threshold, reader),)
    return () if model is None else (LlmJudge(model, verdicts, settings.llm_samples, reader),)


def pair_judge(
    model: LanguageModel | None, verdicts: VerdictCache, reader: Reader, decider: Decider | None = None
) -> PairwiseJudge | DecidedPairs | None:
    """The judge that compares two conversations, if anybody can be asked."""
    if decider is not None:
        return DecidedPairs(decider, reader)
    return None if model is None else PairwiseJudge(model, verdicts, reader)


def build_scorer(
    library: Library,
    matcher: Matcher,
    reader: Reader,
    threads: Executor,
    *,
    disclosure: DisclosurePolicy,
    guests: ExtraJudges = NO_GUESTS,
) -> Scorer:
    """The scorer with the embedded judges and the guests."""
    computed: list[ComputedJudge] = [StateJudge(), RuleJudge(), LocalJudge(matcher), *guests.plugins.computed]
    panel = Panel(computed, [*guests.asked, *guests.plugins.asked])
    return Scorer(
        library,
        matcher,
        panel,
        threads,
        load_temperaments(),
        reader=reader,
        disclosure=disclosure,
        conversation_judges=guests.conversation_judges,
    )


def reward_model_service(
    settings: Settings,
    batcher: MicroBatcher | None = None,
    matcher: Matcher | None = None,
    whose: Callable[[], str] = lambda: "",
) -> RewardModelService:
    """The reward models of the data folder; nothing is loaded before it is needed."""
    from reward_server.encoders.encoder import TextEncoder
    from reward_server.encoders.loading import load_fast_encoder
    from reward_server.reward_models.featurisers import Featurisers
    from reward_server.reward_models.registry import Registry
    from reward_server.reward_models.service import RewardModelService

    def load(name: str) -> TextEncoder:
        encoder = load_fast_encoder(name)
        return encoder if batcher is None else batcher.over(encoder)

    featurisers = Featurisers(settings.encoder, load)
    return RewardModelService(Registry(settings.reward_models), featurisers.of, matcher, whose)


@dataclass(frozen=True)
class CurrentScoring:
    """The parts that rewards of a server rest on at this moment."""

    scoring_version: str
    lineage: Lineage


async def present(settings: Settings) -> CurrentScoring:
    """That of a server with these settings and this data folder; `LabsError` where none would start."""
    from reward_server.llm.build import language_model

    library = await asyncio.to_thread(load_scenarios, settings.scenarios, settings.libraries)
    model = language_model(settings)
    try:
        with offline_engine(settings, library, model=model) as engine:
            lineage = Lineage(library.vault, engine.guests.conversation_judges)
            return CurrentScoring(engine.scorer.scoring_version, lineage)
    finally:
        if model is not None:
            await model.close()


async def present_version(settings: Settings) -> str:
    """Its scoring version alone."""
    return (await present(settings)).scoring_version


@dataclass(frozen=True)
class OfflineEngine:
    """Matcher, reader and scorer of a command that runs without a server."""

    matcher: Matcher
    reader: Reader
    scorer: Scorer
    guests: ExtraJudges
    pairs: PairwiseJudge | DecidedPairs | None = None
    """Who compares two conversations, if anybody can be asked."""


@contextmanager
def offline_engine(
    settings: Settings,
    library: Library,
    matcher: Matcher | None = None,
    model: LanguageModel | None = None,
    reader: Reader | None = None,
) -> Iterator[OfflineEngine]:
    """An engine on its own threads, for the time of one command; it loads matcher and reader if none is handed in.

    What LLM judges decide is forgotten with the command.
    """
    matcher, verdicts = matcher or load_matcher(settings), VerdictCache()
    deciders = deciders_of(settings, matcher, verdicts)
    reader = reader or reader_of(settings, load_reader(settings), deciders.reader)
    remote_judges = asked_judges(model, settings, verdicts, reader, deciders.judges)
    learned = reward_model_service(settings, matcher=matcher).active
    guests = ExtraJudges(
        asked=remote_judges,
        plugins=load_plugins(settings.plugin_names),
        classifier=classifier_judge(settings, matcher),
        reward_model=learned.judge,
    )
    with ThreadPoolExecutor(settings.scoring_threads, thread_name_prefix="labs-scoring") as threads:
        scorer = build_scorer(library, matcher, reader, threads, disclosure=FULL_DISCLOSURE, guests=guests)
        pairs = pair_judge(model, verdicts, reader, deciders.judges)
        yield OfflineEngine(matcher, reader, scorer, guests, pairs)
