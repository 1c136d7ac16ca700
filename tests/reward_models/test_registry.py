"""The models of a server, and which of them serves."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from reward_server.errors import Conflict, RewardModelNotFound, UnusableModel
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.registry import ACTIVE, Registry
from reward_server.reward_models.service import RewardModelService
from tests.reward_models.talks import WordCounts
from tests.reward_models.test_artefact import NOW, about, some_heads


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "models")


def added(registry: Registry, seed: int) -> Artefact:
    folder = registry.folder.parent / f"trained-{seed}"
    artefact.write(folder, some_heads(seed), about(), NOW + timedelta(hours=seed))
    return registry.add(artefact.read(folder))


def test_models_are_listed_newest_first_whatever_else_lies_there(registry: Registry) -> None:
    assert registry.cards() == []
    ids = [added(registry, seed).id for seed in (1, 3, 2)]
    (registry.folder / "rm_nonsense").mkdir()
    (registry.folder / "rm_000000000000").mkdir()
    assert [card.id for card in registry.cards()] == [ids[1], ids[2], ids[0]]


def test_adding_a_model_twice_is_adding_it_once(registry: Registry) -> None:
    first = added(registry, 1)
    assert registry.add(first).id == first.id
    assert len(registry.cards()) == 1


def test_one_model_is_active_at_a_time_or_none(registry: Registry) -> None:
    first, second = added(registry, 1), added(registry, 2)
    assert registry.active_id() is None
    assert registry.stamp() is None
    registry.activate(first.id)
    before = registry.stamp()
    registry.activate(second.id)
    assert registry.active_id() == second.id
    assert registry.stamp() != before
    registry.deactivate()
    registry.deactivate()
    assert registry.active_id() is None


@pytest.mark.parametrize("name", ["rm_000000000000", "../trained-1", "", "rm_", "active.json"])
def test_what_is_not_there_cannot_be_activated(registry: Registry, name: str) -> None:
    added(registry, 1)
    with pytest.raises(RewardModelNotFound):
        registry.activate(name)
    assert registry.active_id() is None


def test_a_damaged_model_is_not_activated(registry: Registry) -> None:
    first, second = added(registry, 1), added(registry, 2)
    registry.activate(first.id)
    (registry.folder / second.id / "heads.safetensors").write_bytes(b"")
    with pytest.raises(UnusableModel):
        registry.activate(second.id)
    assert registry.active_id() == first.id


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"id": "../x"}', '{"id": 3}'])
def test_an_unreadable_choice_is_an_error_not_no_model(registry: Registry, content: str) -> None:
    added(registry, 1)
    (registry.folder / ACTIVE).write_text(content)
    with pytest.raises(UnusableModel, match="activate a model again"):
        registry.active_id()


async def test_a_choice_that_cannot_be_written_is_not_blamed_on_the_model(registry: Registry) -> None:
    model = added(registry, 1)
    (registry.folder / ACTIVE).mkdir()
    service = RewardModelService(registry, lambda found: WordCounts())
    with pytest.raises(Conflict, match="cannot write which reward model is active"):
        await service.activate(model.id)
