"""What is learned on some variants of a scenario, and whether it holds on others: several algorithms, several seeds.

    python -m benchmarks.learning_on_variants --out FOLDER [--kinds grpo_kl gspo ...] [--seeds 0 1 2] [--updates 20]
        [--curriculum] [--write]

Each run trains the tiny model on the split `train` and is evaluated on `eval`, whose cases it never met. Its warm-up
script is made of the scenario's labelled turns and what the base case answers. Of the first and the last evaluation the
dialogues are kept, and of their turns is counted: how many ask for something of the case that was not asked before
(good questions), how many stand in the script word for word, and how many have a pair of words that is nowhere in it.
FOLDER keeps the runs: an interrupted benchmark goes on there, and the table has all that are finished in it. With
`--curriculum` each run is made with `rollout.curriculum = "spread"`, too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.processes import ROOT, labs_server, running
from benchmarks.report import RESULTS, Table, environment, write
from learner.fluency import word_pairs
from learner.metrics import read_metrics
from learner.warmup import load_script
from personas.hearing.types import AgentTurn
from personas.replay.replayer import Exchange, replay
from reward_server.fitting.reader.dataset import packaged_turns
from reward_server.server.engine import OfflineEngine, load_scenarios, offline_engine
from reward_server.settings import load_settings
from scenarios.library import Library
from scenarios.lint import COLLECTIONS

WHERE = ("clinical-intake", "chest-tightness-at-work")
KINDS = ("grpo_kl", "gspo", "dapo", "rloo", "reinforce_pp")
KL_WEIGHT, KL_WEIGHTS = 0.2, {"gspo": 0.4}
"""Without a KL term so small a model loses its language: after 20 updates 22 % of DAPO's turns were broken, 71 % of
RLOO's."""
KIND_OF = {
    "specific": "good",
    "commit": "plan",
    "near_commit": "premature",
    "social": "chatter",
    "summary": "chatter",
    "foreign": "idle",
}
"""The kind of line of a warm-up script, by the kind of a labelled turn."""
OF_A_KIND, OF_A_TARGET, MOST_WORDS = 12, 1, 16
"""So many lines about nothing in particular, and about each fact, commitment or combination of them."""
SHRUG = ("I couldn't say.", "Not that I know of.", "If you say so.")
SAMPLES = 64
SHARES = ("good questions", "verbatim", "unseen pairs")
_TURN = re.compile(r"^policy : (?P<said>.*?)   \[\d+\.\d\d\]$")


def script_of(library: Library) -> dict[str, Any]:
    """A warm-up script: short labelled turns, spread over facts and commitments, and what the base case answers."""
    persona = library.vault.open(*WHERE).secrets.persona
    answers = {fact.id: list(fact.says) for fact in persona.facts}
    answers |= {denial.id: list(denial.says) for denial in persona.denials}
    by_kind: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    about: Counter[tuple[str, ...]] = Counter()
    for row in packaged_turns(COLLECTIONS, library):
        turn, kind = row.turn, KIND_OF.get(row.turn.kind, "")
        short = len(turn.turn.split()) <= MOST_WORDS and "\n" not in turn.turn
        if row.key != WHERE or not kind or not short or turn.line:
            continue
        target = (kind, *turn.asks, *turn.commits)
        about[target] += 1
        if about[target] <= (OF_A_TARGET if len(target) > 1 else OF_A_KIND):
            told = [line for name in turn.asks for line in answers.get(name, ())]
            by_kind[kind].append({"kind": kind, "agent": turn.turn, "persona": told or list(SHRUG)})
    styles = json.loads((ROOT / "learner/data/tired-and-dizzy.json").read_text())["styles"]
    for style in styles:
        for part in ("early", "late"):
            style[part] = {kind: weight for kind, weight in style[part].items() if by_kind.get(kind)}
    exchanges = [line for lines in by_kind.values() for line in lines]
    where = {"collection": WHERE[0], "scenario": WHERE[1]}
    return {**where, "openings": list(persona.openings), "styles": styles, "exchanges": exchanges}


