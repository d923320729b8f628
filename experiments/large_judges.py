"""What MLlib's classifiers make of some features: a linear support vector machine and a decision tree, as they are.

The SVM knows two classes; of more, each is told from all others. F1 is the mean over the classes, weighted by their
rows ("f1" in MLlib, and by its figures the paper's); "macro" is the plain mean.
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
WIDEST_TREE = 10_000  # features; on more, MLlib's tree is not tried (the paper has none there either)
ITERATIONS = 100  # of MLlib's SVM, its own default
PARTS = 8  # pieces of a table, so that all cores have some

Marks = dict[str, dict[str, float] | None]


def marks_of(truth: Array, said: Array, weight: Array | None = None) -> dict[str, float]:
    """F1 in both ways."""
    ways = {"f1": "weighted", "macro": "macro"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class that is never predicted
        return {name: round(float(f1_score(truth, said, average=way, sample_weight=weight)), 4)
                for name, way in ways.items()}  # fmt: skip


def columns_of(X: Rows, selected: Array | None) -> Rows:
    """Some features of all rows, dense."""
    if selected is None:
        return X
    X = X[:, selected]
    return X.toarray() if issparse(X) else X


def session() -> Any:
    """The Spark session there is, or a new one on all cores of this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        settings = {
            "spark.driver.memory": "8g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2", "spark.log.level": "OFF",
            # a small table in one piece: MLlib's SVM makes some hundred passes, and each costs more than its rows do
            "spark.sql.files.minPartitionNum": "1",
        }  # fmt: skip
        return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


@contextmanager
def on_disk(X: Rows, y: Array) -> Iterator[Any]:
    """A table as a Spark DataFrame of vectors (`features`) and classes (`label`), in a file while it is used."""
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
    """Vectors in Spark's layout, so that nothing has to be converted when they are read."""
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
    """Type (0 is sparse), size, indices and values of rows."""
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
    """The marks of MLlib's classifiers, or of one; None for a tree on very many features."""
    from pyspark.ml.classification import DecisionTreeClassifier, LinearSVC, OneVsRest

    session()  # which MLlib's classes need before they are made
    svm = LinearSVC(maxIter=ITERATIONS)
    if data.y.max() > 1:
        svm = OneVsRest(classifier=svm)
    models = {"SVM": svm, "DT": DecisionTreeClassifier(seed=SEED)}
    models = {name: model for name, model in models.items() if only in ("", name)}
    X, Z = columns_of(data.X, selected), columns_of(data.Z, selected)
    marks: Marks = {}
    with on_disk(X, data.y) as learn, on_disk(Z, data.truth) as judge:  # not cached: MLlib keeps what it makes of them
        for name, model in models.items():
            too_wide = name == "DT" and X.shape[1] > WIDEST_TREE
            marks[name] = None if too_wide else judged(model.fit(learn), judge)
    return marks


def judged(model: Any, judge: Any) -> dict[str, float]:
    """The marks of a fitted model, from a count of what it says of each class."""
    rows = model.transform(judge).groupBy("label", "prediction").count().collect()
    truth, said, weight = (np.array(x) for x in zip(*rows, strict=True))
    return marks_of(truth, said, weight)
