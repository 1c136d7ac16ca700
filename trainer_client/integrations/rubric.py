"""A reward function over data of your own: conversations that no persona of Labs held, judged by a rubric of yours.

    judge = rubric_reward("rubric.yaml", api_key="lk_…")

    GRPOTrainer(..., reward_funcs=[judge])                                   # TRL: None where there is no reward
    compute_score = judge                                                    # verl: raises where there is none
    judge.score([[{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]])

The rubric is a mapping, or a file (docs/rubrics.md has its form). The key needs the scopes `score` and `author`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainer_client.batch import FailedItem
from trainer_client.client import LabsClient
from trainer_client.errors import Unscored
from trainer_client.wire import MAX_BATCH_ITEMS, RewardConfig

Talk = Sequence[Mapping[str, Any]]
"""A conversation as messages."""


def rubric_reward(
    rubric: Mapping[str, Any] | str | Path,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    reward_config: RewardConfig | Mapping[str, Any] | None = None,
) -> RubricReward:
    """A reward function that TRL and verl can call."""
    return RubricReward(rubric, base_url=base_url, api_key=api_key, reward_config=reward_config)


class RubricReward:
    """Judges conversations by one rubric on a server. It may be made before processes are forked."""

    def __init__(
        self,
        rubric: Mapping[str, Any] | str | Path,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        reward_config: RewardConfig | Mapping[str, Any] | None = None,
    ) -> None:
        self.rubric = _read(rubric)
        self._server = {"base_url": base_url, "api_key": api_key}
        self._config = reward_config
        self._client: LabsClient | None = None
        self.__name__ = "labs_rubric"

    def __call__(
        self, prompts: Sequence[Any] | None = None, completions: Sequence[Any] | None = None, **given: Any
    ) -> list[float | None] | float:
        """Called by TRL with prompts and completions: a reward each. Called by verl with `solution_str`: one reward.

        Raises:
            Unscored: verl's one conversation has no reward.
        """
        if "solution_str" in given:
            extra = given.get("extra_info") or {}
            [reward] = self.score([_talk(extra.get("prompt", ""), given["solution_str"])])
            if reward is None:
                raise Unscored(
                    self.failures[0] if self.failures else "The conversation has no reward.", code="unscored"
                )
            return reward
        said = list(completions or ())
        asked = list(prompts or [""] * len(said))
        return self.score([_talk(prompt, completion) for prompt, completion in zip(asked, said, strict=True)])

    failures: Sequence[str] = ()
    """Of the last call: why conversations have no reward."""

    def score(self, conversations: Sequence[Talk]) -> list[float | None]:
        """A reward for each conversation in which the agent is the assistant; None where there is none."""
        client = self._open()
        found: list[float | None] = []
        failures: list[str] = []
        for start in range(0, len(conversations), MAX_BATCH_ITEMS):
            part = conversations[start : start + MAX_BATCH_ITEMS]
            outcome = client.batch_evaluate([self._item(str(number), talk) for number, talk in enumerate(part)])
            for each in outcome.results:
                failed = isinstance(each, FailedItem)
                found.append(None if failed else each.reward)
                failures += [f"{each.code}: {each.message}"] if isinstance(each, FailedItem) else []
        self.failures = failures
        return found

    def _item(self, name: str, talk: Talk) -> dict[str, Any]:
        item: dict[str, Any] = {"id": name, "rubric": self.rubric, "messages": list(talk)}
        return item if self._config is None else {**item, "reward_config": self._config}

    def _open(self) -> LabsClient:
        if self._client is None:
            self._client = LabsClient(self._server["base_url"], self._server["api_key"])
        return self._client

    def __getstate__(self) -> dict[str, Any]:
        """Without the connection: workers of a trainer get a copy and open their own."""
        return {**self.__dict__, "_client": None}


def _talk(prompt: Any, completion: Any) -> list[dict[str, Any]]:
    """One conversation from what a trainer hands over: texts, or lists of messages."""
    before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [dict(each) for each in prompt]
    after = (
        [{"role": "assistant", "content": completion}]
        if isinstance(completion, str)
        else [dict(each) for each in completion]
    )
    return [each for each in (*before, *after) if each.get("content") or each.get("tool_calls")]


def _read(rubric: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    if isinstance(rubric, Mapping):
        return dict(rubric)
    path = Path(rubric)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return dict(json.loads(text))
    try:
        import yaml
    except ImportError:
        raise ValueError(f"to read {path.name}, install pyyaml, or write the rubric as JSON") from None
    return dict(yaml.safe_load(text))
