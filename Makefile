# make demo    install into .venv, register the metric, score the example files
# make test    the same environment with the test extras, and the short tests
# make docs    build/site
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
EXAMPLES := metric/examples

# for test-oldest: the oldest Python that setup.cfg admits, in an environment of its own
OLDEST_PYTHON ?= python3.10
OLDEST := $(VENV)-oldest
# for docs: the site's tools, without PyTorch
DOCS := $(VENV)-docs

# Tests of one file share their models, so a process takes whole files. There is one process more than cores, since tests
# wait for processes of their own, and four at most, for memory.
PARALLEL := -n $(shell getconf _NPROCESSORS_ONLN | awk '{print ($$1 < 4 ? $$1 + 1 : 4)}') --dist loadfile

# The tests start many processes, which would compile the package each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-long test-oldest coverage smoke quality types docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed 's/:.*## /\t/' | expand -t 16

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python setup.cfg pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(BIN)/python setup.cfg pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@ $(VENV)/.installed

demo: $(VENV)/.installed  ## score the example files with the embedded checkpoint
	$(BIN)/bleurt-repro register
	@echo '--- one line per pair: score, reference, candidate'
	@HF_HUB_OFFLINE=1 $(BIN)/bleurt-repro score --references $(EXAMPLES)/references.txt \
		--candidates $(EXAMPLES)/candidates.txt --output $(VENV)/demo-scores.txt
	@paste $(VENV)/demo-scores.txt $(EXAMPLES)/references.txt $(EXAMPLES)/candidates.txt
	@echo '--- the same through evaluate'
	@HF_HUB_OFFLINE=1 HF_EVALUATE_OFFLINE=1 $(BIN)/python $(EXAMPLES)/with_evaluate.py

test: $(VENV)/.installed-dev  ## run the suite
	$(BIN)/python -m pytest -m "not long" $(PARALLEL)

test-long: $(VENV)/.installed-dev  ## run the tests that take minutes too
	$(BIN)/python -m pytest $(PARALLEL)

$(OLDEST)/.installed: setup.cfg pyproject.toml constraints-oldest.txt
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/pip install --quiet -c constraints-oldest.txt -e ".[test]"
	touch $@

test-oldest: $(OLDEST)/.installed  ## run the suite with the oldest versions that setup.cfg admits
	$(OLDEST)/bin/python -m pytest -m "not long" $(PARALLEL)

coverage: $(VENV)/.installed-dev  ## run the suite, and list the lines and branches that it does not reach
	rm -rf .coverage
	$(BIN)/coverage run -m pytest -m "not long"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

smoke: $(VENV)/.installed-dev  ## install wheel, clone and sdist in a fresh environment, and run README's commands
	$(BIN)/python -m tests.smoke

quality: $(VENV)/.installed-dev types  ## lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy -p bleurt_repro

$(DOCS)/.installed: setup.cfg constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet -c constraints.txt $$(sed -n '/^docs =/,/^[a-z]/s/^    //p' setup.cfg)
	touch $@

docs: $(DOCS)/.installed  ## build the documentation as a site in build/site; warnings and broken links are errors
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(OLDEST) $(DOCS) .coverage build dist *.egg-info
