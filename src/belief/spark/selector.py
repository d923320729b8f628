"""The pyspark.ml Estimator and its Model."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any, ClassVar, Self

from pyspark.ml import Estimator, Model
from pyspark.ml.feature import VectorSlicer
from pyspark.ml.functions import array_to_vector
from pyspark.ml.linalg import DenseVector
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, lit, transform
from pyspark.sql.types import ArrayType

from belief._utils.validation import did_you_mean
from belief.engines.spark.frame import assemble, check_numeric, find_columns, quote
from belief.result.result import Result
from belief.spark.params import TABLE, BeliefParams, add_method
from belief.spark.saving import Saved

EXPLANATION = (
    "feature string, index long, rank int, relevance double, error double, p_value double, q_value double,"
    " is_significant boolean, unique_share double, score double, redundant_with string, agreement double,"
    " p_univariate double, p_neighbours double, round int, partner string, best_class string, frequency double,"
    " reason string"
)


class BeliefSelector(Estimator["BeliefSelectorModel"], BeliefParams, Saved):
    """Select relevant features without redundant ones, with BELIEF on Spark.

    Each parameter is a Param with a setter and a getter. ``print(BeliefSelector().explainParams())`` lists their
    descriptions and values.

    Parameters
    ----------
    featuresCol : str, default="features"
        The column of feature vectors (dense, sparse or both) or arrays of numbers.
    inputCols : list of str, optional
        The feature columns, if the features are not in one vector column: numbers, booleans, strings, dates and
        times; nulls are missing values. Arrays, maps, structs and bytes are left out with one warning.
    labelCol : str, default="label"
        The target column: numbers or strings.
    outputCol : str, optional
        The column for the vector of the selected features, in order of selection. With `inputCols`, the model drops the
        columns that were not selected, and adds the vector only if `outputCol` is set; then all columns must be numbers
        or booleans.
    discreteFeatures : "auto", mask, indices or names, default="auto"
        Nominal features, which are compared by equality. Strings, booleans and features that are nominal by their ML
        attributes are always nominal; "auto" adds no others.
    staging : str, default="auto"
        Where the rows are held during the fit: "memory", "disk", or a folder that all executors can read. "auto"
        chooses a temporary folder if Spark runs on one machine, and otherwise memory, or disk if memory is short.
    groupsCol, weightCol : str, optional
        The columns with the group and the weight of each row, like `groups` and `sample_weight` of
        :func:`belief.select`. They need `inputCols`.
    adjustForCols : list of str, optional
        The columns to adjust for, like `adjust_for` of :func:`belief.select`. They need `inputCols`.
    given : list of str, optional
        Names of features that are selected already; `numTopFeatures` more features are selected.
    numTopFeatures, perClass, numNeighbors, sampleSize, classWeight, batchSize, seed
        The parameters `n_features_to_select`, `per_class`, `n_neighbors`, `sample_size`, `class_weight`, `batch_size`
        and `random_state` of :class:`belief.BeliefSelector`, under other names and with the same defaults.
    task, sampling, neighborhood, scale, redundancy, theta, eta, kappa, copies, significance, alpha, rounds,
    stability
        The same as in :class:`belief.BeliefSelector`.

    Examples
    --------
    >>> import belief
    >>> df = spark.read.csv(str(belief.datasets.CHURN), header=True, inferSchema=True)  # doctest: +SKIP
    >>> names = [name for name in df.columns if name != "left"]  # doctest: +SKIP
    >>> selector = belief.spark.BeliefSelector(inputCols=names, labelCol="left", seed=0)  # doctest: +SKIP
    >>> model = selector.setNumTopFeatures(4).fit(df)  # doctest: +SKIP
    >>> model.explain().select("feature", "rank").first()  # doctest: +SKIP
    Row(feature='support_calls', rank=1)
    """

    __module__ = "belief.spark"  # saved selectors refer to the class by this name
    __signature__: ClassVar = Signature(
        [Parameter(p.name, Parameter.KEYWORD_ONLY, default=d) for p, d in TABLE.items()]
    )

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self.setParams(**params)

    def setParams(self, **params: Any) -> Self:
        """Set Params by name."""
        for name in params:
            if not self.hasParam(name):
                raise TypeError(f"There is no Param {name!r}{did_you_mean(name, [p.name for p in self.params])}.")
        return self._set(**params)

    def _fit(self, dataset: DataFrame) -> BeliefSelectorModel:
        features, settings = self._features(), self._settings()
        from belief.data.roles import Roles
        from belief.spark.frames import select_frame

        if not isinstance(features, str) and self.isSet("outputCol"):
            check_numeric(dataset, features, self.getOutputCol())
        result = select_frame(
            dataset,
            features=features,
            label=self.getLabelCol(),
            settings=settings,
            task=self.getTask(),
            discrete_features=self.getDiscreteFeatures(),
            staging=self.getStaging(),
            given=self.getGiven(),
            roles=Roles(self.getGroupsCol(), self.getAdjustForCols(), self.getWeightCol()),
        )
        return self._copyValues(BeliefSelectorModel(result)._resetUid(self.uid))


class BeliefSelectorModel(Model, BeliefParams, Saved):
    """The features that :class:`BeliefSelector` selected.

    With `featuresCol`, `transform` writes the vector of the selected features to `outputCol`, in order of selection and
    with their ML attributes; sparse vectors stay sparse. With `inputCols`, it drops the feature columns that were not
    selected, and adds the vector if `outputCol` is set.

    Examples
    --------
    >>> import belief
    >>> df = spark.read.csv(str(belief.datasets.CHURN), header=True, inferSchema=True)  # doctest: +SKIP
    >>> names = [name for name in df.columns if name != "left"]  # doctest: +SKIP
    >>> selector = belief.spark.BeliefSelector(inputCols=names, labelCol="left", seed=0)  # doctest: +SKIP
    >>> model = selector.setNumTopFeatures(2).fit(df)  # doctest: +SKIP
    >>> model.selectedNames  # doctest: +SKIP
    ['support_calls', 'contract']
    >>> model.transform(df).columns  # doctest: +SKIP
    ['support_calls', 'contract', 'left']
    """

    __module__ = "belief.spark"

    def __init__(self, result: Result) -> None:
        super().__init__()
        self._result = result

    def __repr__(self) -> str:
        n, total = len(self._result.selected), len(self._result.weights)
        return f"{type(self).__name__}: uid={self.uid}, {n} of {total} features selected"

    @property
    def selectedFeatures(self) -> list[int]:
        """Indices of the selected features, in order of selection."""
        return self._result.selected.tolist()

    @property
    def selectedNames(self) -> list[str]:
        """Names of the selected features: names of columns, names from ML attributes, or x0, x1, ..."""
        return self._result.selected_names

    @property
    def weights(self) -> DenseVector:
        """Relevance of each feature."""
        return DenseVector(self._result.weights)

    def toLocal(self) -> Result:
        """Return the :class:`belief.Result` of the fit."""
        return self._result

    def explain(self) -> DataFrame:
        """Return a DataFrame that explains the selected features and others; see :meth:`belief.Result.explain`."""
        return SparkSession.active().createDataFrame([row.as_dict() for row in self._result.explain()], EXPLANATION)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        features = self._features()
        if not isinstance(features, str):
            selected = find_columns(dataset, self.selectedNames)
            if self.isSet("outputCol"):
                check_numeric(dataset, selected, self.getOutputCol())
                dataset = assemble(dataset, selected, self.getOutputCol())
            return dataset.drop(*set(find_columns(dataset, features, skip_missing=True)).difference(selected))
        (features,) = find_columns(dataset, [features])
        vectors = f"{self.uid}__vectors"  # a copy, because VectorSlicer cannot read names with a dot
        slicer = VectorSlicer(inputCol=vectors, outputCol=self.getOutputCol(), indices=self.selectedFeatures)
        column = col(quote(features))
        if isinstance(dataset.schema[features].dataType, ArrayType):
            numbers = transform(column.cast("array<double>"), lambda x: coalesce(x, lit(float("nan"))))
            column = array_to_vector(numbers)
        copied = dataset.withColumn(vectors, column).withMetadata(vectors, dataset.schema[features].metadata)
        return slicer.transform(copied).drop(vectors)


for each in TABLE:
    add_method(BeliefSelector, "set", each)
    if each.name in ("featuresCol", "outputCol"):
        add_method(BeliefSelectorModel, "set", each)
