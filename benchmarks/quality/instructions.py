"""LLMBar: which of two outputs follows the instruction, by subset; accuracy and whether the order matters.

A learned head for a subset is fitted on the other subsets, without any instruction that also occurs in this one. The
head fitted on harmlessness is shown beside it as a warning: it learned what that crowd preferred, not quality.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality import plots
from benchmarks.quality.asking import Asked
from benchmarks.quality.data import Pair
from benchmarks.quality.figures import NOT_KNOWN, Floats, beaten, share, wins
from benchmarks.quality.heads import cosines, preference_head, words
from benchmarks.quality.preferences import Sides, sides
from benchmarks.report import Table
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.posterior import LinearPosterior
from reward_server.reward_models.reliability import Interval

FIRST = {
    "a learned head": {"natural": 0.56, "mtbench_human": 0.44, "faireval": 0.33},
    "the longer output": {"natural": 0.55, "mtbench_human": 0.683, "faireval": 0.576},
}
"""First numbers without a language model; the head was fitted on other subsets (natural) or on hh."""
LANGUAGE_MODELS = {"natural": "0.945 / 0.775", "mtbench_human": "0.810 / 0.713", "faireval": "0.727 / 0.576"}
LANGUAGE_MODELS_ELSEWHERE = {"llmeval2": "0.755 / 0.703"}
PEOPLE = {"natural": 0.94}
"""Agreement of the experts who made LLMBar (Zeng et al. 2024)."""


def tables(
    featuriser: ConversationFeaturiser,
    subsets: Mapping[str, Sequence[Pair]],
    transferred: LinearPosterior | None,
    asked: Mapping[str, Asked],
) -> list[str]:
    """The section of the report."""
    features = {name: sides(featuriser, pairs) for name, pairs in subsets.items()}
    heads = {name: _on_others(featuriser, subsets, features, name) for name in subsets}
    accuracy = Table(
        "LLMBar: accuracy [95 %] per subset; intervals over instructions",
        ["judge", *(f"{name} ({len(pairs)})" for name, pairs in subsets.items())],
    )
    accuracy.add("chance", *("0.500" for _ in subsets))
    scores: dict[str, dict[str, Floats]] = {
        "longer output": {name: _lengths(pairs) for name, pairs in subsets.items()},
        "cosine with the instruction": {name: cosines(featuriser, features[name].differences) for name in subsets},
        "learned head, other subsets": {name: _margins(heads[name], features[name].differences) for name in subsets},
    }
    if transferred is not None:
        scores["head fitted on hh harmless (a warning)"] = {
            name: _margins(transferred, features[name].differences) for name in subsets
        }
    for judge, margins in scores.items():
        accuracy.add(judge, *(_accuracy(margins[name], subsets[name]) for name in subsets))
    accuracy.add("language model, both orders", *(asked[name].accuracy if name in asked else "-" for name in subsets))
    learned = {n: _accuracy(scores["learned head, other subsets"][n], subsets[n]) for n in subsets}
    for judge, first in FIRST.items():
        accuracy.add(f"first number of {judge}", *(first.get(name, "-") for name in subsets))
        accuracy.add("beaten", *(beaten(learned[name], first[name]) if name in first else "-" for name in subsets))
    published = LANGUAGE_MODELS | LANGUAGE_MODELS_ELSEWHERE
    accuracy.add("GPT-4 / ChatGPT, published", *(published.get(name, "-") for name in subsets))
    accuracy.add("people", *(PEOPLE.get(name, NOT_KNOWN) for name in subsets))
    _draw(learned, scores, subsets)
    return [f"{accuracy.text()}\n\n{_note(asked)}", _consistency(featuriser, subsets, features, heads, asked)]


def _on_others(
    featuriser: ConversationFeaturiser, subsets: Mapping[str, Sequence[Pair]], features: Mapping[str, Sides], name: str
) -> LinearPosterior:
    """A head fitted on the other subsets."""
    own = {pair.group for pair in subsets[name]}
    parts: list[NDArray[np.float32]] = []
    for other, pairs in subsets.items():
        if other != name:
            parts.append(features[other].differences[[pair.group not in own for pair in pairs]])
    return preference_head(featuriser, np.concatenate(parts))


def _margins(head: LinearPosterior, differences: NDArray[np.float32]) -> Floats:
    return head.predict(differences).mean


def _lengths(pairs: Sequence[Pair]) -> Floats:
    return np.array([float(words(pair.chosen) - words(pair.rejected)) for pair in pairs])


def _accuracy(margins: Floats, pairs: Sequence[Pair]) -> Interval:
    return share(wins(margins), [pair.group for pair in pairs])


def _consistency(
    featuriser: ConversationFeaturiser,
    subsets: Mapping[str, Sequence[Pair]],
    features: Mapping[str, Sides],
    heads: Mapping[str, LinearPosterior],
    asked: Mapping[str, Asked],
) -> str:
    """How often a judge says the same when the two outputs change places, measured by asking both ways."""
    table = Table("LLMBar: order consistency (the same winner in both orders)", ["judge", *subsets])

    def swapped(name: str) -> str:
        one, other = features[name].differences, features[name].rejected - features[name].chosen
        same = wins(_margins(heads[name], one)) == 1.0 - wins(_margins(heads[name], other))
        return f"{float(same.mean()):.3f}"

    def by_cosine(name: str) -> str:
        one = cosines(featuriser, features[name].differences)
        other = cosines(featuriser, features[name].rejected - features[name].chosen)
        return f"{float((wins(one) == 1.0 - wins(other)).mean()):.3f}"

    table.add("local: cosine with the instruction", *(by_cosine(name) for name in subsets))
    table.add("learned head, other subsets", *(swapped(name) for name in subsets))
    table.add("language model", *(asked[name].consistency if name in asked else "-" for name in subsets))
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


def _draw(
    learned: Mapping[str, Interval], scores: Mapping[str, Mapping[str, Floats]], subsets: Mapping[str, Sequence[Pair]]
) -> None:
    simple = {
        judge: [_accuracy(scores[judge][name], subsets[name]).value for name in subsets]
        for judge in ("longer output", "cosine with the instruction")
    }
    ceiling = {"people": [PEOPLE.get(name, float("nan")) for name in subsets]}
    plots.bars(
        "LLMBar: accuracy of the learned head (chance 0.5)", "llmbar_accuracy", list(learned.items()), simple | ceiling
    )
