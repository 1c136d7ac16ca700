"""What guessing gains: a script that knows nothing of a case and asks for a yes or a no, several a turn.

The guesses are the yes-or-no questions that other scenarios of the collection have as examples; the script asks the
same ones in the same order, one, two or five a turn, for the same number of turns.

    python -m benchmarks.guessing [--scenarios N]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from statistics import fmean

from personas.case.library import load_temperaments
from personas.text.questions import QuestionForm, form_of
from reward_server.exam.play import play
from reward_server.scoring.request import ScoreRequest
from reward_server.scoring.scored import or_raise
from reward_server.server.engine import OfflineEngine, load_scenarios, offline_engine
from reward_server.settings import load_settings
from scenarios.exam import ExamTurn, ScriptedAgent
from scenarios.library import Library
from trainer_client.wire import Message

A_TURN = (1, 2, 5)
TURNS = 6
SEED = 1


def guesses(library: Library, collection: str, slug: str) -> Iterator[str]:
    """Yes-or-no questions for other cases of the kind, in turn one of each."""
    others = [each for each in library.catalog.collections[collection].scenarios if each != slug]
    cases = [library.vault.open(collection, each).case for each in others]
    asks = [[a for topic in case.topics for a in topic.examples if form_of(a) is QuestionForm.POLAR] for case in cases]
    seen: set[str] = set()
    for place in range(max(map(len, asks), default=0)):
        for lines in asks:
            if place < len(lines) and lines[place] not in seen:
                seen.add(lines[place])
                yield lines[place]


async def earned(engine: OfflineEngine, library: Library, place: tuple[str, str], a_turn: int) -> tuple[float, int]:
    """The reward of a script, and the facts that it brought out."""
    scenario = library.vault.open(*place)
    lines = list(guesses(library, *place))[: a_turn * TURNS]
    script = tuple(ExamTurn(" ".join(lines[start : start + a_turn])) for start in range(0, len(lines), a_turn))
    temperament = load_temperaments()[scenario.case.temperaments[0]]
    one = play(scenario, temperament, ScriptedAgent("guesses", script), engine.reader, SEED)
    messages = [Message.model_validate(message) for message in one.messages]
    transcript = engine.scorer.read(*place, messages, "assistant")
    scored = or_raise((await engine.scorer.score([ScoreRequest(*place, transcript)]))[0])
    told = " ".join(message["content"] for message in one.messages if message["role"] == "user")
    return scored.reward, sum(any(says in told for says in topic.says) for topic in scenario.case.topics)


async def table(count: int | None) -> str:
    """The rewards by guesses a turn."""
    library = load_scenarios(None)
    places = [(name, slug) for name, each in library.catalog.collections.items() for slug in each.scenarios]
    places = places[:: max(1, len(places) // count)] if count else places
    lines = ["| guesses a turn | mean reward | largest | facts told |", "|---|---|---|---|"]
    with offline_engine(load_settings(), library) as engine:
        for a_turn in A_TURN:
            found = [await earned(engine, library, place, a_turn) for place in places]
            rewards = [reward for reward, _ in found]
            facts = fmean(told for _, told in found)
            lines.append(f"| {a_turn} | {fmean(rewards):.3f} | {max(rewards):.3f} | {facts:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Prints the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--scenarios", type=int, help="so many of the scenarios (default: all)")
    print(asyncio.run(table(options.parse_args().scenarios)))


if __name__ == "__main__":
    main()
