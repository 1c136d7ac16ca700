"""What was wrong once: each of these was seen to fail on the code that had the fault."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
import transformers
from torch import Tensor

from learner import checkpoint
from learner.algorithms import ALGORITHMS
from learner.failures import context_full
from learner.generate.hf import HfGenerator
from learner.loop import NoEpisodesError, summary
from learner.model import Policy, rows_of
from learner.objectives import LossInputs, policy_loss, ratio_metrics
from learner.retry import OutageRetryPolicy
from learner.rollout import Collected, RolloutCollector, RolloutStage
from learner.tiny import build_model
from learner.types import Group
from learner.update import Updater, UpdateSettings
from learner.warmup import WarmupSettings, warm_up
from tests.learner.small import SCRIPT, policy, tokenizer, trajectory
from tests.learner.stage import StageServer, client_of
from trainer_client.chat.tokens import Renderer, TemplateError

WORDS = tokenizer()
GOOD = [("hello", "tell me more."), ("yes", "please tell me why.")]
BAD = [("hello", "go away!"), ("yes", "the sky is blue.")]


def groups(rewards: tuple[list[float], list[float]] = ([0.5, 1.0], [0.0, 0.8])) -> list[Group]:
    longer = trajectory(WORDS, [*GOOD, ("yes", "tell me why the sky is blue.")], [0.1, 0.1, 0.9])
    return [Group(1, (trajectory(WORDS, GOOD, rewards[0]), trajectory(WORDS, BAD, rewards[1]), longer))]


def weights_after(name: str, micro_tokens: int, **settings: Any) -> Tensor:
    acting = policy(WORDS)
    optimizer = torch.optim.SGD(acting.model.parameters(), lr=0.5)
    chosen = UpdateSettings(ALGORITHMS[name], micro_tokens=micro_tokens, clip_norm=1e9, **settings)
    reference = policy(WORDS, seed=1) if ALGORITHMS[name].needs_reference else None
    Updater(acting, optimizer, chosen, reference).update(groups())
    return torch.cat([parameter.detach().flatten() for parameter in acting.model.parameters()])


OWN_LOSSES = [name for name, row in ALGORITHMS.items() if row.kind == "reward" and not row.needs_critic]


@pytest.mark.parametrize("name", OWN_LOSSES)
def test_every_shipped_preset_takes_the_same_step_however_it_is_cut(name: str) -> None:
    credit = "to_go" if ALGORITHMS[name].is_whole_sequence else None
    cut, whole = (weights_after(name, tokens, credit=credit) for tokens in (1, 100_000))
    assert torch.allclose(cut, whole, atol=2e-6)


def test_the_likelihood_of_good_sequences_is_divided_by_those_of_the_whole_step() -> None:
    row = replace(ALGORITHMS["vapo"], positive_from=0.5)
    torch.manual_seed(0)
    logp, mask = -torch.rand(4, 3), torch.ones(4, 3)
    rewards = torch.tensor([1.0, 0.0, 1.0, 0.6])

    def loss(rows: slice, **totals: int) -> float:
        inputs = LossInputs(logp[rows], mask[rows], torch.zeros(4)[rows], rewards=rewards[rows], **totals)
        return float(policy_loss(logp[rows], inputs, row).loss)

    totals = {"total_sequences": 4, "total_tokens": 12, "total_good_tokens": 9}
    parts = loss(slice(0, 2), **totals) + loss(slice(2, 4), **totals)
    assert parts == pytest.approx(loss(slice(0, 4)), rel=1e-5)


def test_what_is_clipped_is_counted_at_the_level_of_the_ratio() -> None:
    wobble = torch.tensor([[0.05, -0.05, 0.05, -0.05]])
    found = ratio_metrics(wobble, torch.ones(1, 4), torch.ones(1, 4), ALGORITHMS["gspo"])
    assert found["clip_share"] == 0.0
    assert found["max_ratio"] == pytest.approx(1.0)
    assert ratio_metrics(wobble + 1, torch.ones(1, 4), torch.ones(1, 4), ALGORITHMS["gspo"])["clip_share"] == 1.0


@pytest.mark.parametrize("name", ["gspo", "luspo", "gmpo", "rloo_clip", "gspo_token", "vespo"])
def test_credit_per_turn_is_not_averaged_away_where_one_ratio_bounds_a_sequence(name: str) -> None:
    """In both episodes one turn is good and one is bad: together their credits are nothing."""
    acting = policy(WORDS)
    settings = UpdateSettings(ALGORITHMS[name], credit="to_go", gamma=0.0)
    optimizer = torch.optim.SGD(acting.model.parameters(), lr=0.1)
    good_first, bad_first = [GOOD[0], BAD[1]], [BAD[0], GOOD[1]]
    swapped = [Group(1, (trajectory(WORDS, good_first, [1.0, 0.5]), trajectory(WORDS, bad_first, [0.0, 0.5])))]
    found = Updater(acting, optimizer, settings).update(swapped)
    assert found["groups/used"] == 1
    assert found["update/grad_norm"] > 1e-3


def test_a_group_whose_turns_differ_is_used_though_it_ends_with_one_reward() -> None:
    acting = policy(WORDS)
    same_end = [Group(1, (trajectory(WORDS, GOOD, [0.9, 0.5]), trajectory(WORDS, BAD, [0.1, 0.5])))]
    optimizer = torch.optim.SGD(acting.model.parameters(), lr=0.1)
    by_turn = Updater(acting, optimizer, UpdateSettings(ALGORITHMS["grpo"], credit="to_go"))
    whole = Updater(acting, optimizer, UpdateSettings(ALGORITHMS["grpo"]))
    assert by_turn.update(same_end)["groups/used"] == 1
    assert whole.update(same_end)["groups/used"] == 0


def test_a_correction_does_something_with_several_steps_too() -> None:
    row = replace(ALGORITHMS["grpo"], correction="token_mask", correction_low=0.999, correction_high=1.001)

    def moved(minibatches: int) -> float:
        acting = policy(WORDS)
        before = torch.cat([parameter.detach().flatten().clone() for parameter in acting.model.parameters()])
        optimizer = torch.optim.SGD(acting.model.parameters(), lr=0.5)
        settings = UpdateSettings(row, minibatches=minibatches)
        # The made-up log-probabilities of the sampler are far from the policy's: every token is masked.
        Updater(acting, optimizer, settings).update(groups())
        after = torch.cat([parameter.detach().flatten() for parameter in acting.model.parameters()])
        return float((after - before).abs().max())

    assert moved(1) == 0.0
    assert moved(3) == 0.0


def test_the_kl_to_the_reference_is_logged_though_the_loss_has_none() -> None:
    acting, reference = policy(WORDS, seed=1, spread=2.0), policy(WORDS, spread=2.0)
    optimizer = torch.optim.SGD(acting.model.parameters(), lr=0.1)
    settings = UpdateSettings(ALGORITHMS["grpo"], micro_tokens=1)
    found = Updater(acting, optimizer, settings, reference).update(groups())
    assert found["update/kl_reference"] > 0.01


def test_overlong_turns_lose_reward_where_the_algorithm_says_so() -> None:
    from learner.credit import CreditAssignment

    long_turn = trajectory(WORDS, [("hello", "tell me why the sky is blue."), ("yes", "go away!")], [0.5, 0.9])
    limit = long_turn.turn_lengths[0]
    shaped = CreditAssignment(ALGORITHMS["dapo"], turn_limit=limit).rewards(long_turn)
    assert shaped == pytest.approx((0.0, 0.4))
    assert CreditAssignment(ALGORITHMS["grpo"], turn_limit=limit).rewards(long_turn) == (0.5, 0.9)


def own_head_models() -> dict[str, Any]:
    from transformers import CohereConfig, Gemma2Config, GraniteConfig, MistralConfig

    shape = {
        "vocab_size": len(WORDS),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "pad_token_id": WORDS.pad_token_id,
        "eos_token_id": WORDS.eos_token_id,
        "bos_token_id": None,
    }
    return {
        "granite": GraniteConfig(**shape, logits_scaling=4.0),
        "cohere": CohereConfig(**shape, logit_scale=0.25),
        "gemma 2": Gemma2Config(**shape, head_dim=8, final_logit_softcapping=2.0, sliding_window=9),
        "mistral": MistralConfig(**shape, sliding_window=9),
    }


@pytest.mark.parametrize("kind", ["granite", "cohere", "gemma 2", "mistral"])
def test_the_samplers_log_probabilities_are_the_learners_for_models_of_many_kinds(kind: str) -> None:
    """Scales and caps after the head; windows shorter than the conversation, over rows of many lengths."""
    from transformers import AutoModelForCausalLM

    from learner import canary

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(own_head_models()[kind]).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0 if parameter.dim() > 1 else 1.0)
    renderer = Renderer(WORDS)
    acting = Policy(model, end_id=WORDS.eos_token_id, banned=[])
    assert canary.gap(HfGenerator(acting, max_tokens=6), acting, renderer) < 1e-3


def test_a_canary_that_does_not_sing_stops_the_run_in_one_line() -> None:
    from learner import canary

    acting, other = policy(WORDS, spread=3.0), policy(WORDS, seed=1, spread=3.0)
    with pytest.raises(canary.CanaryError, match="differ by"):
        canary.check(HfGenerator(other, max_tokens=4), acting, Renderer(WORDS))


def test_in_16_bits_tokens_may_round_apart_and_a_wrong_temperature_is_still_found() -> None:
    from learner import agreement, canary

    acting = policy(WORDS, spread=6.0)
    acting.autocast = torch.bfloat16
    renderer = Renderer(WORDS)
    assert canary.check(HfGenerator(acting, max_tokens=12), acting, renderer) < agreement.MEAN
    cold = Policy(acting.model, end_id=acting.end_id, temperature=0.9, autocast=torch.bfloat16)
    with pytest.raises(canary.CanaryError, match=r"differ by .* on average"):
        canary.check(HfGenerator(cold, max_tokens=12), acting, renderer)


def test_difference_is_the_largest_in_float32_and_the_mean_in_16_bits() -> None:
    from learner import agreement

    acting, one = policy(WORDS), torch.zeros(100)
    other = one.clone()
    other[3] = 0.15
    assert agreement.difference(acting, one, other) == pytest.approx(0.15)
    assert agreement.described(acting, 0.15) == "at most 1.5e-01"
    acting.autocast = torch.bfloat16
    assert agreement.difference(acting, one, other) == pytest.approx(0.0015)
    assert agreement.difference(acting, one, other - 0.15) > agreement.allowed(acting)


def test_ids_that_no_token_has_are_never_sampled() -> None:
    from learner.models import ids_without_token

    acting = policy(WORDS)
    acting.model.resize_token_embeddings(len(WORDS) + 5)
    assert ids_without_token(acting.model, WORDS) == list(range(len(WORDS), len(WORDS) + 5))


# --- rollouts -----------------------------------------------------------------------------------------


class Scripted:
    """A sampler that says the given ids."""

    context: int | None = None
    max_tokens = 6

    def __init__(self, ids: list[int], context: int | None = None) -> None:
        self.ids, self.context = tuple(ids), context

    def start(self) -> Scripted:
        return self

    def step(self, continuations: Any) -> Any:
        from learner.generate.session import Completion

        return {number: Completion(self.ids, (-0.5,) * len(self.ids), ended=True) for number in continuations}


def play(
    generator: Any, server: Any = None, retry_policy: OutageRetryPolicy | None = None, words: Any = WORDS
) -> Collected:
    async def go() -> Collected:
        async with client_of(server or StageServer()) as client:
            rollouts = RolloutCollector(
                client, generator, Renderer(words), RolloutStage("c", "s"), retry_policy=retry_policy
            )
            return await rollouts.collect([1], 2, (0,))

    return asyncio.run(go())


def test_a_turn_that_is_longer_than_the_server_takes_is_no_lost_run(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [*WORDS.encode("tell me more.", add_special_tokens=False), WORDS.eos_token_id]
    spoken = Renderer.spoken
    monkeypatch.setattr(Renderer, "spoken", lambda *given: replace(spoken(*given), aloud="a" * 10_001))
    collected = play(Scripted(said))
    assert collected.trajectories == []
    assert collected.error_codes == ["turn_too_long"] * 2


def test_a_conversation_that_outgrows_the_context_ends_with_what_it_earned() -> None:
    said = [*WORDS.encode("tell me more.", add_special_tokens=False), WORDS.eos_token_id]
    opening = len(Renderer(WORDS).opening("hello, I am number 1"))
    collected = play(Scripted(said, context=opening + 6 + 4))
    assert [each.terminal_reason for each in collected.trajectories] == ["context_full"] * 2
    assert [each.turns for each in collected.trajectories] == [1, 1]
    full = play(Scripted(said, context=opening))
    assert full.error_codes == ["context_full"] * 2
    with pytest.raises(NoEpisodesError, match=r"context_full \(.*: use a model with a longer context"):
        summary(full)
    told = f"a prompt of {opening} tokens and a turn of model.max_tokens = 6 do not fit into the model's context of"
    shorter = play(Scripted(said, context=opening + 4))
    assert shorter.error_messages == {
        "context_full": f"{told} {opening + 4} tokens: lower model.max_tokens to at most 4"
    }


def test_only_the_system_prompt_that_there_is_can_be_left_out() -> None:
    found = context_full(362, 256, 16, has_system=True)
    assert found.message.endswith("context of 256 tokens: set server.system to 'none'")
    assert "server.system" not in context_full(362, 256, 16, has_system=False).message
    assert context_full(200, 256, 100, has_system=True).message.endswith(
        "lower model.max_tokens to at most 56 or set server.system to 'none'"
    )


def test_a_long_prompt_is_told_by_the_learner_alone(caplog: pytest.LogCaptureFixture) -> None:
    words = tokenizer()
    words.model_max_length = 8
    transformers.logging.enable_propagation()  # type: ignore[no-untyped-call]
    try:
        assert len(Renderer(words).opening("hello, I am number 1")) > 8
        assert caplog.messages == []
        words.encode("hello, I am number 1, and I say more than eight tokens")
        assert "longer than the specified maximum" in caplog.text, "that this would be seen"
    finally:
        transformers.logging.disable_propagation()  # type: ignore[no-untyped-call]


def test_a_canary_that_has_no_room_to_sing_says_what_to_lower() -> None:
    from learner import canary

    acting, renderer = policy(WORDS, spread=3.0), Renderer(WORDS)
    assert canary.gap(HfGenerator(acting, max_tokens=300), acting, renderer) < 1e-3  # room for one such turn, not two
    with pytest.raises(canary.CanaryError, match=r"model\.max_tokens = 512 does not fit .* of 512 tokens"):
        canary.check(HfGenerator(acting, max_tokens=512), acting, renderer)


def test_a_nul_is_sent_as_what_can_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(WORDS), "decode", lambda *_, **__: "tell\0me")
    spoken = Renderer(WORDS).spoken([5])
    assert spoken.text == "tell\ufffdme"
    assert spoken.lossy


def test_a_server_that_restarts_is_waited_for_and_it_is_said() -> None:
    class Away(StageServer):
        refused = 9

        def __call__(self, request: httpx2.Request) -> httpx2.Response:
            if self.refused:
                self.refused -= 1
                raise httpx2.ConnectError("refused")
            return super().__call__(request)

    said = [*WORDS.encode("tell me more.", add_special_tokens=False), WORDS.eos_token_id]
    told: list[str] = []
    collected = play(Scripted(said), Away(), OutageRetryPolicy(60.0, pause_s=0.0, say=told.append))
    assert len(collected.trajectories) == 2
    assert told
    assert "the server does not answer (connection_failed); waiting up to 1 min" in told[0]
    away = Away()
    away.refused = 10**6
    assert play(Scripted(said), away, OutageRetryPolicy(0.0)).error_codes == ["connection_failed"] * 2


# --- templates, warm-up, checkpoints --------------------------------------------------------------------


def with_template(template: str, *special: str) -> Any:
    words = tokenizer()
    words.add_special_tokens({"additional_special_tokens": ["<|im_start|>", *special]})
    words.chat_template = template
    return words


def test_an_error_of_the_template_is_one_line() -> None:
    with pytest.raises(TemplateError, match="the chat template fails"):
        Renderer(with_template("{{ messages[0].nothing.more }}"))


TURN_END = (
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}<eot>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
NEXT_ROLE = (
    "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
SPACED = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] | trim }} <eot>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


@pytest.mark.parametrize(
    ("template", "special", "end"),
    [
        (TURN_END, ["<eot>"], "<eot>"),
        (NEXT_ROLE, ["<user>", "<assistant>"], "<user>"),
        (SPACED, ["<eot>"], "<eot>"),
    ],
    ids=["own token", "the next role's token", "space before it"],
)
def test_what_ends_a_turn_is_what_the_template_puts_there(template: str, special: list[str], end: str) -> None:
    words = with_template(template, *special)
    renderer = Renderer(words)
    assert renderer.end_id == words.convert_tokens_to_ids(end) != words.eos_token_id
    assert not renderer.forks
    text = words.decode([*renderer.opening("hello"), *renderer.suffix("yes", ended=False)])
    assert text.endswith("assistant>" if end == "<user>" else words.decode(renderer.opening("yes"))[-3:])
    cut_off, ended = renderer.suffix("yes", ended=False), renderer.suffix("yes", ended=True)
    assert cut_off[cut_off.index(renderer.end_id) + 1 :] == ended


REWRITES = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' and not loop.last %}{{ m['content'].split('</think>')[-1] }}"
    "{% else %}{{ m['content'] }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>{% endif %}"
)


@pytest.mark.parametrize("minibatches", [1, 2])
def test_a_template_that_rewrites_history_forks_and_every_sampled_token_is_in_one_row(minibatches: int) -> None:
    words = with_template(REWRITES)
    renderer = Renderer(words)
    assert renderer.forks
    acting = policy(words, spread=2.0)
    collected = play(HfGenerator(acting, max_tokens=5), StageServer(turns=3), words=words)
    played = collected.trajectories[0]
    assert [len(row) for row in played.rows] == [2, 2, 2]
    assert sum(segment.sampled for row in played.rows for segment in row) == played.turns == 3
    # The sampler saw the very rows that are trained on.
    rows = rows_of(played.rows, words.pad_token_id)
    with torch.no_grad():
        assert float((acting.score(rows).logp - rows.sampler_logp).abs().max()) < 1e-4
    optimizer = torch.optim.SGD(acting.model.parameters(), lr=0.1)
    updater = Updater(acting, optimizer, UpdateSettings(ALGORITHMS["gspo"], minibatches=minibatches))
    low = replace(collected.trajectories[1], turn_rewards=(0.0,) * collected.trajectories[1].turns)
    found = updater.update([Group(1, (replace(played, turn_rewards=(1.0,) * 3), low))])
    assert found["update/tokens"] == played.sampled_tokens + low.sampled_tokens


def test_thoughts_that_a_template_drops_fork_only_where_there_were_any() -> None:
    renderer = Renderer(with_template(REWRITES.replace("\n<think>{% endif %}", "\n{% endif %}")))
    assert not renderer.forks
    assert renderer.rewrites("<think>hm</think>yes")
    assert not renderer.rewrites("yes")


def test_a_template_without_a_place_for_a_system_prompt_gets_it_with_the_first_message() -> None:
    refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    words = with_template(refuses + tokenizer().chat_template)
    assert "tell me why" in words.decode(Renderer(words, "tell me why").opening("yes"))


@pytest.mark.parametrize("steps", [1, 2, 10])
def test_a_short_warm_up_is_one(steps: int) -> None:
    losses = warm_up(policy(WORDS), SCRIPT, WORDS, WarmupSettings(steps=steps, batch=2, turns=2), seed=0)
    assert len(losses) == steps


def test_a_flipped_byte_in_a_checkpoint_is_named(tmp_path: Path) -> None:
    model = policy(WORDS).model
    optimizer = torch.optim.AdamW(model.parameters())
    for step in (1, 2):
        saved = checkpoint.save(tmp_path, step, model=model, tokenizer=WORDS, optimizer=optimizer.state_dict(), keep=2)
    path = saved.model_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "more": 1}))
    with pytest.raises(checkpoint.DamagedError, match=r"step-000002 is damaged: model/config\.json"):
        checkpoint.newest(tmp_path)


def test_a_control_token_without_a_row_in_the_head_is_no_obstacle() -> None:
    """Gemma 3 has such a token for images, and a text model has no row for it."""
    from learner.models import never_sampled

    words = tokenizer()
    made = build_model(words, layers=1, width=32, heads=4, context=64, seed=0)
    rows = made.get_output_embeddings().weight.shape[0]
    words.add_special_tokens({"additional_special_tokens": ["<image_soft_token>"]})
    assert words.convert_tokens_to_ids("<image_soft_token>") >= rows
    banned = never_sampled(made, words)
    assert max(banned) < rows
    assert set(WORDS.all_special_ids) <= set(banned)
    Policy(made, end_id=words.eos_token_id, banned=banned).distribution(torch.zeros(1, rows))
