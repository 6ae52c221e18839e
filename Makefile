# Two commands for a fresh machine: `make reproduce` and `make test`.
# Everything runs in .venv, which is made once and left alone while
# pyproject.toml and constraints.txt stay the same.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
SCALE ?= quick
COUNT ?= 100
SEED ?= 0
# Nothing is compiled as it is installed: of some 24,000 files a run imports a tenth.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
# uv unpacks in parallel, in a third of pip's time. It knows nothing of pip's settings, so
# pip does the work wherever uv is not to be had or does not find what it needs.
UV := $(BIN)/python -m uv pip install --quiet -c constraints.txt
BEGINNING := scipy.stats, scipy.integrate, numba, matplotlib.pyplot, beartype, hypothesis
CORE := $(VENV)/.core
DEV := $(VENV)/.dev
# Peers live in an environment of their own, so that no test can lean on them.
BENCH_VENV := .venv-bench
BENCH_BIN := $(BENCH_VENV)/bin
BENCH_PIP := $(BENCH_BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
PEERS := $(BENCH_VENV)/.peers
SUITES ?=
# So does what makes the site, which no test needs.
DOCS_VENV := .venv-docs
DOCS_BIN := $(DOCS_VENV)/bin
DOCS := $(DOCS_VENV)/.docs
# A process a core and one more, each with one thread: those that wait, for Ray and for
# browsers, leave their core to it. The tests of a file stay together, and files start in
# the order of tests/conftest.py. Compiled code is kept, whatever the shell
# says: the many processes that tests start would compile it again.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
PYTEST = PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) \
	--dist loadfile --no-loadscope-reorder --durations=10 --durations-min=0.5

# What declared ranges promise is tried in environments of their own.
VERSIONS := lowest python3.12 python3.13
TRIED = .venv-$*/bin/python -m uv pip install --quiet -c .venv-$*/pins.txt
SMOKE := tests/core/test_reading.py tests/core/test_rows.py tests/figures/test_readings.py \
	tests/figures/test_legends.py tests/networks/test_building.py tests/meeting/test_linear_network.py \
	tests/instruments/test_readings_kept.py tests/instruments/test_extreme.py \
	tests/runs/test_execute.py tests/runs/test_tracking.py tests/runs/test_ray_addresses.py \
	tests/report/test_page.py tests/report/test_write.py tests/survey/test_watch_callbacks.py tests/survey/test_subject_files.py \
	tests/training/test_lightning.py tests/training/test_transformers.py \
	tests/test_cli.py tests/test_everyday.py tests/test_lazy_imports.py

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev reproduce errata findings test check static format slow gpu browser mutants versions bench docs clean

help: ## Show what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	# torch first and alone, at the pinned version: what is asked for later is then
	# satisfied already and never draws another build of it.
	$(PIP) torch
	$(PIP) uv || true
	$(UV) --editable '.[fast]' || $(PIP) --editable '.[fast]'
	@touch $@

$(DEV): $(CORE)
	$(UV) --editable '.[dev]' || $(PIP) --editable '.[dev]'
	# All processes of the tests begin with these and would each compile them at once,
	# and then the tests themselves.
	@export PYTHONDONTWRITEBYTECODE=; \
	$(BIN)/python -c 'import torch' & \
	$(BIN)/python -c 'import $(BEGINNING)' & \
	$(BIN)/python -m compileall -q src & wait; \
	$(BIN)/python -m pytest --collect-only -qq >/dev/null || true
	@touch $@

setup: $(CORE) ## Make .venv with what theodolite needs to run

setup-dev: $(DEV) ## Make .venv with the tools of the tests as well

reproduce: $(CORE) ## Run every study on embedded data and write out/report.html, with a page per paper
	$(BIN)/theodolite run all --scale $(SCALE) --out $(OUT)
	$(BIN)/theodolite report --out $(OUT)

errata: $(CORE) ## Run what is not run yet and write docs/errata.md from it
	$(BIN)/theodolite run all --scale $(SCALE) --out $(OUT)
	$(BIN)/theodolite report --out $(OUT) --errata docs/errata.md
	PYTHONPATH=. $(BIN)/python -m handbook.paper_pages $(OUT)

findings: $(CORE) ## Survey known failures and write docs/findings.md from it
	PYTHONPATH=. $(BIN)/python -m tests.known_failures.scores docs/findings.md

