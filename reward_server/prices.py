"""List prices of models, as `genai-prices` knows them. Imports nothing of ours."""

from __future__ import annotations

from decimal import Decimal

SELLERS = frozenset({"anthropic", "openai"})
"""Providers with list prices; what a server of one's own costs, nobody can look up."""


def is_listed(provider: str, model: str | None, base_url: str | None) -> bool:
    """True if a provider's model has a list price."""
    if provider not in SELLERS or model is None or base_url is not None:
        return False
    try:
        usd(provider, model, 1, 1)
    except LookupError:
        return False
    return True


def usd(provider: str, model: str, input_tokens: int, output_tokens: int) -> Decimal:
    """The price of this many tokens of a model; cached ones cost as much as others, which is never too little.

    Raises:
        LookupError: there is no list price.
    """
    # Imported where it is used: it holds every provider's list, which takes a third of a second to load.
    import genai_prices

    tokens = genai_prices.Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    return genai_prices.calc_price(tokens, model, provider_id=provider).total_price
