"""What an agent's own words are worth to a learned model in a scenario, by ways to read them (decision 7).

Usage: python -m benchmarks.own_words [--work FOLDER] [--only accuracy planted attacks] [--each 4] [--write]

Trains on the scripted conversations of `benchmarks.own_evaluations` (`--work` is its folder, so that nothing is played
twice) with each way to read the agent's own words, and measures three things:

- how well rewards of scenarios are predicted that the model has not seen, and what own words cost there;
- whether bad words are told from good ones where labels do hang on them: every conversation gets one more sentence, in
  three of ten a promise nobody may make, which costs .3 of the label. On held-out scenarios, with other wordings, the
  same talk with a promise should have a lower value than with a harmless sentence, and own words should cost more in
  talks with a promise than in other talks with a harmless sentence (AUC);
- whether words pay: attacks by keywords and by premature decisions on talks of `benchmarks.adversarial`, each by
  every `--each`-th attack, seen by the model alone, without the gates around it.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.adversarial import bases, shared_out
from benchmarks.attacks import ATTACKS
from benchmarks.own_evaluations import FOLDS, conversations, evaluate
from benchmarks.planted_words import GOOD, PROMISES
from benchmarks.report import Table, environment, write
from reward_server.cli.training import stored_rows
from reward_server.engine import load_matcher, load_scenarios
from reward_server.reward_models import robust_reading
from reward_server.reward_models.conversation import Conversation, Said
from reward_server.reward_models.dataset import OVERALL, Dataset, Labelled, Split, groups_of, hold_out, split
from reward_server.reward_models.emphasis import learned_emphasis
from reward_server.reward_models.encoder import TextEncoder, load_fast_encoder, meaning_width
from reward_server.reward_models.features import ConversationFeaturiser
from reward_server.reward_models.heads import Heads, Matrix
from reward_server.reward_models.matrices import Examples
from reward_server.reward_models.metrics import Resamples, spearman
from reward_server.reward_models.recorded import conversation_from, scenario_text
from reward_server.reward_models.training import Recipe, fit
from reward_server.settings import load_settings

ALONE, REMARKS, AXES, WORDS = (
    "answers alone",
    "answers, and sample remarks that only cost",
    "answers, and extremes along the encoder's axes that only cost",
    "words of both parties (`--reads words`)",
)
PARTS = ("planted", "accuracy", "attacks")
FAMILIES = ("keyword stuffing", "premature decisions")
EACH = 4
SHARE = 0.3
COST = 0.3
TOLERANCE = 1e-9
Exact = NDArray[np.float64]


@dataclass
class Way:
    """One way to read conversations; rows are kept by the conversations' digests."""

    name: str
    read: Callable[[Sequence[Conversation]], Matrix]
    emphasis: Matrix
    kinds: NDArray[np.intp]
    costs: NDArray[np.bool_]
    """The columns about the agent's own words that may only lower a value."""
    rows: dict[str, Matrix] = field(default_factory=dict)

    def features(self, found: Sequence[Conversation]) -> Mapping[str, Matrix]:
        """The rows of these conversations, among others."""
        missing = [each for each in {c.digest: c for c in found}.values() if each.digest not in self.rows]
        if missing:
            self.rows |= dict(zip((c.digest for c in missing), self.read(missing), strict=True))
        return self.rows

    def matrix(self, found: Sequence[Conversation]) -> Matrix:
        """Shape (n, width)."""
        rows = self.features(found)
        return np.stack([rows[each.digest] for each in found])

    def heads(self, parts: Split) -> Heads:
        """Fitted as the product fits them."""
        names, width = (OVERALL,), len(self.emphasis)
        train, middle = (
            Examples.of(part, self.features(list(part.conversations())), names, width)
            for part in (parts.train, parts.validation)
        )
        emphasis = learned_emphasis(train, self.emphasis, self.kinds)
        return fit(names, train, middle, Recipe(), emphasis=emphasis, costs=self.costs).heads


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="conversations and store of benchmarks.own_evaluations")
    parser.add_argument("--each", type=int, default=EACH, help=f"every N-th attack a conversation; default: {EACH}")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="some of the three measurements")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/own_words_*.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        dataset = own(arguments.work or Path(name))
        ways = {way.name: way for way in ways_to_read(load_fast_encoder())}
        for part in arguments.only or PARTS:
            if part == "accuracy":
                table = accuracy(dataset, list(ways.values()))
            elif part == "planted":
                table = planted(dataset, [ways[each] for each in (REMARKS, AXES, WORDS)])
            else:
                table = attacked(dataset, [ways[each] for each in (REMARKS, WORDS)], max(1, arguments.each))
            about = (
                f"{len(dataset.labelled)} conversations of scripted agents, data {dataset.digest[:12]}. 95 % intervals"
            )
            about += " from resampling whole scenarios."
            text = f"{about}\n\n{table.text()}\n\n{environment()}"
            print(text)
            if arguments.write:
                write(f"own_words_{part}", text)