test: $(DEV) ## Run the tests, doctests and import rules
	$(PYTEST)

check: static ## Format, lint, types and the fast tests
	$(PYTEST)

static: $(DEV) ## Format, lint and types, nothing executed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright

format: $(DEV) ## Rewrite the files in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

slow: $(DEV) ## Run the tests that take minutes
	$(PYTEST) -m slow --timeout 3600 --dist load --maxschedchunk 1

gpu: $(DEV) ## Run the tests that need a CUDA device
	$(BIN)/python -m pytest -q -m gpu --timeout 3600

browser: $(DEV) ## Open the report in headless Chromium, which must be installed
	THEODOLITE_REQUIRE_BROWSER=1 $(BIN)/python -m pytest -q -m browser

mutants: $(DEV) ## Change COUNT=100 tokens drawn with SEED=0, one at a time; list what no test notices
	$(UV) 'cosmic-ray>=8.4' || $(PIP) 'cosmic-ray>=8.4'
	$(BIN)/python -m tests.mutants --count $(COUNT) --seed $(SEED)

versions: $(VERSIONS:%=smoke-%) ## Smoke tests with the lowest declared versions, and on newer Pythons

# A Python that is not installed is a line.
smoke-lowest: INTERPRETER := $(PYTHON)
smoke-lowest: RESOLUTION := --resolution lowest-direct
smoke-lowest: PINS := ^torch==
smoke-python%: INTERPRETER = $(@:smoke-%=%)
smoke-python%: PINS := ""
smoke-%:
	@if ! $(INTERPRETER) -c '' 2>/dev/null; then echo "$*: not installed, so not tried"; exit; fi; \
	set -e; $(INTERPRETER) -m venv .venv-$*; grep $(PINS) constraints.txt >.venv-$*/pins.txt; \
	.venv-$*/bin/python -m pip --disable-pip-version-check install --quiet --no-compile -c .venv-$*/pins.txt torch uv; \
	$(TRIED) $(RESOLUTION) --editable '.[tables,fast,ray,lightning,transformers,tensorboard,mlflow,wandb]'; \
	$(TRIED) pytest pytest-timeout hypothesis jaxtyping; \
	echo "$*: $$(.venv-$*/bin/python --version)"; \
	OMP_NUM_THREADS=1 .venv-$*/bin/python -m pytest -q -W ignore::DeprecationWarning \
	  -W ignore::FutureWarning $(SMOKE)

$(PEERS): pyproject.toml constraints.txt bench/requirements.txt bench/requirements-nodeps.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_PIP) torch
	$(BENCH_PIP) --editable '.[fast]'
	# One at a time: a peer that does not install is a line in the table, not an end.
	for need in $$(grep -v '^\#' bench/requirements.txt); do \
	  $(BENCH_PIP) "$$need" || echo "$$need is not installed"; \
	done
	# Without dependencies, since some ask for torchvision and so for another torch.
	for peer in $$(grep -v '^\#' bench/requirements-nodeps.txt); do \
	  $(BENCH_PIP) --no-deps "$$peer" || echo "$$peer is not installed"; \
	done
	@touch $@

bench: $(PEERS) ## Compare with peers as ratios; SUITES="curvature …" for some of them
	$(BENCH_BIN)/python -m bench $(SUITES)
	$(BENCH_BIN)/python -m bench --docs

$(DOCS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS_VENV)
	# Not the package itself: its docstrings are read, never imported.
	$(DOCS_BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile \
	  -c constraints.txt $$($(PYTHON) -m handbook.needs)
	@touch $@

docs: $(CORE) $(DOCS) ## Build the documentation in site/, strictly, and check its links
	PYTHONPATH=. OMP_NUM_THREADS=1 $(BIN)/python -m handbook build/handbook
	NO_MKDOCS_2_WARNING=1 $(DOCS_BIN)/mkdocs build --quiet --strict -f build/handbook/mkdocs.yml
	$(PYTHON) -m handbook.links site

clean: ## Remove the environments and caches; results in out/ stay
	rm -rf $(VENV) $(VERSIONS:%=.venv-%) $(BENCH_VENV) $(DOCS_VENV) build site .pytest_cache .ruff_cache .hypothesis
