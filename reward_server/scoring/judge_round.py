"""Asks the judges that conversations still wait for, on the event loop: language models, judges of whole ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor

from reward_server.errors import LabsError
from reward_server.judges.estimate import Estimate
from reward_server.judges.panel import Panel
from reward_server.scoring.estimates import Judges, JudgeSnapshot, estimates_of, prepared
from reward_server.scoring.pending import PendingScore
from reward_server.scoring.scored import Scored, Unscored
from reward_server.scoring.total import finished

CASES_PER_ESTIMATE = 128
"""So many cases a conversation judge is given at once: enough to fill any batch, few enough to let others in."""


class JudgeRound:
    """Hears every judge once about all conversations of a call."""

    def __init__(self, panel: Panel, threads: Executor) -> None:
        self._panel = panel
        self._threads = threads

    async def hear(
        self, outcomes: Sequence[PendingScore | Scored | Unscored], snapshot: JudgeSnapshot
    ) -> list[Scored | Unscored]:
        """The outcomes once everybody was heard; all have the judges of one snapshot."""
        waiting = [outcome for outcome in outcomes if isinstance(outcome, PendingScore)]
        if not waiting:
            return [outcome for outcome in outcomes if not isinstance(outcome, PendingScore)]
        answers, judge_estimates = await asyncio.gather(
            self._panel.ask([(pending.case, pending.questions) for pending in waiting]),
            asyncio.gather(*(self._estimates(name, waiting, snapshot.judges) for name in snapshot.judges)),
        )
        estimates = dict(zip(snapshot.judges, judge_estimates, strict=True))
        done = iter(
            finished(pending, answer, {name: of_judge[i] for name, of_judge in estimates.items()}, snapshot)
            for i, (pending, answer) in enumerate(zip(waiting, answers, strict=True))
        )
        return [next(done) if isinstance(outcome, PendingScore) else outcome for outcome in outcomes]

    async def _estimates(
        self, name: str, waiting: Sequence[PendingScore], judges: Judges
    ) -> list[Estimate | LabsError | None]:
        """Ask a judge about each case that wants to hear it; None for the others."""
        asking = [i for i, pending in enumerate(waiting) if name in pending.composite.judges]
        cases = [waiting[i].case for i in asking]
        parts = [cases[start : start + CASES_PER_ESTIMATE] for start in range(0, len(cases), CASES_PER_ESTIMATE)]
        loop, estimates = asyncio.get_running_loop(), []
        for part in parts:
            await prepared(judges[name], part)
            estimates += await loop.run_in_executor(self._threads, estimates_of, judges[name], part)
        by_case = dict(zip(asking, estimates, strict=True))
        return [by_case.get(i) for i in range(len(waiting))]
