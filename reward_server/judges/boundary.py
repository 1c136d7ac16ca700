"""The boundary of a judge that asks a provider: what fails in one case is that case's outcome, told without content."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

import structlog

from reward_server.errors import BodyTooLarge, BudgetExhausted, JudgeFailed, Unavailable
from reward_server.judges.asking import no_answer
from reward_server.judges.base import Case, Outcome, Verdict
from reward_server.llm.base import FailureKind, LlmFailed

NO_HINTS: Mapping[FailureKind, str] = MappingProxyType({})

log = structlog.get_logger(__name__)


async def outcome_of(
    decide: Callable[[], Awaitable[tuple[Verdict, ...]]],
    case: Case,
    *,
    provider: str,
    hints: Mapping[FailureKind, str] = NO_HINTS,
) -> Outcome:
    """The verdicts of a case, or its failure; `hints` say what an operator can do against a kind of failure."""
    try:
        return await decide()
    except (BodyTooLarge, BudgetExhausted, Unavailable) as refusal:
        return refusal  # not the judge's failure: the caller, or whoever runs this server, can help it
    except LlmFailed as failure:
        failed = no_answer(failure)
        more = {"hint": hints[failure.kind]} if failure.kind in hints else {}
    except Exception as error:  # noqa: BLE001 (a provider boundary: one transcript must not fail its batch)
        # Only the kind of error: its message may quote the rubric or the conversation.
        failed, more = JudgeFailed(kind="defect"), {"error": type(error).__name__}
    log.warning("judge_failed", scenario=case.scenario.name, provider=provider, kind=failed.kind, **more)
    return failed
