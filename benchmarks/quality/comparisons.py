"""Seven plain comparisons of two outputs for one instruction, each turned so that more should be better.

They are what anybody would look at first: how long, how near, what of the instruction is taken up, how it is laid out,
whether it repeats itself or refuses. A few hundred pairs can weigh seven such numbers, but not thousands of directions
of meaning. Each is that of one side less that of the other, so changing places turns its sign and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.data import Pair
from benchmarks.quality.figures import Floats
from benchmarks.quality.heads import cosines, log_lengths
from personas.text.wording import tokens
from reward_server.reward_models.conversation import Conversation
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.wordings import COMMON, figures_in

COMPARISONS = (
    "longer (logarithm of the words read)",
    "nearer to the instruction (cosine)",
    "more words of the instruction",
    "more figures of the instruction",
    "more marks of layout",
    "less repetition",
    "no refusal",
)
SHORTEST = 3
"""Letters of a word of the instruction that counts."""
REFUSAL_CHARS = 300
"""A refusal stands at the beginning; further on the same words belong to the matter."""
_REFUSAL = re.compile(
    r"\b(?:sorry|apologi[sz]e|as an ai|language model|unfortunately"
    r"|i (?:can(?:'t|not| not)|am (?:not able|unable)|do not have|don't have))\b",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_STRONG = re.compile(r"\*\*|^#+ ", re.MULTILINE)


def compared(featuriser: ConversationFeaturiser, pairs: Sequence[Pair], differences: NDArray[np.float32]) -> Floats:
    """Shape (n, 7): the preferred side less the other; `differences` (n, width) are those of the features."""
    counted = [traits(pair.group, _output(pair.chosen)) - traits(pair.group, _output(pair.rejected)) for pair in pairs]
    return np.column_stack([log_lengths(featuriser, differences), cosines(featuriser, differences), np.stack(counted)])


def traits(instruction: str, output: str) -> Floats:
    """Shape (5,): what COMPARISONS names from the third on, of one output."""
    asked, said = tokens(instruction), tokens(output)
    figures = set(figures_in(asked))
    content = {word for word in asked if len(word) >= SHORTEST and word not in COMMON} - figures
    triples = list(zip(said, said[1:], said[2:], strict=False))
    marks = math.log1p(len(_ITEM.findall(output))) + ("```" in output) + bool(_STRONG.search(output))
    return np.array(
        [
            _taken_up(content, said),
            _taken_up(figures, said),
            marks,
            len(set(triples)) / len(triples) if triples else 1.0,
            -float(bool(_REFUSAL.search(output[:REFUSAL_CHARS]))),
        ]
    )


def _output(conversation: Conversation) -> str:
    return conversation.turns[-1].text


def _taken_up(asked: set[str], said: Sequence[str]) -> float:
    return len(asked.intersection(said)) / len(asked) if asked else 0.0
