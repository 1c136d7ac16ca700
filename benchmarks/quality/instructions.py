"""LLMBar: which of two outputs follows the instruction, by subset; accuracy and whether the order matters.

Learned judges (`two_levels`) are fitted in two ways (`protocols`), and each is held against the first numbers. The head
fitted on harmlessness is shown beside them as a warning: it learned what that crowd preferred, not quality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.quality import plots
from benchmarks.quality.asking import Asked
from benchmarks.quality.comparisons import compared
from benchmarks.quality.data import Pair
from benchmarks.quality.figures import NOT_KNOWN, Floats, beaten, share, wins
from benchmarks.quality.heads import cosines, words
from benchmarks.quality.preferences import sides
from benchmarks.quality.protocols import (
    DIVISIONS,
    FOLDS,
    LEVELS,
    OTHERS,
    OWN,
    judge_of,
    on_others,
    same_winner,
    with_own_kind,
)
from benchmarks.quality.two_levels import Compared, spread
from benchmarks.report import Table
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.posterior import LinearPosterior
from reward_server.reward_models.reliability import FigureInterval

FIRST = {
    "a learned head": {"natural": 0.56, "mtbench_human": 0.44, "faireval": 0.33},
    "the longer output": {"natural": 0.55, "mtbench_human": 0.683, "faireval": 0.576},
}
"""First numbers without a language model; the head was fitted on other subsets (natural) or on hh."""
LANGUAGE_MODELS = {"natural": "0.945 / 0.775", "mtbench_human": "0.810 / 0.713", "faireval": "0.727 / 0.576"}
LANGUAGE_MODELS_ELSEWHERE = {"llmeval2": "0.755 / 0.703"}
PEOPLE = {"natural": 0.94}
"""Agreement of the experts who made LLMBar (Zeng et al. 2024)."""


COSINE = "cosine with the instruction"
LONGER = "longer output"
HARMLESS = "head fitted on hh harmless (a warning)"


@dataclass(frozen=True)
class Judged:
    """The pairs of a subset, and what judges said of them."""

    pairs: Sequence[Pair]
    compared: Compared
    margins: dict[str, Floats]
    """By judge, (n,), or (divisions, n)."""

    def accuracy(self, judge: str) -> FigureInterval:
        """The mean over the divisions, with its interval over instructions."""
        return share(wins(np.atleast_2d(self.margins[judge])).mean(axis=0), self.compared.groups)

    def range(self, judge: str) -> str:
        """The lowest and the highest accuracy of a division."""
        each = wins(np.atleast_2d(self.margins[judge])).mean(axis=1)
        return f"{each.min():.3f}-{each.max():.3f}"


def tables(
    featuriser: ConversationFeaturiser,
    subsets: Mapping[str, Sequence[Pair]],
    transferred: LinearPosterior | None,
    asked: Mapping[str, Asked],
) -> list[str]:
    """The section of the report."""
    found = {name: _plainly_judged(featuriser, pairs) for name, pairs in subsets.items()}
    pairs = {name: judged.compared for name, judged in found.items()}
    if transferred is not None:
        for judged in found.values():
            judged.margins[HARMLESS] = transferred.predict(judged.compared.differences).mean
    consistency: dict[str, dict[str, float]] = {judge_of(level, OTHERS): {} for level in LEVELS}
    for name, judged in found.items():
        heads = on_others(featuriser, pairs, name)
        one, other = heads.margins(judged.compared), heads.margins(judged.compared.swapped)
        for level in LEVELS:
            judged.margins[judge_of(level, OTHERS)] = getattr(one, level)
            consistency[judge_of(level, OTHERS)][name] = same_winner(getattr(one, level), getattr(other, level))
    for level, said in with_own_kind(featuriser, pairs).items():
        for name, margins in said.items():
            found[name].margins[judge_of(level, OWN)] = margins
    _draw(found)
    return [
        f"{_accuracy(found, asked)}\n\n{_note(asked)}",
        _against_first(found),
        _divisions(found),
        _consistency(featuriser, found, consistency, asked),
    ]


def _plainly_judged(featuriser: ConversationFeaturiser, pairs: Sequence[Pair]) -> Judged:
    """By judges that learn nothing."""
    differences = sides(featuriser, pairs).differences
    plain = compared(featuriser, pairs, differences)
    margins = {
        LONGER: np.array([float(words(pair.chosen) - words(pair.rejected)) for pair in pairs]),
        COSINE: cosines(featuriser, differences),
        "seven comparisons, equal weights": (plain / spread(plain)).sum(axis=1),
    }
    return Judged(pairs, Compared(differences, plain, tuple(pair.group for pair in pairs)), margins)


def _accuracy(found: Mapping[str, Judged], asked: Mapping[str, Asked]) -> str:
    table = Table(
        "LLMBar: accuracy [95 %] per subset; intervals over instructions",
        ["judge", *(f"{name} ({len(judged.pairs)})" for name, judged in found.items())],
    )
    table.add("chance", *("0.500" for _ in found))
    for judge in next(iter(found.values())).margins:
        table.add(judge, *(judged.accuracy(judge) for judged in found.values()))
    table.add("language model, both orders", *(asked[name].accuracy if name in asked else "-" for name in found))
    published = LANGUAGE_MODELS | LANGUAGE_MODELS_ELSEWHERE
    table.add("GPT-4 / ChatGPT, published", *(published.get(name, "-") for name in found))
    table.add("people", *(PEOPLE.get(name, NOT_KNOWN) for name in found))
    return table.text()


def _against_first(found: Mapping[str, Judged]) -> str:
    table = Table("LLMBar: are the first numbers beaten", ["judge", *found])
    for of, first in FIRST.items():
        table.add(f"first number of {of}", *(first.get(name, "-") for name in found))
        for training in (OTHERS, OWN):
            for level in LEVELS:
                judge = judge_of(level, training)
                cells = [
                    beaten(judged.accuracy(judge), first[name]) if name in first else "-"
                    for name, judged in found.items()
                ]
                table.add(judge, *cells)
    return table.text()


def _divisions(found: Mapping[str, Judged]) -> str:
    table = Table(
        f"LLMBar: lowest and highest accuracy of {DIVISIONS} divisions into {FOLDS} folds; above are their means",
        ["judge", *found],
    )
    for level in LEVELS:
        judge = judge_of(level, OWN)
        table.add(judge, *(judged.range(judge) for judged in found.values()))
    return table.text()


def _consistency(
    featuriser: ConversationFeaturiser,
    found: Mapping[str, Judged],
    learned: Mapping[str, Mapping[str, float]],
    asked: Mapping[str, Asked],
) -> str:
    """How often a judge says the same when the two outputs change places, measured by asking both ways."""
    table = Table("LLMBar: order consistency (the same winner in both orders)", ["judge", *found])

    def by_cosine(judged: Judged) -> float:
        return same_winner(judged.margins[COSINE], cosines(featuriser, judged.compared.swapped.differences))

    table.add(f"local: {COSINE}", *(f"{by_cosine(judged):.3f}" for judged in found.values()))
    for judge, shares in learned.items():
        table.add(judge, *(f"{shares[name]:.3f}" for name in found))
    table.add("language model", *(asked[name].consistency if name in asked else "-" for name in found))
    return (
        f"{table.text()}\n\nPublished for LLMBar: GPT-4 is consistent in 93-98 % with a swap, Falcon-40B in 31-43 %. "
        "Judges that score each side on its own cannot depend on the order; the row shows that they do not."
    )


def _note(asked: Mapping[str, Asked]) -> str:
    if not asked:
        return (
            "No language model is configured (`LABS_LLM_PROVIDER` is none), so its row shows -. With a provider "
            "set, the same command asks it about every pair in both orders; one on which they differ counts half."
        )
    said = "; ".join(f"{name}: {found.failed} of {found.n} without a usable answer" for name, found in asked.items())
    return f"Language model: a pair on which the two orders differ counts half; {said} (left out)."


def _draw(found: Mapping[str, Judged]) -> None:
    simple = {judge: [judged.accuracy(judge).value for judged in found.values()] for judge in (LONGER, COSINE)}
    ceiling = {"people": [PEOPLE.get(name, float("nan")) for name in found]}
    learned = [(name, judged.accuracy(judge_of("both", OWN))) for name, judged in found.items()]
    plots.bars("LLMBar: accuracy of the head of two levels (chance 0.5)", "llmbar_accuracy", learned, simple | ceiling)
