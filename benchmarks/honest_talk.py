"""What people and models said at work, turn by turn: public sets, and the oracles of the packaged scenarios.

Nothing is shipped: the folder is an argument, and a set that is not in it is left out. MediQ and AgentClinic hold cases
and no talk; theirs are sentences that tell of patients.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scenarios.library import oracle_lines

_TEACHER = re.compile(r"^Teacher:\s*(?:\(\w+\))?\s*")
_DOCTOR = re.compile(r"^(?:Doctor|Guest_clinician)\s*:\s*", re.MULTILINE)


def tau_bench(folder: Path) -> Iterator[str]:
    """Turns of a model at an airline's desk."""
    for talk in _json(folder / "gpt-4o-airline.json"):
        yield from (str(m["content"]) for m in talk["traj"] if m["role"] == "assistant" and m["content"])


def mathdial(folder: Path) -> Iterator[str]:
    """Turns of teachers."""
    for talk in _json_lines(folder / "test.jsonl"):
        for turn in talk["conversation"].split("|EOM|"):
            if _TEACHER.match(turn):
                yield _TEACHER.sub("", turn)


def mediq(folder: Path) -> Iterator[str]:
    """Sentences of cases, of every fourth."""
    for case in _json_lines(folder / "all_dev_good.jsonl")[::4]:
        yield from case["context"]


def agentclinic(folder: Path) -> Iterator[str]:
    """Histories of patients."""
    for case in _json_lines(folder / "agentclinic_medqa.jsonl"):
        patient = case["OSCE_Examination"]["Patient_Actor"]
        yield from (value for key, value in patient.items() if key.endswith("History") and isinstance(value, str))


def mts_dialog(folder: Path) -> Iterator[str]:
    """Turns of doctors."""
    with (folder / "MTS-Dialog-TrainingSet.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            for line in row["dialogue"].splitlines():
                if _DOCTOR.match(line):
                    yield _DOCTOR.sub("", line)


def casino(folder: Path) -> Iterator[str]:
    """Turns of two campers who share things out; of every third dialogue."""
    for talk in [*_json(folder / "casino_valid.json"), *_json(folder / "casino_train.json")][::3]:
        yield from (turn["text"] for turn in talk["chat_logs"] if not turn["task_data"])


def abcd(folder: Path) -> Iterator[str]:
    """Turns of people at a shop's desk."""
    for talk in _json(folder / "abcd_sample.json"):
        yield from (text for speaker, text in talk["original"] if speaker == "agent")


SETS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    each.__name__: each for each in (tau_bench, mathdial, mediq, agentclinic, mts_dialog, casino, abcd)
}


ORACLES = "the scenarios' oracles"


def honest_talk(data: Path | None) -> dict[str, list[str]]:
    """Turns by set, the scenarios' own first."""
    found = {ORACLES: [line for said in oracle_lines().values() for line in said]}
    if data is not None:
        found |= {name: list(read(data / name)) for name, read in SETS.items() if (data / name).is_dir()}
    return found


def _json(path: Path) -> list[Any]:
    loaded: list[Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def _json_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