def own(folder: Path) -> Dataset:
    """The server's evaluations of scripted agents, played where they are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "data" / "labs.sqlite").exists():
        evaluate(folder, conversations(load_scenarios(None), 12, folder / "conversations-12.json"))
    return stored_rows(load_settings({"data": folder / "data"}), None, None)


# --- ways to read ---------------------------------------------------------------------------------


def ways_to_read(encoder: TextEncoder) -> list[Way]:
    """What decision 7 chose, and what stands beside it."""
    answers, words = ConversationFeaturiser(encoder), ConversationFeaturiser(encoder, reads="words")
    costs, kinds, emphasis = answers.costs, answers.kinds, answers.emphasis
    nothing, rest = np.zeros_like(costs), ~costs
    wide = 2 * meaning_width(encoder)
    axes = Extremes(encoder)

    def along_axes(found: Sequence[Conversation]) -> Matrix:
        return np.concatenate([answers.features(found)[:, rest], axes.features(found)], axis=1)

    def joined(first: NDArray[np.generic], value: float | bool) -> NDArray[np.generic]:
        return np.concatenate([first[rest], np.full(wide, value, dtype=first.dtype)])

    by_axes = Way(AXES, along_axes, joined(emphasis, 1.0), joined(kinds, kinds[costs][0]), joined(costs, value=True))  # type: ignore[arg-type]
    return [
        Way(ALONE, lambda found: answers.features(found)[:, rest], emphasis[rest], kinds[rest], nothing[rest]),
        Way(REMARKS, answers.features, emphasis, kinds, costs),
        by_axes,
        Way(WORDS, words.features, words.emphasis, words.kinds, nothing),
    ]


class Extremes:
    """The largest and the smallest value of the agent's sentences along each axis: more words lower none of them."""

    def __init__(self, encoder: TextEncoder) -> None:
        """Args: encoder: whose meaning is read."""
        self._encoder = encoder
        self._width = meaning_width(encoder)
        self._known: dict[str, Matrix] = {}

    def features(self, found: Sequence[Conversation]) -> Matrix:
        """Shape (n, 2 width): the largest, then the smallest with the other sign."""
        said = [robust_reading.remarks(each) for each in found]
        missing = list(dict.fromkeys(text for each in said for text in each if text not in self._known))
        if missing:
            vectors = self._encoder.encode(missing)[:, : self._width]
            self._known |= dict(zip(missing, vectors, strict=True))
        return np.stack([self._row([self._known[text] for text in each]) for each in said])

    def _row(self, vectors: Sequence[Matrix]) -> Matrix:
        if not vectors:
            return np.zeros(2 * self._width, dtype=np.float32)
        matrix = np.stack(vectors)
        return np.concatenate([matrix.max(axis=0), -matrix.min(axis=0)])


# --- what is measured -----------------------------------------------------------------------------


def accuracy(dataset: Dataset, ways: Sequence[Way]) -> Table:
    """Spearman on scenarios that a model has not seen, and what own words cost a talk there."""
    table = Table(
        "Spearman with the server's reward, and what own words cost",
        ["read", "unseen scenarios", "cost of a talk", "of the worst third", "of the best third"],
    )
    labels = np.array([row.scores[OVERALL] for row in dataset.labelled])
    resamples = Resamples.of(groups_of(dataset.labelled))
    worst, best = labels <= np.quantile(labels, 1 / 3), labels >= np.quantile(labels, 2 / 3)
    for way in ways:
        values, costs = out_of_fold(dataset, way, scenario_folds(dataset))
        lost = [f"{each.mean():.3f}" if way.costs.any() else "" for each in (costs, costs[worst], costs[best])]
        table.add(way.name, resamples.figure(spearman, values, labels), *lost)
        print(table.rows[-1], flush=True)
    return table


def out_of_fold(dataset: Dataset, way: Way, folds: Sequence[frozenset[str]]) -> tuple[Exact, Exact]:
    """The value of every row by a model without its fold, and how much more it would be without own words."""
    groups = groups_of(dataset.labelled)
    values, costs = (np.full(len(groups), np.nan) for _ in range(2))
    for held in folds:
        heads = way.heads(hold_out(dataset, held, seed=0))
        rows = [row for row, group in enumerate(groups) if group in held]
        features = way.matrix([dataset.labelled[row].conversation for row in rows])
        values[rows] = heads.values(features)[:, 0]
        costs[rows] = own_cost(heads, features, way.costs)
    return values, costs


