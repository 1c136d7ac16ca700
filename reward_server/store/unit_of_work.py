"""The repositories of one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from reward_server.store.agents import Agents
from reward_server.store.answers import Answers
from reward_server.store.audit import Audit
from reward_server.store.browsing import Browsing
from reward_server.store.comparisons import Comparisons
from reward_server.store.disposal import Disposal
from reward_server.store.episodes import Episodes
from reward_server.store.evaluations import Evaluations
from reward_server.store.facts import Facts
from reward_server.store.files import Files
from reward_server.store.job_items import JobItems
from reward_server.store.jobs import Jobs
from reward_server.store.keys import Keys
from reward_server.store.labs import Labs
from reward_server.store.llm_answers import LlmAnswers
from reward_server.store.own_collections import OwnCollections
from reward_server.store.preferences import Preferences
from reward_server.store.session import Session
from reward_server.store.spending import Spending
from reward_server.store.training_runs import TrainingRuns
from reward_server.store.usage import Usage
from reward_server.store.webhooks import Webhooks

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

    labs = _Opened(Labs)
    audit = _Opened(Audit)
    usage = _Opened(Usage)
    disposal = _Opened(Disposal)
    keys = _Opened(Keys)
    episodes = _Opened(Episodes)
    evaluations = _Opened(Evaluations)
    browsing = _Opened(Browsing)
    comparisons = _Opened(Comparisons)
    preferences = _Opened(Preferences)
    webhooks = _Opened(Webhooks)
    agents = _Opened(Agents)
    own_collections = _Opened(OwnCollections)
    training_runs = _Opened(TrainingRuns)
    answers = _Opened(Answers)
    files = _Opened(Files)
    jobs = _Opened(Jobs)
    job_items = _Opened(JobItems)
    facts = _Opened(Facts)
    spending = _Opened(Spending)
    llm_answers = _Opened(LlmAnswers)
