"""verl's reward manager against a real server. verl's base class stands in for itself: verl wants other versions of
packages than the tests have. `benchmarks.other_trainers` runs the manager under verl."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from tests.trainer_client.live_server import LiveServer
from trainer_client import LabsClient

pytestmark = pytest.mark.slow

WHERE = ("clinical-intake", "tired-and-dizzy")
BEFORE = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "I am tired all the time."}]
REPLY = "I am sorry to hear that. Do you take any painkillers?"


class Words:
    """A tokenizer with a word for each number."""

    def decode(self, ids: torch.Tensor, *, skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return " ".join(REPLY.split()[int(each)] for each in ids)


class Base:
    """What the manager needs of verl's."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any) -> None:
        self.tokenizer = tokenizer


@pytest.fixture
def manager_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in (
        "verl",
        "verl.experimental",
        "verl.experimental.reward_loop",
        "verl.experimental.reward_loop.reward_manager",
    ):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    base = ModuleType("verl.experimental.reward_loop.reward_manager.base")
    base.RewardManagerBase = Base  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, base.__name__, base)
    module = "trainer_client.integrations.verl_reward"
    monkeypatch.delitem(sys.modules, module, raising=False)
    yield importlib.import_module(module).LabsRewardManager
    sys.modules.pop(module, None)


def item(source: str) -> list[Any]:
    """A batch of one reply, padded on the right."""
    count = len(REPLY.split())
    ids = torch.tensor([*range(count), 0, 0])
    mask = torch.tensor([1, 1, *[1] * count, 0, 0])
    row = {"data_source": source, "raw_prompt": BEFORE}
    return [SimpleNamespace(batch={"responses": ids, "attention_mask": mask}, non_tensor_batch=row)]


async def test_a_reply_gets_the_reward_of_evaluate(
    manager_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveServer(tmp_path) as server:
        monkeypatch.setenv("LABS_URL", server.url)
        manager = manager_of(None, Words(), reward_router_address=None)
        found = await manager.run_single(item("/".join(WHERE)))
        with LabsClient(server.url) as client:
            said = client.evaluate(*WHERE, [BEFORE[1], {"role": "assistant", "content": REPLY}])
        assert found == {"reward_score": said.reward, "reward_extra_info": {"labs_scores": dict(said.scores or {})}}
        assert said.reward > 0
        with pytest.raises(ValueError, match="name the scenario"):
            await manager.run_single(item("gsm8k"))
        await manager.close()
