"""Does a reward model learn the server's own rewards well enough to predict those of scenarios it has never seen?

Usage: python -m benchmarks.own_evaluations [--varied N] [--work FOLDER] [--write]

Plays scripted agents of several qualities against every packaged persona, has a Labs server evaluate them through
/batch/evaluate, and trains on the server's store as `labs reward-model train --from-store` does. Each scenario is then
predicted by a model that was trained without it (five folds of whole scenarios), and once more by a model that has seen
no scenario of its collection. A third table is of the agents alone that mean to do their task: there, a model that was
trained on them, and one that was trained on what is left of their rewards within a scenario once a line through the
number of different words that the persona said is taken off, are set beside that number. `--work` keeps the played
conversations, so that a second run goes on from them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from numpy.typing import NDArray

from benchmarks.processes import labs_server, running
from benchmarks.report import Table, environment, write
from personas.case.library import load_temperaments
from personas.reading.reader import Reader
from reward_server.cli.training import stored_rows
from reward_server.exam.play import play
from reward_server.fitting.reward_model.emphasis import learned_emphasis
from reward_server.fitting.reward_model.head_training import Fitted, Recipe, fit
from reward_server.fitting.reward_model.metrics import Figure, Resamples, pairwise, pearson, r2, spearman
from reward_server.reward_models.baselines import Baselines
from reward_server.reward_models.dataset import OVERALL, Dataset, DatasetSplit, groups_of, hold_out
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.featurisers import Featurisers
from reward_server.reward_models.heads import Featuriser, Matrix
from reward_server.reward_models.matrices import ExampleMatrices
from reward_server.reward_models.plain_features import NAMES, PlainFeatures
from reward_server.reward_models.recorded import conversation_from, scenario_text
from reward_server.server.engine import load_reader, load_scenarios
from reward_server.settings import load_settings
from scenarios.exam import ORACLE, agents, varied
from scenarios.library import Library, natural_agents

FOLDS = 5
BATCH = 50
COMPETENT = (ORACLE, "excellent", "ok", "varied")
"""How the names of agents begin that mean to do their task."""
MODEL, ALONE, RESIDUAL, WORDS = "reward model", "trained on these alone", "persona words and residual", "persona words"
_SAID = NAMES.index(WORDS)
Json = dict[str, Any]
Exact = NDArray[np.float64]


@dataclass
class Predictions:
    """Predictions of every method for every row, each made without the row's scenario or collection."""

    labels: Exact
    groups: list[str]
    by_method: dict[str, Exact] = field(default_factory=dict)

    def put(self, method: str, rows: NDArray[np.intp], values: Exact) -> None:
        """Fill in the rows of one fold."""
        self.by_method.setdefault(method, np.full(len(self.labels), np.nan))[rows] = values


