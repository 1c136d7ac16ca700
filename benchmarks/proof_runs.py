"""Does every algorithm learn from the reward while its language holds? One row per algorithm, model and seed.

Usage: python -m benchmarks.proof_runs --runs FOLDER [--only grpo gspo dapo vapo ppo qwen gemma single-turn]
                                       [--seeds 0 1 2] [--updates 10] [--write]

Each run is a preset of the learner against a Labs server of its own. A run that is finished is not made again and one
that was interrupted goes on, so the command may be ended and started at any time; rows are printed as they come.
`--only dpo` plays episodes with the model that was warmed up, and learns from the pairs that the server exports of
them; `dpo-plain` is the same without the likelihood of the better side. `--only resumed` is `grpo` for five updates,
killed in the fourth; it is compared with the run that was not. `--only grpo two-ranks` compares two processes of gloo
with one.
`--write` puts the table and the plots into `benchmarks/results/`. A run counts as learned when the rise of the reward
on held-out seeds is beyond two standard errors of the difference, and as fluent while at most 5 % of held-out turns
are broken. Nothing is tuned on the held-out seeds.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.curves import draw_watched
from benchmarks.processes import labs_server, running
from benchmarks.proofs import ALONE, DPO_UPDATES, KINDS, PAIRS_GROUP, PAIRS_SEEDS, Proof, Resumed, TwoRanks, proof_of
from benchmarks.report import RESULTS, Table, environment, write
from learner.fluency import FluencyMeter
from learner.warmup import load_script

BROKEN_LIMIT = 0.05


def main() -> None:
    """Play what is missing, and show all there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, required=True, help="the runs are kept here")
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=[kind for kind in KINDS if kind not in ALONE])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--finished", action="store_true", help="play nothing; show what is there")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/proof_runs.*")
    arguments = parser.parse_args()
    folder: Path = arguments.runs
    folder.mkdir(parents=True, exist_ok=True)
    # Seed by seed, so that after a third of the time every algorithm has been seen once.
    proofs = [proof_of(kind, seed, arguments.updates) for seed in arguments.seeds for kind in arguments.only]
    missing = [] if arguments.finished else [proof for proof in proofs if not proof.is_finished(folder)]
    if missing:
        with tempfile.TemporaryDirectory() as name:
            server = labs_server(Path(name))
            with running(server):
                for proof in missing:
                    proof.play(server.url, folder)
                    print(" | ".join(cells(proof, folder)), flush=True)
    done = sorted((each for each in proofs if each.is_finished(folder)), key=lambda each: list(KINDS).index(each.kind))
    told = [table(done, folder).text(), *compared(done, folder), method(arguments.updates), environment()]
    text = "\n\n".join(told)
    print(f"\n{text}")
    if arguments.write:
        write("proof_runs", text + "\n\n![what was watched](proof_runs.png)")
        # Updates of the others are of other things: of one reply, of pairs.
        kinds = {proof.kind: None for proof in done if proof.kind not in (*ALONE, "single-turn")}
        curves = {kind: [proof.records(folder) for proof in done if proof.kind == kind] for kind in kinds}
        draw_watched(curves, RESULTS / "proof_runs.png")


def table(proofs: Sequence[Proof], folder: Path) -> Table:
    """One row per run."""
    found = Table(
        "Held-out reward (± standard error) and held-out language, before and after",
        [
            "run",
            "seed",
            "before",
            "after",
            "learned",
            "broken turns",
            "turns not all of the script",
            "repeated turns",
            "nats per token under the reference policy",
            "KL",
            "errored",
            "minutes",
        ],
    )
    for proof in proofs:
        found.add(*cells(proof, folder))
    return found


def cells(proof: Proof, folder: Path) -> list[str]:
    """What a row says."""
    records = proof.records(folder)
    held_out = [record for record in records if record["kind"] == "eval" and "reward/mean" in record]
    training = [record for record in records if record["kind"] == "train"]
    first, last = held_out[0], held_out[-1]
    doubt = 2 * (first["reward/standard_error"] ** 2 + last["reward/standard_error"] ** 2) ** 0.5
    learned = last["reward/mean"] - first["reward/mean"] > doubt
    fluent = last["fluency/broken"] <= BROKEN_LIMIT
    seconds = sum(record.get("seconds/rollout", 0.0) + record.get("seconds/update", 0.0) for record in records)
    kl = [record["update/kl_reference"] for record in training if "update/kl_reference" in record]
    return [
        proof.kind,
        str(proof.seed),
        *(f"{each['reward/mean']:.3f} ± {each['reward/standard_error']:.3f}" for each in (first, last)),
        "yes" if learned else "no",
        f"{first['fluency/broken']:.1%} → {last['fluency/broken']:.1%}{'' if fluent else ' (too many)'}",
        " → ".join(map(share_beside_script, proof.samples(folder))),
        f"{first['fluency/repeated']:.1%} → {last['fluency/repeated']:.1%}",
        f"{first['fluency/reference_nll']:.2f} → {last['fluency/reference_nll']:.2f}",
        f"{kl[-1]:.3f}" if kl else "",
        str(sum(record.get("episodes/errored", 0) for record in records)),
        f"{seconds / 60:.1f}",
    ]


def share_beside_script(samples: Path) -> str:
    """Of the policy's turns in the dialogues that a run keeps, those with a pair of words that the script never has.

    Of single replies there are no dialogues.
    """
    known = FluencyMeter.pairs_of(load_script("tired-and-dizzy").texts())
    said = [line.removeprefix("policy :") for line in samples.read_text().splitlines() if line.startswith("policy :")]
    turns = [line.rpartition("   [")[0].strip() for line in said]
    strange = [not known.issuperset(FluencyMeter.pairs_of([turn])) for turn in turns]
    return f"{fmean(strange):.0%}" if strange else "-"


def compared(proofs: Sequence[Proof], folder: Path) -> list[str]:
    """What became of the runs that were killed, and of those by two processes."""
    return [proof.compared(folder) for proof in proofs if isinstance(proof, Resumed | TwoRanks)]


def method(updates: int) -> str:
    """How it was measured."""
    return (
        f"`./labs learner train PRESET` with {updates} updates of 8 groups of 8 episodes each, on"
        " `clinical-intake/tired-and-dizzy`; `qwen` and `gemma` are the preset `grpo` with a tiny model of that"
        " family's shape, `gemma` at half the learning rate. Every algorithm has a KL term (k3, beta 0.2; GSPO 0.4)."
        f" `dpo` makes {DPO_UPDATES} updates on pairs that the server exports of {PAIRS_SEEDS * PAIRS_GROUP} episodes"
        " of the first policy; pairs that the tiny model's words cannot spell are left out. In its loss is the"
        " likelihood of the better side (`positive_nll` 1); in that of `dpo-plain` it is not. `single-turn` is scored"
        " after one reply, so its rewards are small. Reward and language are those of 64 seeds never trained on."
        " Learned: a rise beyond two standard errors of the difference. Broken: three or more pairs of words that the"
        " script of the warm-up never has. Turns not all of the script have one or more; they are counted in the three"
        " dialogues that each run keeps. Minutes are those of rollouts and updates, server and learner sharing the"
        " cores."
    )


if __name__ == "__main__":
    main()
