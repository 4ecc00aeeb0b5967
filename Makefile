# Everything happens in a virtual environment that the targets make themselves. They need Python 3.11 or
# newer, make and git; nothing else has to be installed beforehand.

VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(firstword $(foreach p,python3.13 python3.12 python3.11 python3 python,$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
SOURCES := pyproject.toml proto/build_hook.py $(wildcard proto/tressette/v1/*.proto)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow check lint format type proto bench clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/pyvenv.cfg:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# What plays: the package with its tournament extra, editable, stubs included.
$(VENV)/.ready: $(VENV)/pyvenv.cfg $(SOURCES)
	$(PIP) install --editable '.[tournament]'
	@touch $@

# What tests and checks, on top.
$(VENV)/.ready-dev: $(VENV)/.ready
	$(PIP) install --editable '.[dev]'
	@touch $@

# The yardstick of the rules benchmark; the benchmark says so where it cannot be installed.
$(VENV)/.ready-bench: $(VENV)/.ready-dev
	$(PIP) install --editable '.[dev,bench]' || echo "pyspiel cannot be installed here: its figure will be skipped"
	@touch $@

setup: $(VENV)/.ready-dev ## Make the virtual environment with all that development needs.

demo: $(VENV)/.ready ## Play a small rated tournament over gRPC and show its tables (under two minutes).
	@out="out/demo-$$(date +%Y%m%d-%H%M%S)" && \
	$(BIN)/tressette tournament run tournament/examples/demo.toml --output "$$out" && \
	printf '%s\n' '' 'What to try next:' \
	  "  $(BIN)/tressette ratings $$out           rate those games again, from the logs alone" \
	  "  $(BIN)/tressette serve                   an open arena; then, in other terminals," \
	  "  $(BIN)/tressette bot greedy --address 127.0.0.1:50051" \
	  "  edit clients/python/examples/ten_lines.py   your own bot; run make demo again"

test: $(VENV)/.ready-dev ## Run the default test suite (under five minutes).
	$(BIN)/python -m pytest -q --numprocesses 2 --dist loadfile

test-slow: $(VENV)/.ready-dev ## Run the tests that are marked slow.
	$(BIN)/python -m pytest -q -m slow --timeout 1200 --numprocesses 2 --dist loadfile

check: lint type proto ## Run every check that is not a test.

lint: $(VENV)/.ready-dev ## Lint and check the format.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.ready-dev ## Rewrite the sources in the project's format.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: $(VENV)/.ready-dev ## Check the types, strictly.
	$(BIN)/mypy

# The baseline is what clients in the field were built from: `buf build proto -o proto/baseline.binpb` renews it,
# for additions only.
proto: $(VENV)/.ready-dev ## Lint the protocol and refuse breaking changes to it.
	$(BIN)/buf lint proto
	$(BIN)/buf breaking proto --against proto/baseline.binpb
	$(BIN)/buf format --diff --exit-code proto

bench: $(VENV)/.ready-bench ## Measure, as ratios to a bare echo, pyspiel and a bare loop (about six minutes).
	$(BIN)/python tests/bench/bench.py

clean: ## Remove the virtual environment, generated stubs, caches and demo output.
	rm -rf $(VENV) out build dist server/tressette/v1 .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
