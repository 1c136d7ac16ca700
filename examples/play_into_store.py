"""Plays scripted agents and has the server score their conversations, so that its store holds something to learn from.

    .venv/bin/python examples/play_into_store.py        # with ./labs serve in another terminal, or at LABS_URL

An episode's rewards are shown turn by turn and not kept; what goes through `/evaluate` and `/batch/evaluate` is. So
every conversation is played first and scored afterwards. `./labs reward-model train --from-store` and `./labs calibrate
--from-store` take it from there. In earnest the agent is yours, in many states of its training.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from trainer_client import ChatMessage, LabsClient, LabsError, Rollout, play

TALKS = 8
"""Of each scenario: each asks one question more than the one before, every other one with some kindness."""
QUESTIONS = {
    ("customer-support", "leaking-blender"): (
        "When does it leak?",
        "Is there a batch code on the base?",
        "How do you clean it?",
        "Do you have a photo or a video of it?",
        "When did you buy it?",
        "What is your order number?",
        "What is it mostly for in your kitchen?",
        "How would you like us to put this right?",
    ),
    ("it-helpdesk", "vpn-that-drops"): (
        "Since when has it been like this?",
        "Is there an error message when it breaks off?",
        "What is your staff number?",
        "Does it also happen with a network cable?",
        "Is there an update waiting to be installed?",
        "Have you installed any other software lately?",
        "Did anybody change the settings of the laptop?",
        "What does it keep you from?",
    ),
    ("clinical-intake", "tired-and-dizzy"): (
        "How long have you felt like this?",
        "Do you take painkillers?",
        "Do you have stomach pain or heartburn?",
        "Do you take them with food?",
        "How many of them do you take in a day?",
        "What colour are your stools?",
        "Have you fainted, or come close?",
        "Can somebody bring you here?",
    ),
    ("tutoring", "half-a-cup"): (
        "How did you get your answer?",
        "Which is bigger, a half or a third?",
        "Is there a measuring cup there? How full is it?",
        "Is two fifths more or less than a half?",
        "Into how many equal parts could you split the cup so that both fit?",
        "So how much sugar is it altogether?",
        "Why can't you add the bottom numbers?",
        "What is a half plus a quarter?",
    ),
    ("customer-support", "charged-twice"): (
        "When was the second charge?",
        "What is your order number?",
        "How much was charged?",
        "Which card did you pay with?",
        "Did you get a confirmation by mail?",
        "Is one of the charges still pending?",
        "Has one of my colleagues already helped you with this?",
        "What would you like us to do?",
    ),
}


def agent(questions: Sequence[str], *, kind: bool) -> Callable[[list[ChatMessage]], str]:
    """Asks the questions in turn."""

    def ask(messages: list[ChatMessage]) -> str:
        question = questions[len(messages) // 2 % len(questions)]
        return f"I'm sorry to hear that. {question}" if kind else question

    return ask


def played(client: LabsClient, collection: str, scenario: str) -> list[Rollout]:
    """Conversations of a scenario, from short to long ones."""
    questions = QUESTIONS[collection, scenario]
    found: list[Rollout] = []
    for number in range(TALKS):
        asked, kind = questions[: number + 1], number % 2 == 1
        found += play(
            client, agent(asked, kind=kind), collection, scenario, seeds=[number], max_turns=len(asked)
        ).completed
    return found


def main() -> None:
    """Play everything, then score it."""
    with LabsClient() as client:
        rollouts: list[Rollout] = []
        for collection, scenario in QUESTIONS:
            print(f"playing {TALKS} conversations of {collection}/{scenario}", file=sys.stderr)
            rollouts += played(client, collection, scenario)
        print(f"scoring {len(rollouts)} conversations", file=sys.stderr)
        scored = client.batch_evaluate(
            [
                {
                    "id": f"talk-{number}",
                    "collection_slug": each.collection,
                    "scenario_slug": each.scenario,
                    "messages": list(each.messages),
                }
                for number, each in enumerate(rollouts)
            ]
        )
    print(f"{len(scored.scored)} conversations are scored and kept, {len(scored.failed)} failed")


if __name__ == "__main__":
    try:
        main()
    except LabsError as error:  # no server, a wrong key
        sys.exit(str(error))
