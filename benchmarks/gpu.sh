#!/bin/sh
# Measures the learner on a GPU machine in about ten minutes: tokens/s, MFU, memory, generation, weight sync to vLLM, and
# the same update as TRL.
# Prepare: pip install -e ".[learner]" trl==1.16.0, with a torch that sees the GPU. Not run yet: no figure comes from it.
#
#     sh benchmarks/gpu.sh [python]             measures, and writes benchmarks/results/learner_gpu.md
#     sh benchmarks/gpu.sh --dry-run [python]   goes the same way with a tiny model on the CPU, and writes nothing
#
# For the weight sync, serve the model on the same machine first, and set VLLM_URL:
#
#     python -m benchmarks.learner_gpu --write-model /tmp/shape
#     VLLM_SERVER_DEV_MODE=1 vllm serve /tmp/shape --skip-tokenizer-init --gpu-memory-utilization 0.3
set -eu
cd "$(dirname -- "$0")/.."
way="--out benchmarks/results/learner_gpu.md"
case "${1:-}" in
--dry-run) way="--dry-run" && shift ;;
-*) echo "gpu.sh: there is no option $1; usage: gpu.sh [--dry-run] [python]" >&2 && exit 2 ;;
esac
python="${1:-.venv/bin/python}"
command -v "$python" >/dev/null || { echo "gpu.sh: there is no $python; name the Python to use" >&2 && exit 2; }
if [ "$way" != "--dry-run" ]; then
    "$python" -c 'import sys, torch; sys.exit(None if torch.cuda.is_available() else "gpu.sh: torch sees no GPU here; it needs one")'
fi
# Two words: the option and its file.
# shellcheck disable=SC2086
exec "$python" -m benchmarks.learner_gpu $way ${VLLM_URL:+--vllm "$VLLM_URL"}