def main() -> None:
    """Play, evaluate, train, predict, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--varied", type=int, default=12, help="varied agents per scenario, besides the twelve others")
    parser.add_argument("--work", type=Path, help="keep conversations, store and features here")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/own_evaluations.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.work or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        library = load_scenarios(None)
        items = conversations(library, arguments.varied, folder / f"conversations-{arguments.varied}.json")
        if not (folder / "data" / "labs.sqlite").exists():
            evaluate(folder, items)
        dataset = stored_rows(load_settings({"data": folder / "data"}), None, None, all_labs=True)
        text = report(dataset, folder, competent(library, items))
    print(text)
    if arguments.write:
        write("own_evaluations", text)


# --- conversations --------------------------------------------------------------------------------


def conversations(library: Library, variants: int, kept: Path) -> list[Json]:
    """What the scripted agents and the personas say to each other, as items of a batch."""
    if kept.exists():
        found: list[Json] = json.loads(kept.read_text())
        return found
    reader = load_reader(load_settings())
    with ThreadPoolExecutor(1) as thread:
        parts = thread.map(lambda name: _played(library, reader, name, variants), library.vault.names())
        items = [item for part in parts for item in part]
    kept.write_text(json.dumps(items))
    return items


def _played(library: Library, reader: Reader, name: tuple[str, str], variants: int) -> list[Json]:
    sealed = library.vault.open(*name)
    everyone = [*agents(sealed.secrets, sealed.topics, natural_agents(library).get(sealed.name)).values()]
    everyone += [varied(sealed.secrets.exam.oracle, seed) for seed in range(variants)]
    temperaments = load_temperaments()
    slugs = sealed.secrets.persona.temperaments
    plays = [
        play(sealed, temperaments[slugs[index % len(slugs)]], agent, reader, index)
        for index, agent in enumerate(everyone)
    ]
    print(f"played {sealed.name}", flush=True)
    return [
        {"agent": agent.name, "collection_slug": name[0], "scenario_slug": name[1], "messages": list(each.messages)}
        for agent, each in zip(everyone, plays, strict=True)
        if any(message["role"] == "assistant" for message in each.messages)
    ]


def evaluate(folder: Path, items: Sequence[Json]) -> None:
    """Have a server of its own score and keep them."""
    server = labs_server(folder)
    with running(server), httpx2.Client(base_url=f"{server.url}/api/v1", timeout=300.0) as client:
        for start in range(0, len(items), BATCH):
            some = enumerate(items[start : start + BATCH])
            batch = [{"id": str(n), **{key: item[key] for key in item if key != "agent"}} for n, item in some]
            results = client.post("/batch/evaluate", json={"items": batch}).raise_for_status().json()["results"]
            failed = [result for result in results if result["status"] != "success"]
            if failed:
                raise RuntimeError(f"not scored: {failed[0]}")
            print(f"evaluated {start + len(batch)} of {len(items)}", flush=True)


def competent(library: Library, items: Sequence[Json]) -> frozenset[str]:
    """The digests of conversations by agents that mean to do their task."""
    cards = {name: scenario_text(library.vault.open(*name).card) for name in library.vault.names()}
    return frozenset(
        conversation_from(item["messages"], "assistant", cards[item["collection_slug"], item["scenario_slug"]]).digest
        for item in items
        if item["agent"].startswith(COMPETENT)
    )


# --- learning -------------------------------------------------------------------------------------


def report(dataset: Dataset, folder: Path, able: frozenset[str]) -> str:
    """All tables."""
    featurisers = Featurisers(load_settings().encoder)
    shelf = FeatureShelf(folder / "features")
    everything = list(dataset.conversations())
    features = shelf.features(featurisers.base, everything, lambda done, total: print(f"encoded {done} of {total}"))
    plain = shelf.features(PlainFeatures(featurisers.encoder), everything)
    scenarios = sorted(dataset.groups)
    collections = sorted({name.split("/")[0] for name in scenarios})
    order = sorted(scenarios, key=lambda name: hashlib.sha256(name.encode()).digest())
    by_scenario = [frozenset(order[fold::FOLDS]) for fold in range(FOLDS)]
    by_collection = [frozenset(s for s in scenarios if s.startswith(f"{name}/")) for name in collections]
    tables = []
    for caption, folds in (
        (f"Held-out scenarios ({len(scenarios)} in {FOLDS} folds)", by_scenario),
        (f"Held-out collections ({len(collections)})", by_collection),
    ):
        found = predicted(dataset, folds, features, plain, featurisers.base)
        tables.append(table(caption, found, ("length", "cosine", WORDS, "tf-idf")).text())
        if folds is by_scenario:
            everyone = found.by_method[MODEL]
    own = replace(dataset, labelled=tuple(row for row in dataset.labelled if row.conversation.digest in able))
    found = predicted(own, by_scenario, features, plain, featurisers.base, residual=True)
    found.by_method[ALONE] = found.by_method[MODEL]
    found.by_method[MODEL] = everyone[[row.conversation.digest in able for row in dataset.labelled]]
    caption = f"Held-out scenarios, the {len(own.labelled)} conversations of agents that mean to do their task"
    tables.append(table(caption, found, (WORDS,)).text())
    about = (
        f"{len(dataset.labelled)} conversations of scripted agents in {len(scenarios)} scenarios, scored by the server."
        f" Data {dataset.digest[:12]}. Every row is predicted by a model that saw nothing of its scenario or"
        " collection."
        " 95 % intervals from resampling whole scenarios. “Order within a scenario” is the share of pairs of"
        " conversations of one scenario, with different rewards, that are put in the right order (chance: 0.5)."
    )
    return "\n\n".join([about, *tables, environment()])


def predicted(
    dataset: Dataset,
    folds: Sequence[frozenset[str]],
    features: Mapping[str, Matrix],
    plain: Mapping[str, Matrix],
    featuriser: Featuriser,
    *,
    residual: bool = False,
) -> Predictions:
    """Out-of-fold predictions of the overall reward."""
    groups = groups_of(dataset.labelled)
    labels = np.array([row.scores[OVERALL] for row in dataset.labelled])
    found = Predictions(labels, groups)
    for number, held in enumerate(folds):
        parts = hold_out(dataset, held, seed=0)
        fitted = _fitted(parts, features, featuriser)
        simple = Baselines.fitted(parts.train, plain, "answers")
        rows = np.array([row for row, group in enumerate(groups) if group in held], dtype=np.intp)
        talks = [dataset.labelled[row].conversation for row in rows]
        described = np.stack([features[each.digest] for each in talks])
        found.put(MODEL, rows, fitted.heads.values(described)[:, 0])
        if residual:
            slope = _slope(parts.train, plain)
            left = _fitted(
                replace(
                    parts, train=_left(parts.train, plain, slope), validation=_left(parts.validation, plain, slope)
                ),
                features,
                featuriser,
            )
            said = np.array([plain[each.digest][_SAID] for each in talks], dtype=np.float64)
            usual = np.mean([plain[row.conversation.digest][_SAID] for row in parts.train.labelled])
            level = np.mean([row.scores[OVERALL] for row in parts.train.labelled])
            found.put(RESIDUAL, rows, level + slope * (said - usual) + left.heads.raw(described)[:, 0])
        for name, values in simple.values(talks, [""] * len(talks), plain).items():
            found.put(name, rows, values)
        print(f"fold {number + 1} of {len(folds)}: l2 {fitted.l2:g}, epoch {fitted.epoch}", flush=True)
    return found


def _fitted(parts: DatasetSplit, features: Mapping[str, Matrix], featuriser: Featuriser) -> Fitted:
    names, width = (OVERALL,), featuriser.width
    train, middle = (ExampleMatrices.of(part, features, names, width) for part in (parts.train, parts.validation))
    emphasis = learned_emphasis(train, featuriser.emphasis, featuriser.kinds)
    return fit(names, train, middle, Recipe(), emphasis=emphasis, costs=featuriser.costs)


def _within(part: Dataset, plain: Mapping[str, Matrix]) -> tuple[Exact, Exact]:
    """Rewards and the persona's words of each row, less the means of its scenario."""
    labels = np.array([row.scores[OVERALL] for row in part.labelled])
    said = np.array([plain[row.conversation.digest][_SAID] for row in part.labelled], dtype=np.float64)
    _, places = np.unique(groups_of(part.labelled), return_inverse=True)
    sizes = np.bincount(places)
    apart = [values - (np.bincount(places, values) / sizes)[places] for values in (labels, said)]
    return apart[0], apart[1]


