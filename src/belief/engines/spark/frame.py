"""A Spark DataFrame as input: its schema is checked before any job starts, and its columns become those of a Reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from belief._utils.validation import did_you_mean
from belief.data.columns import parse_discrete_features
from belief.engines.distributed.placing import Given
from belief.engines.spark.parquet import VECTOR, FileRows, is_bare_scan, places
from belief.engines.spark.reading import Reader
from belief.method.arrays import Array

NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal", "boolean")


@dataclass(frozen=True)
class Input:
    """The columns of a DataFrame as executors read them, and what is known of them beforehand."""

    df: Any
    reader: Reader
    names: list[str] | None
    about: Given


def _given(label: str, features: str, discrete: Array, masked: bool = False) -> Given:
    return Given("The DataFrame", f"Column {label!r}", f"The vectors of column {features!r}", discrete, masked)


def open_frame(df: Any, features: str | Sequence[str], label: str, discrete_features: Any, task: str = "auto") -> Input:
    """Check a DataFrame, and choose the columns that are read."""
    if df.isStreaming:
        raise ValueError("The DataFrame is a stream, which has no end: write some of it to a table first.")
    refuse_unknown(df, [label] + ([features] if isinstance(features, str) else list(features)))
    refuse_type(df, label, (*NUMBERS, "string"), "a class: a number or a string")
    if isinstance(features, str):
        found = _vectors(df, features, label, discrete_features)
    else:
        found = _columns(df, list(features), label, discrete_features)
    return replace(found, about=replace(found.about, task=task))


def refuse_unknown(df: Any, columns: Sequence[str]) -> None:
    """Refuse a column that is not there, and suggest the nearest, or one that Spark cannot tell from another."""
    known, there = list(df.columns), set(df.columns)
    as_spark_sees = str if df.sparkSession.conf.get("spark.sql.caseSensitive").lower() == "true" else str.lower
    seen = Counter(map(as_spark_sees, known))
    for name in columns:
        if name not in there:
            raise ValueError(f"There is no column {name!r} in the DataFrame{did_you_mean(name, known)}.")
        if seen[as_spark_sees(name)] > 1:
            same = [x for x in known if as_spark_sees(x) == as_spark_sees(name)]
            raise ValueError(
                f"Spark cannot tell the columns {same} of the DataFrame apart: rename all but one of them."
            )


def refuse_type(df: Any, name: str, allowed: Sequence[str], wanted: str) -> None:
    """Refuse a column whose type is not one of those allowed."""
    _refuse_kind(name, df.schema[name].dataType, allowed, wanted)


def _refuse_kind(name: str, kind: Any, allowed: Sequence[str], wanted: str) -> None:
    if kind.typeName() not in allowed:
        raise ValueError(f"Column {name!r} has the type {kind.simpleString()}, but must be {wanted}; convert it.")


def _vectors(df: Any, features: str, label: str, discrete_features: Any) -> Input:
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType

    kind = df.schema[features].dataType
    if isinstance(kind, VectorUDT):
        parts = functions.unwrap_udt(functions.col(quoted(features)))
        size, indices, values = (parts.getField(name) for name in ("size", "indices", "values"))
        # in one column, since a second of arrays would double the time of dense vectors
        both = functions.concat(values, indices.cast("array<double>"))
        columns = [size, functions.when(size.isNull(), values).otherwise(both)]
    elif isinstance(kind, ArrayType) and kind.elementType.typeName() in NUMBERS:
        values = functions.col(quoted(features))
        is_float = kind.elementType.typeName() in ("double", "float")
        columns = [functions.lit(None).cast("int"), values if is_float else values.cast("array<double>")]
    else:
        raise ValueError(
            f"Column {features!r} has the type {kind.simpleString()}, but must be a vector of pyspark.ml or an array of"
            " numbers; assemble it with pyspark.ml.feature.VectorAssembler, or name plain columns instead."
        )
    attributes = _attributes(df.schema[features].metadata)
    names = [name for name, _ in attributes] if attributes else None
    nominal = np.array([is_nominal for _, is_nominal in attributes], bool)
    width = len(attributes) if attributes else df.schema[features].metadata.get("ml_attr", {}).get("num_attrs")
    declared = _declared(discrete_features, names, width)
    discrete = nominal | declared if len(nominal) else declared
    chosen = [c.alias(name) for c, name in zip(columns, ("size", "values"), strict=True)]
    handed = partial(df.select, *chosen, functions.expr(_label(df, label)))
    about = _given(label, features, discrete, masked=width is None and _is_mask(discrete_features))
    return _input(df, handed, Reader(None, label, features, discrete, width), [features], names, about)


def _declared(given: Any, names: list[str] | None, width: int | None) -> Array:
    """Which features are declared discrete; of vectors of unknown length, as many as are needed to say so."""
    if width is not None:
        return parse_discrete_features(given, names, width)
    if given is None or isinstance(given, str):
        return parse_discrete_features(given, None, 0)
    if _is_mask(given):
        return np.array(given, bool)
    items = list(given)
    below = [x for x in items if isinstance(x, int | np.integer) and x < 0]
    if below:
        raise ValueError(
            f"discrete_features has the index {below[0]}, but how long the vectors are is not known before they are"
            " read: count from the front."
        )
    return parse_discrete_features(items, None, 1 + max((int(x) for x in items if not isinstance(x, str)), default=0))


def _is_mask(given: Any) -> bool:
    """Whether what is declared discrete is said by True and False, one for each feature."""
    if given is None or isinstance(given, str):
        return False
    return bool(len(given)) and all(isinstance(x, bool | np.bool_) for x in given)


def _attributes(metadata: dict[str, Any]) -> list[tuple[str, bool]]:
    """The name of each feature of a vector, and whether it is nominal, by its ML attributes; none where it has none."""
    about = metadata.get("ml_attr", {})
    known = {}
    for kind, attributes in about.get("attrs", {}).items():
        for x in attributes:
            known[x["idx"]] = (x.get("name", f"x{x['idx']}"), kind == "nominal")
    n = about.get("num_attrs", len(known)) if known else 0
    return [known.get(j, (f"x{j}", False)) for j in range(n)]


def _columns(df: Any, names: list[str], label: str, discrete_features: Any) -> Input:
    import pyarrow as pa

    if label in names:
        raise ValueError(f"Column {label!r} is both the label and a feature: take it out of the features.")
    if not names:
        raise ValueError("No column is named as a feature: name at least one.")
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(f"Column {twice[0]!r} is named as a feature {names.count(twice[0])} times: name it once.")
    types = _types(df)
    for name in names:
        _refuse_kind(name, types[name], (*NUMBERS, "string"), "numbers, strings or booleans")
    declared = parse_discrete_features(discrete_features, names, len(names))
    kinds = {name: _kind(types[name].typeName(), bool(is_name)) for name, is_name in zip(names, declared, strict=True)}
    arrow = {"string": pa.string(), "float": pa.float32(), "boolean": pa.bool_(), "long": pa.int64()}
    fields = [pa.field(name, arrow.get(k, pa.float64())) for name, k in kinds.items()]
    text = np.array([k in ("string", "boolean") for k in kinds.values()], bool)
    # under names of our own: mapInArrow parses those it is given; as text, for a column built by calls takes dozens
    chosen = [f"CAST({quoted(name)} AS {k}) AS f{j}" for j, (name, k) in enumerate(kinds.items())]
    handed = partial(df.selectExpr, *chosen, _label(df, label))
    reader = Reader(fields, label, "", declared, len(names))
    found = _input(df, handed, reader, names, names, _given(label, "", text | declared))
    return found if found.reader.files or set(kinds.values()) - {"float", "double"} else _as_arrays(found)


def _as_arrays(found: Input) -> Input:
    """Columns of floats as one column of arrays, which Spark hands over faster than many columns."""
    *columns, label = found.df.columns
    df = found.df.selectExpr("CAST(NULL AS INT) AS size", f"array({', '.join(columns)}) AS values", label)
    return replace(found, df=df, reader=replace(found.reader, columns=None))


def _input(
    df: Any, handed: Callable[[], Any], reader: Reader, columns: list[str], names: list[str] | None, about: Given
) -> Input:
    """The columns that Spark is to hand over, or the places of the rows where Python can read the files itself."""
    from pyspark.sql import functions

    types = _types(df)
    kinds = [_wanted(types[name]) for name in columns]
    if reader.columns is not None:
        kinds = [k and field.type for k, field in zip(kinds, reader.columns, strict=True)]
    if not all(kinds) or not is_bare_scan(df, [quoted(name) for name in columns]):
        return Input(handed(), reader, names, about)
    rows = df.select(*places(df), functions.expr(_label(df, reader.label)))
    return Input(rows, replace(reader, files=FileRows(columns, kinds)), names, about)


def _types(df: Any) -> dict[str, Any]:
    """The type of each column; a schema that is asked for one looks through all."""
    return {field.name: field.dataType for field in df.schema}


def _wanted(kind: Any) -> Any:
    """The type a column of a Parquet file is wanted in; of a vector its name; None where Spark must convert it."""
    import pyarrow as pa
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql.types import ArrayType

    if isinstance(kind, VectorUDT):
        return VECTOR
    if isinstance(kind, ArrayType):
        inner = kind.elementType.typeName()
        return None if inner == "decimal" else pa.list_(pa.float32() if inner == "float" else pa.float64())
    return None if kind.typeName() == "decimal" else True


def _kind(kind: str, is_name: bool) -> str:
    """What a column is read as; whole numbers that are names stay whole, so that too long ones are found."""
    if is_name and kind == "long":
        return kind
    return kind if kind in ("string", "boolean", "float") else "double"


def _label(df: Any, label: str) -> str:
    kind = df.schema[label].dataType.typeName()
    return f"CAST({quoted(label)} AS double) AS label" if kind == "decimal" else f"{quoted(label)} AS label"


def quoted(name: str) -> str:
    """A name as Spark reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
