"""`with_raw_response`: the calls of the synchronous client with the HTTP side of their answers.

Made from `async_raw.py` by `unasync`: edit that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol

from trainer_client import calls, operator_calls, preferences, webhooks
from trainer_client.calls import AnswerT, Call
from trainer_client.exchange import RawResponse

P = ParamSpec("P")


class Exchange(Protocol):
    """Sends one call, retries included."""

    def __call__(self, call: Call[AnswerT]) -> RawResponse[AnswerT]:
        """The answer to a call."""
        ...


class RawCalls:
    """Every call that is one request. Arguments are those of the client's own methods."""

    def __init__(self, exchange: Exchange) -> None:
        self.catalog = _raw(exchange, calls.catalog)
        self.collection = _raw(exchange, calls.collection)
        self.scenario = _raw(exchange, calls.scenario)
        self.calibrations = _raw(exchange, calls.calibrations)
        self.reward_models = _raw(exchange, calls.reward_models)
        self.activate_reward_model = _raw(exchange, calls.activate_reward_model)
        self.deactivate_reward_model = _raw(exchange, calls.deactivate_reward_model)
        self.delete_reward_model = _raw(exchange, calls.delete_reward_model)
        self.delete_calibration = _raw(exchange, calls.delete_calibration)
        self.drift = _raw(exchange, calls.drift)
        self.usage = _raw(exchange, operator_calls.usage)
        self.create_episode = _raw(exchange, calls.create_episode)
        self.turn = _raw(exchange, calls.turn)
        self.get_episode = _raw(exchange, calls.get_episode)
        self.list_episodes = _raw(exchange, calls.list_episodes)
        self.delete_episode = _raw(exchange, calls.delete_episode)
        self.batch_episodes = _raw(exchange, calls.batch_episodes)
        self.start_episodes = _raw(exchange, calls.start_episodes)
        self.batch_turns = _raw(exchange, calls.batch_turns)
        self.evaluate = _raw(exchange, calls.evaluate)
        self.get_evaluation = _raw(exchange, calls.get_evaluation)
        self.batch_evaluate = _raw(exchange, calls.batch_evaluate)
        self.compare = _raw(exchange, calls.compare)
        self.rank = _raw(exchange, calls.rank)
        self.prefer = _raw(exchange, preferences.prefer)
        self.preferences = _raw(exchange, preferences.preferences)
        self.preference_agreement = _raw(exchange, preferences.preference_agreement)
        self.export_preferences = _raw(exchange, preferences.export_preferences)
        self.preference_manifest = _raw(exchange, preferences.preference_manifest)
        self.add_webhook = _raw(exchange, webhooks.add_webhook)
        self.webhooks = _raw(exchange, webhooks.webhooks)
        self.get_webhook = _raw(exchange, webhooks.get_webhook)
        self.delete_webhook = _raw(exchange, webhooks.delete_webhook)
        self.test_webhook = _raw(exchange, webhooks.test_webhook)
        self.webhook_deliveries = _raw(exchange, webhooks.webhook_deliveries)
        self.resend_delivery = _raw(exchange, webhooks.resend_delivery)


def _raw(exchange: Exchange, make: Callable[P, Call[AnswerT]]) -> Callable[P, RawResponse[AnswerT]]:
    def send(*args: P.args, **options: P.kwargs) -> RawResponse[AnswerT]:
        return exchange(make(*args, **options))

    send.__name__, send.__doc__ = make.__name__, make.__doc__
    return send
