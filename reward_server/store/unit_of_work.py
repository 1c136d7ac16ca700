"""The repositories of one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reward_server.store.agents import AgentRepository
from reward_server.store.answers import AnswerRepository
from reward_server.store.audit import AuditRepository
from reward_server.store.browsing import Browsing
from reward_server.store.comparisons import ComparisonRepository
from reward_server.store.criterion_labels import CriterionLabelRepository
from reward_server.store.disposal import Disposal
from reward_server.store.episodes import EpisodeRepository
from reward_server.store.evaluations import EvaluationRepository
from reward_server.store.facts import FactRepository
from reward_server.store.files import FileRepository
from reward_server.store.job_items import JobItemRepository
from reward_server.store.jobs import JobRepository
from reward_server.store.keys import KeyRepository
from reward_server.store.labs import LabRepository
from reward_server.store.llm_answers import LlmAnswerRepository
from reward_server.store.own_collections import OwnCollectionRepository
from reward_server.store.preferences import PreferenceRepository
from reward_server.store.session import Session
from reward_server.store.spending import SpendingRepository
from reward_server.store.training_runs import TrainingRunRepository
from reward_server.store.usage import UsageRepository
from reward_server.store.webhooks import WebhookRepository

Repository = TypeVar("Repository")


class _Opened(Generic[Repository]):
    """A repository of a unit of work, opened when it is first asked for: most units use one or two."""

    def __init__(self, kind: Callable[[Session], Repository]) -> None:
        self._kind = kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, unit: UnitOfWork, owner: type) -> Repository:
        repository = self._kind(unit.session)
        # From now on the unit's own attribute is found first.
        unit.__dict__[self._name] = repository
        return repository


class UnitOfWork:
    """The repositories of one transaction."""

    def __init__(self, session: Session) -> None:
        self.session = session

    labs = _Opened(LabRepository)
    audit = _Opened(AuditRepository)
    usage = _Opened(UsageRepository)
    disposal = _Opened(Disposal)
    keys = _Opened(KeyRepository)
    episodes = _Opened(EpisodeRepository)
    evaluations = _Opened(EvaluationRepository)
    browsing = _Opened(Browsing)
    comparisons = _Opened(ComparisonRepository)
    preferences = _Opened(PreferenceRepository)
    criterion_labels = _Opened(CriterionLabelRepository)
    webhooks = _Opened(WebhookRepository)
    agents = _Opened(AgentRepository)
    own_collections = _Opened(OwnCollectionRepository)
    training_runs = _Opened(TrainingRunRepository)
    answers = _Opened(AnswerRepository)
    files = _Opened(FileRepository)
    jobs = _Opened(JobRepository)
    job_items = _Opened(JobItemRepository)
    facts = _Opened(FactRepository)
    spending = _Opened(SpendingRepository)
    llm_answers = _Opened(LlmAnswerRepository)
