#!/bin/sh
# Measures the learner on a GPU machine in about ten minutes: tokens/s, MFU, memory, generation, the same step against TRL.
# Prepare: pip install -e ".[learner]" trl==1.16.0, with a torch that sees the GPU. Not run yet: no figure comes from it.
#
#     sh benchmarks/gpu.sh [python]
set -eu
cd "$(dirname -- "$0")/.."
python="${1:-.venv/bin/python}"
"$python" -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "gpu.sh: torch sees no GPU here; it needs one")'
"$python" -m benchmarks.learner_gpu --out benchmarks/results/learner_gpu.md
