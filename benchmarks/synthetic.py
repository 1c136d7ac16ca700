"""Synthetic conversations for speed measurements: word pieces and lengths like those of chats, and a fixed random head.

Lengths are log-normal, 32 to 500 tokens, mean 150, half below 130, a tenth above 280; words follow Zipf's law over a
short list of common and technical English words, two to twelve turns. Nothing is to be learned from the content.
"""

from __future__ import annotations

import math
import random

import numpy as np
from numpy.typing import NDArray

_VOCABULARY = (
    "the of and to a in is that for it as was with be by on not he this are or his from at which but have an had they "
    "you were their one all we can her has there been if more when will would who so no out up said what about into "
    "than them then some could time these two may first other new people my only make way over down after also back "
    "well where because good through most work life being year just should system order number refund shipping "
    "account password customer support please thanks problem error device router internet policy request payment "
    "invoice delivery address schedule meeting project report analysis reason answer question explain function list "
    "value index loop variable compile exception understand apologize inconvenience unfortunately certainly recommend "
    "alternatively however therefore approximately configuration authentication subscription notification "
    "responsibility communication environment temperature calculate multiply integer polynomial derivative probability "
    "distribution hypothesis gradient optimizer trajectory exploration conversation evaluation latency throughput "
    "tokenizer middleware asynchronous serialization heuristics photosynthesis"
)
WORDS = _VOCABULARY.split()
PIECES_PER_WORD = 1.14
SHORTEST, LONGEST, MEAN, SPREAD = 32, 500, 157.0, 0.62


def conversations(count: int, seed: int) -> list[list[dict[str, str]]]:
    """Messages in the wire format, the user first, the assistant last."""
    source = random.Random(seed)
    return [_conversation(source) for _ in range(count)]


def texts(count: int, seed: int) -> list[str]:
    """The same as single texts with role marks."""
    return ["\n".join(f"{m['role']}: {m['content']}" for m in each) for each in conversations(count, seed)]


def head_scores(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scores in (0, 1) of a fixed random head with a hidden layer; their standard deviation is about 0.11."""
    source = np.random.default_rng(7)
    hidden = source.normal(size=(vectors.shape[1], 128)) * 20 / math.sqrt(vectors.shape[1])
    output = source.normal(size=128) / math.sqrt(128)
    return np.asarray(1 / (1 + np.exp(-np.tanh(vectors.astype(np.float64) @ hidden) @ output)))


def _conversation(source: random.Random) -> list[dict[str, str]]:
    tokens = min(LONGEST, max(SHORTEST, source.lognormvariate(math.log(MEAN) - SPREAD**2 / 2, SPREAD)))
    turns = 2 * max(1, min(6, round(tokens / 70)))
    words = max(turns, int((tokens - 2 - 3 * turns) / PIECES_PER_WORD))
    messages = []
    for turn in range(turns):
        said = source.choices(WORDS, weights=_ZIPF, k=max(1, round(words / turns * (0.6 if turn % 2 == 0 else 1.4))))
        for place in range(7, len(said), 9):
            said[place] += source.choice([",", ".", "?", " 42"])
        messages.append({"role": "user" if turn % 2 == 0 else "assistant", "content": " ".join(said) + "."})
    return messages


_ZIPF = [1 / (rank + 3) ** 0.6 for rank in range(len(WORDS))]
