"""The active model as a judge: exact per conversation, exchanged at once, and failing rather than guessing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from reward_server.errors import JudgeFailed, UnusableModel
from reward_server.judges.base import Case
from reward_server.judges.estimate import ConversationJudge, Estimate
from reward_server.reward_models import artefact
from reward_server.reward_models.artefact import Artefact
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.dataset import Dataset, split
from reward_server.reward_models.featurisers import Featurisers, check_fits
from reward_server.reward_models.heads import Heads
from reward_server.reward_models.model import SPREAD, UNCERTAINTY, RewardModel, model_of, pack, with_uncertainty
from reward_server.reward_models.recorded import conversation_from, conversation_of, scenario_text
from reward_server.reward_models.registry import Registry
from reward_server.reward_models.serving import ActiveRewardModel, LearnedJudge
from reward_server.transcripts.transcript import Transcript
from scenarios.library import SealedScenario, load_library
from tests.reward_models.talks import KIND, WordCounts, labelled_talks, preferred_talks
from tests.reward_models.test_artefact import NOW, about
from tests.reward_models.test_training import examples, fitted_on
from trainer_client.wire import Message

WEIGHTS = np.array([[1.0, -1.0]], np.float32), np.array([0.5], np.float32)
COLLECTIONS = Path(__file__).parents[1] / "data" / "collections"


@pytest.fixture(scope="module")
def scenario() -> SealedScenario:
    return load_library(COLLECTIONS).vault.open("bike-shop", "flat-tyre")


@pytest.fixture(scope="module")
def trained() -> RewardModel:
    parts = split(labelled_talks(), 0)
    fitted, _ = fitted_on(labelled_talks())
    train, middle = (examples(part, labelled_talks().heads) for part in (parts.train, parts.validation))
    return with_uncertainty(fitted.heads, train, middle, fitted.l2)


def case_of(scenario: SealedScenario, *agent: str) -> Case:
    messages = [Message(role="user", content="hello")]
    for text in agent:
        messages += [Message(role="assistant", content=text), Message(role="user", content="well")]
    return Case(scenario, Transcript.from_messages(messages), record=None)  # type: ignore[arg-type]  # never looked at


def judge(model: RewardModel) -> LearnedJudge:
    return LearnedJudge("rm_0123456789ab", model, WordCounts())


def test_an_estimate_has_value_dimensions_and_both_parts_of_its_uncertainty(
    trained: RewardModel, scenario: SealedScenario
) -> None:
    kind, rude = judge(trained).estimate(
        [case_of(scenario, "please thanks sorry glad"), case_of(scenario, "bike tyre pump wheel")]
    )
    assert kind.value > 0.5 > 0.3 > rude.value
    assert set(kind.dimensions) == {"lamps"}
    assert kind.epistemic is not None
    assert kind.epistemic > 0
    assert kind.noise is not None
    assert kind.noise > 0


def test_an_estimate_does_not_depend_on_the_batch(trained: RewardModel, scenario: SealedScenario) -> None:
    cases = [case_of(scenario, f"please {'lamp ' * n}") for n in range(9)]
    together = judge(trained).estimate(cases)
    assert together == [judge(trained).estimate([case])[0] for case in cases]


def test_every_turn_counts_not_only_the_last(trained: RewardModel, scenario: SealedScenario) -> None:
    """A first reply without a kind word and a kind second one are less than two kind ones."""
    half, whole = judge(trained).estimate(
        [
            case_of(scenario, "bike tyre pump", "please thanks sorry"),
            case_of(scenario, "please thanks sorry", "please thanks sorry"),
        ]
    )
    assert whole.value > half.value + 0.2


def test_what_is_far_from_the_training_data_is_less_certain(trained: RewardModel, scenario: SealedScenario) -> None:
    usual, strange = judge(trained).estimate(
        [case_of(scenario, "please bike lamp tyre"), case_of(scenario, "saddle " * 60)]
    )
    assert usual.epistemic is not None
    assert strange.epistemic is not None
    assert strange.epistemic > 2 * usual.epistemic


def test_no_doubt_is_larger_than_the_spread_of_the_labels(
    trained: RewardModel, scenario: SealedScenario, tmp_path: Path
) -> None:
    """Nor is it so for a model that was stored; one of before spreads were stored keeps to what [0, 1] allows."""
    labels = examples(split(labelled_talks(), 0).train, labelled_talks().heads).labels[:, 0].astype(np.float64)
    spread = pytest.approx(float(labels[np.isfinite(labels)].std()), rel=1e-6)
    assert trained.posterior is not None
    wild = replace(trained, posterior=replace(trained.posterior, outside=1e6, bias_variance=9.0, noise_variance=4.0))
    artefact.write(tmp_path / "new", wild.heads, about(), NOW, extras=pack(wild))
    arrays = {name: values for name, values in load(pack(wild)[UNCERTAINTY]).items() if name != SPREAD}
    artefact.write(tmp_path / "old", wild.heads, about(), NOW, extras={UNCERTAINTY: save(arrays)})
    stored, older = (model_of(artefact.read(tmp_path / name)) for name in ("new", "old"))
    for model, most in ((wild, spread), (stored, spread), (older, 0.5)):
        [found] = judge(model).estimate([case_of(scenario, "saddle " * 60)])
        assert (found.epistemic, found.noise) == (most, most)


@pytest.mark.parametrize("spread", [0.0, -0.1, 0.7, float("nan"), float("inf")])
def test_a_damaged_spread_is_refused(trained: RewardModel, tmp_path: Path, spread: float) -> None:
    extras = pack(replace(trained, spread=spread))
    artefact.write(tmp_path / "m", trained.heads, about(), NOW, extras=extras)
    with pytest.raises(UnusableModel):
        model_of(artefact.read(tmp_path / "m"))


class _Broken(WordCounts):
    def __init__(self, value: float, width: int | None = None) -> None:
        super().__init__()
        self._value, self._shape = value, width or self.width

    def features(self, conversations: Sequence[Conversation]) -> np.ndarray:
        return np.full((len(conversations), self._shape), self._value, dtype=np.float32)


@pytest.mark.parametrize("featuriser", [_Broken(float("nan")), _Broken(float("inf")), _Broken(0.0, width=3)])
def test_what_cannot_be_estimated_is_a_failure_never_a_constant(
    trained: RewardModel, scenario: SealedScenario, featuriser: _Broken
) -> None:
    with pytest.raises(JudgeFailed):
        LearnedJudge("rm_0123456789ab", trained, featuriser).estimate([case_of(scenario, "please")])


def test_heads_that_are_no_numbers_fail(scenario: SealedScenario, trained: RewardModel) -> None:
    heads = replace(trained.heads, bias=np.full(2, np.nan, dtype=np.float32))
    with pytest.raises(JudgeFailed):
        judge(RewardModel(heads)).estimate([case_of(scenario, "please")])


def test_the_served_reading_is_that_of_training(scenario: SealedScenario) -> None:
    """The same talk from a case and from the messages of a file is the same conversation."""
    case = case_of(scenario, "please", "thanks")
    text = scenario_text(case.scenario.card)
    messages = [
        {"role": "system", "content": "ignored"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "please"},
        {"role": "user", "content": "well"},
        {"role": "assistant", "content": "thanks"},
        {"role": "user", "content": "well"},
    ]
    assert conversation_of(case.transcript, text).digest == conversation_from(messages, "assistant", text).digest


# --- uncertainty on disk --------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", [labelled_talks(), preferred_talks()], ids=["labels", "preferences"])
def test_a_stored_model_predicts_as_the_trained_one(tmp_path: Path, dataset: object) -> None:
    parts = split(dataset, 0)  # type: ignore[arg-type]
    names = dataset.heads  # type: ignore[attr-defined]
    train, middle, last = (examples(part, names) for part in (parts.train, parts.validation, parts.held_out))
    fitted, _ = fitted_on(dataset)  # type: ignore[arg-type]
    model = with_uncertainty(fitted.heads, train, middle, fitted.l2)
    artefact.write(tmp_path / "m", model.heads, about(), NOW, extras=pack(model))
    loaded = model_of(artefact.read(tmp_path / "m"))
    rows = last.all_features
    before, after = model.predict(rows), loaded.predict(rows)
    assert before.values.tobytes() == after.values.tobytes()
    assert before.epistemic is not None
    assert after.epistemic is not None
    np.testing.assert_allclose(before.epistemic, after.epistemic, rtol=1e-5)


def test_a_model_without_enough_rows_has_no_uncertainty_rather_than_none_at_all(trained: RewardModel) -> None:
    bare = RewardModel(trained.heads)
    found = bare.predict(np.zeros((1, WordCounts.width), dtype=np.float32))
    assert found.epistemic is None
    assert found.noise is None
    assert (judge(bare).states_uncertainty, judge(trained).states_uncertainty) == (False, True)


# --- the active one -------------------------------------------------------------------------------


class Models:
    """A registry with trained models, and a featuriser that counts how often it is asked for."""

    def __init__(self, folder: Path, heads: Heads) -> None:
        self.registry = Registry(folder / "models")
        self.loads = 0
        self.ids: list[str] = []
        for number, bias in enumerate((0.1, 0.9)):
            flat = replace(
                heads, weights=np.zeros_like(heads.weights), bias=np.full_like(heads.bias, bias, dtype=np.float32)
            )
            artefact.write(folder / f"m{number}", flat, about(), NOW)
            self.ids.append(self.registry.add(artefact.read(folder / f"m{number}")).id)
        self.active = ActiveRewardModel(self.registry, self.featurise)

    def featurise(self, found: Artefact) -> WordCounts:
        self.loads += 1
        check_fits(found, "encoder/1", "counts/1")
        return WordCounts()

    def estimate(self, scenario: SealedScenario) -> Estimate:
        found = self.active.judge()
        assert found is not None
        return found.estimate([case_of(scenario, "please")])[0]


@pytest.fixture
def models(tmp_path: Path, trained: RewardModel) -> Models:
    return Models(tmp_path, trained.heads)


def test_without_an_active_model_there_is_no_judge(models: Models) -> None:
    assert models.active.judge() is None


def test_another_model_serves_from_the_next_call_on_and_nothing_old_is_answered(
    models: Models, scenario: SealedScenario
) -> None:
    models.registry.activate(models.ids[0])
    first = models.active.judge()
    assert models.estimate(scenario).value == pytest.approx(0.1)
    models.registry.activate(models.ids[1])
    assert models.active.at_hand is first
    assert models.estimate(scenario).value == pytest.approx(0.9)
    second = models.active.judge()
    assert isinstance(first, LearnedJudge)
    assert isinstance(second, LearnedJudge)
    assert (first.version, second.version) == tuple(models.ids)
    assert first.estimate([case_of(scenario, "please")])[0].value == pytest.approx(0.1)
    models.registry.deactivate()
    assert models.active.judge() is None


def test_a_model_is_loaded_once_for_many_calls(models: Models, scenario: SealedScenario) -> None:
    models.registry.activate(models.ids[0])
    for _ in range(5):
        models.estimate(scenario)
    assert models.loads == 1


async def test_a_coroutine_gets_the_new_model_too(models: Models) -> None:
    assert await models.active.current() is None
    models.registry.activate(models.ids[1])
    found = await models.active.current()
    assert found is not None
    assert found.version == models.ids[1]
    assert models.active.at_hand is found


def unusable(judge: ConversationJudge | None, scenario: SealedScenario) -> None:
    assert judge is not None
    with pytest.raises(JudgeFailed):
        judge.estimate([case_of(scenario, "please")])


def test_an_active_model_that_is_damaged_fails_instead_of_the_old_one_answering(
    models: Models, scenario: SealedScenario
) -> None:
    models.registry.activate(models.ids[0])
    assert models.active.judge() is not None
    models.registry.activate(models.ids[1])
    (models.registry.folder / models.ids[1] / "heads.safetensors").write_bytes(b"damaged")
    unusable(models.active.judge(), scenario)
    models.registry.activate(models.ids[0])
    assert models.estimate(scenario).value == pytest.approx(0.1)


def test_a_model_of_another_encoder_or_other_features_is_not_served(models: Models, scenario: SealedScenario) -> None:
    models.registry.activate(models.ids[0])
    found = models.registry.open(models.ids[0])
    with pytest.raises(UnusableModel, match=r"trained with the encoder encoder/1, this is encoder/2"):
        check_fits(found, "encoder/2", "counts/1")
    with pytest.raises(UnusableModel, match=r"trained on counts/1, this version makes counts/2"):
        check_fits(found, "encoder/1", "counts/2")

    def other(artefact: Artefact) -> WordCounts:
        check_fits(artefact, "encoder/2", "counts/1")
        return WordCounts()

    unusable(ActiveRewardModel(models.registry, other).judge(), scenario)


def test_there_is_no_fall_back_encoder(models: Models) -> None:
    found = models.registry.open(models.ids[0])

    def gone(name: str) -> None:
        raise UnusableModel(f"{name} is not here")

    with pytest.raises(UnusableModel, match="is not here"):
        Featurisers("no/such/folder", gone).of(found)  # type: ignore[arg-type]


@pytest.mark.parametrize("dataset", [labelled_talks(), preferred_talks()], ids=["labels", "pairs"])
def test_words_that_only_cost_leave_the_doubt_alone(dataset: Dataset) -> None:
    """Else they could pay where a lower bound is the reward."""
    costs = np.zeros(WordCounts.width, dtype=np.bool_)
    costs[len(KIND) :] = True
    parts = split(dataset, 0)
    first, middle = (examples(part, dataset.heads) for part in (parts.train, parts.validation))
    fitted, last = fitted_on(dataset, costs=costs)
    model = with_uncertainty(fitted.heads, first, middle, fitted.l2)
    talks = last.all_features
    more = talks.copy()
    more[:, costs] += 50.0
    plain, wordy = model.predict(talks), model.predict(more)
    assert (wordy.values < plain.values).any()
    assert (wordy.values <= plain.values).all()
    assert plain.epistemic is not None
    np.testing.assert_array_equal(plain.epistemic, wordy.epistemic)


def test_a_model_in_which_costs_earn_is_damaged(tmp_path: Path) -> None:
    costs = np.array([False, True])
    heads = Heads(("score",), np.zeros(2, np.float32), np.ones(2, np.float32), *WEIGHTS, costs=costs)
    artefact.write(tmp_path / "good", heads, about(), NOW)
    assert artefact.read(tmp_path / "good").heads.costs is not None
    artefact.write(tmp_path / "bad", replace(heads, weights=-heads.weights), about(), NOW)
    with pytest.raises(UnusableModel, match="does not fit its card"):
        artefact.read(tmp_path / "bad")
