"""The learner's rollouts against the real app: what was trained on is what was scored."""

from __future__ import annotations

from pathlib import Path

import httpx2

from learner.generate.hf import HfGenerator
from learner.rollout import Rollouts, Stage
from learner.tokens import Renderer
from reward_server.app import Ports, create_app
from reward_server.settings import Settings
from scenarios.library import load_library
from tests.learner.small import policy, tokenizer
from trainer_client import AsyncLabsClient

COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"


async def test_the_reward_of_a_trajectory_is_that_of_the_text_its_tokens_say(tmp_path: Path) -> None:
    words = tokenizer()
    renderer = Renderer(words)
    app = create_app(Settings(data=tmp_path), ports=Ports(library=load_library(COLLECTIONS), own_process=False))
    stage = Stage("bike-shop", "flat-tyre", max_turns=3)
    transport = httpx2.ASGITransport(app=app)
    async with app.router.lifespan_context(app), AsyncLabsClient("http://localhost", "", transport=transport) as client:
        generator = HfGenerator(policy(words, spread=3.0), max_tokens=6)
        collected = await Rollouts(client, generator, renderer, stage).collect([1, 2], 2, (0,))
        assert collected.errored == 0
        for trajectory in collected.trajectories:
            said = [renderer.spoken(list(each.ids)).text for each in trajectory.segments if each.sampled]
            episode = await client.get_episode(trajectory.episode_id)
            assert [message.content for message in episode.messages[1::2]] == said
            assert tuple(episode.rewards) == trajectory.turn_rewards
            evaluated = await client.evaluate(stage.collection, stage.scenario, episode.messages)
            assert evaluated.reward == trajectory.reward
