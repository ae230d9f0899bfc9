#!/usr/bin/env bash
# Run a run-set, one run after another: `expt_scripts/run_sequential.sh --run-set quick --mode both`.
# Finds the virtual environment, or makes it; everything else is `flame run`.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${FLAME_PYTHON:-$root/.venv/bin/python}"

if [ ! -x "$python" ]; then
  make -C "$root" setup >&2
fi

exec "$python" -m flame.launch.cli run "$@"
