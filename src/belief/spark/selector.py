"""The Estimator and the Model: store, check, ask the engine, keep the Result."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any, ClassVar, Self

from pyspark.ml import Estimator, Model
from pyspark.ml.feature import VectorSlicer
from pyspark.ml.functions import array_to_vector
from pyspark.ml.linalg import DenseVector
from pyspark.ml.util import MLReadable, MLWritable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, lit, transform
from pyspark.sql.types import ArrayType

from belief._utils.validation import did_you_mean
from belief.engines.spark.frame import check_columns, quote
from belief.result.result import Result
from belief.spark.params import TABLE, BeliefParams, with_setters
from belief.spark.saving import ModelReader, ModelWriter, ParamsReader, ParamsWriter

EXPLANATION = (
    "feature string, index long, rank int, relevance double, error double, p_value double, q_value double,"
    " unique_share double, score double, redundant_with string, agreement double, p_univariate double,"
    " partner string, reason string"
)


@with_setters([p.name for p in TABLE])
class BeliefSelector(Estimator["BeliefSelectorModel"], BeliefParams, MLReadable["BeliefSelector"], MLWritable):
    """Select features by BELIEF on Spark: relevance from neighbours, less what selected features repeat of it.

    Every parameter is a Param with a setter and a getter; ``print(BeliefSelector().explainParams())`` says what each
    means and what it is.

    Parameters
    ----------
    featuresCol : str, default="features"
        A column of vectors, dense, sparse or both, or of arrays of numbers.
    inputCols : list of str, optional
        The feature columns, where the features are not one vector: numbers, booleans and strings; nulls are missing
        values.
    labelCol : str, default="label"
        The column of the classes, numbers or strings.
    outputCol : str, optional
        Where the model writes the vector of the selected features, in order of selection. With `inputCols` there is
        none: the model drops the columns that were not selected.
    discreteFeatures : "auto", mask, indices or names, default="auto"
        The nominal features, of which only "equal or not" counts. "auto": string and boolean columns, and those of a
        vector that its ML attributes call nominal.
    staging : str, default="auto"
        Where the rows are held during the fit: "memory", "disk", a folder that all executors reach, or "auto": a
        temporary folder where Spark runs on one machine, and memory elsewhere.
    numTopFeatures, numNeighbors, sampleSize, classWeight, batchSize, seed
        What is called `n_features_to_select`, `n_neighbors`, `sample_size`, `class_weight`, `batch_size` and
        `random_state` in :class:`belief.BeliefSelector`; with the same defaults.
    sampling, neighborhood, scale, redundancy, theta, eta, kappa
        As in :class:`belief.BeliefSelector`.

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

    __module__ = "belief.spark"  # a saved selector is found again by this name
    __signature__: ClassVar = Signature(
        [Parameter(p.name, Parameter.KEYWORD_ONLY, default=d) for p, d in TABLE.items()]
    )

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self.setParams(**params)

    def setParams(self, **params: Any) -> Self:
        """Set any of the Params by name."""
        for name in params:
            if not self.hasParam(name):
                raise TypeError(f"There is no param {name!r}{did_you_mean(name, [p.name for p in self.params])}.")
        return self._set(**params)

    def _fit(self, dataset: DataFrame) -> BeliefSelectorModel:
        features, settings = self._features(), self._settings()
        from belief.spark.frames import select_frame

        result = select_frame(
            dataset,
            features=features,
            label=self.getLabelCol(),
            settings=settings,
            task=self.getTask(),
            discrete_features=self.getDiscreteFeatures(),
            staging=self.getStaging(),
        )
        return self._copyValues(BeliefSelectorModel(result)._resetUid(self.uid))

    def write(self) -> ParamsWriter:
        """Give the writer of this selector, which knows `overwrite` and `save`."""
        return ParamsWriter(self)

    @classmethod
    def read(cls) -> ParamsReader:
        """Give the reader of saved selectors."""
        return ParamsReader(cls)


@with_setters(["featuresCol", "outputCol"])
class BeliefSelectorModel(Model, BeliefParams, MLReadable["BeliefSelectorModel"], MLWritable):
    """The features that :class:`BeliefSelector` selected, and why.

    `transform` writes the selected features of the vectors in `featuresCol` to `outputCol`, in order of selection, with
    their ML attributes, sparse where they were sparse. Of `inputCols` it keeps the selected ones, and every other
    column of the DataFrame, as they are.

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

    @property
    def selectedFeatures(self) -> list[int]:
        """The indices of the selected features, in order of selection."""
        return self._result.selected.tolist()

    @property
    def selectedNames(self) -> list[str]:
        """Their names: the columns, or what the vector's ML attributes call them; else x0, x1, ..."""
        return self._result.selected_names

    @property
    def weights(self) -> DenseVector:
        """The relevance of every feature, w."""
        return DenseVector(self._result.weights)

    def toLocal(self) -> Result:
        """Everything the run found, as in the rest of this package."""
        return self._result

    def explain(self) -> DataFrame:
        """Say of every selected and every watched feature why it was taken or left; see :meth:`Result.explain`."""
        return SparkSession.active().createDataFrame([row.as_dict() for row in self._result.explain()], EXPLANATION)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        features = self._features()
        if isinstance(features, str):
            return self._sliced(dataset, features)
        check_columns(dataset, self.selectedNames)
        return dataset.drop(*set(features).difference(self.selectedNames))

    def _sliced(self, dataset: DataFrame, features: str) -> DataFrame:
        check_columns(dataset, [features])
        vectors = f"{self.uid}__vectors"  # a copy: VectorSlicer takes a dot in a name for a field
        slicer = VectorSlicer(inputCol=vectors, outputCol=self.getOutputCol(), indices=self.selectedFeatures)
        given = col(quote(features))
        if isinstance(dataset.schema[features].dataType, ArrayType):
            numbers = transform(given.cast("array<double>"), lambda x: coalesce(x, lit(float("nan"))))
            given = array_to_vector(numbers)
        copied = dataset.withColumn(vectors, given).withMetadata(vectors, dataset.schema[features].metadata)
        return slicer.transform(copied).drop(vectors)

    def write(self) -> ModelWriter:
        """Give the writer of this model, which knows `overwrite` and `save`."""
        return ModelWriter(self)

    @classmethod
    def read(cls) -> ModelReader:
        """Give the reader of saved models."""
        return ModelReader(cls)
