"""Rewards, environments and callbacks of one's own in a run of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from learner.cli import main
from learner.metrics import read_metrics
from learner.plugins import PluginError, load_plugins
from tests.learner.quick import settings, stage
from tests.learner.stage import listening

MODULE = '''
from learner.callbacks import TrainerCallback
from trainer_client.environments import ConversationEnvironment
from trainer_client.rewards import CompositeReward, LengthReward, RewardError, RewardFunction
from trainer_client.rewards import RewardResult, ServerReward
from learner.own_metrics import log_metric

composite = CompositeReward({"server": ServerReward(), "length": LengthReward(at_least=2), "talk": lambda talk: 0.5})


class Fails(RewardFunction):
    """Cannot score the first conversation, neither with others nor alone."""

    calls = 0

    def score(self, messages, context=None):
        Fails.calls += 1
        if Fails.calls <= 2:
            raise RewardError("no judge")
        return RewardResult(0.5)


class Words(ConversationEnvironment):
    def __init__(self):
        reward = LengthReward(at_least=6)
        super().__init__(lambda talk: "go on", reward, opening=lambda seed: f"hello {seed % 3}", max_turns=2)


class Told(TrainerCallback):
    events = []

    def on_start(self, run):
        self.events.append("start")

    def on_step(self, run, values):
        values["mine/step"] = float(run.step)
        log_metric("step", run.step)
        log_metric("step", run.step + 1)
        self.events.append("step")

    def on_evaluation(self, run, values):
        self.events.append("evaluation")

    def on_checkpoint(self, run):
        self.events.append("checkpoint")

    def on_end(self, run):
        self.events.append("end")


class Longest:
    """A group reward: the share of the members that say less."""

    def score_group(self, conversations):
        said = [sum(len(m["content"]) for m in talk if m["role"] == "assistant") for talk in conversations]
        return [RewardResult(sum(other < own for other in said) / len(said), {"said": float(own)}) for own in said]


longest = Longest()


class NoJudge:
    def score_group(self, conversations):
        raise RewardError("no_judge: the server has no language model")


no_judge = NoJudge()


def a_function(messages):
    return 0.25


a_text = "no plug-in"
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's, in the current folder, under a name of its own."""
    name = f"own_parts_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def train(folder: Path, *arguments: str, url: str | None = None) -> int:
    server = ["--url", url] if url else ["--url", "http://127.0.0.1:9"]
    return main(["demo", "--out", str(folder), "--updates", "2", *server, *settings(), *arguments])


@pytest.mark.slow
def test_a_composite_of_three_is_trained_on(module: str, tmp_path: Path) -> None:
    with listening(stage()) as url:
        assert train(tmp_path / "run", "--plugin", f"{module}:composite", url=url) == 0
    [first, *_] = [each for each in read_metrics(tmp_path / "run" / "metrics.jsonl") if each["kind"] == "train"]
    parts = [first[f"score/{name}"] for name in ("server", "length", "talk")]
    assert first["reward/mean"] == pytest.approx(sum(parts) / 3, abs=1e-5)
    assert parts[2] == 0.5


@pytest.mark.slow
def test_an_environment_needs_no_server(module: str, tmp_path: Path) -> None:
    assert train(tmp_path / "run", "--plugin", f"{module}:Words") == 0
    records = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [each["step"] for each in records if each["kind"] == "train"] == [1, 2]
    assert all(each["turns/mean"] == 2.0 for each in records)
    assert "go on" in (tmp_path / "run" / "samples" / "update-0000.txt").read_text()


@pytest.mark.slow
def test_a_callback_hears_of_everything_and_may_add_metrics(module: str, tmp_path: Path) -> None:
    arguments = ("--plugin", f"{module}:Words", "--plugin", f"{module}:Told")
    assert train(tmp_path / "run", *arguments) == 0
    told = load_plugins([f"{module}:Told"]).callbacks
    events = told._callbacks[0].events  # type: ignore[attr-defined]
    assert events[:2] == ["checkpoint", "start"] or events[0] == "start"
    assert events[-1] == "end"
    assert events.count("step") == 2
    assert events.count("evaluation") == 3
    records = [each for each in read_metrics(tmp_path / "run" / "metrics.jsonl") if each["kind"] == "train"]
    assert [each["mine/step"] for each in records] == [1.0, 2.0]
    assert [each["own/step"] for each in records] == [1.5, 2.5]


@pytest.mark.slow
def test_a_reward_that_fails_costs_its_episode_and_is_never_a_number(module: str, tmp_path: Path) -> None:
    with listening(stage()) as url:
        train(tmp_path / "run", "--plugin", f"{module}:Fails", url=url)
    [first, *_] = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert first["episodes/errored"] > 0
    assert first["reward/mean"] == 0.5


@pytest.mark.slow
def test_a_plain_function_is_a_reward(module: str, tmp_path: Path) -> None:
    with listening(stage()) as url:
        assert train(tmp_path / "run", "--plugin", f"{module}:a_function", url=url) == 0
    assert {each["reward/mean"] for each in read_metrics(tmp_path / "run" / "metrics.jsonl")} == {0.25}


@pytest.mark.slow
def test_a_group_reward_compares_the_members_and_evaluations_keep_the_servers(module: str, tmp_path: Path) -> None:
    with listening(stage()) as url:
        arguments = ("--plugin", f"{module}:longest", "--set", "rollout.group_size=4")
        assert train(tmp_path / "run", *arguments, url=url) == 0
    records = read_metrics(tmp_path / "run" / "metrics.jsonl")
    for each in (each for each in records if each["kind"] == "train"):
        assert each["episodes/errored"] == 0
        assert 0.25 <= each["reward/mean"] <= 0.375  # ranks of four, ties included
        assert each["score/said"] > 1.0
        assert 0.0 < each["score/server"] < 0.25  # a share of 200 letters
    assert all("score/said" not in each and each["reward/mean"] < 0.25 for each in records if each["kind"] == "eval")


@pytest.mark.slow
def test_a_group_without_a_judge_is_errored_with_the_reason(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(stage()) as url:
        train(tmp_path / "run", "--plugin", f"{module}:no_judge", url=url)
    assert "the server has no language model" in capsys.readouterr().err
    assert all(each["kind"] == "eval" for each in read_metrics(tmp_path / "run" / "metrics.jsonl"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "write it as module:object"),
        ("no_such_module_here:reward", "ModuleNotFoundError"),
        ("{module}:missing", "has no attribute 'missing'"),
        ("{module}:a_text", "it is a str, and a plug-in is a reward"),
    ],
)
def test_what_is_no_plugin_is_one_line(module: str, name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--plugin", name.format(module=module)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", ["composite", "longest", "Words"])
def test_what_single_replies_would_ignore_is_refused(
    module: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path / "run", "--plugin", f"{module}:{name}", "--set", "rollout.single_turn=true") == 2
    assert "set rollout.single_turn = false" in capsys.readouterr().err


@pytest.mark.parametrize("other", ["Fails", "longest", "a_function"])
def test_two_rewards_are_refused(module: str, other: str) -> None:
    with pytest.raises(PluginError, match="both a reward"):
        load_plugins([f"{module}:composite", f"{module}:{other}"])


def test_what_one_builds_with_is_at_the_top_of_the_learner() -> None:
    import learner
    import trainer_client

    assert {name: getattr(learner, name) for name in trainer_client.BUILDING_BLOCKS} == {
        name: getattr(trainer_client, name) for name in trainer_client.BUILDING_BLOCKS
    }
    assert learner.TrainerCallback.__module__ == "learner.callbacks"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        learner.nothing  # noqa: B018