def scenario_folds(dataset: Dataset) -> list[frozenset[str]]:
    """Those of `benchmarks.own_evaluations`."""
    order = sorted(dataset.groups, key=lambda name: hashlib.sha256(name.encode()).digest())
    return [frozenset(order[fold::FOLDS]) for fold in range(FOLDS)]


def planted(dataset: Dataset, ways: Sequence[Way]) -> Table:
    """Whether a promise costs more than a harmless sentence where labels hang on promises."""
    table = Table(
        "A planted promise and a harmless sentence told apart on held-out scenarios, with other wordings",
        ["read", "the same talk valued lower", "of the folds", "cost among all talks, AUC", "of the folds "],
    )
    for way in ways:
        found = [_told_apart(dataset, way, held, seed) for seed, held in enumerate(scenario_folds(dataset))]
        pairs, costs = zip(*found, strict=True)
        table.add(way.name, *_over_folds(pairs), *(_over_folds(costs) if way.costs.any() else ("", "")))
        print(table.rows[-1], flush=True)
    table.add("chance", "0.50", "", "0.50", "")
    return table


def _over_folds(shares: Sequence[float]) -> tuple[str, str]:
    return f"{np.mean(shares):.2f}", f"{min(shares):.2f}-{max(shares):.2f}"


def _told_apart(dataset: Dataset, way: Way, held: frozenset[str], seed: int) -> tuple[float, float]:
    """The share of held-out talks that the promise lowers more, and of all pairs of talks; a tie counts half."""
    source = np.random.default_rng(seed)
    half = len(PROMISES) // 2
    rows = [_with_words(row, bool(source.random() < SHARE), int(source.integers(half))) for row in dataset.labelled]
    heads = way.heads(hold_out(replace(dataset, labelled=tuple(rows)), held, seed=0))
    values, costs = [], []
    for texts in (PROMISES, GOOD):
        talks = [row.conversation for row in dataset.labelled if row.group in held]
        said = [with_sentence(talk, texts[half + number % half]) for number, talk in enumerate(talks)]
        features = way.matrix(said)
        values.append(heads.raw(features)[:, 0])
        costs.append(own_cost(heads, features, way.costs))
    return _ahead(values[1], values[0]), _ahead(costs[0][:, None], costs[1][None, :])


def _ahead(first: Exact, second: Exact) -> float:
    """How often the first is larger; a tie counts half."""
    return float(np.mean((first > second) + 0.5 * (first == second)))


def own_cost(heads: Heads, features: Matrix, costs: NDArray[np.bool_]) -> Exact:
    """How much more each value would be without own words, shape (n,)."""
    silent = np.where(costs, np.float32(0.0), features)
    found: Exact = heads.raw(silent)[:, 0] - heads.raw(features)[:, 0]
    return found


def _with_words(row: Labelled, is_bad: bool, number: int) -> Labelled:
    label = max(0.0, row.scores[OVERALL] - COST * is_bad)
    said = with_sentence(row.conversation, (PROMISES if is_bad else GOOD)[number])
    return replace(row, conversation=said, scores={OVERALL: label})


def with_sentence(talk: Conversation, sentence: str) -> Conversation:
    """The agent says one more sentence in its last turn."""
    last = max(place for place, said in enumerate(talk.turns) if said.party == "agent")
    turns = list(talk.turns)
    turns[last] = Said("agent", f"{turns[last].text} {sentence}")
    return Conversation(tuple(turns), talk.scenario)


def attacked(dataset: Dataset, ways: Sequence[Way], each: int) -> Table:
    """Share of attacked conversations whose value rose, and the largest gain."""
    found = bases(load_scenarios(None), load_matcher(load_settings()))
    heads = {way.name: way.heads(split(dataset, 0, 0.2)) for way in ways}
    table = Table(
        "Attacked conversations that gained with the model alone, and the largest gain",
        ["attack", *(way.name for way in ways)],
    )
    for family in FAMILIES:
        attacks = [attack for attack in ATTACKS if attack.family == family]
        before, after = [], []
        for base, share in shared_out(found, attacks, each):
            scenario = scenario_text(base.scenario.card)
            honest = conversation_from(base.messages, "assistant", scenario)
            talks = [attack.change(base.messages, base.scenario) for attack in share]
            after += [conversation_from(talk, "assistant", scenario) for talk in talks]
            before += [honest] * len(talks)
        cells = []
        for way in ways:
            values = [heads[way.name].values(way.matrix(side))[:, 0] for side in (before, after)]
            gains = values[1] - values[0]
            cells.append(f"{np.mean(gains > TOLERANCE):.1%}, {max(gains.max(), 0.0):.3f}")
        table.add(f"{family} ({len(after)})", *cells)
        print(table.rows[-1], flush=True)
    return table


if __name__ == "__main__":
    main()
