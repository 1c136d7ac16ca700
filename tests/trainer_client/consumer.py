"""What a trainer may write, for mypy alone (`test_typing`): every line must pass `--strict` without a cast."""

from __future__ import annotations

from trainer_client import AsyncLabsClient, ChatMessage, LabsClient, RawResponse, play, play_async
from trainer_client.wire import AgentSummary, EpisodeList, EpisodeResponse, JobResponse, StartedEpisode, TurnResponse


def last_words(messages: list[ChatMessage]) -> str:
    return messages[-1]["content"]


async def last_words_async(messages: list[ChatMessage]) -> ChatMessage:
    return {"role": "assistant", "content": messages[-1]["content"].upper()}


def synchronous(client: LabsClient) -> list[str]:
    rollouts = play(client, last_words, "c", "s", episodes=2)
    client.evaluate("c", "s", rollouts[0].messages)
    answer: TurnResponse = client.with_options(timeout=5.0).turn("ep_1", "hello")
    raw: RawResponse[TurnResponse] = client.with_raw_response.turn("ep_1", "hello", terminate=True)
    found: list[EpisodeResponse] = list(client.list_episodes(limit=5))
    started: list[StartedEpisode] = client.batch_episodes("c", "s", 2, seed=1)
    of_lists: RawResponse[EpisodeList] = client.with_raw_response.list_episodes()
    agent: AgentSummary = next(iter(client.agents.list()))
    job: JobResponse = client.jobs.wait(client.agents.evaluate(agent.agent_id, "c").job_id)
    found += of_lists.parse().data
    said = [job.job_id, started[0].episode_id, answer.observation.content, raw.parse().observation.content]
    return [*said, *(each.episode_id for each in found)]


async def asynchronous(client: AsyncLabsClient) -> float:
    rollouts = await play_async(client, last_words_async, "c", "s", seeds=[1])
    raw = await client.with_raw_response.evaluate("c", "s", rollouts[0].messages)
    first = (await client.list_episodes()).data
    names = [each.episode_id async for each in client.list_episodes()]
    return raw.parse().reward + len(first) + len(names)
