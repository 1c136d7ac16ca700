"""Reads how likely a model thought "met" to be from the log-probabilities of its answer's tokens.

G-Eval (Liu et al. 2023, equation 1) scores by the expectation over the score tokens, sum of p(s_i) * s_i. A
yes-or-no verdict has the two scores 1 and 0, so the expectation is p(true) / (p(true) + p(false)) at the token in
which the value of `met` begins. Where it cannot be found there is none, and nothing else is put in its place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate

from reward_server.llm.base import TokenChoice

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|true|false|[^\s"]')
"""Strings are swallowed whole, so that nothing quoted from a transcript can pass for a verdict."""
_BEFORE_VALUE = ' \t\r\n:"'


def likelihoods(tokens: Sequence[TokenChoice], answers: Sequence[bool]) -> list[float | None]:
    """Per answered `met`, in the order of the answer's text, the probability of true; None where it is unknown."""
    text = "".join(token.token for token in tokens)
    places = _verdict_places(text)
    if [text.startswith("true", place) for place in places] != list(answers):
        return [None] * len(answers)
    ends = list(accumulate(len(token.token) for token in tokens))
    return [_likelihood(tokens, ends, place) for place in places]


def _verdict_places(text: str) -> list[int]:
    """The places where the values of the `met` keys begin."""
    places = []
    earlier = ["", ""]
    for lexeme in _LEXEME.finditer(text):
        if earlier == ['"met"', ":"] and lexeme.group() in {"true", "false"}:
            places.append(lexeme.start())
        earlier = [earlier[1], lexeme.group()]
    return places


def _likelihood(tokens: Sequence[TokenChoice], ends: Sequence[int], place: int) -> float | None:
    index = next(i for i, end in enumerate(ends) if end > place)
    weights = _weights(tokens[index].alternatives)
    total = weights[True] + weights[False]
    return weights[True] / total if total > 0.0 else None


def _weights(alternatives: Mapping[str, float]) -> dict[bool, float]:
    """The probability of tokens that begin (or continue past) `true`, and of those that do so with `false`."""
    weights = {True: 0.0, False: 0.0}
    for token, logarithm in alternatives.items():
        begun = token.lstrip(_BEFORE_VALUE).lower()
        for value, word in ((True, "true"), (False, "false")):
            if begun and (word.startswith(begun) or begun.startswith(word)) and not math.isnan(logarithm):
                weights[value] += math.exp(min(0.0, logarithm))
    return weights
