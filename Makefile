# Bare `make` lists the targets. Each does all of its set-up.
SHELL := /bin/bash
PY := .venv/bin/python
# The newest Python there is, 3.11 at least.
FIND_PYTHON = for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; exit 0; }; done; \
	echo "make: no Python >= 3.11 found: apt-get install python3 python3-venv" >&2; exit 1

.PHONY: help setup demo check generate man screens test test-all test-unit test-integration test-e2e test-uml test-vm \
	test-agents test-mcp test-tools agents measure-agents zoo zoo-tools mcp-tools mcp-servers mcp-peers mutants bench bench-sim bench-smoke \
	chaos faults soak clean

help:
	@echo "make setup       .venv with ramherd and its development tools in it"
	@echo "make demo        50 fake agents in a budget of 2 GiB"
	@echo "make check       ruff, mypy and import-linter"
	@echo "make generate    write the files made from the source: docs, client/new_job.py, tests/data/sentences.txt"
	@echo "make screens     capture docs/screens.md in tmux, and the pictures of top"
	@echo "make man         the manual pages, below build/man"
	@echo "make test        check, then the unit, simulation and integration tests"
	@echo "make test-all    make test, then the tests below"
	@echo "make test-e2e    real agents, chaos, the zoo, a minimal Debian, User-mode Linux and QEMU"
	@echo "make test-uml    only cgroup v2, in User-mode Linux"
	@echo "make test-vm     only an ordinary user on a systemd machine, in QEMU"
	@echo "make test-agents only the real agents"
	@echo "make test-mcp    only the conformance suite of MCP"
	@echo "make test-tools  install the programs that these tests use (apt-get, as root)"
	@echo "make agents      install the real agents from npm into .tools/"
	@echo "make mcp-tools   install the conformance suite of MCP and real servers into .tools/"
	@echo "make mutants     change decide/ in thousands of ways, each of which a test must notice"
	@echo "make measure-agents  what each real agent and MCP server takes, as tables"
	@echo "make zoo         ramherd reap among 300 and more real processes"
	@echo "make bench       what ramherd costs, and real processes beside other tools (40 min, root)"
	@echo "make bench-smoke of these a herd of 40, which must lose nothing (2 min, root)"
	@echo "make faults      break disk, clock, store, keeper and directories: what each costs (6 min, root)"
	@echo "make chaos       the service killed at 200 random instants, its keeper alone at 100"
	@echo "make soak        the service under load for an hour"
	@echo "make bench-sim   the governor on recorded agents, beside other policies"

setup: .venv/.made

PIP_INSTALL = $(PY) -m pip install --disable-pip-version-check

# The package alone is enough for the demo; checks and tests add the development tools.
.venv/.package: pyproject.toml
	@python=$$($(FIND_PYTHON)) || exit 1; \
	echo "make: creating .venv with $$($$python --version)"; \
	$$python -m venv .venv || { \
		echo "make: cannot create a virtual environment: apt-get install python3-venv" >&2; exit 1; }
	@echo "make: installing ramherd into .venv"
	@$(PIP_INSTALL) --editable .
	@touch $@

.venv/.made: .venv/.package
	@echo "make: installing the development tools into .venv"
	@$(PIP_INSTALL) --editable '.[dev]'
	@touch $@

demo: .venv/.package
	.venv/bin/ramherd drill --agents 50 --budget 2GiB

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

generate: setup
	PYTHONPATH=tests $(PY) -m support.generated

screens: setup
	PYTHONPATH=tests $(PY) -m support.docs_screens
	PYTHONPATH=tests $(PY) -m support.docs_top

man: setup
	$(PY) -m ramherd.cli.manual build/man/man1

# Tests that own the machine's cgroups or measure CPU time share one worker (xdist_group).
PARALLEL = -n 2 --dist loadgroup

test: check
	$(PY) -m pytest tests/unit tests/sim tests/integration $(PARALLEL) --durations=10

test-all: test
	@$(MAKE) --no-print-directory test-e2e

