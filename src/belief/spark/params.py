"""The Params of the estimator and the model, generated from one table.

The defaults, checks and descriptions of the method's settings come from :class:`belief.method.settings.Settings`; here
they get names in Spark's style. Each entry of TABLE becomes a Param, `getX`, `setX`, and a keyword of the constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, get_args, get_origin, get_type_hints

import numpy as np
from pyspark.ml.param import Param, Params, TypeConverters

from belief.method.settings import Settings

SPARK_NAMES = {  # settings that have another name in Spark
    "n_features_to_select": "numTopFeatures",
    "n_neighbors": "numNeighbors",
    "sample_size": "sampleSize",
    "batch_size": "batchSize",
    "class_weight": "classWeight",
    "random_state": "seed",
    "per_class": "perClass",
}


def to_plain(value: Any) -> Any:
    """Convert a value to the types of JSON: NumPy values to Python values, tuples and arrays to lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {to_plain(key): to_plain(v) for key, v in value.items()}
    return [to_plain(v) for v in value] if isinstance(value, list | tuple) else value


def make_param(name: str, doc: str, converter: Callable[[Any], Any] = TypeConverters.toString) -> Param[Any]:
    """Return a Param that belongs to the class and not to one of its instances."""
    return Param(Params._dummy(), name, doc, converter)


def make_setting_param(f: Field[Any]) -> Param[Any]:
    """Return the Param of a setting of the method."""
    name = SPARK_NAMES.get(f.name, f.name)
    allowed = "an integer or None" if name == "seed" else f.metadata["allowed"]
    types = (int,) if name == "seed" else SETTING_TYPES[f.name]

    def convert(value: Any) -> Any:
        value = to_plain(value)
        if not isinstance(value, (*types, int, NoneType)):  # integers are valid floats
            raise TypeError(f"It must be {allowed}; got {value!r}.")  # PySpark adds the name to a TypeError
        if not f.metadata["ok"](value):
            raise ValueError(f"{name} must be {allowed}; got {value!r}.")
        return value

    return make_param(name, f.metadata["doc"], convert)


SETTING_TYPES = {  # a generic type such as Mapping[str, float] counts as Mapping
    name: tuple(get_origin(kind) or kind for kind in get_args(hint) or (hint,))
    for name, hint in get_type_hints(Settings).items()
}
TABLE: dict[Param[Any], Any] = {  # Params and their defaults
    make_param("featuresCol", "the column of feature vectors (dense, sparse or both) or arrays of numbers"): "features",
    make_param(
        "inputCols",
        "the feature columns, if the features are not in one vector column: numbers, booleans and strings; nulls are"
        " missing values",
        TypeConverters.toListString,
    ): None,
    make_param("labelCol", "the target column: numbers or strings"): "label",
    make_param("task", "'classification', 'regression', or 'auto' to infer the task from the labels"): "auto",
    make_param(
        "outputCol",
        "the column for the vector of the selected features; with inputCols, the vector is only added if this is set",
    ): None,
    make_param(
        "discreteFeatures",
        "nominal features, which are compared by equality: a mask, indices or names. Strings, booleans and features"
        " that are nominal by their ML attributes are always nominal; 'auto' adds no others",
        to_plain,
    ): "auto",
    make_param(
        "groupsCol", "the column with the group of each row: rows of a group are not independent; needs inputCols"
    ): None,
    make_param(
        "adjustForCols",
        "columns to adjust for: neighbours are rows with the same values in these columns; needs inputCols",
        TypeConverters.toListString,
    ): None,
    make_param("weightCol", "the column with the weight of each row; needs inputCols"): None,
    make_param(
        "given",
        "names of features that are selected already; numTopFeatures more features are selected",
        TypeConverters.toListString,
    ): [],
    make_param(
        "staging",
        "where the rows are held during the fit: 'memory', 'disk', or a folder that all executors can read; 'auto'"
        " chooses a temporary folder if Spark runs on one machine, and otherwise memory, or disk if memory is short",
    ): "auto",
    **{make_setting_param(f): f.default for f in Settings.definitions()},
}


class BeliefParams(Params):
    """The Params of the estimator and of its model."""

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(**{p.name: default for p, default in TABLE.items()})
        self._setDefault(outputCol=f"{self.uid}__output")

    def _set(self, **params: Any) -> Self:
        """Set Params by name; optional columns, such as `weightCol`, can be set to None, which clears the Param."""
        for name in ("inputCols", "outputCol", "groupsCol", "adjustForCols", "weightCol"):
            if name in params and params[name] is None:
                del params[name]
                self.clear(self.getParam(name))
        return super()._set(**params)

    def _settings(self) -> Settings:
        """Return the settings of the method, after checking their values."""
        values = {}
        for f in Settings.definitions():
            param = self.getParam(SPARK_NAMES.get(f.name, f.name))
            values[f.name] = param.typeConverter(self.getOrDefault(param))  # PySpark does not convert None
        return Settings(**values)

    def _features(self) -> str | list[str]:
        """Return the name of the vector column, or the names of the feature columns."""
        columns = self.getOrDefault("inputCols")
        if columns is None:
            return self.getOrDefault("featuresCol")
        if self.isSet("featuresCol"):
            raise ValueError(
                "inputCols and featuresCol are both set. Set featuresCol for a column of vectors, or inputCols for"
                " plain columns."
            )
        return columns

    if TYPE_CHECKING:  # Params, getters and setters are added below

        def __getattr__(self, name: str) -> Any: ...


def add_method(cls: type, verb: str, p: Param[Any]) -> None:
    """Add the method `getX` or `setX` of a Param to a class."""

    def get_value(self: BeliefParams) -> Any:
        return self.getOrDefault(p.name)

    def set_value(self: BeliefParams, value: Any) -> Any:
        return self._set(**{p.name: value})

    method: Callable[..., Any] = get_value if verb == "get" else set_value
    method.__name__ = verb + p.name[0].upper() + p.name[1:]
    method.__qualname__ = f"{cls.__name__}.{method.__name__}"
    method.__doc__ = f"{verb.capitalize()}s {p.name}: {p.doc}."
    setattr(cls, method.__name__, method)


for each in TABLE:
    setattr(BeliefParams, each.name, each)
    add_method(BeliefParams, "get", each)
