"""What is asked of a Spark session around a phase: names for its jobs, small batches, and errors in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from belief.engines.spark.workers import explained

STAGING_ROWS = 2000  # of a batch


@contextmanager
def described(spark: Any, say: Callable[[str], None], what: str) -> Iterator[None]:
    """Name the jobs of a phase, in Spark's own pages and for who watches."""
    say(what)
    with clear_errors(spark), _tagged(spark, what):
        yield


@contextmanager
def _tagged(spark: Any, what: str) -> Iterator[None]:
    context = getattr(spark, "_sc", None)  # none on Connect
    if context is None:
        tag = "belief-" + what.replace(" ", "-")
        spark.addTag(tag)
        try:
            yield
        finally:
            spark.removeTag(tag)
        return
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(f"belief: {what}")
    try:
        yield
    finally:
        context.setJobDescription(before)


_at_work: dict[int, tuple[int, str]] = {}  # by session: how many want small batches, and what was set before
_lock = Lock()


@contextmanager
def small_batches(spark: Any) -> Iterator[None]:
    """Rows go to Python in batches that stay in the cache: a tenth faster, and less memory where rows are wide.

    Several threads may fit at a time (CrossValidator's parallelism): the last one puts back what the first one found.
    """
    name, session = "spark.sql.execution.arrow.maxRecordsPerBatch", id(spark)
    with _lock:
        n, before = _at_work.get(session, (0, spark.conf.get(name)))
        _at_work[session] = n + 1, before
        spark.conf.set(name, str(min(STAGING_ROWS, int(before)) if int(before) > 0 else STAGING_ROWS))
    try:
        yield
    finally:
        with _lock:
            n = _at_work.pop(session)[0] - 1
            if n:
                _at_work[session] = n, before
            else:
                spark.conf.set(name, before)


@contextmanager
def clear_errors(spark: Any) -> Iterator[None]:
    """What went wrong on an executor, as one sentence where it is one of ours, or comes of its Python."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        said = _sentence(spark, str(error))
        if said is None:
            raise
        raise said from None


def _sentence(spark: Any, said: str) -> Exception | None:
    ours = re.search(r"^ValueError: (.*)$", said, re.MULTILINE)
    if ours is not None and re.search(r'File "[^"]*/belief/', said):  # not a function of the user's
        return ValueError(ours[1])
    lacking = explained(spark, said)
    return None if lacking is None else RuntimeError(lacking)
