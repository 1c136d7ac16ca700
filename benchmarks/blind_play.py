"""Fresh play by hand: how many of a persona's replies are wrong or beside the point.

`blind_play.jsonl` holds conversations that were led from the public card and the persona's replies. Each reply has a
verdict given by hand: `apt`, `vague` (asks back or says little, where more was due) or `wrong` (a wrong fact, or beside
the point). This command plays the lines again. A reply that has changed since it was judged is listed and counted as
not judged.

A conversation with a `round` was led blind, against a server, by a player who saw no file of the project. Its judge was
stricter, too: a good answer with a stray sentence beside it is wrong. `persona` and `seed` say what it was played
against, and `variant` which case. The other conversations were not fully blind: their player had read parts of some of
the rubrics.

    python -m benchmarks.blind_play            # the table; --write puts it into benchmarks/results
    python -m benchmarks.blind_play --new      # also the conversations, with the replies that are to be judged
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.report import environment, write
from personas.case.library import load_temperaments
from reward_server.exam.play import Play, play
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import or_raise
from reward_server.server.engine import OfflineEngine, load_scenarios, offline_engine
from reward_server.settings import load_settings
from scenarios.exam import ExamTurn, ScriptedAgent
from scenarios.library import Library, SealedScenario
from trainer_client.wire import Message

TALKS = Path(__file__).parent / "blind_play.jsonl"
SEED = 1
VERDICTS = ("apt", "vague", "wrong")
Talk = Mapping[str, Any]
EARLIER = "Not fully blind, most not led to their end"


@dataclass(slots=True)
class Round:
    """The talks that one player led."""

    verdicts: Counter[str] = field(default_factory=Counter)
    rewards: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        of = sum(self.verdicts[verdict] for verdict in VERDICTS)
        shares = ", ".join(f"{verdict} {self.verdicts[verdict] / of:.0%}" for verdict in VERDICTS) if of else "none"
        judged = f"{of} replies judged ({self.verdicts['not judged']} not): {shares}"
        return f"{len(self.rewards)} conversations, {judged}; mean reward {fmean(self.rewards):.2f}."


def played(library: Library, engine: OfflineEngine, talk: Talk) -> Play:
    """A conversation, played again."""
    scenario = _told(library, talk)
    temperament = load_temperaments()[talk.get("persona", scenario.secrets.persona.temperaments[0])]
    script = tuple(ExamTurn(turn["say"], tuple(turn.get("tools", ()))) for turn in talk["turns"])
    return play(scenario, temperament, ScriptedAgent("by hand", script), engine.reader, talk.get("seed", SEED))


def _told(library: Library, talk: Talk) -> SealedScenario:
    """The case that a conversation was about."""
    where = talk["scenario"].split("/")
    base = library.vault.open(*where)
    wanted = talk.get("variant", base.variant)
    return next(each for each in library.vault.variants(*where) if each.variant == wanted)


async def reward_of(engine: OfflineEngine, talk: Talk, one: Play) -> float:
    """What the agent of a conversation earned."""
    collection, slug = talk["scenario"].split("/")
    messages = [Message.model_validate(message) for message in one.messages]
    transcript = engine.scorer.read(collection, slug, messages, "assistant")
    return or_raise((await engine.scorer.score([ScoreRequest(collection, slug, transcript)]))[0]).reward


def judged(talk: Talk, replies: Sequence[str]) -> list[str]:
    """Per reply its verdict; `not judged` where it has changed since."""
    turns = zip(talk["turns"], replies, strict=False)
    return [turn.get("verdict", "not judged") if turn.get("reply") == reply else "not judged" for turn, reply in turns]


async def measured(talks: Sequence[Talk], *, show: bool) -> str:
    """The table of all conversations in Markdown; `show` prints them while they are played."""
    library, rounds = load_scenarios(None), dict[str, Round]()
    lines = [
        f"| conversation | replies | {' | '.join(VERDICTS)} | reward |",
        f"|---|---|{'---|' * (len(VERDICTS) + 1)}",
    ]
    with offline_engine(load_settings(), library) as engine:
        for talk in talks:
            one = played(library, engine, talk)
            opening, *replies = [message["content"] for message in one.messages if message["role"] == "user"]
            verdicts, reward = judged(talk, replies), await reward_of(engine, talk, one)
            count = Counter(verdicts)
            whole = rounds.setdefault(talk.get("round", EARLIER), Round())
            whole.verdicts += count
            whole.rewards.append(reward)
            cells = " | ".join(str(count[verdict]) for verdict in VERDICTS)
            lines.append(f"| {talk['scenario']} | {len(replies)} | {cells} | {reward:.2f} |")
            if show:
                print(f"{talk['scenario']}\n  P: {opening}")
                for turn, reply, verdict in zip(talk["turns"], replies, verdicts, strict=False):
                    print(f"  A: {turn['say']}\n  P: {reply}  [{verdict}]")
    return "\n".join([*lines, "", *(f"- {name}: {each}" for name, each in rounds.items()), ""])


def main() -> None:
    """Plays all conversations and prints the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--new", action="store_true", help="also print the conversations")
    options.add_argument("--write", action="store_true", help="write the table to benchmarks/results")
    given = options.parse_args()
    talks = [json.loads(line) for line in TALKS.read_text(encoding="utf-8").splitlines()]
    table = asyncio.run(measured(talks, show=given.new))
    print(table)
    if given.write:
        write(
            "blind_play",
            f"# Fresh play by hand\n\n{environment()} `python -m benchmarks.blind_play --write`\n\n{table}",
        )


if __name__ == "__main__":
    main()
