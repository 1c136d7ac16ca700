"""Is what earns the reward still language? Measures that a rising reward says nothing about.

Three of them: how likely the policy's turns are to the frozen first policy, how many say again what was
said, and, where the policy was warmed up on a script, how many are broken: they have three or more pairs
of words that stand nowhere in the script. A pretrained model has no such script, and counts of its rare
tokens call its own first turns broken: of it the likelihood alone is told.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import torch

from learner.model import Policy
from learner.types import Trajectory
from trainer_client.chat.tokens import Renderer

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[^\w\s]")
STRANGE_PAIRS = 3
REPEATED_WORDS = 4
ROWS_AT_ONCE = 16


def word_pairs(text: str) -> list[tuple[str, str]]:
    """Neighbouring words, the beginning counted as one."""
    words = ["", *WORD.findall(text.lower())]
    return list(itertools.pairwise(words))


def is_repeated(text: str, earlier: Sequence[str]) -> bool:
    """Said before in the conversation, or saying four words in a row twice."""
    words = WORD.findall(text.lower())
    runs = [tuple(words[start : start + REPEATED_WORDS]) for start in range(len(words) - REPEATED_WORDS + 1)]
    return len(set(runs)) < len(runs) or words in [WORD.findall(each.lower()) for each in earlier]


@dataclass(frozen=True)
class FluencyMeter:
    """Measures the turns of episodes."""

    renderer: Renderer
    reference: Policy | None = None
    known_pairs: frozenset[tuple[str, str]] = field(default_factory=frozenset)

    @staticmethod
    def pairs_of(lines: Iterable[str]) -> frozenset[tuple[str, str]]:
        """The pairs of words in a script."""
        return frozenset(pair for line in lines for pair in word_pairs(line))

    def measure(self, trajectories: Sequence[Trajectory]) -> dict[str, float]:
        """Shares of turns, and nats per token."""
        likelihoods = self._reference_logp(trajectories)
        broken, repeated, share_of_reward, positive = [], [], 0.0, 0.0
        for trajectory in trajectories:
            said: list[str] = []
            before = 0.0
            for turn, segment in enumerate(each for each in trajectory.segments if each.sampled):
                text = self.renderer.spoken(list(segment.ids)).text
                broken.append(sum(pair not in self.known_pairs for pair in word_pairs(text)) >= STRANGE_PAIRS)
                repeated.append(is_repeated(text, said))
                said.append(text)
                gain = max(trajectory.turn_rewards[turn] - before, 0.0)
                before = trajectory.turn_rewards[turn]
                positive += gain
                share_of_reward += gain * broken[-1]
        values = {"fluency/repeated": fmean(repeated)}
        if self.known_pairs:
            values["fluency/broken"] = fmean(broken)
            values["fluency/reward_on_broken"] = share_of_reward / positive if positive else 0.0
        if likelihoods:
            values["fluency/reference_nll"] = -fmean(value for row in likelihoods for value in row)
        return values

    @torch.no_grad()
    def _reference_logp(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        """Of each sampled token, episode by episode; nothing without a reference."""
        if self.reference is None:
            return []
        found = []
        for start in range(0, len(trajectories), ROWS_AT_ONCE):
            part = trajectories[start : start + ROWS_AT_ONCE]
            # Of all tokens, and not of those that top-k or top-p left: what is unusual is to be seen.
            rows = [[replace(segment, support=None) for segment in row] for each in part for row in each.rows]
            flat = self.reference.score_rows(rows)[0]
            found += [piece.tolist() for piece in torch.split(flat, [each.sampled_tokens for each in part])]
        return found
