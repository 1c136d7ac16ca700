"""Builds what scores and speaks: scenarios, encoders, judges, the scorer on all of them, and words for personas.

In two steps: what is slow and needs no database is loaded first, so that a standby has it before its turn comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from personas.reading.matcher import Matcher
from personas.reading.reader import LocalReader, Reader
from reward_server.auth.audit import AuditLog
from reward_server.classifier.build import classifier_judge
from reward_server.encoders.micro_batcher import MicroBatcher, usable
from reward_server.judges.estimate import ConversationJudge
from reward_server.judges.plugins import Plugins, load_plugins
from reward_server.judges.verdict_cache import VerdictCache
from reward_server.limits.fair_threads import FairThreads, lab_at_work
from reward_server.limits.weightings import Weightings
from reward_server.llm.base import LanguageModel
from reward_server.llm.build import language_model
from reward_server.llm.durable import StoredLedger, StoredVerdicts
from reward_server.logs.logger import get_logger
from reward_server.reward_models.service import RewardModelService
from reward_server.scoring.lineage import Lineage
from reward_server.scoring.metering import ScoringMeter
from reward_server.scoring.scorer import Scorer
from reward_server.scoring.tie_breaker import PairJudge
from reward_server.scoring.weighting_disclosure import WeightingDisclosure
from reward_server.server.engine import (
    Deciders,
    ExtraJudges,
    asked_judges,
    deciders_of,
    load_matcher,
    load_reader,
    load_scenarios,
    pair_judge,
    reader_of,
    reward_model_service,
)
from reward_server.server.infrastructure import BuildInputs
from reward_server.server.ports import Ports
from reward_server.settings import Settings
from reward_server.store.store import Store
from reward_server.telemetry.metrics import Metrics
from reward_server.voice.build import own_voice_model, speaker_of
from reward_server.voice.speaker import Speaker
from scenarios.library import Library

log = get_logger(__name__)


@dataclass(frozen=True)
class ScoringParts:
    """The scorer, and the parts that it is made of."""

    library: Library
    matcher: Matcher
    reader: Reader
    threads: FairThreads
    model: LanguageModel | None
    speaker: Speaker | None
    verdicts: VerdictCache
    learned: RewardModelService
    scorer: Scorer
    lineage: Lineage
    pairs: PairJudge | None = None
    """Who breaks ties of comparisons, if anybody can be asked."""

    @property
    def caches(self) -> dict[str, Callable[[], float]]:
        """By name, who says how many bytes a cache holds."""
        caches = {"matcher": self.matcher, "reader": self.reader}
        return {name: partial(getattr, each, "held_bytes", 0) for name, each in caches.items()}


@dataclass(frozen=True)
class LoadedModels:
    """Parts that take seconds to load and rest on no database."""

    library: Library
    matcher: Matcher
    reader: Reader
    threads: FairThreads
    learned: RewardModelService
    plugins: Plugins
    classifier: ConversationJudge | None


async def load(stack: AsyncExitStack, settings: Settings, ports: Ports, metrics: Metrics) -> LoadedModels:
    """Scenarios, encoders, the active reward model, plug-ins and the classifier."""
    batcher = MicroBatcher(usable(settings.scoring_threads))
    stack.push_async_callback(asyncio.to_thread, batcher.close)
    library, matcher, reader = await _knowledge(settings, ports, metrics, batcher)
    library = library.of_one_server()
    threads = FairThreads(settings.scoring_threads)
    stack.callback(threads.shutdown, cancel_futures=True)
    learned = reward_model_service(settings, batcher, matcher, lab_at_work)
    await learned.current()
    return LoadedModels(
        library=library,
        matcher=matcher,
        reader=reader,
        threads=threads,
        learned=learned,
        plugins=await asyncio.to_thread(load_plugins, settings.plugin_names),
        classifier=await asyncio.to_thread(classifier_judge, settings, matcher),
    )


async def scoring_of(stack: AsyncExitStack, inputs: BuildInputs, store: Store, loaded: LoadedModels) -> ScoringParts:
    """Judges on what was loaded, and the scorer on all of them."""
    settings, ports, metrics = inputs.settings, inputs.ports, inputs.metrics
    library, matcher, reader, threads = loaded.library, loaded.matcher, loaded.reader, loaded.threads
    model = await _language_model(stack, settings, ports, store, metrics)
    verdicts = VerdictCache(StoredVerdicts(store, ports.clock))
    deciders = await _deciders(stack, inputs, store, matcher, verdicts)
    if isinstance(reader, LocalReader):
        reader = reader_of(settings, reader, deciders.reader, metrics.llm.reader_fell_back)
    # Another one may have been activated since it was loaded.
    await loaded.learned.current()
    guests = ExtraJudges(
        asked=asked_judges(model, settings, verdicts, reader, deciders.judges),
        plugins=loaded.plugins,
        classifier=loaded.classifier,
        reward_model=lambda: loaded.learned.at_hand,
    )
    disclosure = WeightingDisclosure(library.vault, Weightings(), AuditLog(store, ports.clock))
    scorer = ports.build_scorer(library, matcher, reader, threads, disclosure=disclosure, guests=guests)
    scorer.meter = ScoringMeter(library.vault, metrics)
    lineage = Lineage(library.vault, guests.conversation_judges)
    pairs = pair_judge(model, verdicts, reader, deciders.judges)
    speaker = await _speaker(stack, inputs, store, model)
    return ScoringParts(
        library, matcher, reader, threads, model, speaker, verdicts, loaded.learned, scorer, lineage, pairs
    )


async def _deciders(
    stack: AsyncExitStack, inputs: BuildInputs, store: Store, matcher: Matcher, verdicts: VerdictCache
) -> Deciders:
    """The decision models; an SDK takes a second to import, so that is done off the loop."""
    make = partial(deciders_of, meter=inputs.metrics.llm, clock=inputs.ports.clock)
    deciders = await asyncio.to_thread(make, inputs.settings, matcher, verdicts, StoredLedger(store))
    stack.push_async_callback(deciders.close)
    for use, each in (("reader", deciders.reader), ("judges", deciders.judges)):
        if each is not None:
            log.info("decision_model", use=use, **each.describe())
    return deciders


async def _knowledge(
    settings: Settings, ports: Ports, metrics: Metrics, batcher: MicroBatcher
) -> tuple[Library, Matcher, Reader]:
    """Scenarios beside text encoder and reader; all are read off the loop."""

    async def scenarios() -> Library:
        if ports.library is not None:
            return ports.library
        return await asyncio.to_thread(load_scenarios, settings.scenarios, settings.libraries)

    async def encoders() -> tuple[Matcher, Reader]:
        matcher, reader = ports.matcher, ports.reader
        if matcher is None:
            matcher = await asyncio.to_thread(load_matcher, settings, metrics.encoder_looked_up, batcher)
        if reader is None:
            reader = await asyncio.to_thread(load_reader, settings, metrics.encoder_looked_up, batcher)
        return matcher, reader

    library, (matcher, reader) = await asyncio.gather(scenarios(), encoders())
    return library, matcher, reader


async def _language_model(
    stack: AsyncExitStack, settings: Settings, ports: Ports, store: Store, metrics: Metrics
) -> LanguageModel | None:
    """The language model that LLM judges ask; an SDK takes a second to import, so that is done off the loop."""
    if ports.language_model is not None:
        return ports.language_model
    ledger = StoredLedger(store)
    model = await asyncio.to_thread(language_model, settings, ledger, meter=metrics.llm, clock=ports.clock)
    if model is not None:
        stack.push_async_callback(model.close)
        log.info("language_model", **model.describe())
    return model


async def _speaker(
    stack: AsyncExitStack, inputs: BuildInputs, store: Store, judges_model: LanguageModel | None
) -> Speaker | None:
    """Who words what personas say, with a model of its own or that of the judges."""
    settings, metrics, clock = inputs.settings, inputs.metrics, inputs.ports.clock
    build = partial(language_model, ledger=StoredLedger(store), meter=metrics.llm, clock=clock)
    own = await asyncio.to_thread(own_voice_model, settings, build)
    if own is not None:
        stack.push_async_callback(own.close)
        log.info("voice_model", **own.describe())
    return speaker_of(judges_model if own is None else own, settings, metrics)
