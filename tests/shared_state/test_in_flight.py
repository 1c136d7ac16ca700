"""One turn at a time: joined by its own retry, refused to others, and never left locked."""

from __future__ import annotations

import asyncio

import pytest

from reward_server.errors import JudgeFailed, StoreUnavailable, TurnInProgress, Unavailable
from reward_server.shared_state.in_flight import InFlightTurns

Turns = InFlightTurns[str]


async def answer(turns: Turns, fingerprint: str, work: asyncio.Future[str], episode: str = "ep") -> str:
    """What a request does: own the turn and work, or join and wait."""
    with turns.enter(episode, fingerprint) as entry:
        if not entry.is_owner:
            return await entry.joined_answer()
        value = await work
        entry.answer(value)
        return value


def work() -> asyncio.Future[str]:
    return asyncio.get_running_loop().create_future()


async def begin(turns: Turns, fingerprint: str, working: asyncio.Future[str]) -> asyncio.Task[str]:
    task = asyncio.create_task(answer(turns, fingerprint, working))
    await asyncio.sleep(0)
    return task


async def test_a_retry_joins_and_gets_the_same_answer_without_working() -> None:
    turns, working, idle = Turns(), work(), work()
    owner = await begin(turns, "f", working)
    joiners = [await begin(turns, "f", idle) for _ in range(3)]
    working.set_result("said")
    assert await asyncio.gather(owner, *joiners) == ["said"] * 4
    assert not idle.done()


async def test_another_request_is_refused_while_the_turn_is_answered() -> None:
    turns, working = Turns(), work()
    owner = await begin(turns, "f", working)
    with pytest.raises(TurnInProgress):
        await answer(turns, "g", work())
    working.set_result("said")
    assert await owner == "said"


async def test_another_episode_is_not_concerned() -> None:
    turns, working, other = Turns(), work(), work()
    owner = await begin(turns, "f", working)
    other.set_result("elsewhere")
    assert await answer(turns, "g", other, episode="other") == "elsewhere"
    working.set_result("said")
    await owner


async def test_the_episode_is_free_after_the_answer() -> None:
    turns, first, second = Turns(), work(), work()
    first.set_result("one")
    second.set_result("two")
    assert await answer(turns, "f", first) == "one"
    assert await answer(turns, "f", second) == "two"


@pytest.mark.parametrize("error", [JudgeFailed("the judge"), StoreUnavailable(retry_after_s=7)])
async def test_an_owner_that_fails_frees_the_episode_and_joiners_get_its_error(error: Exception) -> None:
    turns, working = Turns(), work()
    owner = await begin(turns, "f", working)
    joiners = [await begin(turns, "f", work()) for _ in range(2)]
    working.set_exception(error)
    outcomes = await asyncio.gather(owner, *joiners, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(error)] * 3
    assert [vars(outcome) for outcome in outcomes] == [vars(error)] * 3
    assert len({id(outcome) for outcome in outcomes}) == 3
    again = work()
    again.set_result("said")
    assert await answer(turns, "g", again) == "said"


async def test_an_unforeseen_failure_is_not_shown_to_joiners() -> None:
    turns, working = Turns(), work()
    owner = await begin(turns, "f", working)
    joiner = await begin(turns, "f", work())
    working.set_exception(LookupError("canary"))
    with pytest.raises(LookupError):
        await owner
    with pytest.raises(Unavailable) as caught:
        await joiner
    assert "canary" not in str(caught.value)


async def test_an_owner_that_is_cancelled_frees_the_episode_and_joiners_may_retry() -> None:
    turns = Turns()
    owner = await begin(turns, "f", work())
    joiner = await begin(turns, "f", work())
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    with pytest.raises(Unavailable) as caught:
        await joiner
    assert caught.value.retry_after_s >= 1
    again = work()
    again.set_result("said")
    assert await answer(turns, "g", again) == "said"


async def test_a_joiner_that_is_cancelled_disturbs_nobody() -> None:
    turns, working = Turns(), work()
    owner = await begin(turns, "f", working)
    joiner = await begin(turns, "f", work())
    joiner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await joiner
    working.set_result("said")
    assert await owner == "said"


async def test_an_owner_that_leaves_without_an_answer_frees_the_episode() -> None:
    turns = Turns()
    with turns.enter("ep", "f") as owner:
        joiner = await begin(turns, "f", work())
        assert owner.is_owner
    with pytest.raises(Unavailable):
        await joiner
    with turns.enter("ep", "g") as entry:
        assert entry.is_owner


async def test_only_the_owner_answers_and_once() -> None:
    turns = Turns()
    with turns.enter("ep", "f") as owner, turns.enter("ep", "f") as joiner:
        with pytest.raises(RuntimeError):
            joiner.answer("mine")
        owner.answer("said")
        with pytest.raises(RuntimeError):
            owner.answer("again")
        assert await joiner.joined_answer() == "said"
