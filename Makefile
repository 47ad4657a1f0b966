# `make` prints what there is. Every target sets up what it needs; the only requirements are Python 3.11+ and pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
INSTALLED := $(VENV)/.installed
# every version is pinned, also of what builds weakspot: -c holds for what is installed, the variables for that
PIP := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest
SEED ?= $(shell date +%Y%m%d)

.DEFAULT_GOAL := help
.PHONY: help demo view package test test-slow nightly lint format types docs peers papers clean

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# what weakspot itself needs: some thirty packages
$(RUNTIME): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

# what checks and documentation need beside it: some hundred more
$(INSTALLED): $(RUNTIME)
	$(PIP) -e '.[test,docs]'
	# used by tests alone: they ask for torchvision or playwright, which are not needed here
	$(PIP) --no-deps zennit timm axe-playwright-python
	touch $@

demo: $(RUNTIME) ## examine an embedded model and write a report
	$(BIN)/weakspot demo --run runs/demo

view: demo ## look through the Run of the demo in the browser
	$(PIP) -e '.[viewer]'
	$(BIN)/weakspot view runs/demo

test: $(INSTALLED) lint types ## run every check that must pass before a commit
	$(PYTEST) -n auto --maxprocesses 8 --dist worksteal

test-slow: $(INSTALLED) ## kill runs and workers at random moments, form a cluster, measure by the clock: a quarter of an hour
	$(PYTEST) -m slow --timeout=3600 tests

nightly: test-slow ## the slow tests, and the viewer's and the command line's in random order; on a machine with nothing else to do
	$(PYTEST) --shuffle $(SEED) tests/viewer tests/cli

lint: $(INSTALLED) ## check the style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALLED) ## bring the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(INSTALLED) ## check the types
	$(BIN)/mypy

# each wheel into an empty environment: the whole, which runs the demo, and the reader, which shows and judges its Run
package: $(RUNTIME) ## build what is published, check it, install it into empty environments and try it
	$(PIP) -e '.[package]'
	rm -rf build/package && mkdir -p build/package
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build --outdir build/package
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m build --wheel --outdir build/package reader
	$(BIN)/python -m twine check --strict build/package/*
	for name in weakspot weakspot_reader; do \
		$(PYTHON) -m venv build/package/$$name && \
		build/package/$$name/bin/python -m pip install --quiet -c constraints.txt build/package/$$name-*.whl || exit 1; \
	done
	cd build/package && weakspot/bin/weakspot demo --run run
	cd build/package && weakspot_reader/bin/weakspot show run && weakspot_reader/bin/weakspot report run --output page.html

docs: $(INSTALLED) ## write the documentation as HTML to build/docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env -d build/doctrees docs build/docs
	@echo "documentation: build/docs/index.html"

peers: $(INSTALLED) ## measure speed and memory against the alternatives; writes CSV beside the scripts
	$(PIP) -e '.[peers]'
	for script in benchmarks/peers/*.py; do $(BIN)/python $$script || exit 1; done

# in this order: networks before what asks about them, tables and figures at the end
PAPERS := steering_nets importance_nets importance importance_neurons importance_tables robustness \
	robustness_white_box robustness_black_box robustness_study robustness_curves robustness_places \
	robustness_sampling robustness_tenth robustness_steering robustness_cost robustness_tables classes_oracles \
	classes_curves classes classes_trained classes_examples classes_coverage classes_repair causes \
	causes_retraining causes_kinds lesions_ms_checks lesions_ms lesions_lgg lesions_figure lesions_picture \
	figures prose

papers: $(INSTALLED) ## reproduce published tables on the data in $$WEAKSPOT_DATA; long scripts resume
	for script in $(PAPERS); do $(BIN)/python benchmarks/papers/$$script.py || exit 1; done

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist runs .mypy_cache .ruff_cache .pytest_cache
