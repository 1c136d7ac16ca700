"""The configuration is checked completely, and says what it became."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from learner.cli import demo_file
from learner.config import _OVERRIDES, Config, ConfigError, load, read
from learner.presets import about, preset_file, preset_names


def test_the_shipped_demo_is_valid() -> None:
    config = load(demo_file())
    assert config.model.path is None
    objective = config.objective()
    assert objective.credit == "to_go"
    assert (objective.kl, objective.beta) == ("k3", 0.1)


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_says_what_it_is(name: str) -> None:
    assert load(preset_file(name)).objective().beta > 0.0  # the language is held
    assert about(name).endswith(".")


def test_a_preset_that_is_none_is_named_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'gspo'"):
        preset_file("gspp")


def test_defaults_are_a_configuration() -> None:
    assert load() == Config() == read({})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"optim": {"learning_rte": 1.0}}, r"optim\.learning_rte: unknown; did you mean 'learning_rate'"),
        ({"optimiser": {}}, r"\[optimiser\]: unknown; did you mean 'optim'"),
        ({"zzz": {}}, "known are"),
        ({"optim": 5}, "section"),
        ({"optim": {"learning_rate": "fast"}}, "optim.learning_rate: must be float, not str"),
        ({"rollout": {"groups": 2.5}}, "rollout.groups: must be int, not float"),
        ({"rollout": {"groups": True}}, "must be int, not bool"),
        ({"rollout": {"groups": 0}}, "rollout.groups: must be above 0"),
        ({"rollout": {"group_size": 1}}, "nothing to compare"),
        ({"model": {"temperature": 0.0}}, "model.temperature"),
        ({"model": {"width": 30}}, "multiple of model.heads"),
        ({"model": {"path": 3}}, 'model.path: must be str or "none", not int'),
        ({"server": {"max_turns": "all"}}, 'server.max_turns: must be int or "none", not str'),
        ({"server": {"max_turns": 0}}, "server.max_turns: must be above 0"),
        ({"optim": {"learning_rate": "none"}}, "optim.learning_rate: must be float, not str"),
        ({"optim": {"max_mismatch_kl": -1.0}}, "optim.max_mismatch_kl: must not be negative"),
        (
            {"optim": {"max_mismatch_kl": 0.1, "on_mismatch": "skip"}, "parallel": {"kind": "deepspeed"}},
            "optim.on_mismatch: DeepSpeed cannot drop a gradient; use 'stop'",
        ),
        ({"optim": {"micro_tokens": 0}}, "optim.micro_tokens: must be above 0"),
        ({"rollout": {"waves": 0}}, "rollout.waves: must be above 0"),
        ({"model": {"heads": 0}}, "model.heads: must be above 0"),
        ({"model": {"compile": True}, "parallel": {"kind": "deepspeed"}}, "model.compile"),
        ({"algorithm": {"name": "gspoo"}}, "did you mean 'gspo'"),
        ({"algorithm": {"credit": "turn"}}, "'episode', 'to_go', 'none'"),
        ({"algorithm": {"overrides": {"epz_low": 0.1}}}, "did you mean 'eps_low'"),
        ({"algorithm": {"overrides": {"gate": "clipp"}}}, "must be one of 'clip'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("optim.clip_norm=-1.0", "must be above 0; a large number never clips"),
        ("optim.final_share=-1.0", "must be at least 0 and at most 1"),
        ("optim.warmup_updates=-3", "must not be negative"),
        ("rollout.max_refills=-1", "must not be negative"),
        ("model.threads=0", "must be above 0"),
        ("model.width=0", "must be above 0"),
        ("model.width=12", "must be an even multiple of model.heads"),
        ("evaluation.stop_after=-1", "must not be negative; 0 never stops"),
        ("warmup.batch=0", "must be above 0"),
        ("run.seed=-1", "must not be negative"),
        ("parallel.zero_stage=4", "must be at least 1 and at most 3"),
        ("data.held_out_share=1.0", "must be below 1"),
        ("algorithm.gamma=5.0", "must be at least 0 and at most 1"),
        ("algorithm.overrides.eps_low=-0.5", "must not be negative"),
        ("algorithm.overrides.max_tokens=0", "must be above 0"),
    ],
)
def test_a_number_that_would_train_nothing_or_the_opposite_is_refused(change: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, [change])
    assert str(caught.value).startswith(f"{change.partition('=')[0]}: {message}")


def test_every_number_has_a_range() -> None:
    """Or says that it needs none."""

    def numbers(kind: type[BaseModel]) -> dict[str, FieldInfo]:
        fields = kind.model_fields.items()
        return {name: each for name, each in fields if {int, float} & {each.annotation, *get_args(each.annotation)}}

    kinds = [type(getattr(Config(), name)) for name in Config.model_fields]
    found = {f"{kind.__name__}.{name}": each for kind in [*kinds, _OVERRIDES] for name, each in numbers(kind).items()}
    assert {"OptimSection.clip_norm", "ServerSection.max_turns", "_OVERRIDES.eps_low"} <= set(found)
    extra = {name: each.json_schema_extra or {} for name, each in found.items()}
    lacking = [name for name, each in found.items() if not each.metadata and not extra[name].get("any")]  # type: ignore[union-attr]
    assert lacking == ["AlgorithmSection.dimensions"]


@pytest.mark.parametrize(
    ("place", "meant"),
    [
        ("optim.lr", "learning_rate"),
        ("optim.wd", "weight_decay"),
        ("optim.temperature", "model.temperature"),
        ("optim.max_grad_norm", "clip_norm"),
        ("optim.epochs", "run.updates"),
        ("optim.eps_low", "algorithm.overrides.eps_low"),
        ("algorithm.beta", "algorithm.overrides.beta"),
        ("algorithm.overrides.epz_low", "eps_low"),
        ("algorithm.overrides.learning_rate", "optim.learning_rate"),
        ("rollout.num_generations", "group_size"),
        ("rollout.size", "group_size"),
        ("model.max_new_tokens", "max_tokens"),
        ("model.lora_r", "lora.rank"),
        ("run.checkpoint-every", "checkpoint_every"),
    ],
)
def test_a_key_that_is_none_is_answered_with_the_likely_one(place: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, [f"{place}=1"])
    assert str(caught.value) == f"{place}: unknown; did you mean {meant!r}?"


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read({"optim": {"lr": 1.0, "clip_norm": 0}, "rollout": {"groups": "x"}, "modle": {}})
    assert str(caught.value).split("; ") == [
        "rollout.groups: must be int, not str",
        "optim.clip_norm: must be above 0",
        "a large number never clips",
        "optim.lr: unknown",
        "did you mean 'learning_rate'?",
        "section [modle]: unknown",
        "did you mean 'model'?",
    ]


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ({"overrides": {"beta": 0.04}}, r"overrides\.beta: has no effect with 'grpo': it needs a KL term"),
        ({"overrides": {"kl": "k3"}}, r"overrides\.kl: .* it needs beta above 0"),
        ({"overrides": {"kl_reward": 0.05}}, r"overrides\.kl_reward: .* advantage = 'token_return_whitened'"),
        ({"overrides": {"lam": 0.5}}, r"overrides\.lam: .* advantage = 'gae'"),
        ({"name": "vapo", "overrides": {"lam": 0.5}}, r"overrides\.lam: has no effect with 'vapo'"),
        ({"overrides": {"alpha": 0.1}}, r"overrides\.alpha: .* advantage = 'gae_length_adaptive'"),
        ({"overrides": {"margin_weighted": True}}, r"overrides\.margin_weighted: .* learns from pairs"),
        ({"overrides": {"gate": "sigmoid", "eps_low": 0.1}}, r"overrides\.eps_low: .* gate = 'clip' or 'clip_weight'"),
        ({"overrides": {"gamma": 0.5}}, r"overrides\.gamma: .* credit = 'to_go'"),
        (
            {"overrides": {"advantage": "none"}},
            r"overrides\.advantage: 'none' is for algorithms",
        ),
        ({"name": "gdpo", "credit": "to_go"}, r"algorithm\.credit: has no effect with 'gdpo'"),
        ({"dimensions": {"empathy": 2.0}}, r"algorithm\.dimensions: have no effect with 'grpo'"),
    ],
)
def test_a_setting_that_the_algorithm_does_not_read_is_refused(algorithm: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read({"algorithm": algorithm})


@pytest.mark.parametrize(
    "algorithm",
    [
        {"overrides": {"kl": "k3", "beta": 0.1}},
        {"name": "grpo_kl", "overrides": {"kl": "none"}},
        {"name": "grpo_kl", "overrides": {"kl": "none", "beta": 0.2}},  # the file's weight, turned off beside it
        {"name": "turn_grpo", "overrides": {"beta": 0}},
        {"overrides": {"margin_weighted": False, "beta": 0.0}},  # as it is anyway
        {"overrides": {"advantage": "gae", "lam": 0.9, "critic_warmup": 2}},
        {"name": "gdpo", "dimensions": {"empathy": 2.0}},
    ],
)
def test_a_setting_that_is_read_or_asks_for_nothing_is_accepted(algorithm: dict[str, Any]) -> None:
    assert read({"algorithm": algorithm}).algorithm.overrides == algorithm.get("overrides", {})


def test_overrides_change_the_preset_and_show_in_the_resolved_form() -> None:
    config = read({"algorithm": {"name": "dapo", "overrides": {"eps_high": 0.5, "dual_clip": 3}}})
    objective = config.objective()
    assert (objective.eps_high, objective.eps_low, objective.dual_clip) == (0.5, 0.2, 3.0)
    resolved = config.resolved()["algorithm"]["objective"]
    assert (resolved["eps_high"], resolved["aggregation"]) == (0.5, "token_mean")


def test_settings_on_the_command_line_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('[optim]\nlearning_rate = 1e-4\n[algorithm]\nname = "dapo"\n')
    changes = ["optim.learning_rate=2e-5", "algorithm.name=gspo", "algorithm.overrides.eps_low=0.1", "run.updates=3"]
    config = load(path, changes)
    assert (config.optim.learning_rate, config.algorithm.name, config.run.updates) == (2e-5, "gspo", 3)
    assert config.objective().eps_low == 0.1


def test_what_a_file_or_preset_has_set_can_be_unset(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('[server]\nmax_turns = "none"\n[algorithm]\nname = "grpo"\ncredit = "to_go"\n')
    assert load(path).server.max_turns is None
    changes = ["server.max_turns=none", "algorithm.credit=none", "algorithm.overrides.eps_high=none"]
    config = load(preset_file("grpo"), changes)
    assert (config.server.max_turns, config.algorithm.credit, config.objective().eps_high) == (None, None, None)
    assert config.objective().credit == "episode"
    # Where "none" is a value, it stays one.
    assert load(None, ["algorithm.overrides.kl=none"]).objective().kl == "none"
    assert load(None, ["server.system=none"]).server.system == "none"


@pytest.mark.parametrize("change", ["optim", "optim=3", "learning_rate=3", "=3"])
def test_a_change_needs_a_section_and_a_key(change: str) -> None:
    with pytest.raises(ConfigError, match=r"section\.key=value"):
        load(None, [change])


@pytest.mark.parametrize("changes", [("server.url=http://a", "server.url.b=3"), ("algorithm.name.x=1",)])
def test_a_change_below_a_value_is_refused(changes: tuple[str, ...]) -> None:
    given = ("algorithm.name=gspo", *changes)
    with pytest.raises(ConfigError, match=r"--set .*: (server\.url|algorithm\.name) has no keys"):
        load(None, given)


@pytest.mark.parametrize(
    "foreign", [{"rollout": {"max_staleness": 1}}, {"generator": {"kind": "vllm", "url": "http://a"}}]
)
def test_a_stale_or_foreign_sampler_is_corrected_for_once(foreign: dict[str, Any]) -> None:
    def correction(**algorithm: Any) -> str:
        return read({"algorithm": algorithm, **foreign}).objective().correction

    assert read({}).objective().correction == "none"
    assert correction(name="gspo") == correction(name="grpo") == "token_truncate"
    assert correction(name="grpo", overrides={"correction": "geometric_mask"}) == "geometric_mask"
    assert correction(name="grpo", overrides={"correction": "none"}) == "none"
    assert correction(name="dppo") == "none"  # its ratio is to the sampler
    assert correction(name="dppo", overrides={"correction": "token_mask"}) == "token_mask"


def test_a_given_model_has_defaults_of_its_own() -> None:
    """Those of a tiny model would spoil it: a rate of 1e-3, and turns that end in mid-sentence."""
    given = {"path": "owner/name"}
    chosen = read({"model": given})
    assert (chosen.optim.learning_rate, chosen.model.max_tokens) == (1e-6, 256)
    assert chosen.resolved()["optim"]["learning_rate"] == 1e-6
    assert read({"model": given, "lora": {"rank": 8}}).optim.learning_rate == 1e-5
    own = read({"model": {**given, "max_tokens": 32}, "optim": {"learning_rate": 1e-3}})
    assert (own.optim.learning_rate, own.model.max_tokens) == (1e-3, 32)
    assert (read({}).optim.learning_rate, read({}).model.max_tokens) == (1e-3, 32)


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        load(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("[optim\n")
    with pytest.raises(ConfigError, match=r"broken\.toml"):
        load(broken)