def _slope(part: Dataset, plain: Mapping[str, Matrix]) -> float:
    labels, said = _within(part, plain)
    return float(said @ labels / max(float(said @ said), 1e-12))


def _left(part: Dataset, plain: Mapping[str, Matrix], slope: float) -> Dataset:
    """With what the line through the persona's words leaves of each reward as its label."""
    labels, said = _within(part, plain)
    rows = zip(part.labelled, labels - slope * said, strict=True)
    return replace(part, labelled=tuple(replace(row, scores={OVERALL: float(rest)}) for row, rest in rows))


def table(caption: str, found: Predictions, beside: Sequence[str]) -> Table:
    """Figures of every method, and how much a model is ahead of these simple ones."""
    result = Table(caption, ["method", "Spearman", "Pearson", "R²", "order within a scenario"])
    resamples = Resamples.of(found.groups)
    pairs = _pairs(found)
    resampled_pairs = Resamples.of([found.groups[i] for i, _ in pairs])
    for method, values in found.by_method.items():
        figures = [resamples.figure(each, values, found.labels) for each in (spearman, pearson, r2)]
        differences, targets = _compared(values, found.labels, pairs)
        figures.append(resampled_pairs.figure(pairwise, differences, targets))
        result.add(method, *("–" if figure is None else figure for figure in figures))
    for model in (name for name in (MODEL, ALONE, RESIDUAL) if name in found.by_method):
        for name in beside:
            own, other = found.by_method[model], found.by_method[name]
            ahead = _ahead(own, other, found.labels, resamples)
            result.add(
                f"{model} minus {name}", ahead, "", "", _order_ahead(own, other, found.labels, pairs, resampled_pairs)
            )
    return result


def _order_ahead(
    model: Exact, other: Exact, labels: Exact, pairs: Sequence[tuple[int, int]], resamples: Resamples
) -> Figure:
    """The difference in pairs of one scenario in the right order, both on the same resamples of scenarios."""
    (first, targets), (second, _) = (_compared(values, labels, pairs) for values in (model, other))
    gains = _right(first, targets) - _right(second, targets)
    drawn = [float(gains[rows].mean()) for rows in resamples.rows]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Figure(float(gains.mean()), float(low), float(high))


def _right(differences: Exact, targets: Exact) -> Exact:
    return np.where(differences == 0, 0.5, (differences > 0) == (targets > 0.5))


def _ahead(model: Exact, other: Exact, labels: Exact, resamples: Resamples) -> Figure:
    """The difference of two rank correlations, with its own interval."""

    def difference(rows: NDArray[np.int64]) -> float:
        first, second = spearman(model[rows], labels[rows]), spearman(other[rows], labels[rows])
        return (first or 0.0) - (second or 0.0)

    drawn = [difference(rows) for rows in resamples.rows]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Figure(difference(np.arange(len(labels))), float(low), float(high))


def _pairs(found: Predictions) -> list[tuple[int, int]]:
    """Rows of one scenario with different rewards."""
    places: dict[str, list[int]] = {}
    for row, group in enumerate(found.groups):
        places.setdefault(group, []).append(row)
    return [
        (i, j)
        for rows in places.values()
        for n, i in enumerate(rows)
        for j in rows[n + 1 :]
        if found.labels[i] != found.labels[j]
    ]


def _compared(values: Exact, labels: Exact, pairs: Sequence[tuple[int, int]]) -> tuple[Exact, Exact]:
    first, second = (np.array([pair[side] for pair in pairs], dtype=np.intp) for side in (0, 1))
    return values[first] - values[second], (labels[first] > labels[second]).astype(np.float64)


if __name__ == "__main__":
    main()
