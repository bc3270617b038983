# Every command that Ajax's developers and CI run. `make` alone lists them.
# Needs python3 (3.11 to 3.13), make and git; everything else goes into .venv, pinned by requirements/.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tests and demos run on the CPU, so that they never compete with an experiment on a GPU.
export CUDA_VISIBLE_DEVICES :=
export JAX_PLATFORMS := cpu
# Without byte code every process compiles all of JAX's Python again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PY := $(VENV)/bin/python
# Other libraries, to be probed, live apart from ours.
PEERS := .venv-peers/probe
LIVE := .venv-peers/conformance
# The first Python that Ajax runs on: PYTHON=... overrides the search.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 \
	$(wildcard $(HOME)/.pyenv/versions/3.1[123].*/bin/python); do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo "$$p" && break; \
	done)

WORKERS ?= 2
# Each worker begins at another end, so that tests that share programs mostly share a process.
PYTEST := $(PY) -m pytest -n $(WORKERS) --dist worksteal
# The fast tests run little and compile much, so that the cheapest code is the quickest.
FAST := XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false" $(PYTEST) -m "not slow" --ignore=tests/conformance
COVER := --cov=ajax --cov-report= --cov-fail-under=0

# The fast tests in three shards: the third runs whatever the first two don't name, so a new file always runs somewhere.
SHARD_1 := tests/agents tests/training tests/core
SHARD_2 := tests/environments tests/extensions tests/probing
SHARD_3 := tests $(addprefix --ignore=,$(SHARD_1) $(SHARD_2))
SLOW_SHARDS := 6

## Try it

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^## / {printf "\n%s\n", substr($$0, 4)} \
	/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install
install: $(VENV)/.dev ## create .venv with the pinned versions and this checkout

DEMO_STEPS ?= 200k
DEMO_SEEDS ?= 4
.PHONY: demo
demo: $(VENV)/.core ## train PPO on CartPole with 4 seeds and draw its learning curve
	@$(VENV)/bin/ajax train PPO CartPole-v1 --seeds $(DEMO_SEEDS) --steps $(DEMO_STEPS) \
	--out runs/demo-$$(date +%Y%m%d-%H%M%S)

## Check it

BEGAN := $(shell date +%s)
# $(call timed,TIER,LIMIT,COMMAND) ends by saying how long the tier took.
timed = @began=$$(date +%s); $(3); echo "== $(1): $$(( $$(date +%s) - began )) s; it may take $(2) s on two cores"

.PHONY: test
test: $(VENV)/.dev ## run the fast tests
	$(call timed,fast tier,600,$(FAST))

.PHONY: test-1 test-2 test-3
test-1 test-2 test-3: test-%: $(VENV)/.dev ## run one third of the fast tests, recording coverage (CI)
	COVERAGE_FILE=.coverage.$* $(FAST) $(COVER) $(wildcard $(filter-out --%,$(SHARD_$*))) \
	$(filter --%,$(SHARD_$*))

.PHONY: coverage
coverage: $(VENV)/.dev ## run the fast tests under coverage; fails under 90 %
	$(call timed,fast tier,600,$(FAST) $(COVER))
	$(PY) -m coverage report --skip-covered

.PHONY: coverage-combine
coverage-combine: $(VENV)/.dev ## add up the coverage of the three thirds; fails under 90 % (CI)
	$(PY) -m coverage combine
	$(PY) -m coverage report --skip-covered

.PHONY: conformance
conformance: $(VENV)/.dev ## run the checks against the agents' original implementations
	@if [ -d tests/conformance ]; then $(PY) -m pytest tests/conformance; else echo "no conformance checks yet"; fi

.PHONY: conformance-live
conformance-live: $(LIVE)/.done ## run them against other libraries as released, in an environment of their own
	$(LIVE)/bin/python -m pytest -n 0 tests/conformance/live

.PHONY: lint
lint: $(VENV)/.dev ## check style and formatting (ruff)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

.PHONY: format
format: $(VENV)/.dev ## fix style and formatting (ruff)
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

