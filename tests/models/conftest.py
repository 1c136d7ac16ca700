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


def settings_of(model: ModelServer) -> dict[str, str]:
    """The model as reader, judge and voice, with time enough for a machine without a GPU."""
    return {
        "LABS_READER": "decisions",
        "LABS_DECISIONS": "chat",
        "LABS_DECISIONS_URL": model.url,
        "LABS_DECISIONS_MODEL": model.name,
        "LABS_JUDGES": "llm",
        "LABS_LLM_PROVIDER": "vllm",
        "LABS_LLM_BASE_URL": model.url,
        "LABS_LLM_MODEL": model.name,
        "LABS_LLM_DEADLINE_S": "60",
        "LABS_PERSONA_VOICE": "llm",
        "LABS_REQUEST_DEADLINE_S": "240",
    }


@pytest.fixture(scope="session")
def labs(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server of ours that asks it for everything."""
    with server_process(tmp_path_factory.mktemp("labs"), keys=("acme",), scopes=EVERY, **settings_of(model)) as server:
        yield server
