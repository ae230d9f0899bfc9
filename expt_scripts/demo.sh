#!/usr/bin/env bash
# `make demo`: a real federated run and its simulated twin, the parity report, and a learning curve.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

flame run quick --mode both --yes --workers 2 --pool 2
flame run learn --mode sim --yes --level commits
python expt_scripts/plot_learning_curve.py --run-set learn --out runs/learning_curve
