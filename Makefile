# Targets: demo, test, quick, test-gpu, test-all, test-oldest, lint, format, docs, bench, lock, release-check, clean. The
# environment is created in .venv with the versions of constraints.txt; each target installs only what it needs.
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
DEMO_READY := $(VENV)/.demo
READY := $(VENV)/.ready
GPU_READY := $(VENV)/.gpu
BENCH_READY := $(VENV)/.bench
DOCS_READY := $(VENV)-docs/.ready
RELEASE_READY := $(VENV)/.release
SITE := build/site

# one process per core, at most 4, since each takes about 2 GB with Spark; the tests of a file share its fixtures
PARALLEL := -n auto --maxprocesses 4 --dist loadfile

.PHONY: demo test quick test-gpu test-all test-oldest lint format docs bench lock release-check clean

demo: $(DEMO_READY)
	$(VENV)/bin/python examples/demo.py

# less than ten minutes on two cores; of each experiment one test; without Java, the Spark tests are skipped
test: lint
	$(VENV)/bin/python -m pytest $(PARALLEL) -m "not (experiments or gpu)"

# about a minute on two cores, for every change; without the examples of docstrings
quick: $(READY)
	$(VENV)/bin/python -m pytest tests $(PARALLEL) -m "not (spark or browser or gpu or experiments or smoke or slow)"

# the engine for GPUs, on the CPU device of torch where there is no GPU; any build of torch will do
test-gpu: $(GPU_READY)
	$(VENV)/bin/python -m pytest -m gpu

# everything, with all random cases; the nightly workflow runs it
test-all: lint $(GPU_READY)
	BELIEF_THOROUGH=1 $(VENV)/bin/python -m pytest $(PARALLEL)

lint: $(READY)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

format: $(READY)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# build the site offline; warnings and broken links are errors
docs: $(DOCS_READY)
	$(VENV)-docs/bin/python -m sphinx -W --keep-going -q -b html docs $(SITE)
	$(VENV)-docs/bin/python docs/_ext/check_links.py $(SITE)

# check everything about a release; TAG=v0.2.0 also checks the tag
release-check: lint docs $(RELEASE_READY)
	rm -rf dist build/sdist && mkdir -p build/sdist
	$(VENV)/bin/python -m build --no-isolation --outdir dist
	$(VENV)/bin/python -m pytest tests/test_looks.py
	$(VENV)/bin/python release/check.py dist $${TAG:+--tag "$$TAG"}
	$(VENV)/bin/uvx --isolated --find-links dist --from 'belief-fs[files]' belief demo  # as users run it without installing
	tar -xzf dist/*.tar.gz -C build/sdist --strip-components 1
	cd build/sdist && PYTHONPATH=src $(CURDIR)/$(VENV)/bin/python -m pytest $(PARALLEL) -m "not (experiments or gpu)"

# the versions of constraints.txt with the hashes of their files, for the command line and the container
lock: $(RELEASE_READY)
	$(VENV)/bin/uv pip compile pyproject.toml --extra files --extra report --constraints constraints.txt --universal \
		--python-version 3.11 --generate-hashes --no-header --no-annotate --quiet --output-file release/requirements.txt

# the tests with the oldest versions that pyproject.toml allows, in an environment of their own
test-oldest:
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e '.[anndata,test]'
	$(VENV)-oldest/bin/python -m pytest $(PARALLEL) -m "not (spark or browser or experiments or gpu)"

bench: $(BENCH_READY)
	$(VENV)/bin/python -W ignore benchmarks/local.py
	$(VENV)/bin/python benchmarks/sparse.py
	$(VENV)/bin/python benchmarks/costs.py
	$(VENV)/bin/python benchmarks/files.py
	$(VENV)/bin/python -W ignore benchmarks/spark.py
	$(VENV)/bin/python benchmarks/peers.py

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "belief-fs needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Use make PYTHON=python3.12, say.")'
	$(PYTHON) -m venv $(VENV)

$(DEMO_READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --no-compile -e . pandas
	touch $@

$(READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e '.[test,lint]'
	touch $@

$(GPU_READY): $(READY)
	$(PIP) -e '.[gpu]'
	touch $@

$(BENCH_READY): $(READY)
	$(PIP) -e '.[bench]'
	touch $@

# an environment of its own, because anndata needs pandas below 3
$(DOCS_READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)-docs
	sed 's/^pandas==.*/pandas==2.3.3/' constraints.txt > $(VENV)-docs/constraints.txt
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check -c $(VENV)-docs/constraints.txt -e '.[docs]'
	touch $@

$(RELEASE_READY): $(READY)
	$(PIP) -e '.[release]'
	touch $@

clean:
	rm -rf build dist docs/gallery docs/api/generated docs/sg_execution_times.rst
	rm -rf $(VENV) $(VENV)-docs $(VENV)-oldest .pytest_cache .mypy_cache .ruff_cache .hypothesis
