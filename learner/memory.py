"""Memory that a run uses, for its metrics: the most so far of the process, and of an update on its GPU."""

from __future__ import annotations

import resource
import sys

import torch

_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of what the system counts in."""


def memory_used(device: torch.device) -> dict[str, float]:
    """Bytes; the count of the GPU begins anew."""
    used = {"memory/process": float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT)}
    if device.type == "cuda":
        used["memory/gpu"] = float(torch.cuda.max_memory_allocated(device))
        torch.cuda.reset_peak_memory_stats(device)
    return used