@dataclass(frozen=True)
class VariantsRun:
    """One run."""

    kind: str
    seed: int
    curriculum: bool
    folder: Path

    @property
    def label(self) -> str:
        """Its algorithm, and what else is unlike."""
        return f"{self.kind}, curriculum" if self.curriculum else self.kind

    @property
    def place(self) -> Path:
        """Its folder."""
        return self.folder / f"{self.label.replace(', ', '-')}-seed-{self.seed}"

    def play(self, url: str, updates: int) -> None:
        """Play it in a process of its own, or go on with it."""
        changes = {
            "server.collection": WHERE[0],
            "server.scenario": WHERE[1],
            "server.split": "train",
            "server.held_out_split": "eval",
            "warmup.script": str(self.folder / "script.json"),
            "algorithm.name": self.kind,
            "algorithm.overrides": f'{{kl = "k3", beta = {KL_WEIGHTS.get(self.kind, KL_WEIGHT)}}}',
            "algorithm.credit": "to_go" if self.kind == "grpo_kl" else "none",
            "rollout.curriculum": "spread" if self.curriculum else "off",
            "evaluation.samples": SAMPLES,
            "run.seed": self.seed,
            "run.updates": updates,
        }
        command = [sys.executable, "-m", "learner", "train", "grpo", "--url", url, "--out", str(self.place)]
        command += [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
        subprocess.run(command, check=True, cwd=ROOT, env=variables)

    def rewards(self) -> list[tuple[int, float]]:
        """(update, held-out reward)."""
        records = read_metrics(self.place / "metrics.jsonl")
        return [(each["step"], each["reward/mean"]) for each in records if each["kind"] == "eval"]

    def is_finished(self, updates: int) -> bool:
        """True if the last evaluation is there."""
        return any(step >= updates for step, _ in self.rewards())


def kept_in(folder: Path) -> list[VariantsRun]:
    """The runs of a folder, those of earlier calls among them."""
    runs = []
    for place in sorted(folder.glob("*-seed-*")):
        label, _, seed = place.name.rpartition("-seed-")
        kind, _, beside = label.partition("-")
        runs.append(VariantsRun(kind, int(seed), beside == "curriculum", folder))
    return sorted(runs, key=lambda run: (KINDS.index(run.kind), run.curriculum, run.seed))


def dialogues(path: Path) -> Iterator[list[str]]:
    """The lines of each dialogue of a file of samples, the persona's first."""
    for part in path.read_text().split("\n\nseed "):
        lines = [line for line in part.splitlines() if line.startswith(("persona: ", "policy : "))]
        said = [match["said"] if (match := _TURN.match(line)) else line.partition(": ")[2] for line in lines]
        if said:
            yield said


def shares(engine: OfflineEngine, library: Library, run: VariantsRun) -> dict[int, dict[str, float]]:
    """By update, the share of turns of each sort in what was kept of that evaluation."""
    script = load_script(str(run.folder / "script.json"))
    lines = {exchange.agent for exchange in script.exchanges}
    pairs = {pair for line in lines for pair in word_pairs(line)}
    found = {}
    for path in sorted((run.place / "samples").glob("update-*.txt")):
        good, turns = [], list[str]()
        for said in dialogues(path):
            case = library.vault.heard(*WHERE, said[0], said[2::2]).case
            exchanges = [
                Exchange(AgentTurn(agent, ()), persona)
                for agent, persona in itertools.zip_longest(said[1::2], said[2::2])
            ]
            record = replay(case, said[0], exchanges, engine.reader, engine.matcher)
            good += [turn.asks_anew for turn in record.turns]
            turns += said[1::2]
        unseen = [any(pair not in pairs for pair in word_pairs(turn)) for turn in turns]
        values = (fmean(good), fmean(turn in lines for turn in turns), fmean(unseen))
        found[int(path.stem.partition("-")[2])] = dict(zip(SHARES, values, strict=True))
    return found


Counted = Mapping[VariantsRun, Mapping[int, Mapping[str, float]]]


def table_of(counted: Counted) -> Table:
    """Before and after, by run."""
    table = Table(
        f"{'/'.join(WHERE)}: trained on `train`, evaluated on `eval`", ["run", "seed", "held-out reward", *SHARES]
    )
    for run, by_update in counted.items():
        rewards, updates = run.rewards(), sorted(by_update)
        first, last = by_update[updates[0]], by_update[updates[-1]]
        moved = [f"{first[name]:.0%} → {last[name]:.0%}" for name in SHARES]
        table.add(run.label, run.seed, f"{rewards[0][1]:.3f} → {rewards[-1][1]:.3f}", *moved)
    return table


def draw(counted: Counted, path: Path) -> None:
    """One panel for the reward and one for each share; a colour for each label."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), constrained_layout=True)
    labels = list(dict.fromkeys(run.label for run in counted))
    for run, by_update in counted.items():
        series = {"held-out reward": run.rewards()}
        series |= {name: [(update, by_update[update][name]) for update in sorted(by_update)] for name in SHARES}
        for place, (title, points) in zip(axes.flat, series.items(), strict=True):
            place.plot(*zip(*points, strict=True), marker="o", color=f"C{labels.index(run.label)}", label=run.label)
            place.set(title=title, xlabel="update", ylim=(0, 1))
    handles = dict(zip(*reversed(axes.flat[0].get_legend_handles_labels()), strict=True))
    axes.flat[0].legend(handles.values(), handles.keys(), fontsize=7)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def main() -> None:
    """Run, count, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--curriculum", action="store_true", help="each run with a curriculum by past rewards, too")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/learning_on_variants.*")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    library = load_scenarios(None)
    (given.out / "script.json").write_text(json.dumps(script_of(library), indent=1))
    ways: Sequence[bool] = (False, True) if given.curriculum else (False,)
    runs = [VariantsRun(*each, given.out) for each in itertools.product(given.kinds, given.seeds, ways)]
    missing = [run for run in runs if not run.is_finished(given.updates)]
    if missing:
        server = labs_server(given.out)
        with running(server):
            for run in missing:
                run.play(server.url, given.updates)
    with offline_engine(load_settings(), library) as engine:
        counted = {run: shares(engine, library, run) for run in kept_in(given.out) if run.is_finished(given.updates)}
    text = f"{table_of(counted).text()}\n\n{given.updates} updates. {environment()}"
    print(text)
    if given.write:
        write("learning_on_variants", f"{text}\n\n![curves](learning_on_variants.png)")
        draw(counted, RESULTS / "learning_on_variants.png")


if __name__ == "__main__":
    main()