test-unit: setup
	$(PY) -m pytest tests/unit tests/sim $(PARALLEL)

# Some of them: make test-integration TESTS=tests/integration/exec
TESTS = tests/integration
test-integration: setup
	$(PY) -m pytest $(TESTS) $(PARALLEL)

test-e2e: setup
	$(PY) -m pytest tests/e2e --ignore=tests/e2e/faults --durations=10
	@$(MAKE) --no-print-directory faults

faults: setup
	$(PY) -m pytest tests/e2e/faults $(PARALLEL) --durations=5

test-uml: setup
	$(PY) -m pytest tests/e2e/uml --durations=0

test-vm: setup
	$(PY) -m pytest tests/e2e/vm -rP

test-agents: setup agents
	$(PY) -m pytest $(addprefix tests/e2e/,agents hook service strays) --durations=5

test-mcp: setup mcp-tools
	$(PY) -m pytest tests/e2e/mcp

mutants: setup
	$(PIP_INSTALL) --quiet --editable '.[mutants]'
	cd tests && ../$(PY) -m mutants.run

# At the versions of tests/e2e/package.json. npm only: nothing is fetched from anywhere else.
AGENTS = .tools/agents
agents: $(AGENTS)/.made

$(AGENTS)/.made: tests/e2e/package.json
	@command -v npm >/dev/null || { echo "make: npm is missing: apt-get install nodejs npm" >&2; exit 1; }
	@mkdir -p $(AGENTS) && cp $< $(AGENTS)/
	npm install --prefix $(AGENTS) --no-audit --no-fund --no-package-lock --loglevel=error
	@touch $@

measure-agents: setup agents mcp-servers
	$(PY) tests/bench/measure_agents.py --write docs/agents.md docs/capacity.md
	$(PY) tests/bench/measure_mcp.py --write docs/capacity.md
	$(PY) tests/bench/measure_warm.py --write docs/agents.md

# Popular MCP servers, for docs/capacity.md.
MCP_SERVERS = .tools/mcp-servers
mcp-servers: $(MCP_SERVERS)/.made

$(MCP_SERVERS)/.made:
	@mkdir -p $(MCP_SERVERS)
	npm install --prefix $(MCP_SERVERS) --no-audit --no-fund --loglevel=error \
		$(addprefix @modelcontextprotocol/server-,everything memory filesystem sequential-thinking) \
		@upstash/context7-mcp @playwright/mcp
	python3 -m venv $(MCP_SERVERS)/py && $(MCP_SERVERS)/py/bin/pip install --quiet mcp-server-time mcp-server-fetch
	@touch $@

# A program and its package: faketime for clocks that jump; node for a real V8 out of its heap; User-mode Linux and its disk;
# QEMU and the image it boots. uidmap is for building that without root. GNU parallel is what
# the benchmark measures ramherd against.
TOOLS = git:git node:nodejs npm:npm tmux:tmux linux.uml:user-mode-linux cc:build-essential mke2fs:e2fsprogs taskset:util-linux \
	qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap genext2fs:genext2fs \
	newuidmap:uidmap parallel:parallel faketime:faketime zsh:zsh fish:fish mandoc:mandoc

test-tools:
	@missing=""; for tool in $(TOOLS); do \
		PATH=$$PATH:/usr/sbin:/sbin command -v $${tool%%:*} >/dev/null \
		|| missing="$$missing $${tool#*:}"; done; \
	if [ -z "$$missing" ]; then echo "make: all test tools are here"; exit 0; fi; \
	echo "make: installing$$missing"; \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	apt-get install -y -qq --no-install-recommends $$missing

# Real MCP servers, for the processes that tests leave behind on purpose.
ZOO = .tools/zoo
zoo-tools: $(ZOO)/.made

$(ZOO)/.made:
	@mkdir -p $(ZOO)
	npm install --prefix $(ZOO) --no-audit --no-fund --loglevel=error \
		@modelcontextprotocol/server-everything@2026.8.31 \
		@modelcontextprotocol/server-memory@2026.8.31
	@touch $@

