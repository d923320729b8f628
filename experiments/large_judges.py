"""Evaluate selected features with two classifiers of MLlib: a linear SVM and a decision tree, with default settings.

The linear SVM supports two classes only; with more, one SVM per class separates it from all others. The F1 of the
classes is averaged in two ways. "f1" is the mean weighted by class size, as "f1" in MLlib; the paper's figures suggest
that it used this mean. "macro" is the unweighted mean.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from large_tasks import SEED, Array, Data, Rows
from scipy.sparse import issparse
from sklearn.metrics import f1_score

JUDGES = ("SVM", "DT")
WIDEST_TREE = 10_000  # maximum number of features for MLlib's tree; the paper has no figures for more either
ITERATIONS = 100  # maximum number of iterations of MLlib's SVM, which is its default
PARTS = 8  # row groups of a Parquet file, which Spark can read in parallel

Marks = dict[str, dict[str, float] | None]  # "f1" and "macro" of each classifier; None if it was not trained


def marks_of(truth: Array, said: Array, weight: Array | None = None) -> dict[str, float]:
    """Return the weighted and the macro F1 of predictions."""
    ways = {"f1": "weighted", "macro": "macro"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns if a class is never predicted
        return {name: round(float(f1_score(truth, said, average=way, sample_weight=weight)), 4)
                for name, way in ways.items()}  # fmt: skip


def columns_of(X: Rows, selected: Array | None) -> Rows:
    """Return the selected columns as a dense array, or X unchanged if `selected` is None."""
    if selected is None:
        return X
    X = X[:, selected]
    return X.toarray() if issparse(X) else X


def session() -> Any:
    """Return the active Spark session, or start a local one with two threads."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        settings = {
            "spark.driver.memory": "8g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF",
            # Small tables get one partition, because MLlib's SVM makes about 100 passes over the rows, and the overhead
            # of each pass exceeds the time for its rows.
            "spark.sql.files.minPartitionNum": "1",
        }  # fmt: skip
        return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


@contextmanager
def on_disk(X: Rows, y: Array) -> Iterator[Any]:
    """Yield a table as a Spark DataFrame with vectors (`features`) and classes (`label`).

    The rows are in a temporary file, which is deleted at the end.
    """
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql.types import DoubleType, StructField, StructType

    folder = Path(tempfile.mkdtemp(prefix="belief-"))
    try:
        write(folder / "table.parquet", X, y)
        schema = StructType([StructField("features", VectorUDT()), StructField("label", DoubleType())])
        yield session().read.schema(schema).parquet(str(folder))
    finally:
        shutil.rmtree(folder)


def write(path: Path, X: Rows, y: Array) -> None:
    """Write a Parquet file with vectors in Spark's own layout, so that Spark reads them without conversion."""
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"type": pa.int8(), "size": pa.int32(), "indices": pa.list_(pa.int32()), "values": pa.list_(pa.float64())}
    vector = pa.struct(list(kinds.items()))
    schema = pa.schema([("features", vector), ("label", pa.float64())])
    step = max(1, -(-X.shape[0] // PARTS))
    with parquet.ParquetWriter(path, schema, use_dictionary=False, compression="none") as out:
        for a in range(0, X.shape[0], step):
            fields = [pa.array(x, kind) for x, kind in zip(vectors(X[a : a + step]), kinds.values(), strict=True)]
            labels = pa.array(y[a : a + step], pa.float64())
            out.write_table(pa.table([pa.StructArray.from_arrays(fields, fields=list(vector)), labels], schema=schema))


def vectors(X: Rows) -> tuple[Any, Any, Any, Any]:
    """Return the fields of Spark's vectors for each row: type (0 is sparse, 1 is dense), size, indices and values."""
    import pyarrow as pa

    n, width = X.shape
    if not issparse(X):
        values = pa.ListArray.from_arrays(np.arange(0, X.size + 1, width, dtype=np.int32), X.ravel().astype(float))
        return np.ones(n, np.int8), [None] * n, [None] * n, values
    X.sort_indices()
    offsets = X.indptr.astype(np.int32)
    indices, values = X.indices.astype(np.int32), X.data.astype(float)
    both = (pa.ListArray.from_arrays(offsets, x) for x in (indices, values))
    return np.zeros(n, np.int8), np.full(n, width, np.int32), *both


def with_mllib(data: Data, selected: Array | None, only: str = "") -> Marks:
    """Train MLlib's classifiers on the selected features, or on all if `selected` is None, and return their F1 scores.

    `only` restricts this to one classifier. The F1 of the tree is None if there are more than WIDEST_TREE features.
    """
    from pyspark.ml.classification import DecisionTreeClassifier, LinearSVC, OneVsRest

    session()  # MLlib's classes need a running session
    svm = LinearSVC(maxIter=ITERATIONS)
    if data.y.max() > 1:
        svm = OneVsRest(classifier=svm)
    models = {"SVM": svm, "DT": DecisionTreeClassifier(seed=SEED)}
    models = {name: model for name, model in models.items() if only in ("", name)}
    X, Z = columns_of(data.X, selected), columns_of(data.Z, selected)
    marks: Marks = {}
    with on_disk(X, data.y) as learn, on_disk(Z, data.truth) as judge:  # not cached, because MLlib caches its copy
        for name, model in models.items():
            too_wide = name == "DT" and X.shape[1] > WIDEST_TREE
            marks[name] = None if too_wide else judged(model.fit(learn), judge)
    return marks


def judged(model: Any, judge: Any) -> dict[str, float]:
    """Return the F1 scores of a fitted model, from the counts of each pair of true and predicted class."""
    rows = model.transform(judge).groupBy("label", "prediction").count().collect()
    truth, said, weight = (np.array(x) for x in zip(*rows, strict=True))
    return marks_of(truth, said, weight)
