"""Does a reward model learn the server's own rewards well enough to predict those of scenarios it has never seen?

Usage: python -m benchmarks.own_evaluations [--varied N] [--work FOLDER] [--write]

Plays scripted agents of several qualities against every packaged persona, has a Labs server evaluate them through
/batch/evaluate, and trains on the server's store as `labs reward-model train --from-store` does. Each scenario is then
predicted by a model that was trained without it (five folds of whole scenarios), and once more by a model that has seen
no scenario of its collection. `--work` keeps the played conversations, so that a second run goes on from them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
from numpy.typing import NDArray

from benchmarks.processes import labs_server, running
from benchmarks.report import Table, environment, write
from personas.library import load_temperaments
from personas.reading.reader import Reader
from reward_server.cli.training import stored_rows
from reward_server.engine import load_reader, load_scenarios
from reward_server.jobs.exam.play import play
from reward_server.reward_models.baselines import Baselines
from reward_server.reward_models.dataset import OVERALL, Dataset, groups_of, hold_out
from reward_server.reward_models.emphasis import learned_emphasis
from reward_server.reward_models.feature_shelf import FeatureShelf
from reward_server.reward_models.featurisers import Featurisers
from reward_server.reward_models.heads import Featuriser, Matrix
from reward_server.reward_models.matrices import Examples
from reward_server.reward_models.metrics import Figure, Resamples, pairwise, pearson, r2, spearman
from reward_server.reward_models.plain_features import PlainFeatures
from reward_server.reward_models.training import Recipe, fit
from reward_server.settings import load_settings
from scenarios.exam import agents, varied
from scenarios.library import Library, natural_agents

FOLDS = 5
BATCH = 50
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
        text = report(dataset, folder)
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
        {"collection_slug": name[0], "scenario_slug": name[1], "messages": list(each.messages)}
        for each in plays
        if any(message["role"] == "assistant" for message in each.messages)
    ]


def evaluate(folder: Path, items: Sequence[Json]) -> None:
    """Have a server of its own score and keep them."""
    server = labs_server(folder)
    with running(server), httpx2.Client(base_url=f"{server.url}/api/v1", timeout=300.0) as client:
        for start in range(0, len(items), BATCH):
            batch = [{"id": str(n), **item} for n, item in enumerate(items[start : start + BATCH])]
            results = client.post("/batch/evaluate", json={"items": batch}).raise_for_status().json()["results"]
            failed = [result for result in results if result["status"] != "success"]
            if failed:
                raise RuntimeError(f"not scored: {failed[0]}")
            print(f"evaluated {start + len(batch)} of {len(items)}", flush=True)


# --- learning -------------------------------------------------------------------------------------


def report(dataset: Dataset, folder: Path) -> str:
    """Both tables."""
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
        tables.append(table(caption, found).text())
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
) -> Predictions:
    """Out-of-fold predictions of the overall reward."""
    groups = groups_of(dataset.labelled)
    labels = np.array([row.scores[OVERALL] for row in dataset.labelled])
    found = Predictions(labels, groups)
    for number, held in enumerate(folds):
        parts = hold_out(dataset, held, seed=0)
        names, width = (OVERALL,), featuriser.width
        train, middle = (Examples.of(part, features, names, width) for part in (parts.train, parts.validation))
        emphasis = learned_emphasis(train, featuriser.emphasis, featuriser.kinds)
        fitted = fit(names, train, middle, Recipe(), emphasis=emphasis, costs=featuriser.costs)
        simple = Baselines.fitted(parts.train, plain, "answers")
        rows = np.array([row for row, group in enumerate(groups) if group in held], dtype=np.intp)
        talks = [dataset.labelled[row].conversation for row in rows]
        found.put("reward model", rows, fitted.heads.values(np.stack([features[each.digest] for each in talks]))[:, 0])
        for name, values in simple.values(talks, [""] * len(talks), plain).items():
            found.put(name, rows, values)
        print(f"fold {number + 1} of {len(folds)}: l2 {fitted.l2:g}, epoch {fitted.epoch}", flush=True)
    return found


def table(caption: str, found: Predictions) -> Table:
    """Figures of every method, and how much the model is ahead of the best simple one."""
    result = Table(caption, ["method", "Spearman", "Pearson", "R²", "order within a scenario"])
    resamples = Resamples.of(found.groups)
    pairs = _pairs(found)
    resampled_pairs = Resamples.of([found.groups[i] for i, _ in pairs])
    for method, values in found.by_method.items():
        figures = [resamples.figure(each, values, found.labels) for each in (spearman, pearson, r2)]
        differences, targets = _compared(values, found.labels, pairs)
        figures.append(resampled_pairs.figure(pairwise, differences, targets))
        result.add(method, *("–" if figure is None else figure for figure in figures))
    model = found.by_method["reward model"]
    for name in ("length", "cosine", "persona words", "tf-idf"):
        ahead = _ahead(model, found.by_method[name], found.labels, resamples)
        result.add(f"reward model minus {name}", ahead, "", "", "")
    return result


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