# The conformance suite of MCP, and real servers for it and for the benchmark. The suite's own
# server is an example in the source of the Python SDK.
MCP = .tools/mcp
mcp-tools: $(MCP)/.made

$(MCP)/.made: tests/e2e/mcp/package.json tests/e2e/mcp/requirements.txt
	@command -v npm >/dev/null || { echo "make: npm is missing: apt-get install nodejs npm" >&2; exit 1; }
	@mkdir -p $(MCP) && cp $< $(MCP)/
	npm install --prefix $(MCP) --no-audit --no-fund --no-package-lock --loglevel=error
	@test -x $(MCP)/venv/bin/python || $$($(FIND_PYTHON)) -m venv $(MCP)/venv
	$(MCP)/venv/bin/python -m pip install --disable-pip-version-check --quiet -r tests/e2e/mcp/requirements.txt
	$(MCP)/venv/bin/python -m pip download --disable-pip-version-check --quiet --no-deps --no-binary mcp \
		--dest $(MCP)/sdist $$(grep '^mcp==' tests/e2e/mcp/requirements.txt)
	@tar --extract --gzip --directory $(MCP)/sdist --file $(MCP)/sdist/mcp-*.tar.gz
	@touch $@

# Other gateways, for the benchmark.
mcp-peers: mcp-tools
	@test -x $(MCP)/fastmcp/bin/fastmcp || { $$($(FIND_PYTHON)) -m venv $(MCP)/fastmcp && \
		$(MCP)/fastmcp/bin/python -m pip install --quiet fastmcp==4.1.2; }
	@test -x $(MCP)/mcp-proxy/bin/mcp-proxy || { $$($(FIND_PYTHON)) -m venv $(MCP)/mcp-proxy && \
		$(MCP)/mcp-proxy/bin/python -m pip install --quiet mcp-proxy==0.13.0; }

zoo: setup zoo-tools agents
	$(PY) tests/e2e/zoo/zoo.py

bench: setup
	$(PY) tests/bench/look.py
	$(PY) tests/bench/overhead.py
	$(PY) tests/bench/exec_overhead.py
	$(PY) tests/bench/hook_time.py
	PYTHONPATH=tests $(PY) -m bench.lease_time
	cd tests && ../$(PY) -m bench.api_time --write ../docs/benchmarks.md
	PYTHONPATH=tests $(PY) -m bench.replay --write .
	cd tests && ../$(PY) -m bench.bursts --write ../docs/benchmarks.md
	cd tests && ../$(PY) -m bench.ten_thousand
	@$(MAKE) --no-print-directory mcp-peers
	cd tests && ../$(PY) -m bench.mcp_gateway --write ../docs/benchmarks.md
	cd tests && ../$(PY) -m bench.mcp_claudes --write ../docs/benchmarks.md
	$(PY) tests/bench/plan_calibration.py --write docs/benchmarks.md
	$(PY) tests/bench/plan_real.py --write docs/benchmarks.md
	cd tests && ../$(PY) -m bench.crowd --write ../docs/benchmarks.md
	cd tests && ../$(PY) -m bench.top_cost --write ../docs/top.md

bench-smoke: setup
	PYTHONPATH=tests $(PY) -m bench.replay smoke

chaos: setup
	cd tests && ../$(PY) -m e2e.chaos.chaos --rounds 200 --keeper-kills 100

soak: setup
	cd tests && ../$(PY) -m e2e.chaos.soak --seconds 3600

# Recorded agents where there is a file of them (TRACES=FILE), else built-in ones of that shape.
TRACES = $(wildcard ../shared/traces/agents.jsonl)
bench-sim: setup
	$(PY) -m ramherd.sim.bench $(if $(TRACES),--traces $(TRACES) --write docs/benchmarks.md)

clean:
	rm -rf .venv .tools build mutants dist .mypy_cache .ruff_cache .hypothesis src/*.egg-info
