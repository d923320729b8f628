"""Shared by all tests: real data, and the engines every method test runs on."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from belief.data.source import ArraySource, BlockSource, ColumnSource
from belief.engines.local import LocalEngine


@pytest.fixture(scope="session")
def data_home():
    """The folder with the public data sets; tests that need it skip without it, and say so."""
    home = Path(os.environ.get("BELIEF_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not home.is_dir():
        pytest.skip("needs the public data sets: set BELIEF_DATA to their folder")
    return home


def in_memory(X):
    return ArraySource(X)


def fortran(X):
    return ArraySource(np.asfortranarray(X))


def in_blocks(X):
    cuts = sorted({0, 1, len(X) // 3, len(X)})
    return BlockSource([ArraySource(X[a:b]) for a, b in pairwise(cuts)])


def in_columns(X):
    return ColumnSource(list(X.T))


ENGINES = {
    "one thread": (in_memory, {"n_jobs": 1}),
    "three threads": (in_memory, {"n_jobs": 3}),
    "little memory": (in_memory, {"working_memory": 2**14}),
    "fortran": (fortran, {}),
    "blocks": (in_blocks, {"working_memory": 2**14}),
    "columns": (in_columns, {}),
}


@pytest.fixture(params=ENGINES)
def make_engine(request):
    """Make an engine from an array, labels and a mask of discrete features, in one of the ways there are."""
    source, options = ENGINES[request.param]

    def make(X, labels, discrete):
        return LocalEngine(source(X), labels, int(labels.max()) + 1, discrete, **options)

    return make
