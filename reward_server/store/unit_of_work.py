"""The repositories of one transaction."""

from __future__ import annotations

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
from reward_server.store.preferences import Preferences
from reward_server.store.session import Session
from reward_server.store.spending import Spending
from reward_server.store.training_runs import TrainingRuns
from reward_server.store.usage import Usage
from reward_server.store.webhooks import Webhooks


class UnitOfWork:
    """The repositories of one transaction."""

    def __init__(self, session: Session) -> None:
        self.labs = Labs(session)
        self.audit = Audit(session)
        self.usage = Usage(session)
        self.disposal = Disposal(session)
        self.keys = Keys(session)
        self.episodes = Episodes(session)
        self.evaluations = Evaluations(session)
        self.browsing = Browsing(session)
        self.comparisons = Comparisons(session)
        self.preferences = Preferences(session)
        self.webhooks = Webhooks(session)
        self.agents = Agents(session)
        self.training_runs = TrainingRuns(session)
        self.answers = Answers(session)
        self.files = Files(session)
        self.jobs = Jobs(session)
        self.job_items = JobItems(session)
        self.facts = Facts(session)
        self.spending = Spending(session)
        self.llm_answers = LlmAnswers(session)
