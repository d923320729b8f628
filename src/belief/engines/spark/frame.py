"""Spark DataFrames as input: check the schema before any job starts, and select the columns to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from belief._utils.validation import did_you_mean
from belief.data.columns import parse_discrete_features
from belief.data.diagnostics import warn_of_left_out
from belief.engines.spark.blocks import TableSpec
from belief.engines.spark.parquet import VECTOR, FileRows, is_bare_scan, position_columns
from belief.engines.spark.reading import Reader
from belief.method.arrays import Array

MAX_NAMED = 20  # columns in a message
NUMERIC = ("byte", "short", "integer", "long", "float", "double", "decimal", "boolean")
TIMES = ("date", "timestamp", "timestamp_ntz", "time", "daytimeinterval")
UNUSABLE = {"array": "lists", "map": "lists", "struct": "structs", "binary": "bytes"}


@dataclass(frozen=True)
class FrameInput:
    """The columns of a DataFrame that executors read, and the Reader that converts them to rows."""

    df: Any
    reader: Reader
    names: list[str] | None  # feature names
    spec: TableSpec


def open_frame(
    df: Any, features: str | Sequence[str], label: str, discrete_features: Any, task: str = "auto"
) -> FrameInput:
    """Check the schema of a DataFrame, and return how to read its features and its target.

    Parameters
    ----------
    features : a column of vectors or arrays, or the names of plain columns
    """
    if df.isStreaming:
        raise ValueError("The DataFrame is a stream. Write a part of it to a table, or use foreachBatch.")
    label, *names = find_columns(df, [label] + ([features] if isinstance(features, str) else list(features)))
    _check_types(df, [label], (*NUMERIC, "string"), "a number or a string")
    if isinstance(features, str):
        return _open_vectors(df, names[0], label, discrete_features, task)
    return _open_columns(df, names, label, discrete_features, task)


def find_columns(df: Any, columns: Sequence[str], skip_missing: bool = False) -> list[str]:
    """Return column names in the DataFrame's spelling; raise a ValueError if a name is unknown or ambiguous.

    Names may differ in case, unless `spark.sql.caseSensitive` is set. With `skip_missing`, unknown names are left out.
    """
    known = list(df.columns)
    is_case_sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive").lower() == "true"
    normalize = str if is_case_sensitive else str.lower
    spellings: dict[str, list[str]] = {}
    for name in known:
        spellings.setdefault(normalize(name), []).append(name)
    missing = [name for name in dict.fromkeys(columns) if normalize(name) not in spellings]
    if missing and skip_missing:
        columns = [name for name in columns if name not in missing]
    elif missing:
        named = ", ".join(f"{name!r}{did_you_mean(name, known)}" for name in missing[:MAX_NAMED])
        more = f" and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
        raise ValueError(f"There is no column {named}{more} in the DataFrame.")
    found = [spellings[normalize(name)] for name in columns]
    for name, same in zip(columns, found, strict=True):
        if len(same) > 1:
            raise ValueError(f"The column name {name!r} is ambiguous: the DataFrame has {same}. Rename all but one.")
    return [same[0] for same in found]


def _check_types(df: Any, names: Sequence[str], allowed: Sequence[str], expected: str) -> None:
    types = _types(df)
    bad = [f"column {name!r} has the type {types[name].simpleString()}" for name in names]
    bad = [text for text, name in zip(bad, names, strict=True) if types[name].typeName() not in allowed]
    if bad:
        problem = ", ".join(bad[:MAX_NAMED]) + (f" and {len(bad) - MAX_NAMED} more" if len(bad) > MAX_NAMED else "")
        raise ValueError(f"C{problem[1:]}, but must be {expected}. Convert {'it' if len(bad) == 1 else 'them'}.")


def quote(name: str) -> str:
    """Return a column name in backquotes, as Spark SQL needs it."""
    return "`" + name.replace("`", "``") + "`"


def check_numeric(df: Any, names: Sequence[str], output: str) -> None:
    """Raise a ValueError if some columns are not numeric. Only numeric columns can become the vector `output`."""
    types = _types(df)
    text = [name for name in find_columns(df, names) if types[name].typeName() not in NUMERIC]
    if text:
        shown = ", ".join(map(repr, text[:MAX_NAMED])) + (
            f" and {len(text) - MAX_NAMED} more" * (len(text) > MAX_NAMED)
        )
        raise ValueError(
            f"outputCol={output!r} is a vector of numbers, but these columns are not numeric: {shown}. Convert text"
            " with pyspark.ml.feature.StringIndexer, for example, or do not set outputCol."
        )


def assemble(df: Any, names: Sequence[str], output: str) -> Any:
    """Add a column of vectors to a DataFrame, made from some of its columns; nulls become NaN.

    The ML attributes of the vectors contain the names of the columns.
    """
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions

    nan, types, found = functions.lit(float("nan")), _types(df), find_columns(df, names)
    cells = [functions.coalesce(functions.col(quote(name)).cast("double"), nan) for name in found]
    attributes: dict[str, list[dict[str, Any]]] = {}
    for i, name in enumerate(found):
        kind = "binary" if types[name].typeName() == "boolean" else "numeric"
        attributes.setdefault(kind, []).append({"idx": i, "name": name})
    vectors = df.withColumn(output, array_to_vector(functions.array(*cells)))
    return vectors.withMetadata(output, {"ml_attr": {"attrs": attributes, "num_attrs": len(found)}})


def _types(df: Any) -> dict[str, Any]:
    """Return the type of each column. `df.schema[name]` would search through all columns each time."""
    return {field.name: field.dataType for field in df.schema}


def _label_expression(df: Any, label: str) -> str:
    is_decimal = _types(df)[label].typeName() == "decimal"
    return f"CAST({quote(label)} AS double) AS label" if is_decimal else f"{quote(label)} AS label"


# --- a column of vectors or arrays ---


def _open_vectors(df: Any, features: str, label: str, discrete_features: Any, task: str) -> FrameInput:
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType

    field = df.schema[features]
    if isinstance(field.dataType, VectorUDT):
        parts = functions.unwrap_udt(functions.col(quote(features)))
        size, indices, values = (parts.getField(name) for name in ("size", "indices", "values"))
        # values and indices are in one column, because dense vectors take twice the time with a second array column
        both = functions.concat(values, indices.cast("array<double>"))
        values = functions.when(size.isNull(), values).otherwise(both)
    elif isinstance(field.dataType, ArrayType) and field.dataType.elementType.typeName() in NUMERIC:
        size, values = functions.lit(None).cast("int"), functions.col(quote(features))
        if field.dataType.elementType.typeName() not in ("double", "float"):
            values = values.cast("array<double>")
    else:
        raise ValueError(
            f"Column {features!r} has the type {field.dataType.simpleString()}, but must be a vector of pyspark.ml or"
            " an array of numbers. Assemble it with pyspark.ml.feature.VectorAssembler, or pass the names"
            " of plain columns."
        )
    about = field.metadata.get("ml_attr", {})
    known = {
        x["idx"]: (x.get("name", f"x{x['idx']}"), kind == "nominal")
        for kind, attributes in about.get("attrs", {}).items()
        for x in attributes
    }
    n = about.get("num_attrs", len(known)) if known else 0
    features_known = [known.get(j, (f"x{j}", False)) for j in range(n)]  # the name of each, and whether it is nominal
    names = [name for name, _ in features_known] if features_known else None
    width = len(features_known) if features_known else about.get("num_attrs")
    discrete = _declared_mask(discrete_features, names, width)
    if features_known:
        discrete = discrete | np.array([is_nominal for _, is_nominal in features_known], bool)
    spec = TableSpec(label, features, discrete, width is None and is_mask(discrete_features), task)
    reader = Reader(None, label, features, discrete, width)
    in_files = _read_files(df, reader, [features])
    if in_files is not None:
        return FrameInput(*in_files, names, spec)
    selected = df.select(size.alias("size"), values.alias("values"), functions.expr(_label_expression(df, label)))
    return FrameInput(selected, reader, names, spec)


def _declared_mask(discrete_features: Any, names: list[str] | None, width: int | None) -> Array:
    """Return the mask of the features that the user declared discrete.

    `width` is the length of the feature vectors. If it is None, the mask ends with the last declared feature.
    """
    if width is not None:
        return parse_discrete_features(discrete_features, names, width)
    if discrete_features is None or isinstance(discrete_features, str):
        return parse_discrete_features(discrete_features, None, 0)
    if is_mask(discrete_features):
        return np.array(discrete_features, bool)
    items = list(discrete_features)
    indices = [int(x) for x in items if not isinstance(x, str)]
    if any(x < 0 for x in indices):
        raise ValueError(
            f"discrete_features has the index {min(indices)}, but the length of the vectors is not known before they"
            " are read. Use non-negative indices."
        )
    return parse_discrete_features(items, None, 1 + max(indices, default=0))


def is_mask(discrete_features: Any) -> bool:
    """Return True if the argument `discrete_features` is a mask, a list of booleans."""
    if discrete_features is None or isinstance(discrete_features, str):
        return False
    return bool(len(discrete_features)) and all(isinstance(x, bool | np.bool_) for x in discrete_features)


# --- plain columns ---


def _open_columns(df: Any, names: list[str], label: str, discrete_features: Any, task: str) -> FrameInput:
    import pyarrow as pa

    if label in names:
        raise ValueError(f"Column {label!r} is both the label and a feature. Remove it from the features.")
    if not names:
        raise ValueError("The list of feature columns is empty. Name at least one.")
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        n = names.count(repeated[0])
        raise ValueError(f"Column {repeated[0]!r} is listed as a feature {n} times. List it once.")
    allowed = (*NUMERIC, *TIMES, *UNUSABLE, "string")
    _check_types(df, names, allowed, "numbers, strings, booleans, dates or times")
    types = _types(df)
    declared = parse_discrete_features(discrete_features, names, len(names))
    left_out = {name: UNUSABLE[kind] for name in names if (kind := types[name].typeName()) in UNUSABLE}
    warn_of_left_out(left_out, len(names), "The DataFrame", "remove {} from the features")
    declared = declared[[name not in left_out for name in names]]
    names = [name for name in names if name not in left_out]
    read_as = []
    for name, is_nominal in zip(names, declared, strict=True):
        kind = types[name].typeName()
        # nominal integers are not converted to floats, so that integers too large for floats are detected later
        is_kept = kind in ("string", "boolean", "float", *TIMES) or (is_nominal and kind == "long")
        read_as.append(kind if is_kept else "double")
    arrow = {"string": pa.string(), "float": pa.float32(), "boolean": pa.bool_(), "long": pa.int64()}
    arrow |= dict.fromkeys(TIMES, pa.timestamp("us"))  # the exact types are those of the batches
    fields = [pa.field(name, arrow.get(kind, pa.float64())) for name, kind in zip(names, read_as, strict=True)]
    is_text = np.array([kind in ("string", "boolean") for kind in read_as], bool)
    spec = TableSpec(label, "", is_text | declared, task=task)
    reader = Reader(fields, label, "", declared, len(names))
    in_files = _read_files(df, reader, names)
    if in_files is not None:
        return FrameInput(*in_files, names, spec)
    # The columns are renamed, because mapInArrow parses their names. SQL text is faster than many Column objects.
    read = zip(names, read_as, strict=True)
    columns = [
        f"{quote(name) if kind in TIMES else f'CAST({quote(name)} AS {kind})'} AS f{j}"
        for j, (name, kind) in enumerate(read)
    ]
    selected = df.selectExpr(*columns, _label_expression(df, label))
    if set(read_as) <= {"float", "double"}:  # one array column is faster than many columns
        array = f"array({', '.join(selected.columns[:-1])}) AS values"
        selected = selected.selectExpr("CAST(NULL AS INT) AS size", array, "label")
        reader = Reader(None, label, "", declared, len(names))
    return FrameInput(selected, reader, names, spec)


# --- Parquet files that Python reads itself ---


def _read_files(df: Any, reader: Reader, columns: list[str]) -> tuple[Any, Reader] | None:
    """Return a DataFrame of row positions, and a Reader that reads the rows from files.

    Return None if Spark must send the rows itself.
    """
    import pyarrow as pa
    from pyspark.ml.linalg import VectorUDT
    from pyspark.sql import functions
    from pyspark.sql.types import ArrayType

    types, kinds = _types(df), list[Any]()  # how to read each column: an Arrow type, VECTOR, or True for plain columns
    for name in columns:
        kind = types[name]
        is_array = isinstance(kind, ArrayType)
        element = (kind.elementType if is_array else kind).typeName()
        if isinstance(kind, VectorUDT):
            kinds.append(VECTOR)
        elif element == "decimal" or (element in TIMES and not is_array):
            kinds.append(None)  # Spark must read these, because they have several formats in files
        else:
            kinds.append(pa.list_(pa.float32() if element == "float" else pa.float64()) if is_array else True)
    if reader.columns is not None:
        kinds = [kind and field.type for kind, field in zip(kinds, reader.columns, strict=True)]
    if not all(kinds) or not is_bare_scan(df, [quote(name) for name in columns]):
        return None
    rows = df.select(*position_columns(df), functions.expr(_label_expression(df, reader.label)))
    return rows, replace(reader, files=FileRows(columns, kinds))
