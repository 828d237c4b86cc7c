# make demo: see memory work, offline.  make test: the whole suite.  make docs: the documentation, into site/.
# All need Python 3.11, make, git and a package registry.
# The first Python that is new enough; another one: make demo PYTHON=/path/to/python
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN = $(VENV)/bin
PYTEST_ARGS ?= -n auto
TEST_TIMEOUT ?= 60
KILLS ?= 1000
CLIENTS ?= 200
SECONDS ?= 60

.PHONY: demo test test-e2e crash lint docs clean

$(VENV)/demo.stamp: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make demo PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Installing into $(VENV), once ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cli,fast]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make test PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' -c constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e . --group dev
	touch $@ $(VENV)/demo.stamp

$(VENV)/docs.stamp: $(VENV)/dev.stamp
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --group docs
	touch $@

demo: $(VENV)/demo.stamp
	@$(BIN)/python examples/compacting_desk.py --offline

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest --timeout $(TEST_TIMEOUT) $(PYTEST_ARGS)

# The admin pages in a real browser, the doors by published clients: skipped where Chromium, or Node with npm, is missing.
test-e2e: $(VENV)/dev.stamp
	$(BIN)/python -m pytest --timeout 120 tests/e2e

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/deptry .

# A thousand kills of real processes, two hundred streaming clients at one server, then large property profiles; minutes,
# not seconds.
crash: $(VENV)/dev.stamp
	AGBOSS_KILLS=$(KILLS) AGBOSS_LOAD_CLIENTS=$(CLIENTS) AGBOSS_LOAD_SECONDS=$(SECONDS) \
		$(BIN)/python -m pytest -p no:xdist -s tests/crash
	HYPOTHESIS_PROFILE=crash $(BIN)/python -m pytest --timeout 1800 $(PYTEST_ARGS) tests/conformance/promises tests/agboss_memory

docs: $(VENV)/docs.stamp
	$(BIN)/zensical build --clean --strict

clean:
	rm -rf $(VENV) .cache build dist site .pytest_cache .ruff_cache .hypothesis
