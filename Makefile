# `make help` lists the targets. PYTHON chooses the interpreter the environment is made with.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Stamps say what is installed; `dev` contains `core`, so either serves the demo; so with `evidence`.
CORE := $(VENV)/.installed-core
EVIDENCE := $(VENV)/.installed-evidence
DEV := $(VENV)/.installed-dev
PAGES := $(VENV)/.installed-pages
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Two processes of tests; few of them keep more than one core busy.
TWO_AT_ONCE := -n 2 --dist worksteal

# Without it tests compile all that they import in each of some hundred processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo evidence article notebooks check check-newest site test test-all test-browser test-evidence test-processors format clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

demo: $(CORE) ## Train small GRUs with and without the encoding, to figure and verdicts
	$(BIN)/pernn run vocabulary_size --scale small --set core.kind=gru --set 'task.vocab_size=[16, 32]' --set training.iterations=4000 --jobs 2 --ignore-published

evidence: $(EVIDENCE) ## Rebuild all figures, tables, verdicts and pages from published trials
	$(BIN)/python docs/rebuild.py

notebooks: $(DEV) ## Execute the notebooks in Jupyter; what they showed stays in them
	$(INSTALL) -e '.[dev,notebooks]'
	$(BIN)/python docs/notebooks.py

article: evidence ## The article of four pages as PDF, by pandoc and typst
	$(INSTALL) -e '.[pdf]'
	$(BIN)/python docs/article/pdf.py

check: $(DEV) ## Check format, lint, types and architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check-newest: $(DEV) ## Check that nothing is used that Python 3.13 has no more
	$(BIN)/mypy --python-version 3.13

test: check ## Check everything, then run the tests, but for those that take long
	$(BIN)/pytest $(TWO_AT_ONCE) -m "not slow and not browser"

test-all: check ## Check everything, then run all tests
	$(BIN)/pytest $(TWO_AT_ONCE) -m "not browser and not evidence" --hypothesis-profile thorough

test-browser: $(PAGES) ## Test the study's page in Chromium (apt install chromium)
	$(BIN)/pytest -m browser tests/reports/test_browser.py

site: $(PAGES) ## Build the documentation as a site, with an API reference; fails at a broken link
	$(BIN)/python docs/website.py

test-evidence: $(DEV) ## Train one published trial of each core again, and compare (minutes)
	$(BIN)/pytest tests/test_published.py -m evidence --timeout 0

test-processors: $(DEV) ## Run the numerical tests on emulated processors, and compare results
	$(BIN)/python benchmarks/processors.py

format: $(DEV) ## Format the code and mend what the linter can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove the environment and every cache; results stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Order-only: the interpreter's own date must not make a finished install look old.
$(CORE): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[lab]'
	touch $@

$(EVIDENCE): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[lab,parquet]'
	touch $(CORE) $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[dev]'
	touch $(CORE) $(EVIDENCE) $@

# What builds the site and opens pages in a browser.
$(PAGES): $(DEV)
	$(INSTALL) -e '.[dev,site,browser]'
	touch $@
