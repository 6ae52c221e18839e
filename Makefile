# Two commands for a fresh machine: `make reproduce` and `make test`.
# Everything runs in .venv, which is made once and left alone while
# pyproject.toml and constraints.txt stay the same.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
SCALE ?= quick
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
CORE := $(VENV)/.core
DEV := $(VENV)/.dev

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev reproduce test check static format slow gpu browser bench clean

help: ## Show what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	# torch first and alone, at the pinned version: what is asked for later is then
	# satisfied already and never draws another build of it.
	$(PIP) torch
	$(PIP) --editable .
	@touch $@

$(DEV): $(CORE)
	$(PIP) --editable '.[dev]'
	@touch $@

setup: $(CORE) ## Make .venv with what theodolite needs to run

setup-dev: $(DEV) ## Make .venv with the tools of the tests as well

reproduce: $(CORE) ## Run every study on embedded data and write out/report.html
	$(BIN)/theodolite run all --scale $(SCALE) --out $(OUT)
	$(BIN)/theodolite report --out $(OUT)

test: $(DEV) ## Run the tests, doctests and import rules
	$(BIN)/python -m pytest -q

check: static ## Format, lint, types and the fast tests
	$(BIN)/python -m pytest -q

static: $(DEV) ## Format, lint and types, nothing executed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright

format: $(DEV) ## Rewrite the files in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

slow: $(DEV) ## Run the tests that take minutes
	$(BIN)/python -m pytest -q -m slow --timeout 3600

gpu: $(DEV) ## Run the tests that need a CUDA device
	$(BIN)/python -m pytest -q -m gpu --timeout 3600

browser: $(DEV) ## Open the report in headless Chromium, which must be installed
	THEODOLITE_REQUIRE_BROWSER=1 $(BIN)/python -m pytest -q -m browser

bench: $(DEV) ## Compare with the usual ways of computing the same, as ratios
	$(BIN)/python -m bench

clean: ## Remove .venv and caches; results in out/ stay
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
