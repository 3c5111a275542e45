# Bare `make` lists the targets. Each does all of its set-up.
SHELL := /bin/bash
PY := .venv/bin/python
# The newest Python there is, 3.11 at least.
FIND_PYTHON = for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; exit 0; }; done; \
	echo "make: no Python >= 3.11 found: apt-get install python3 python3-venv" >&2; exit 1

.PHONY: help setup demo check test test-unit test-integration test-tools bench clean

help:
	@echo "make setup       .venv with ramherd and its tools in it"
	@echo "make demo        50 fake agents in a budget of 2 GiB"
	@echo "make check       ruff and mypy"
	@echo "make test        check, then all tests"
	@echo "make test-tools  what the tests use beside Python (apt-get, as root)"
	@echo "make bench       what ramherd costs, beside a bare subprocess"

setup: .venv/.made

.venv/.made: pyproject.toml
	@python=$$($(FIND_PYTHON)) || exit 1; \
	$$python -m venv .venv || { \
		echo "make: cannot make a virtual environment: apt-get install python3-venv" >&2; exit 1; }
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: setup
	.venv/bin/ramherd drill --agents 50 --budget 2GiB

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

test: check
	$(PY) -m pytest

test-unit: setup
	$(PY) -m pytest tests/unit tests/sim_agent

test-integration: setup
	$(PY) -m pytest tests/integration

# node: one test runs a real V8 out of its heap.
test-tools:
	@missing=""; command -v node >/dev/null || missing="nodejs"; \
	if [ -z "$$missing" ]; then echo "make: all test tools are here"; exit 0; fi; \
	echo "make: installing $$missing"; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing

bench: setup
	$(PY) tests/bench/overhead.py

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .hypothesis src/*.egg-info
