"""The Spark engine: every test of the method against the oracle, on 1, 3 and 7 partitions, in files and persisted.

On Spark Connect the same tests run in a child process (see spark_sessions.py).
"""

import os

import numpy as np
import pytest
import test_oracle
from hypothesis import HealthCheck, given, settings
from scipy.sparse import csr_array
from spark_sessions import _stopped_at_the_end, on_connect, quiet_pandas, spark  # noqa: F401
from tables import cases

import belief
from belief.engines.spark import engine as spark_engine
from belief.engines.spark import select_frame
from belief.engines.spark.engine import SparkEngine
from belief.engines.spark.frame import open_frame
from belief.engines.spark.wire import pack, unpack
from belief.method.settings import Settings

pytestmark = quiet_pandas


def in_partitions(spark, X, labels, n):  # noqa: F811
    """A DataFrame of arrays and labels in n partitions, of which the second is empty, in the order of the rows."""
    cuts = np.linspace(0, len(X), max(2, n)).astype(int)
    parts = np.split(np.arange(len(X)), cuts[1:-1]) if n > 1 else [np.arange(len(X))]
    parts = parts[:1] + [np.arange(0)] * (n > 1) + parts[1:]

    def rows(batches):
        import pyarrow as pa

        for batch in batches:
            for t in batch.column(0).to_pylist():
                mine = parts[t]
                values = pa.array([X[i] for i in mine], pa.list_(pa.float64()))
                yield pa.record_batch([values, pa.array(labels[mine], pa.int32())], names=["features", "label"])

    return spark.range(0, n, 1, n).mapInArrow(rows, "features array<double>, label int")


WAYS = {"1 partition": (1, "auto"), "3 partitions": (3, "auto"), "7 partitions": (7, "memory")}
if "SPARK_REMOTE" in os.environ:
    WAYS = {"connect": (3, "auto"), "connect, persisted": (2, "disk")}


@pytest.fixture(params=WAYS)
def make_engine(request, spark):  # noqa: F811
    n, staging = WAYS[request.param]

    def make(X, labels, discrete):
        given_frame = open_frame(in_partitions(spark, X.astype(float), labels, n), "features", "label", list(discrete))
        return SparkEngine(spark, given_frame.df, given_frame.reader, given_frame.discrete, staging, lambda what: None)

    return make


def few(test, n):
    """The body of a property test, on a few examples: a run of Spark takes seconds."""
    quick = settings(max_examples=n, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

    def body(make_engine, case):
        test.hypothesis.inner_test(make_engine, case)

    return quick(given(case=cases())(body))


test_the_method = few(test_oracle.test_the_method_agrees_with_the_oracle, 4)
test_joint_collisions = few(test_oracle.test_joint_collisions_agree_with_the_oracle, 3)
test_neighbours = few(test_oracle.test_the_neighbours_are_those_of_the_oracle_in_order, 4)
test_lazy_selection = test_oracle.test_lazy_selection_gives_what_measuring_everything_gives
test_far_values = test_oracle.test_values_far_from_zero_and_far_apart_do_not_hide_neighbours
