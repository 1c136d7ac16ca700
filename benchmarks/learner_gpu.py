"""Update and generation on one GPU: tokens/s, MFU, memory, weight sync to vLLM, and the update beside TRL's.

Started by `gpu.sh`.

    sh benchmarks/gpu.sh

A model of Qwen3-0.6B's shape with random weights, bf16 products, 64 episodes in groups of 8 that share a prompt of
1,024 tokens. MFU counts 6 x parameters x tokens that were computed, against a large product in bf16 measured in the
same run: what the machine can do, and not what its maker says. `--dry-run` goes the same way with a model of a few
thousand parameters on the CPU, so that a machine that is paid for by the minute does not find the first mistake; its
figures mean nothing. **Never run on a GPU so far: there are no results yet.**
"""

from __future__ import annotations

import argparse
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.learner_update_speed import theirs, updater_of
from benchmarks.report import Table
from learner.generate.hf import HfGenerator
from learner.generate.session import Continuation
from learner.generate.vllm import Sampling, VllmGenerator
from learner.model import Policy
from learner.packing import packed_size
from learner.types import Group, Segment, Trajectory


@dataclass(frozen=True)
class Scale:
    """How large everything is, and where it runs."""

    device: str
    vocabulary: int
    width: int
    layers: int
    head_width: int
    product: int
    """Rows of the square matrices whose product is the ceiling."""
    prompt: int
    groups: int
    members: int
    longest: int
    """Tokens of an answer, at most; half of it at least."""
    live: int
    """Conversations that are sampled in one batch."""
    fed: int
    sampled: int
    rounds: int


FULL = Scale("cuda", 151_936, 1024, 28, 128, 8192, 1024, 8, 8, 512, 64, 256, 128, 3)
DRY = Scale("cpu", 128, 16, 2, 4, 64, 24, 2, 2, 12, 4, 8, 4, 1)


def qwen_shape(scale: Scale) -> Any:
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=scale.vocabulary,
        hidden_size=scale.width,
        intermediate_size=3 * scale.width,
        num_hidden_layers=scale.layers,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=scale.head_width,
        tie_word_embeddings=True,
        eos_token_id=0,
        pad_token_id=1,
        bos_token_id=None,
    )
    with torch.device(scale.device):
        return Qwen3ForCausalLM(config)


