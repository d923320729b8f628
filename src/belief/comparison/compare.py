"""The function `belief.compare`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belief._utils.lazy import importing

if TYPE_CHECKING:
    from belief.comparison.comparison import Comparison


def compare(
    X: Any,
    y: Any = None,
    n_features_to_select: int | float | str = 10,
    *,
    task: str = "auto",
    label: str | int | None = None,
    drop: Any = (),
    candidates: Any = (),
    discrete_features: Any = "auto",
    separator: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    selectors: Sequence[str] | None = None,
    seconds: float = 60.0,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: Any = None,
) -> Comparison:
    """Compare selectors on a table of your own, in about a minute.

    In each fold of a 5-fold cross-validation, every selector selects features on the training rows. Three models are
    then fitted to these features and scored on the test rows by macro F1 or R²: a linear model (SVM or ridge), five
    nearest neighbours, and gradient boosting. Selectors that would take too long are skipped, with the reason.

    Parameters
    ----------
    X : array, memory map, DataFrame, sparse matrix, a list of such blocks, or the path of a file
        Any local input of :func:`belief.select`. Large tables are sampled to 3,000 rows, or fewer (at least 300) with
        more than 500 features.
    y : array of shape (n_rows,)
        The target, or the name or index of the target column of X.
    n_features_to_select : int, float or "auto", default=10
        The number or share of features to select. For "auto", each selector selects as many as BELIEF with "auto".
    task : {"auto", "classification", "regression"}, default="auto"
        The kind of target, as in :func:`belief.select`.
    label, drop, candidates, discrete_features, separator, header, encoding
        The columns to read, as in :func:`belief.select`.
    selectors : list of str, default=None
        The selectors to compare. None: "BELIEF", "BELIEF (paper)" (with `belief.PAPER`), "ReliefF" (RReliefF for
        regression), "mRMR" (classification only), "F test", "mutual information", "random forest" and "L1 model" (a
        linear SVM, or the lasso).
    seconds : float, default=60.0
        The approximate time limit.
    n_jobs : int, default=None
        The number of threads, as in :func:`belief.select`.
    verbose : int, default=0
        1 prints each step to stderr.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the sampled rows, the folds and the selectors. None draws a seed and stores it in `Comparison.seed`.
        The selections and scores depend only on the seed, but which selectors finish in time depends on the machine.

    Returns
    -------
    Comparison

    Notes
    -----
    For scikit-learn's selectors and the models, missing numbers are replaced by the median, and a nominal feature is
    one-hot encoded with its ten most frequent levels. Its score is the largest score of these columns, or their sum for
    forests. The runtime is the median over the folds, so that one-time compilation does not count. The scores depend on
    the table and the seed: do not rely on small differences.

    See Also
    --------
    belief.plot.comparison : draw the comparison.

    Examples
    --------
    >>> import belief
    >>> found = belief.compare(str(belief.datasets.CHURN), label="left", n_features_to_select=4,
    ...                        selectors=["BELIEF", "mRMR"], random_state=0)
    >>> found.standings[0].score > max(found.all_features) - 0.05  # four of twelve columns are nearly as good as all
    True
    """
    start = time.perf_counter()  # before the imports, which take seconds on a busy machine and count for the time limit
    with importing():
        from belief._utils.text import print_message
        from belief._utils.threads import count_threads
        from belief._utils.validation import is_real
        from belief.api import is_spark_dataframe
        from belief.comparison.benchmark import FOLDS, Benchmark, find_selectors, resolve_n_features
        from belief.comparison.comparison import Comparison
        from belief.comparison.rows import sample_rows
        from belief.data.columns import ColumnSelection
        from belief.data.inputs import open_input, resolve_label
        from belief.data.labels import check_task
        from belief.engines.checks import check_resources
        from belief.method.settings import Settings
    settings = Settings(n_features_to_select=n_features_to_select, random_state=random_state)
    check_resources(n_jobs, 1024, verbose)
    check_task(task)
    taking_part = find_selectors(selectors)
    if not (is_real(seconds) and seconds > 0):
        raise ValueError(f"seconds must be a number above 0; got {seconds!r}.")
    if is_spark_dataframe(X):
        raise ValueError("Spark DataFrames are not supported. Pass X.sample(...).toPandas().")
    y, label = resolve_label(y, label)
    columns = ColumnSelection(label, drop, candidates, discrete_features, task, separator, header, encoding)
    opened, seed = open_input(X, y, columns), settings.draw_seed()
    whole, names, n_rows = sample_rows(opened, discrete_features, task, seed, count_threads(n_jobs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # otherwise, warnings would be repeated in every fold
        benchmark = Benchmark(whole, names, resolve_n_features(settings, whole), start + seconds)
        report = print_message if verbose else lambda message: None
        report("scoring all features")
        all_features = benchmark.score_all_features()
        found, skipped = benchmark.run(taking_part, report)
    if not found:
        reason = " ".join(next(iter(skipped.items())))
        raise ValueError(f"No selector finishes within seconds={seconds:g}: {reason}. Allow more time.")
    if not all_features:
        skipped["all features"] = "scoring them would take too long"
    return Comparison(
        standings=sorted(found, key=lambda s: -s.score),
        all_features=all_features,
        skipped=skipped,
        task=whole.task,
        n_rows=n_rows,
        n_compared=len(whole.y),
        n_features=len(names),
        n_selected=benchmark.n,
        folds=FOLDS,
        seed=seed,
        seconds=time.perf_counter() - start,
    )
