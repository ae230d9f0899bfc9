#!/usr/bin/env bash
# `make demo-all`: FwdLLM, FwdLLM++ and FluxTune's stable form, each for real and simulated, compared pair by pair.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

flame run demo-all --mode both --yes --workers 2 --pool 2
python expt_scripts/plot_learning_curve.py --run-set demo-all --out runs/demo_all