def episodes(scale: Scale) -> list[Group]:
    draw = random.Random(0)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(2, scale.vocabulary) for _ in range(count))

    groups = []
    for seed in range(scale.groups):
        opening = Segment(tokens(scale.prompt))
        lengths = [draw.randrange(scale.longest // 2, scale.longest) for _ in range(scale.members)]
        spoken = [Segment(tokens(count), (-1.0,) * count) for count in lengths]
        groups.append(Group(seed, tuple(Trajectory((opening, each), (draw.random(),), seed) for each in spoken)))
    return groups


def seconds(scale: Scale, step: Callable[[], object]) -> float:
    """The shortest of some rounds, after one to warm up."""
    found = []
    for _ in range(scale.rounds + 1):
        _wait(scale)
        started = time.perf_counter()
        step()
        _wait(scale)
        found.append(time.perf_counter() - started)
    return min(found[1:])


def _wait(scale: Scale) -> None:
    if scale.device == "cuda":
        torch.cuda.synchronize()


def ceiling(scale: Scale) -> float:
    """Operations a second of a large product in bf16."""
    one = torch.randn(scale.product, scale.product, device=scale.device, dtype=torch.bfloat16)
    return 2 * scale.product**3 / seconds(scale, lambda: one @ one)


class Measure:
    """Updates of the same episodes, in rows of a table."""

    HEAD = ("way", "seconds", "tokens computed a second", "sampled tokens a second", "MFU", "GiB at most")

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.most = ceiling(scale)
        self.groups = episodes(scale)
        members = [trajectory for group in self.groups for trajectory in group.trajectories]
        self.rows = [row for trajectory in members for row in trajectory.rows]
        self.raw = sum(len(trajectory.ids) for trajectory in members)
        self.widest = max(len(trajectory.ids) for trajectory in members)
        self.sampled = sum(trajectory.sampled_tokens for trajectory in members)
        title = f"Forward and backward of {len(self.rows)} episodes, {self.raw:,} tokens, {self.sampled:,} sampled"
        self.table = Table(title, list(self.HEAD))

    def add(self, name: str, model: Any, step: Callable[[], None], tokens: int) -> None:
        """One way of computing the gradient, which goes through so many tokens."""
        on_gpu = self.scale.device == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()

        def whole() -> None:
            model.zero_grad(set_to_none=True)
            step()

        took = seconds(self.scale, whole)
        work = 6 * sum(each.numel() for each in model.parameters()) * tokens / took
        speeds = (f"{took:.2f}", f"{tokens / took:,.0f}", f"{self.sampled / took:,.0f}", f"{work / self.most:.0%}")
        self.table.add(name, *speeds, f"{torch.cuda.max_memory_allocated() / 2**30:.1f}" if on_gpu else "")

    def without(self, name: str, why: str) -> None:
        """A way that could not be gone."""
        self.table.add(name, why, *[""] * (len(self.HEAD) - 2))


def generated(policy: Policy, scale: Scale, *, graphs: bool) -> float:
    """Sampled tokens a second of conversations in one batch, with CUDA graphs or without."""
    draw = np.random.default_rng(0)
    policy.banned = torch.tensor([0], device=scale.device)  # nobody stops early
    given = {
        number: Continuation(draw.integers(2, scale.vocabulary, scale.fed).tolist(), np.random.SeedSequence([number]))
        for number in range(scale.live)
    }
    generator = HfGenerator(policy, max_tokens=scale.sampled, fixed_shapes=graphs)
    took = seconds(scale, lambda: generator.start().step(given))
    return scale.live * scale.sampled / took


def beside_trl(measure: Measure, model: Any, advantages: torch.Tensor) -> None:
    """The row of TRL; it changes the model, and comes last."""
    name, scale = "TRL 1.16", measure.scale
    try:
        from trl.trainer.utils import add_fused_lm_head
    except ImportError:
        measure.without(name, "not installed")
        return
    try:
        add_fused_lm_head(model, outputs=("log_probs", "entropy"))
        model.train()  # TRL asks for it, and there is no dropout
        trl = theirs(model, measure.groups, advantages, device=scale.device, prompt=scale.prompt)
        measure.add(name, model, trl, measure.widest * len(measure.rows))
    except torch.cuda.OutOfMemoryError:
        measure.without(name, "out of memory")


def synced(model: Any, url: str | None, scale: Scale) -> str:
    """Seconds of writing all weights and of a vLLM server's reading them, in words."""
    if url is None:
        return "Weight sync to vLLM: not measured, VLLM_URL is not set."
    with tempfile.TemporaryDirectory() as folder, VllmGenerator(url, "policy", Sampling(end_id=0)) as remote:
        started = time.perf_counter()
        model.save_pretrained(folder)
        written = time.perf_counter()
        took = seconds(scale, lambda: remote.send_weights(Path(folder)))
        size = sum(each.stat().st_size for each in Path(folder).glob("*.safetensors")) / 2**30
    return (
        f"Weight sync to vLLM: {written - started:.2f} s to write {size:.2f} GiB, {took:.2f} s until it speaks again."
    )


@contextmanager
def stand_in() -> Iterator[str]:
    """The address of what takes a vLLM server's calls and does nothing."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="file for the results")
    where.add_argument("--dry-run", action="store_true", help="a tiny model on the CPU; nothing is written")
    where.add_argument("--write-model", type=Path, help="only write the model, for a vLLM server to serve")
    parser.add_argument("--vllm", help="address of a vLLM server of that model, which is sent all weights")
    options = parser.parse_args()
    if options.write_model is not None:
        qwen_shape(replace(FULL, device="cpu")).to(torch.bfloat16).save_pretrained(options.write_model)
        return
    scale = DRY if options.dry_run else FULL
    measure = Measure(scale)
    model = qwen_shape(scale).eval()
    policy = Policy(model, end_id=0, autocast=torch.bfloat16)
    updater = updater_of(policy, 32_768)
    if policy.packs:
        measure.add("packed", model, lambda: updater.gradients(measure.groups), packed_size(measure.rows))
    padded = updater_of(Policy(model, end_id=0, autocast=torch.bfloat16, packs=False), 32_768)
    measure.add("padded", model, lambda: padded.gradients(measure.groups), measure.raw)
    plain, replayed = (generated(policy, scale, graphs=graphs) for graphs in (False, True))
    with stand_in() if options.dry_run else nullcontext(options.vllm) as address:
        sync = synced(model, address, scale)
    advantages = [row[-1] for row in updater.credit.per_turn(measure.groups, {})]
    beside_trl(measure, model, torch.tensor(advantages, dtype=torch.float32))
    device = "the CPU" if options.dry_run else torch.cuda.get_device_name()
    text = [
        "# The learner on a GPU",
        measure.table.text(),
        f"Generation: {replayed:,.0f} tokens a second with CUDA graphs, {plain:,.0f} without;"
        f" {scale.live} conversations.",
        sync,
        f"{device}, torch {torch.__version__}; a product reaches {measure.most / 1e12:.0f} TFLOP/s.",
    ]
    if options.out is not None:
        options.out.write_text("\n\n".join(text) + "\n")
    print("\n\n".join(text))


if __name__ == "__main__":
    main()
