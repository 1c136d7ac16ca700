"""The mailbox: a prompt is filed, a hand answers, what does not fit is refused, and both adapters understand it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mailbox_provider import server
from reward_server.decisions.chat import ChatDecisions
from reward_server.decisions.model import DecisionModel
from reward_server.decisions.questions import YesNoQuestion
from reward_server.llm.caller import CallLimits
from reward_server.llm.openai_provider import OpenAIProvider
from tests.llm.asking import GOOD, a_question


@pytest.fixture
def mail(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    running = server(tmp_path, 0)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_address[1]}/v1", tmp_path
    running.shutdown()
    running.server_close()


async def there(path: Path) -> None:
    def look() -> None:
        while not path.exists():
            time.sleep(0.05)

    await asyncio.to_thread(look)


async def written(folder: Path, name: str, answer: Any) -> None:
    await there(folder / f"{name}.json")
    (folder / "draft").write_text(json.dumps(answer))
    (folder / "draft").rename(folder / f"{name}.answer.json")


async def test_a_hand_decides_and_the_same_question_is_not_asked_twice(mail: tuple[str, Path]) -> None:
    url, folder = mail
    model = DecisionModel(ChatDecisions("mailbox", "none", base_url=url), CallLimits(deadline_s=30, retries=0))
    asked = {"a": YesNoQuestion("Is it open?")}
    for _ in range(2):
        answering = asyncio.create_task(written(folder, "0001", {"probabilities": {"Yes": 0.9, "No": 0.1}}))
        found = await model.outcomes("The door is open.", asked, lab_id="acme")
        assert found["a"].yes == pytest.approx(0.9)  # type: ignore[union-attr]
        await answering
    filed = json.loads((folder / "0001.json").read_text())
    assert filed["choices"] == ["Yes", "No"]
    assert not (folder / "0002.json").exists()
    await model.close()


async def test_an_answer_that_does_not_fit_the_schema_is_refused_with_the_reason(mail: tuple[str, Path]) -> None:
    url, folder = mail
    provider = OpenAIProvider("mailbox", "none", base_url=url, name="vllm")
    asking = asyncio.create_task(provider.complete(a_question(), 30))
    await written(folder, "0001", {"text": {"found": "nothing"}})
    await there(folder / "0001.why.txt")
    assert (folder / "0001.refused.json").exists()
    await written(folder, "0001", {"text": GOOD})
    assert (await asking).parsed.model_dump() == GOOD
    await provider.close()
