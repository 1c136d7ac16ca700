"""The sentences of public dialogues, a text file for each set, for `labs reader fluency --text`.

    python -m benchmarks.dialogue_lines --data DATA --out OUT

DATA holds the folders of CaSiNo (CC BY 4.0), MTS-Dialog (CC BY 4.0), HH-RLHF harmless (MIT) and tau-bench's recorded
airline conversations (MIT), from which the packaged model learns, and of MathDial and MRBench, on which it is measured
alone.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

from personas.text.sentences import sentences

LEARNED_FROM = ("casino", "mts_dialog", "hh_rlhf_harmless", "tau_bench")
MEASURED_ON = ("mathdial", "mrbench")
LEAST_WORDS, MOST_WORDS = 2, 45
_SPEAKER = re.compile(r"\n\n(?:Human|Assistant):")
_MOVE = re.compile(r"^\([a-z]+\)")


def lines_of(name: str, data: Path) -> list[str]:
    """The distinct sentences of a set in the order in which they are said."""
    whole = (each for said in _SAID[name](data / name) for each in sentences(said))
    return list(dict.fromkeys(each for each in whole if LEAST_WORDS <= len(each.split()) <= MOST_WORDS))


def _casino(folder: Path) -> Iterator[str]:
    for talk in json.loads((folder / "casino_train.json").read_text(encoding="utf-8")):
        yield from (turn["text"] for turn in talk["chat_logs"])


def _mts_dialog(folder: Path) -> Iterator[str]:
    with (folder / "MTS-Dialog-TrainingSet.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield from (line.split(":", 1)[-1] for line in row["dialogue"].splitlines())


def _hh_rlhf_harmless(folder: Path) -> Iterator[str]:
    with gzip.open(folder / "pairs.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            yield from _SPEAKER.split(json.loads(line)["chosen"])


def _tau_bench(folder: Path) -> Iterator[str]:
    for run in json.loads((folder / "gpt-4o-airline.json").read_text(encoding="utf-8")):
        for message in run["traj"]:
            if message["role"] in ("user", "assistant") and isinstance(message.get("content"), str):
                yield message["content"]


def _mathdial(folder: Path) -> Iterator[str]:
    for line in (folder / "test.jsonl").read_text(encoding="utf-8").splitlines():
        for said in json.loads(line)["conversation"].split("|EOM|"):
            yield _MOVE.sub("", said.split(":", 1)[-1].strip())


def _mrbench(folder: Path) -> Iterator[str]:
    for talk in json.loads((folder / "MRBench_V2_first_half.json").read_text(encoding="utf-8")):
        yield from (answer["response"] for answer in talk["anno_llm_responses"].values())


_SAID = {
    "casino": _casino,
    "mts_dialog": _mts_dialog,
    "hh_rlhf_harmless": _hh_rlhf_harmless,
    "tau_bench": _tau_bench,
    "mathdial": _mathdial,
    "mrbench": _mrbench,
}


def main() -> None:
    """Write the files."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="folder of the public sets")
    options.add_argument("--out", type=Path, required=True, help="folder for the text files")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in LEARNED_FROM:
        lines = lines_of(name, given.data)
        (given.out / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{name}: {len(lines)} sentences")


if __name__ == "__main__":
    main()
