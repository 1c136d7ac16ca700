"""What a policy earns that reads nothing: scripts chosen on one seed and replayed blindly on seeds not chosen on.

    .venv/bin/python -m benchmarks.learned_by_heart [COLLECTION[/SCENARIO] ...]

The attacker knows everything that works on its one seed: it begins with the oracle of that seed's variant and drops
one line after the other, whichever costs least there, until `TURNS` turns and `WORDS` words are left. `before` plays
every seed as the scenario's own file tells it, `after` plays the variant that the seed draws; a script is chosen on
each variant in turn, and the figure is the mean.

One script for all takes its lines from `GENERAL`, chosen greedily on every fifth scenario and replayed on the others.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from statistics import fmean

from benchmarks.plays import played, request_of
from benchmarks.report import Table, environment, write
from personas.reading.reader import Reader
from reward_server.scoring.config import RewardConfig
from reward_server.scoring.scored import Scored
from reward_server.scoring.scorer import Scorer
from reward_server.server.engine import offline_engine
from reward_server.settings import load_settings
from scenarios.library import Library, SealedScenario, load_library
from scenarios.schema import ScriptStep

TURNS = 8
WORDS = 300
LINES_FOR_ALL = 5
UNSEEN = tuple(range(1001, 1009))
Script = tuple[ScriptStep, ...]
GENERAL = (
    "Let me sum up what you told me.",
    "I am sorry to hear that. Is there anything else I should know?",
    "Tell me what happened, please.",
    "That must be frightening. Is there anything else I should know?",
    "I will put it in writing and call you tomorrow.",
    "Hello, how can I help you today?",
    "Since when has it been like that?",
    "What would you like to come out of this?",
    "What have you tried already?",
    "That must be frustrating. How are you coping with it?",
    "Who else is affected by this?",
    "Is there a deadline that I should know of?",
    "Could you walk me through it step by step?",
    "Thank you for telling me. What worries you most?",
    "I understand. We will find a solution that works for you.",
    "I will check that and come back to you as soon as I can.",
)  # fmt: skip


class Attacker:
    """Plays scripts and keeps what they earned."""

    def __init__(self, scorer: Scorer, reader: Reader) -> None:
        self._scorer = scorer
        self._reader = reader

    def earned(self, plays: Sequence[tuple[SealedScenario, Script, int]]) -> list[float]:
        """The reward of each script on a case and a seed."""
        talks = [played(case, "script", script, self._reader, seed) for case, script, seed in plays]
        requests = [request_of(self._scorer, each.scenario, each.messages, RewardConfig()) for each in talks]
        outcomes = asyncio.run(self._scorer.score(requests)) if requests else []
        return [outcome.reward if isinstance(outcome, Scored) else 0.0 for outcome in outcomes]

    def trimmed(self, case: SealedScenario) -> Script:
        """Of the case's oracle as many lines as the budget allows, the least useful ones dropped first."""
        script = case.secrets.exam.oracle
        while len(script) > TURNS or _words(script) > WORDS:
            tries = [script[:i] + script[i + 1 :] for i in range(len(script))]
            marks = self.earned([(case, attempt, 1) for attempt in tries])
            script = max(zip(marks, tries, strict=True), key=lambda each: each[0])[1]
        return script

    def built(self, cases: Sequence[SealedScenario], lines: Sequence[ScriptStep]) -> Script:
        """The lines that earn most on all these cases together, one after the other."""
        script: Script = ()
        while len(script) < LINES_FOR_ALL:
            tries = [(*script, line) for line in lines if line not in script]
            marks = self.earned([(case, attempt, 1) for attempt in tries for case in cases])
            means = [fmean(marks[i : i + len(cases)]) for i in range(0, len(marks), len(cases))]
            script = max(zip(means, tries, strict=True), key=lambda each: each[0])[1]
        return script


def _words(script: Script) -> int:
    return sum(len(step.say.split()) for step in script)


def by_scenario(attacker: Attacker, library: Library, said: Table) -> tuple[list[float], list[float]]:
    """Adds a row for each scenario; the means before and after."""
    before, after = [], []
    for name in library.vault.names():
        variants, base = library.vault.variants(*name), library.vault.open(*name)
        scripts = [attacker.trimmed(each) for each in variants]
        own = attacker.earned([(each, script, 1) for each, script in zip(variants, scripts, strict=True)])
        told = fmean(attacker.earned([(base, scripts[0], seed) for seed in UNSEEN]))
        drawn = [(library.vault.drawn(*name, seed), script, seed) for script in scripts for seed in UNSEEN]
        blind = fmean(attacker.earned(drawn))
        said.add(base.name, len(variants), f"{fmean(own):.2f}", f"{told:.2f}", f"{blind:.2f}")
        print(said.rows[-1], flush=True)
        before.append(told)
        after.append(blind)
    return before, after


def for_all(attacker: Attacker, library: Library) -> tuple[Script, float, float]:
    """One script for all, and what it earns on the scenarios that it was not chosen on, before and after."""
    names = library.vault.names()
    chosen_on = [library.vault.open(*name) for name in names[::5]]
    others = [name for i, name in enumerate(names) if i % 5]
    script = attacker.built(chosen_on, [ScriptStep(say=line) for line in GENERAL])
    told = [(library.vault.open(*name), script, UNSEEN[0]) for name in others]
    drawn = [(library.vault.drawn(*name, seed), script, seed) for name in others for seed in UNSEEN[:6]]
    return script, fmean(attacker.earned(told) or [0.0]), fmean(attacker.earned(drawn) or [0.0])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="COLLECTION[/SCENARIO]", help="default: those with variants")
    parser.add_argument("--all", action="store_true", help="also one script for all packaged scenarios")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/learned_by_heart.md")
    arguments = parser.parse_args()
    whole = load_library()
    varied = [f"{c}/{s}" for c, s in whole.vault.names() if len(whole.vault.variants(c, s)) > 1]
    library = load_library(only=arguments.names or varied)
    table = Table(
        f"Blind replays, {TURNS} turns of at most {WORDS} words in all",
        ["scenario", "variants", "on its seed", "before: unseen seeds", "after: unseen seeds"],
    )
    with offline_engine(load_settings(), library) as engine:
        attacker = Attacker(engine.scorer, engine.reader)
        before, after = by_scenario(attacker, library, table)
    table.add("mean", "", "", f"{fmean(before):.2f}", f"{fmean(after):.2f}")
    text = table.text()
    if arguments.all:
        with offline_engine(load_settings(), whole) as engine:
            script, told, drawn = for_all(Attacker(engine.scorer, engine.reader), whole)
        lines = "\n".join(f"- {step.say}" for step in script)
        heading = f"One script for all, on scenarios it was not chosen on: {told:.2f} before, {drawn:.2f} after."
        text += f"\n\n{heading}\n\n{lines}"
    print(text)
    if arguments.write:
        write("learned_by_heart", f"{environment()}\n\n{text}")


if __name__ == "__main__":
    main()
