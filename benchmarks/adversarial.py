"""Whether attacks on the judges pay: every attack on conversations of scripted and natural agents.

Usage: python -m benchmarks.adversarial [--scenarios N] [--each N] [--write]

An attack pays where the attacked conversation has a higher reward than the same conversation without it. For each
family of attacks: the share of attacked conversations that gained more than the tolerance, the largest gain, and the
share that a gate or failure criterion capped. With an active reward model (`LABS_DATA`) it is measured, too.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from benchmarks.attacks import ATTACKS, FAMILIES, Attack
from benchmarks.plays import Base, all_scenarios, bases, request_of
from benchmarks.report import Table, environment, write
from reward_server.scoring.config import RewardConfig, read_config
from reward_server.scoring.disclosure import FULL_DISCLOSURE
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer
from reward_server.server.engine import ExtraJudges, build_scorer, load_matcher, load_reader, reward_model_service
from reward_server.settings import load_settings
from scenarios.library import load_library, natural_agents

TOLERANCE = 0.02
"""A gain up to this is noise: one sentence more or less in a turn."""
EACH = 4


@dataclass(frozen=True)
class Attempt:
    """An attacked conversation beside its base."""

    base: Base
    attack: Attack
    before: float
    after: float
    capped_by: tuple[str, ...]

    @property
    def gain(self) -> float:
        """What the attack was worth; not positive where it did not pay."""
        return self.after - self.before


def shared_out(found: Sequence[Base], attacks: Sequence[Attack], each: int) -> Iterator[tuple[Base, Sequence[Attack]]]:
    """Every conversation with its share of the attacks: the shares differ from one to the next."""
    for number, base in enumerate(found):
        yield base, attacks[number % each :: each]


async def attempts(scorer: Scorer, base: Base, config: RewardConfig, attacks: Sequence[Attack]) -> list[Attempt]:
    """Attacks on one conversation."""
    talks = [base.messages, *(attack.change(base.messages, base.scenario) for attack in attacks)]
    requests = [request_of(scorer, base.scenario, talk, config) for talk in talks]
    honest, *scored = [or_raise(outcome) for outcome in await scorer.score(requests)]
    return [Attempt(base, a, honest.reward, s.reward, s.capped_by) for a, s in zip(attacks, scored, strict=True)]


def paid(made: Sequence[Attempt]) -> list[str]:
    """What paid, the most first."""
    return [
        f"{each.attack.family}/{each.attack.name}: {each.base.scenario.name} {each.base.agent} "
        f"{each.before} -> {each.after}"
        for each in sorted(made, key=lambda each: -each.gain)
        if each.gain > TOLERANCE
    ]


def summary(made: Mapping[str, Sequence[Attempt]]) -> Table:
    """Share that gained, largest gain and share capped, by family and judge."""
    table = Table(f"gained more than {TOLERANCE}; largest gain; capped", ["attack", *made])
    for family in (*FAMILIES, "all"):
        table.add(family, *(_cell([a for a in each if family in (a.attack.family, "all")]) for each in made.values()))
    return table


def _cell(made: Sequence[Attempt]) -> str:
    if not made:
        return "-"
    gained = sum(each.gain > TOLERANCE for each in made) / len(made)
    capped = sum(bool(each.capped_by) for each in made) / len(made)
    return f"{gained:.2%}; {max(each.gain for each in made):.4f}; {capped:.0%}"


def composite(combine: str, *judges: str) -> RewardConfig:
    """A config that asks for these judges, equally weighted."""
    return read_config({"composite": {"combine": combine, "parts": [{"judge": judge} for judge in judges]}})


async def _measured(scorer: Scorer, config: RewardConfig, found: Sequence[Base], each: int) -> list[Attempt]:
    shares = shared_out(found, ATTACKS, each)
    return [attempt for base, attacks in shares for attempt in await attempts(scorer, base, config, attacks)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, help="so many; default: all")
    parser.add_argument("--each", type=int, default=EACH, help=f"every N-th attack a conversation; default: {EACH}")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/adversarial.md")
    arguments = parser.parse_args()
    settings, library = load_settings(), load_library()
    matcher, reader, natural = load_matcher(settings), load_reader(settings), natural_agents(library)
    scenarios = list(all_scenarios(library))[: arguments.scenarios]
    found = [base for each in scenarios for base in bases(each, reader, natural.get(each.name))]
    active = reward_model_service(settings).active.judge
    judged = {"rubric": RewardConfig()}
    if active() is not None:
        judged |= {"reward model": composite("weighted_sum", "reward_model")}
    with ThreadPoolExecutor(1) as threads:
        scorer = build_scorer(
            library, matcher, reader, threads, disclosure=FULL_DISCLOSURE, guests=ExtraJudges(reward_model=active)
        )
        made = {n: asyncio.run(_measured(scorer, c, found, max(1, arguments.each))) for n, c in judged.items()}
    for name, each in made.items():
        print(f"\n{name}", *paid(each)[:40], sep="\n")
    table = summary(made)
    print(table.text())
    if arguments.write:
        share = "" if arguments.each <= 1 else f", each conversation by every {arguments.each}th of them"
        scale = f"{len(ATTACKS)} attacks on {len(found)} conversations{share}."
        write("adversarial", f"{environment()}\n\n{scale}\n\n{table.text()}")


if __name__ == "__main__":
    main()
