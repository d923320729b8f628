"""The Params of the estimator and its model, made from one table.

The default, the check and the meaning of a setting of the method stand in :class:`belief.method.settings.Settings`;
here it gets its name in Spark's style. From each line of the table come a Param, `getX`, `setX`, and a keyword of the
constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from pyspark.ml.param import Param, Params, TypeConverters

from belief.method.settings import Settings

P = TypeVar("P", bound="BeliefParams")
SETTINGS = {  # the settings that have another name here
    "n_features_to_select": "numTopFeatures",
    "n_neighbors": "numNeighbors",
    "sample_size": "sampleSize",
    "batch_size": "batchSize",
    "class_weight": "classWeight",
    "random_state": "seed",
}


def plain(value: Any) -> Any:
    """As Python's own types, which JSON can hold; a tuple or an array is a list."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {plain(key): plain(v) for key, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def param(name: str, doc: str, converter: Callable[[Any], Any] = TypeConverters.toString) -> Param[Any]:
    """A Param that belongs to no instance yet."""
    return Param(Params._dummy(), name, doc, converter)


def param_of(f: Field[Any]) -> Param[Any]:
    """The Param of a setting. PySpark adds its name to a TypeError of the converter, but not to a ValueError."""
    name = SETTINGS.get(f.name, f.name)
    allowed = "an integer or None" if name == "seed" else f.metadata["allowed"]
    kinds = (int,) if name == "seed" else KINDS[f.name]

    def convert(value: Any) -> Any:
        value = plain(value)
        if not isinstance(value, (*kinds, int, NoneType)):  # a whole number will do for a fraction
            raise TypeError(f"It must be {allowed}; got {value!r}.")
        if not f.metadata["ok"](value):
            raise ValueError(f"{name} must be {allowed}; got {value!r}.")
        return value

    return param(name, f.metadata["doc"], convert)


KINDS = {  # the types of each setting; a mapping is one whatever it holds
    name: tuple(get_origin(kind) or kind for kind in get_args(hint) or (hint,))
    for name, hint in get_type_hints(Settings).items()
}
TABLE: dict[Param[Any], Any] = {  # each Param and its default
    param("featuresCol", "the column of feature vectors, dense, sparse or both, or of arrays of numbers"): "features",
    param(
        "inputCols",
        "the feature columns, where the features are not one vector column: numbers, booleans and strings; nulls are"
        " missing values",
        TypeConverters.toListString,
    ): None,
    param("labelCol", "the column of the classes, numbers or strings, or of the numbers to be explained"): "label",
    param("task", "'classification', 'regression', or 'auto': what the labels look like"): "auto",
    param("outputCol", "the column for the vector of the selected features; with inputCols there is none"): None,
    param(
        "discreteFeatures",
        "the nominal features, of which only 'equal or not' counts: a mask, indices or names, beside those that are"
        " strings, booleans, or nominal by the ML attributes of a vector; 'auto': none beside those",
        plain,
    ): "auto",
    param(
        "staging",
        "where the rows are held during the fit: 'memory', 'disk', a folder that all executors reach, or 'auto', a"
        " temporary folder where Spark runs on one machine and memory elsewhere",
    ): "auto",
    **{param_of(f): f.default for f in Settings.definitions()},
}


class BeliefParams(Params):
    """What the estimator and its model have in common."""

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(**{p.name: default for p, default in TABLE.items()})
        self._setDefault(outputCol=f"{self.uid}__output")

    def _set(self: P, **given: Any) -> P:
        """Set Params; None takes back a column that need not be there."""
        for name in ("inputCols", "outputCol"):
            if name in given and given[name] is None:
                del given[name]
                self.clear(self.getParam(name))
        return super()._set(**given)

    def _settings(self) -> Settings:
        """The settings of the method, checked."""
        values = {f.name: self._checked(SETTINGS.get(f.name, f.name)) for f in Settings.definitions()}
        return Settings(**values)

    def _checked(self, name: str) -> Any:
        """The value of a Param, checked again: PySpark takes None for any."""
        return self.getParam(name).typeConverter(self.getOrDefault(name))

    def _features(self) -> str | list[str]:
        """The vector column, or the feature columns."""
        columns = self.getOrDefault("inputCols")
        if columns is None:
            return self.getOrDefault("featuresCol")
        for name in ("featuresCol", "outputCol"):
            if self.isSet(name):
                raise ValueError(
                    f"inputCols and {name} are both set: set featuresCol and outputCol for a column of vectors, or"
                    " inputCols alone for plain columns, of which transform keeps the selected ones."
                )
        return columns

    if TYPE_CHECKING:  # the Params and their accessors are made below

        def __getattr__(self, name: str) -> Any: ...


def with_setters(names: Collection[str]) -> Callable[[type[P]], type[P]]:
    """Give a class `setX` for these Params."""

    def add(cls: type[P]) -> type[P]:
        for p in TABLE:
            if p.name in names:
                _add(cls, "set", p, _setter(p.name))
        return cls

    return add


def _getter(name: str) -> Callable[..., Any]:
    return lambda self: self.getOrDefault(name)


def _setter(name: str) -> Callable[..., Any]:
    return lambda self, value: self._set(**{name: value})


def _add(cls: type, verb: str, p: Param[Any], method: Callable[..., Any]) -> None:
    method.__name__ = verb + p.name[0].upper() + p.name[1:]
    method.__qualname__ = f"{cls.__name__}.{method.__name__}"
    method.__doc__ = f"{verb.capitalize()}s {p.name}: {p.doc}."
    setattr(cls, method.__name__, method)


for each in TABLE:
    setattr(BeliefParams, each.name, each)
    _add(BeliefParams, "get", each, _getter(each.name))
