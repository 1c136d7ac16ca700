"""The same in code, to copy: how an agent begins an episode, and how this conversation is scored.

In curl, with the Python client, and for the OpenAI client. A key is never written into them: there is a place for it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
KEY = "lab_YOUR_KEY"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of code under its name."""

    id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SnippetTarget:
    """The scenario and the server that code is about."""

    url: str
    collection: str
    scenario: str
    needs_key: bool

    @property
    def curl_key(self) -> str:
        """The header of a key, where one is needed."""
        return f" -H 'Authorization: Bearer {KEY}'" if self.needs_key else ""

    @property
    def client(self) -> str:
        """The line that makes the Python client."""
        key = f', api_key="{KEY}"' if self.needs_key else ""
        return f'from trainer_client import LabsClient\n\nclient = LabsClient("{self.url}"{key})'

    @property
    def openai(self) -> str:
        """The line that makes the OpenAI client."""
        key = KEY if self.needs_key else "none"
        return f'from openai import OpenAI\n\nclient = OpenAI(base_url="{self.url}/v1", api_key="{key}")'


def to_begin(place: SnippetTarget) -> list[Snippet]:
    """The code that begins an episode and sends a first message."""
    body = json.dumps({"collection_slug": place.collection, "scenario_slug": place.scenario})
    said = json.dumps({"messages": [{"role": "user", "content": "Hello! What can I do for you?"}]})
    post = f"curl -s{place.curl_key} -H 'Content-Type: application/json'"
    where = f'"{place.collection}", "{place.scenario}"'
    return [
        Snippet(
            "curl",
            "curl",
            f"{post} {place.url}/api/v1/episodes \\\n  -d {shlex.quote(body)}\n\n# with the episode_id of the answer:\n"
            f"{post} {place.url}/api/v1/episodes/EPISODE_ID/turns \\\n  -d {shlex.quote(said)}",
        ),
        Snippet(
            "python",
            "Python",
            f"{place.client}\nepisode = client.create_episode({where})\nprint(episode.initial_observation.content)\n"
            'turn = client.turn(episode.episode_id, "Hello! What can I do for you?")\n'
            "print(turn.observation.content, turn.reward)",
        ),
        Snippet(
            "openai",
            "OpenAI",
            f"{place.openai}\nanswer = client.chat.completions.create(\n"
            f'    model="persona:{place.collection}/{place.scenario}",\n'
            '    messages=[{"role": "user", "content": "Hello! What can I do for you?"}],\n    seed=7,\n)\n'
            "print(answer.choices[0].message.content)",
        ),
    ]


def to_score(place: SnippetTarget, messages: Sequence[Json]) -> list[Snippet]:
    """The code that scores exactly this conversation."""
    body = {"collection_slug": place.collection, "scenario_slug": place.scenario, "messages": messages}
    listed = _python(messages)
    return [
        Snippet(
            "curl",
            "curl",
            f"curl -s{place.curl_key} -H 'Content-Type: application/json' {place.url}/api/v1/evaluate \\\n  -d "
            + shlex.quote(json.dumps(body, ensure_ascii=False)),
        ),
        Snippet(
            "python",
            "Python",
            f"{place.client}\nmessages = {listed}\n"
            f'print(client.evaluate("{place.collection}", "{place.scenario}", messages).reward)',
        ),
        Snippet(
            "openai",
            "OpenAI",
            f"{place.openai}\nmessages = {listed}\nanswer = client.chat.completions.create(\n"
            f'    model="judge:{place.collection}/{place.scenario}", messages=messages\n)\n'
            "print(answer.choices[0].message.content)",
        ),
    ]


def as_assistant(messages: Sequence[Json], agent_role: str) -> list[Json]:
    """The conversation with the agent as `assistant`, as everything that scores takes it."""
    return [{**each, "role": "assistant" if each["role"] == agent_role else "user"} for each in messages]


def _python(messages: Sequence[Json]) -> str:
    lines = "".join(f"    {message!r},\n" for message in messages)
    return f"[\n{lines}]"
