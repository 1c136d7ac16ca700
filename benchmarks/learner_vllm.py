"""Does a real vLLM server speak with what the learner trains? Log-probabilities after adapters and weights were sent.

Usage: python -m benchmarks.learner_vllm --vllm /path/to/bin/vllm [--write]

Two models of Qwen 3's shape with random weights, one with a head of its own and one whose head is its embedding. Of
each, adapters and then all weights are changed and sent three times; the canary compares log-probabilities of tokens
that vLLM sampled with those of transformers. At last the learner's weights are changed and not sent, which the canary
has to find. vLLM is not installed beside the learner: it wants other versions of transformers.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import torch
import transformers

from benchmarks.processes import free_port
from benchmarks.report import Table, environment, write
from learner import canary, config
from learner.canary import CanaryError
from learner.engine import SamplerEngine
from learner.models import load, with_lora
from learner.policies import policy_of, renderer_of
from learner.ranks import Ranks
from learner.tiny import build_model, build_tokenizer
from learner.warmup import load_script

TIMES = 3
START_S = 900.0
CONTEXT = 512


def main() -> None:
    """Start vLLM for each model, send, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path, required=True, help="the vllm command")
    parser.add_argument("--write", action="store_true", help="also write benchmarks/results/learner_vllm.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    version = _version(arguments.vllm)
    head = ["head of the model", "sent", "largest difference", "weights that were not sent"]
    table = Table(f"vLLM {version} beside transformers {importlib.metadata.version('transformers')}, float32", head)
    for tied in (False, True):
        # The server may still write while it ends.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            base = Path(name) / "base"
            make(base, tied=tied)
            with served(arguments.vllm, base) as url:
                for lora in (True, False):
                    row = ("its embedding" if tied else "its own", "adapters" if lora else "all weights")
                    settings = ["generator.kind=vllm", f"generator.url={url}"]
                    table.add(*row, *tried(base, Path(name) / f"run-{lora}", settings, lora=lora))
                    print(" | ".join(table.rows[-1]), flush=True)
    text = f"# Sampling by vLLM\n\n{table.text()}\n\n{environment()}"
    print(f"\n{text}")
    if arguments.write:
        write("learner_vllm", text)


def make(folder: Path, *, tied: bool) -> None:
    """A model of random weights; its heads are as wide as vLLM's kernels for a CPU take them."""
    tokenizer = build_tokenizer(load_script("tired-and-dizzy").texts(), "qwen")
    model = build_model(tokenizer, layers=2, width=128, heads=4, context=CONTEXT, seed=0, family="qwen")
    if not tied:
        own = model.config
        own.tie_word_embeddings = False
        with torch.random.fork_rng():
            torch.manual_seed(1)
            model = type(model)(own)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2.0)  # else the distribution is almost flat, and hides differences
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def tried(base: Path, folder: Path, engine_settings: Sequence[str], *, lora: bool) -> tuple[str, str]:
    """What the canary says after each sending, and of weights that were not sent."""
    changes = [f"model.path={base}", "model.max_tokens=16", "model.temperature=0.8", *engine_settings]
    chosen = config.load(None, [*changes, *(["lora.rank=8"] if lora else [])])
    model, tokenizer = load(str(base))
    model = with_lora(model, tokenizer, chosen, folder) if lora else model
    model = model.to(chosen.model.device)
    renderer = renderer_of(chosen, model, tokenizer)
    policy = policy_of(chosen, model, tokenizer, renderer)
    engine = SamplerEngine(chosen, policy, renderer, tokenizer, folder)
    with closing(engine):
        try:
            gaps = []
            for time_ in range(TIMES):
                gaps.append(engine.sync(Ranks()))
                engine.rest()
                _change(model, time_)
        except CanaryError:
            gap = canary.gap(engine.generator, policy, renderer)
            return f"{gap:.0e}: the canary ends the run", "-"
        try:
            canary.check(engine.generator, policy, renderer)
        except CanaryError:
            found = "found"
        else:
            found = "not found"
    return f"{max(gaps):.0e}", found


def _change(model: Any, number: int) -> None:
    """As an update would, only more."""
    torch.manual_seed(number)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.dim() > 1:
                parameter.add_(0.02 * torch.randn_like(parameter))


@contextmanager
def served(vllm: Path, base: Path) -> Iterator[str]:
    """A vLLM server on a free port, as docs/training.md starts it."""
    port = free_port()
    small = ["--dtype", "float32", "--enforce-eager", "--max-model-len", str(CONTEXT), "--max-num-seqs", "16"]
    command = [vllm, "serve", base, "--host", "127.0.0.1", "--port", str(port), *small]
    command += ["--logprobs-mode", "processed_logprobs", "--enable-lora", "--max-lora-rank", "16"]
    allowed = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1", "HF_HUB_OFFLINE": "1"}
    on_cpu = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
    quiet = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    log = base.parent / "vllm.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            env={**environ, **allowed, **on_cpu, **quiet},
            cwd=base.parent,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(process, f"http://127.0.0.1:{port}", log)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    ends = time.monotonic() + START_S
    while time.monotonic() < ends and process.poll() is None:
        try:
            if httpx2.get(f"{url}/v1/models", timeout=5, trust_env=False).status_code == 200:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(1)
    raise SystemExit(f"vLLM did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _version(vllm: Path) -> str:
    asked = subprocess.run([str(vllm), "--version"], capture_output=True, text=True, check=False)
    return asked.stdout.strip().splitlines()[-1] if asked.stdout.strip() else "of unknown version"


if __name__ == "__main__":
    main()
