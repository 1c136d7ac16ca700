"""List prices of the providers' models, as `genai-prices` knows them: they count where the operator sets none."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from reward_server.llm.base import Usage
from reward_server.llm.budget import NANO_USD_PER_USD
from reward_server.store.records import Spend

SELLERS = frozenset({"anthropic", "openai"})
"""Providers with list prices; what a server of one's own costs, nobody can look up."""


@dataclass(frozen=True, slots=True)
class ListPrices:
    """The prices of one model, with those of its long prompts."""

    provider: str
    model: str

    def of(self, usage: Usage) -> Spend:
        """What this many tokens cost; cached ones as much as others, which is never too little."""
        nano_usd = _usd(self.provider, self.model, usage) * NANO_USD_PER_USD
        return Spend(tokens=usage.input_tokens + usage.output_tokens, nano_usd=math.ceil(nano_usd))


def list_prices(provider: str, model: str | None, base_url: str | None) -> ListPrices | None:
    """The prices of a provider's model; None where they are not known."""
    if provider not in SELLERS or model is None or base_url is not None:
        return None
    try:
        _usd(provider, model, Usage(input_tokens=1, output_tokens=1))
    except LookupError:
        return None
    return ListPrices(provider, model)


def _usd(provider: str, model: str, usage: Usage) -> Decimal:
    # Imported where it is used: it holds every provider's list, which takes a third of a second to load.
    import genai_prices

    tokens = genai_prices.Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    return genai_prices.calc_price(tokens, model, provider_id=provider).total_price