.PHONY: types
types: $(VENV)/.dev ## check the types (mypy)
	$(PY) -m mypy

.PHONY: pre-commit
pre-commit: $(VENV)/.dev ## run the commit hooks on every file
	$(PY) -m pre_commit run --all-files

.PHONY: docs
docs: $(VENV)/.docs ## build the documentation into site/; a warning fails it
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

.PHONY: docs-examples
docs-examples: $(VENV)/.dev ## run the documentation's code blocks, page by page
	$(PYTEST) tests/test_docs.py

.PHONY: docs-serve
docs-serve: $(VENV)/.docs ## serve the documentation on this machine while writing it
	$(PY) -m mkdocs serve

.PHONY: peers-probe
peers-probe: $(PEERS)/.done ## probe Stable-Baselines3's and SBX's agents, in an environment of their own (long)
	$(PEERS)/bin/python -m pytest tests/probing/test_peers.py tests/probing/test_baselines.py \
	tests/probing/test_peers_page.py

.PHONY: ci
ci: lint types coverage conformance docs docs-examples ## everything that a pull request must pass
	@echo "== make ci: $$(( $$(date +%s) - $(BEGAN) )) s in all"

.PHONY: ci-slow
ci-slow: $(VENV)/.dev ## run the slow tests: those that train
	$(call timed,slow tier,2400,$(PYTEST) -m slow)

.PHONY: durations
durations: $(VENV)/.dev ## run the slow tests and record how long each takes, to balance their shards
	AJAX_WRITE_DURATIONS=1 $(PYTEST) -m slow

.PHONY: ci-slow-shard
ci-slow-shard: $(VENV)/.dev ## run the slow tests of SHARD=0..5 (CI)
	AJAX_TEST_SHARD=$(SHARD)/$(SLOW_SHARDS) $(PYTEST) -m slow || [ $$? -eq 5 ]  # 5: an empty shard

.PHONY: ci-all
ci-all: ci ci-slow ## the pull request's gate and the slow tests
	@echo "== make ci-all: $$(( $$(date +%s) - $(BEGAN) )) s in all"

## Measure it

.PHONY: bench
bench: $(VENV)/.dev ## compare speed, compile time and memory with other libraries (long)
	$(PY) -m benchmarks

.PHONY: learning
learning: $(VENV)/.dev ## train every agent on standard tasks beside other libraries', and draw docs/learning.md's table (long)
	$(PY) -m benchmarks.learning

.PHONY: bench-probes
bench-probes: $(VENV)/.dev ## time the probes of DQN, PPO, SAC and TD3, cold, case by case
	$(PY) -m benchmarks.probes

## Tidy up

.PHONY: clean
clean: ## remove caches, builds and coverage data; keeps runs/ and .venv
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* src/*.egg-info
	find src tests docs benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

.PHONY: distclean
distclean: clean ## remove .venv as well, and the environments of other libraries
	rm -rf $(VENV) $(dir $(PEERS))

# Installation, stamped: a target runs again only when its pins or pyproject.toml changed.

$(VENV)/.python:
	@test -n "$(PYTHON)" || { echo "Ajax needs Python 3.11, 3.12 or 3.13, and found none" \
	"(python3 is $$(python3 -V 2>&1 || echo missing)). Install one, or name it: make $(or $(MAKECMDGOALS),demo) PYTHON=/path/to/python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.python requirements/core.txt pyproject.toml
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/core.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core requirements/dev.txt requirements/brax.txt requirements/minari.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt -r requirements/brax.txt \
	-r requirements/minari.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.core requirements/docs.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	@touch $@

$(PEERS)/.done: $(VENV)/.python requirements/core.txt requirements/dev.txt requirements/peers.txt pyproject.toml
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/peers.txt
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(LIVE)/.done: $(VENV)/.python requirements/core.txt requirements/dev.txt requirements/peers.txt \
	requirements/conformance.txt pyproject.toml
	$(PYTHON) -m venv --clear $(LIVE)
	$(LIVE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements/conformance.txt
	$(LIVE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
