# Everything is installed into .venv from the lock files in requirements/, each file checked against its hash.
# A stamp in .venv is as new as the lock file that it was installed from, so a second run installs nothing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test check bench faults kafka lock clean

PYTHON ?= python3
PROCESSES ?= 6
VENV := .venv
# Tests start many processes: compiled modules are kept, also where the environment says otherwise.
CACHED := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/$(VENV)/pycache
INSTALL := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps
COMPILE := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header $(UPGRADE)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.runtime ## install what is needed and start everything on this machine (Ctrl-C stops it)
	@exec $(VENV)/bin/medialedger up

test: $(VENV)/.dev ## run the tests; ARGS="tests/domain -x" chooses
	@exec $(CACHED) $(VENV)/bin/pytest --processes $(PROCESSES) $(ARGS)

check: $(VENV)/.dev ## lint, format, types and the direction of imports
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

bench: $(VENV)/.dev ## measure on this machine; ARGS chooses
	@exec $(VENV)/bin/python -m bench $(ARGS)

faults: $(VENV)/.dev ## kill, freeze and stop everything under load, and count what is lost; ARGS="--quick" chooses
	@$(CACHED) $(VENV)/bin/pytest --thorough -m "long or thorough"
	@exec $(VENV)/bin/python -m faults $(ARGS)

kafka: ## run an Apache Kafka broker on this machine (Ctrl-C stops it); ARGS="--port 9192" chooses
	@exec $(PYTHON) -m deploy.kafka.broker $(ARGS)

lock: $(VENV)/.dev ## remake the lock files; UPGRADE=--upgrade takes newer versions
	$(COMPILE) pyproject.toml -o requirements/runtime.txt
	$(COMPILE) pyproject.toml --group dev --group bench -c requirements/runtime.txt -o requirements/dev.txt
	$(COMPILE) requirements/build.in -c requirements/dev.txt -o requirements/build.txt

clean: ## remove what make made; data (.medialedger, .kafka) stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .schemathesis build dist

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.runtime: requirements/runtime.txt requirements/build.txt pyproject.toml | $(VENV)/.made
	$(INSTALL) --require-hashes -r requirements/runtime.txt
	$(INSTALL) --require-hashes -r requirements/build.txt
	$(INSTALL) --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	$(INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@
