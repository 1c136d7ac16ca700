"""List prices of the providers' models, as `genai-prices` knows them: they count where the operator sets none."""

from __future__ import annotations

import math
from dataclasses import dataclass

from reward_server.llm.base import TokenUsage
from reward_server.llm.budget import NANO_USD_PER_USD
from reward_server.prices import is_listed, usd
from reward_server.store.records import Spend


@dataclass(frozen=True, slots=True)
class ListPrices:
    """The prices of one model, with those of its long prompts."""

    provider: str
    model: str

    def of(self, usage: TokenUsage) -> Spend:
        """The price of this many tokens; cached ones cost as much as others, which is never too little."""
        nano_usd = usd(self.provider, self.model, usage.input_tokens, usage.output_tokens) * NANO_USD_PER_USD
        return Spend(tokens=usage.input_tokens + usage.output_tokens, nano_usd=math.ceil(nano_usd))


def list_prices(provider: str, model: str | None, base_url: str | None) -> ListPrices | None:
    """The prices of a provider's model; None where they are not known."""
    return ListPrices(provider, model) if model is not None and is_listed(provider, model, base_url) else None
