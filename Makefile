# GoQueue's commands. Each one sets up what it needs; a machine with Python 3.11 or newer, make and the
# package registry is enough.

.DEFAULT_GOAL := help
.PHONY: help setup run cluster stubs test check lint format imports types docs walks demo sim fuzz storm etcd chaos test-clients soak bench bench-cluster bench-spark soak-spark clean

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11
PYTHON ?= $(shell for name in $(CANDIDATES); do \
	$$name -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; done)
# One more than cores: many tests wait for processes that they have started.
WORKERS ?= $(shell $(BIN)/python -c 'import os; print(min((os.cpu_count() or 1) + 1, 8))')
# Who has nothing left takes from who has: else one worker gets all tests that start processes, since they lie together.
DIST ?= worksteal
# One Spark session serves all its tests and takes every core, so they run by themselves.
SPARK_TESTS := tests/integration/spark
JAVA_TESTS := tests/integration/test_java.py
# Tests start hundreds of processes: each one takes half a second more where Python may not keep what it compiles.
unexport PYTHONDONTWRITEBYTECODE
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.ready-dev ## Make the working tree ready: a virtual environment with everything in it

run: $(VENV)/.ready-run ## Start the broker (settings: docs/settings.md)
	@exec $(BIN)/goqueue $(ARGS)

cluster: $(VENV)/.ready-cluster ## Start three nodes and an etcd on this machine: make cluster ARGS="--nodes 5"
	@exec $(BIN)/goqueue up $(ARGS)

demo: $(VENV)/.ready-spark ## See a broker, two pipelines and an Iceberg table at work, in a minute
	@exec $(BIN)/python -m examples.demo

test: $(VENV)/.ready-dev ## Run all tests, real processes and clients of Python included
	$(BIN)/python -m pytest -n $(WORKERS) --dist $(DIST) -rs --ignore=$(SPARK_TESTS) --ignore=$(JAVA_TESTS) $(ARGS)
	$(BIN)/python -m pytest -rs $(SPARK_TESTS) $(ARGS) || [ $$? -eq 5 ] # 5: ARGS left no test to run

test-clients: $(VENV)/.ready-dev ## Run Kafka's Java client and its command-line tools against a broker: needs a JDK and Maven
	$(BIN)/python -m pytest -rs $(JAVA_TESTS) tests/doors/kafka/test_locked_clients.py $(ARGS)

check: lint ## Run the linters and the fast tests: the minute before a commit
	$(BIN)/python -m pytest -n $(WORKERS) --dist $(DIST) -rs -m "not slow" -p no:schemathesis --hypothesis-profile=check $(ARGS)

lint: $(VENV)/.ready-dev imports types ## Check format, style, types and import contracts
	$(BIN)/ruff format --check
	$(BIN)/ruff check

imports: $(VENV)/.ready-dev ## Check that every room imports only what lies below it
	$(BIN)/lint-imports

types: $(VENV)/.ready-dev ## Check types
	$(BIN)/mypy

format: $(VENV)/.ready-dev ## Rewrite the code in the house's format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: $(VENV)/.ready-dev ## Rewrite the pages that are made from code
	$(BIN)/python -m goqueue.node.reference_pages docs

# The compiler is needed here only, so it gets an environment of its own.
stubs: $(VENV)/.ready-dev ## Write the stubs in src/goqueue/proto anew from their .proto files
	$(BIN)/python -m venv build/stubs
	build/stubs/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt grpcio-tools
	cd src && ../build/stubs/bin/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. goqueue/proto/*/*.proto

walks: $(VENV)/.ready-dev ## Write the transcripts of tests/walks anew, to be reviewed as a diff
	$(BIN)/python -m tests.walks.teller

sim: $(VENV)/.ready-dev ## Run a simulation: make sim SEED=7 STEPS=1000 WHAT=log|delays|queue|transactions|sinks|knowledge|copies|replicas|nodes|cluster|cluster-transactions|cluster-delays|cluster-sinks
	$(BIN)/python -m goqueue.testing.simulate $(if $(WHAT),--what $(WHAT)) $(if $(SEED),--seed $(SEED)) $(if $(STEPS),--steps $(STEPS)) $(ARGS)

fuzz: $(VENV)/.ready-dev ## Attack a door of a broker from a seed: make fuzz DOOR=kafka|http|logins SEED=7 CASES=10000
	$(BIN)/python -m tests.fuzz $(if $(DOOR),--door $(DOOR)) $(if $(SEED),--seed $(SEED)) $(if $(CASES),--cases $(CASES)) $(ARGS)

storm: $(VENV)/.ready-dev ## Kill the broker while clients of all features work: make storm SEED=7 MINUTES=10
	$(BIN)/python -m tests.storm $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

etcd: build/etcd/etcd ## Build a newer etcd than the package has, from its Go modules, for `make chaos`

# `go install` of it is refused, since that module has replacements; so it is built as a dependency of a main of ours.
build/etcd/etcd: tests/chaos/etcd/main.go tests/chaos/etcd/go.mod tests/chaos/etcd/go.sum
	cd tests/chaos/etcd && go build -o $(CURDIR)/build/etcd/etcd .

chaos: $(VENV)/.ready-dev ## Kill nodes of a cluster, and its etcd, while clients work: make chaos SEED=7 MINUTES=5
	$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

soak: $(VENV)/.ready-dev ## Watch memory, descriptors and threads under a mixed load: make soak MINUTES=60
	$(BIN)/python -m tests.soak $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

bench: $(VENV)/.ready-dev ## Measure speed and memory (some minutes, 11 GB of disk), print a table and JSON
	$(BIN)/python -m bench $(ARGS)

bench-cluster: $(VENV)/.ready-dev ## Measure three nodes: fail-over, replication, very many partitions (some minutes)
	$(BIN)/python -m bench.cluster $(ARGS)

bench-spark: $(VENV)/.ready-dev ## Measure topics read by Spark against Parquet (some minutes)
	$(BIN)/python -m bench.spark_rows $(ARGS)

soak-spark: $(VENV)/.ready-dev ## Kill driver and broker 20 times while Spark copies 1 M rows (some minutes)
	$(BIN)/python -m tests.integration.spark.soak $(if $(SEED),--seed $(SEED)) $(ARGS)

clean: ## Remove the virtual environment and caches (never data)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist

# An environment whose Python has moved or gone is made anew.
$(BIN)/python:
	@test -n "$(PYTHON)" || { \
		echo "GoQueue needs Python 3.11 or newer with its venv module; none of '$(CANDIDATES)' is one." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is older than Python 3.11, which GoQueue needs." >&2; exit 1; }
	@echo "setting up $(VENV) (the first time takes a minute)"
	@$(PYTHON) -m venv --clear $(VENV)

$(VENV)/.ready-run: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what the broker needs"
	@$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.ready-spark: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what the broker and its pipelines need"
	@$(PIP_INSTALL) -e ".[spark]"
	@touch $(VENV)/.ready-run $@

$(VENV)/.ready-cluster: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what several brokers need"
	@$(PIP_INSTALL) -e ".[cluster]"
	@touch $(VENV)/.ready-run $@

# What the tests need includes what broker and pipelines need, so all stamps are fresh after this.
$(VENV)/.ready-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing what the broker and its tests need"
	@$(PIP_INSTALL) -e ".[dev]"
	@touch $(VENV)/.ready-run $(VENV)/.ready-spark $(VENV)/.ready-cluster $@
