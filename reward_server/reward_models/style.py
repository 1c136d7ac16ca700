"""The style of a reply, which is no merit of its own: how long it is, and how much it is laid out.

A better-liked reply is often the longer or better laid-out one, so heads learn to count words and bullets. `balanced`
weighs pairs so that style says nothing of the label; `dressed` and `undressed` change the layout and no word, to see
what a model makes of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from personas.text.sentences import sentences
from reward_server.reward_models.conversation import Conversation, ConversationMessage
from reward_server.reward_models.dataset import PreferredPair
from reward_server.reward_models.heads import Exact

CLEARLY = 0.1
"""Of the logarithms of two lengths: a tenth more words."""
MOST_WEIGHT = 4.0
"""No pair counts more than this many times as much as another of its weight would, or less than its inverse."""
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)]|#+)\s+", re.MULTILINE)
_STRONG = re.compile(r"\*\*|__|`{1,3}")
_HEADING = "**Answer**"
_ENDS = ".!?:;,"
"""After these a line needs no full stop to stand in a paragraph."""


def reply_of(conversation: Conversation) -> str:
    """The agent's last message; empty where it said nothing."""
    return next((said.text for said in reversed(conversation.turns) if said.party == "agent"), "")


def with_reply(conversation: Conversation, text: str) -> Conversation:
    """The same up to the agent's last message, which becomes this one."""
    last = max(place for place, said in enumerate(conversation.turns) if said.party == "agent")
    return replace(conversation, turns=(*conversation.turns[:last], ConversationMessage("agent", text)))


def style_of(text: str) -> Exact:
    """Shape (2,): the logarithms of words and of marks of layout."""
    marks = len(_ITEM.findall(text)) + len(_STRONG.findall(text))
    return np.array([math.log1p(len(text.split())), math.log1p(marks)])


def leans(pair: PreferredPair) -> int:
    """1 where the better reply is the longer or better laid-out one, -1 where the other is, 0 where neither."""
    length, layout = style_of(reply_of(pair.chosen)) - style_of(reply_of(pair.rejected))
    return int(np.sign(np.sign(length) * (abs(length) > CLEARLY) + np.sign(layout)))


def balanced(pairs: Sequence[PreferredPair]) -> tuple[PreferredPair, ...]:
    """The pairs weighted so that the better reply is neither longer nor more laid out on average, nor more often.

    Entropy balancing (Hainmueller, Political Analysis 20, 2012): of all weights that balance, those nearest to the
    given ones. Where no pair leans one way there is nothing to balance by, and weights only go to their limits.
    """
    decided = [pair for pair in pairs if not pair.tie]
    if not decided:
        return tuple(pairs)
    styles = np.array([style_of(reply_of(pair.chosen)) - style_of(reply_of(pair.rejected)) for pair in decided])
    moments = np.column_stack([np.sign(styles) * (np.abs(styles) > CLEARLY), styles / _size(styles)])
    given = np.array([pair.weight for pair in decided])
    factors = _factors(moments, given)
    weights = iter(given * factors)
    return tuple(pair if pair.tie else replace(pair, weight=float(next(weights))) for pair in pairs)


def _size(rows: Exact) -> Exact:
    size = np.sqrt((rows**2).mean(axis=0))
    return np.asarray(np.where(size > 1e-9, size, 1.0))


def _factors(moments: Exact, given: Exact) -> Exact:
    """The factors of weights, shape (n,), of mean 1: exp(moments @ tilt), with the tilt that balances them."""
    shares = given / given.sum()

    def loss(tilt: Exact) -> tuple[float, Exact]:
        odds = moments @ tilt
        top = float(odds.max())
        mass = shares * np.exp(odds - top)
        total = float(mass.sum())
        return top + math.log(total) + 0.5e-3 * float(tilt @ tilt), moments.T @ mass / total + 1e-3 * tilt

    tilt = minimize(loss, np.zeros(moments.shape[1]), jac=True, method="L-BFGS-B").x
    factors = np.clip(np.exp(moments @ tilt), 1.0 / MOST_WEIGHT, MOST_WEIGHT)
    return np.asarray(factors / float(shares @ factors))


def undressed(text: str) -> str:
    """The same words in one paragraph, without bullets, headings and strong print; lines become sentences."""
    lines = (" ".join(_STRONG.sub("", _ITEM.sub("", line)).split()) for line in text.splitlines())
    return " ".join(line if line[-1] in _ENDS else f"{line}." for line in lines if line)


def dressed(text: str) -> str:
    """The same words under a heading, a bullet for each sentence; nothing stays nothing."""
    lines = sentences(undressed(text))
    return "\n".join([_HEADING, "", *(f"- {line}" for line in lines)]) if lines else text
