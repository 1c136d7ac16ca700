"""How often a persona takes a question from a real conversation of another domain for one of its own topics.

Usage: python -m benchmarks.foreign_questions DATA [--write]

DATA is a folder with the public sets casino (casino_valid.json; CaSiNo), mts_dialog (MTS-Dialog-TrainingSet.csv),
tau_bench (gpt-4o-airline.json) and mathdial (test.jsonl). A sample of 80 questions of each is put to three scenarios
of every collection except the one of its own domain. Beside it: how many of the authors' held-out paraphrases
(`probes`) are understood. The probes were tuned against, so their rate is an upper bound.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Table, environment, write
from personas.acts import read_turn
from personas.case import Denial, Fact
from personas.compiled import CompiledCase
from personas.hearing import AgentTurn, hear
from personas.matcher import Matcher
from personas.state import PersonaState
from reward_server.engine import load_matcher
from reward_server.settings import load_settings
from scenarios.library import Library, SealedScenario, load_library

SAMPLE = 80
SCENARIOS = 3
OWN = {
    "clinical-intake": "mts_dialog",
    "customer-support": "tau_bench",
    "tutoring": "mathdial",
    "negotiation": "casino",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/foreign_questions.md")
    arguments = parser.parse_args()
    library, matcher = load_library(), load_matcher(load_settings())
    questions = {name: sample(texts) for name, texts in sources(arguments.data).items()}
    table = Table("questions taken for a topic of the persona", ["collection", *questions, "probes understood"])
    for collection in library.catalog.collections:
        rates = [
            "own domain" if OWN.get(collection) == name else f"{taken(library, collection, asked, matcher):.0%}"
            for name, asked in questions.items()
        ]
        table.add(collection, *rates, f"{understood(library, collection, matcher):.1%}")
    print(table.text())
    if arguments.write:
        write("foreign_questions", f"{environment()}\n\n{table.text()}")


def sources(data: Path) -> dict[str, Iterator[str]]:
    """The lines of the asking party, by set."""
    return {
        "casino": casino(data / "casino" / "casino_valid.json"),
        "mts_dialog": mts_dialog(data / "mts_dialog" / "MTS-Dialog-TrainingSet.csv"),
        "tau_bench": tau_bench(data / "tau_bench" / "gpt-4o-airline.json"),
        "mathdial": mathdial(data / "mathdial" / "test.jsonl"),
    }


def casino(path: Path) -> Iterator[str]:
    """Both parties of a negotiation."""
    for dialogue in json.loads(path.read_text()):
        yield from (line["text"] for line in dialogue["chat_logs"])


def mts_dialog(path: Path) -> Iterator[str]:
    """Doctors."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            lines = row["dialogue"].splitlines()
            yield from (line.removeprefix("Doctor:").strip() for line in lines if line.startswith("Doctor:"))


def tau_bench(path: Path) -> Iterator[str]:
    """Airline agents."""
    for trajectory in json.loads(path.read_text()):
        yield from (m["content"] for m in trajectory["traj"] if m["role"] == "assistant" and m["content"])


def mathdial(path: Path) -> Iterator[str]:
    """Teachers."""
    for row in path.read_text().splitlines():
        for line in json.loads(row)["conversation"].split("|EOM|"):
            if line.startswith("Teacher"):
                yield line.partition(")")[2].strip() or line.partition(":")[2].strip()


def sample(texts: Iterator[str]) -> list[str]:
    """Some questions, always the same."""
    questions = sorted({question for text in texts for question in read_turn(text).questions})
    return random.Random(3).sample(questions, min(SAMPLE, len(questions)))


def taken(library: Library, collection: str, questions: list[str], matcher: Matcher) -> float:
    """The share of questions that match a topic, over the first scenarios of a collection."""
    slugs = list(library.catalog.collections[collection].scenarios)[:SCENARIOS]
    cases = [library.vault.open(collection, slug).case for slug in slugs]
    hits = sum(bool(heard(case, question, matcher)) for case in cases for question in questions)
    return hits / (len(cases) * len(questions))


def understood(library: Library, collection: str, matcher: Matcher) -> float:
    """The share of probes that are heard as what they mean, over all scenarios of a collection."""
    hits = total = 0
    for slug in library.catalog.collections[collection].scenarios:
        sealed = library.vault.open(collection, slug)
        for topic, probe in probes(sealed):
            hits += topic in heard(sealed.case, probe, matcher)
            total += 1
    return hits / total


def probes(sealed: SealedScenario) -> Iterator[tuple[str, str]]:
    """(topic, paraphrase) of every fact and denial."""
    persona = sealed.secrets.persona
    items: tuple[Fact | Denial, ...] = (*persona.facts, *persona.denials)
    for item in items:
        shared = sealed.topics[item.topic].probes if item.topic else ()
        yield from ((item.id, probe) for probe in (*item.probes, *shared))


def heard(case: CompiledCase, question: str, matcher: Matcher) -> set[str]:
    """The topics a question is taken for."""
    return {asked.topic_id for asked in hear(case, PersonaState(), AgentTurn(question), matcher).asked}


if __name__ == "__main__":
    main()
