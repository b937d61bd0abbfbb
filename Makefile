# belino in two commands: `make run` and `make test`. Both set everything up first.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
VENV := .venv
UV := VIRTUAL_ENV=$(CURDIR)/$(VENV) UV_PYTHON_DOWNLOADS=never $(VENV)/bin/uv
UV_VERSION := 0.13.7
SOAK_MINUTES ?= 60

.PHONY: setup setup-check setup-dev run check test soak lock screenshot tables
.DELETE_ON_ERROR:

setup: $(VENV)/.core ## install what belino needs to run

setup-check: $(VENV)/.dev
	@sh scripts/ensure-reading

setup-dev: setup-check
	@sh scripts/ensure-browser

run: setup ## start the gateway and the web chat
	@sh scripts/ensure-reading
	@$(VENV)/bin/belino serve

check: setup-check ## lint, types, house, unit tests: under two minutes
	@$(MAKE) --no-print-directory -j 2 static unit-tests

# Side by side: types keep only one core busy, and for half a minute where nothing is cached.
.PHONY: static unit-tests
static:
	$(VENV)/bin/ruff format --check -q .
	$(VENV)/bin/ruff check -q .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-logo

unit-tests:
	$(VENV)/bin/pytest -q -n 2 -m "not slow"

# One process more than there are cores: slow tests wait for processes, platforms and pages a third of their time.
test: setup-dev check ## everything that CI runs
	$(VENV)/bin/pytest -q -n 3 --dist worksteal -m slow

soak: setup-dev ## the long fault, fuzz and load runs: same code, more rounds
	BELINO_SOAK=1 $(VENV)/bin/pytest -q -o faulthandler_timeout=0 tests/faults
	$(VENV)/bin/belino bench soak --minutes $(SOAK_MINUTES)

screenshot: setup-dev ## make the README's pictures
	BELINO_SCREENSHOT=1 $(VENV)/bin/pytest -q tests/browser/test_screenshot.py tests/browser/test_demo.py

tables: $(VENV)/.core ## write the tables of what works in README and docs
	$(VENV)/bin/python scripts/write-tables

lock: $(VENV)/.uv ## compile the lock files
	$(UV) pip compile -q --upgrade --universal --generate-hashes --no-emit-index-url --no-header pyproject.toml --extra av --extra heic --extra jxl -o requirements.lock
	$(UV) pip compile -q --upgrade --universal --generate-hashes --no-emit-index-url --no-header -c requirements.lock pyproject.toml --extra ocr --extra speech -o requirements-reading.lock
	$(UV) pip compile -q --upgrade --universal --generate-hashes --no-emit-index-url --no-header -c requirements-reading.lock pyproject.toml --extra av --extra claude --extra google --extra heic --extra jxl --extra llm --extra openai --extra rerank --extra whatsapp --group dev -o requirements-dev.lock

$(VENV)/.uv:
	@test -n "$(PYTHON)" || { echo "belino needs Python 3.11 or newer; install it and run make again." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "belino: $(PYTHON) cannot make a virtual environment; on Debian or Ubuntu run: apt install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install -q --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(VENV)/.core: $(VENV)/.uv requirements.lock pyproject.toml
	@$(UV) pip install -q --require-hashes -r requirements.lock
	@$(UV) pip install -q --no-deps -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core requirements-dev.lock
	@$(UV) pip install -q --require-hashes -r requirements-dev.lock
	@touch $@
