"""The model that `--models` names, served once for all tests that do not break it, and servers of ours that ask it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reward_server.auth.scopes import EVERY
from tests.faults.server_process import ServerProcess, server_process
from tests.models.model_server import ModelServer


@pytest.fixture(scope="session")
def weights(pytestconfig: pytest.Config) -> Path:
    """The folder that was named."""
    folder: Path = pytestconfig.option.models
    return folder.resolve()


@pytest.fixture(scope="session")
def model(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelServer]:
    """The model, in good health."""
    with ModelServer(weights, tmp_path_factory.mktemp("model") / "llama.log") as served:
        yield served


@pytest.fixture
def mortal(weights: Path, tmp_path: Path) -> Iterator[ModelServer]:
    """The same model in a process that a test may freeze and kill."""
    with ModelServer(weights, tmp_path / "llama.log") as served:
        yield served


def limits() -> dict[str, str]:
    """Time enough for a machine without a GPU."""
    return {
        "LABS_REQUEST_DEADLINE_S": "240",
        "LABS_LLM_DEADLINE_S": "30",
        # One at a time, as the server of the model takes them: waiting for a place is no part of the deadline.
        "LABS_LLM_CONCURRENCY": "1",
    }


def decisions_of(model: ModelServer) -> dict[str, str]:
    """The model as a decision model."""
    return {"LABS_DECISIONS": "chat", "LABS_DECISIONS_URL": model.url, "LABS_DECISIONS_MODEL": model.name}


def plays_with(model: ModelServer) -> dict[str, str]:
    """The model as reader and voice."""
    voice = {"LABS_VOICE_PROVIDER": "vllm", "LABS_VOICE_BASE_URL": model.url, "LABS_VOICE_MODEL": model.name}
    return limits() | {"LABS_READER": "decisions", "LABS_PERSONA_VOICE": "llm"} | decisions_of(model) | voice


def judges_with(model: ModelServer, judges: str = "llm") -> dict[str, str]:
    """The model as judge, asked for a verdict in words or for a decision."""
    if judges == "decisions":
        return limits() | {"LABS_JUDGES": "decisions"} | decisions_of(model)
    language = {"LABS_LLM_PROVIDER": "vllm", "LABS_LLM_BASE_URL": model.url, "LABS_LLM_MODEL": model.name}
    return limits() | {"LABS_LLM_RETRIES": "0"} | language


@pytest.fixture
def stage(model: ModelServer, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of ours whose personas hear and speak by it."""
    with server_process(tmp_path, keys=("acme",), scopes=EVERY, **plays_with(model)) as server:
        yield server


@pytest.fixture
def bench(model: ModelServer, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of ours that has it judge."""
    with server_process(tmp_path, keys=("acme",), scopes=EVERY, **judges_with(model)) as server:
        yield server
