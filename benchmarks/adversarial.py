"""Whether attacks on the judges pay: every attack on conversations of scripted agents, under several judges.

Usage: python -m benchmarks.adversarial [--scenarios N] [--each N] [--write]

An attack pays where the attacked conversation has a higher reward than the same conversation without it. For each
family of attacks and each judge: the share of attacked conversations that gained, and the largest gain. The rubric,
and an LLM judge on a model that believes whatever it reads (`benchmarks.gullible`), are held to "never" by
tests/adversarial; what a mere model cannot promise is reported. A learned reward model is in the table where one is
active in the data directory (`LABS_DATA`).

All packaged scenarios are attacked. To keep the time bounded, each conversation meets every `--each`-th attack, and the
next one those that follow; `--each 1` runs them all.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from benchmarks.attack_joints import RESPELT
from benchmarks.attack_places import Attack
from benchmarks.attacks import ATTACKS, FAMILIES
from benchmarks.gullible import gullible_judge
from benchmarks.report import Table, environment, write
from personas.library import load_temperaments
from personas.matcher import Matcher
from reward_server.engine import Guests, build_scorer, load_matcher, reward_model_service
from reward_server.jobs.exam.play import play
from reward_server.judges.likeness import Likeness
from reward_server.scoring.config import RewardConfig, read_config
from reward_server.scoring.scored import or_raise
from reward_server.scoring.scorer import Scorer, ScoreRequest
from reward_server.settings import load_settings
from scenarios.exam import ScriptedAgent, agents
from scenarios.library import Library, SealedScenario, load_library, oracle_lines
from trainer_client.wire import Message

AGENTS = ("oracle", "terse", "rude", "careless", "random")
EACH = 4
"""Each conversation meets every so-manieth attack."""
MEASURED = (*ATTACKS, *RESPELT)
SEED = 5
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Base:
    """A conversation as it was played, without any attack."""

    scenario: SealedScenario
    agent: str
    messages: list[dict[str, Any]] = field(repr=False)


@dataclass(frozen=True)
class Attempt:
    """An attacked conversation beside its base."""

    base: Base
    attack: Attack
    before: float
    after: float
    flags: tuple[str, ...]

    @property
    def gain(self) -> float:
        """What the attack was worth; not positive where it did not pay."""
        return self.after - self.before


def bases(library: Library, matcher: Matcher, per_collection: int | None = None) -> list[Base]:
    """Strong, middling and weak conversations of some or all scenarios of every collection."""
    temperaments, lines = load_temperaments(), oracle_lines()
    found: list[Base] = []
    for collection, public in library.catalog.collections.items():
        for slug in list(public.scenarios)[:per_collection]:
            sealed = library.vault.open(collection, slug)
            others = [line for name, said in lines.items() if name != sealed.name for line in said]
            cast = agents(sealed.secrets, sealed.topics, others, SEED)
            script = cast["oracle"].script
            players = [cast[name] for name in AGENTS] + [ScriptedAgent("half", script[: max(2, len(script) // 2)])]
            temperament = temperaments[sealed.secrets.persona.temperaments[0]]
            for player in players:
                messages = play(sealed, temperament, player, matcher, SEED).messages
                found.append(Base(sealed, player.name, [dict(message) for message in messages]))
    return found


def requests_of(scorer: Scorer, base: Base, talks: Sequence[Sequence[Any]], config: RewardConfig) -> list[ScoreRequest]:
    """The conversations as they are scored."""
    where = base.scenario.collection, base.scenario.card.slug
    return [
        ScoreRequest(*where, scorer.read(*where, [Message.model_validate(m) for m in talk], "assistant"), config)
        for talk in talks
    ]


def shared_out(found: Sequence[Base], attacks: Sequence[Attack], each: int) -> Iterator[tuple[Base, Sequence[Attack]]]:
    """Every conversation with its share of the attacks: the shares differ between agents and between scenarios."""
    scenarios = list(dict.fromkeys(base.scenario.name for base in found))
    players = list(dict.fromkeys(base.agent for base in found))
    for base in found:
        start = (scenarios.index(base.scenario.name) + players.index(base.agent)) % each
        yield base, attacks[start::each]


async def attempts(
    scorer: Scorer, base: Base, config: RewardConfig, attacks: Sequence[Attack] = ATTACKS
) -> list[Attempt]:
    """Every attack on one conversation."""
    talks = [base.messages, *(attack.change(base.messages, base.scenario) for attack in attacks)]
    scored = [or_raise(outcome) for outcome in await scorer.score(requests_of(scorer, base, talks, config))]
    honest = scored[0].reward
    return [Attempt(base, a, honest, s.reward, s.flags) for a, s in zip(attacks, scored[1:], strict=True)]


def summary(made: Mapping[str, Sequence[Attempt]]) -> Table:
    """Share that gained and largest gain, by family and judge."""
    table = Table("share of attacked conversations that gained, and the largest gain", ["attack", *made])
    for family in (*FAMILIES, "all"):
        cells = [_cell([a for a in each if family in (a.attack.family, "all")]) for each in made.values()]
        table.add(family, *cells)
    return table


def _cell(made: Sequence[Attempt]) -> str:
    gained = [attempt.gain for attempt in made if attempt.gain > TOLERANCE]
    return f"{len(gained) / len(made):.2%}, {max(gained, default=0.0):.4f}" if made else "-"


Judged = Mapping[str, tuple[Scorer, RewardConfig]]


async def measured(scorers: Judged, found: Sequence[Base], each: int) -> dict[str, list[Attempt]]:
    """The attempts, by judge: the same for all."""
    made: dict[str, list[Attempt]] = {}
    for name, (scorer, config) in scorers.items():
        shares = shared_out(found, MEASURED, each)
        made[name] = [attempt for base, attacks in shares for attempt in await attempts(scorer, base, config, attacks)]
        print(f"{name}: {len(made[name])} attacked conversations", flush=True)
    return made


def gains(made: Sequence[Attempt]) -> Iterator[str]:
    """What paid, for the reader who wants to mend it."""
    for attempt in sorted(made, key=lambda each: -each.gain):
        if attempt.gain > TOLERANCE:
            where = f"{attempt.base.scenario.name} {attempt.base.agent}"
            yield f"{attempt.attack.family}/{attempt.attack.name}: {where} {attempt.before} -> {attempt.after}"


def composite(combine: str, *judges: str) -> RewardConfig:
    """A config that asks for these judges, equally weighted."""
    return read_config({"composite": {"combine": combine, "parts": [{"judge": judge} for judge in judges]}})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=int, help="of each collection; default: all")
    parser.add_argument("--each", type=int, default=EACH, help=f"every N-th attack a conversation; default: {EACH}")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/adversarial.md")
    arguments = parser.parse_args()
    settings = load_settings()
    library, matcher = load_library(), load_matcher(settings)
    found = bases(library, matcher, arguments.scenarios)
    with ThreadPoolExecutor(1) as threads:
        rubric = build_scorer(library, matcher, threads)
        gullible = build_scorer(library, matcher, threads, Guests(asked=(gullible_judge(library, Likeness(matcher)),)))
        scorers = {
            "rubric": (rubric, RewardConfig()),
            "with a gullible LLM judge": (gullible, RewardConfig()),
        }
        active = reward_model_service(settings).active.judge
        if active() is not None:
            learned = build_scorer(library, matcher, threads, Guests(reward_model=active))
            scorers["reward model alone"] = learned, composite("weighted_sum", "reward_model")
            scorers["rubric and reward model"] = learned, composite("weighted_sum", "rubric", "reward_model")
        made = asyncio.run(measured(scorers, found, max(1, arguments.each)))
    for name, each in made.items():
        print(f"\n{name}", *list(gains(each))[:40], sep="\n")
    table = summary(made)
    print(table.text())
    if arguments.write:
        share = "" if arguments.each <= 1 else f", each conversation by every {arguments.each}th of them"
        scale = f"{len(MEASURED)} attacks on {len(found)} conversations{share}."
        write("adversarial", f"{environment()}\n\n{scale}\n\n{table.text()}")


if __name__ == "__main__":
    main()
