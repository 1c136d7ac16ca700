"""Counts what is asked of models: attempts, tokens, failures by kind."""

from __future__ import annotations

from collections import Counter

from reward_server.llm.base import TokenUsage
from reward_server.llm.caller import SilentMeter


class CountingMeter(SilentMeter):
    """A `CallMeter` for a command that says at its end what it used."""

    def __init__(self) -> None:
        self.calls = 0
        self.usage = TokenUsage()
        self.failures: Counter[str] = Counter()

    def attempted(self, provider: str, outcome: str, seconds: float, usage: TokenUsage) -> None:
        """As `CallMeter.attempted`."""
        del provider, outcome, seconds
        self.calls += 1
        self.usage += usage

    def failed(self, provider: str, kind: str) -> None:
        """As `CallMeter.failed`."""
        del provider
        self.failures[kind] += 1

    def used(self, of: int, what: str) -> str:
        """One line: calls and tokens, in all and for each of so many conversations or turns."""
        tokens = self.usage.input_tokens + self.usage.output_tokens
        cached = f" ({self.usage.cached_tokens:,} of them cached)" if self.usage.cached_tokens else ""
        each = f"; {self.calls / of:.1f} calls and {tokens / of:,.0f} tokens a {what}" if of else ""
        return f"{self.calls:,} calls, {tokens:,} tokens{cached}{each}"
