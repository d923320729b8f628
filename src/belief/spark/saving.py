"""Saving and loading: the Params as every stage of pyspark.ml keeps them, and of a model the Result beside them.

`path/metadata` holds the class, the uid and the Params as JSON; `path/result` the Result as JSON, in pieces. What an
older version saved is read too: its Params get the names they have now, and new ones what that version did.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader
from pyspark.sql.utils import is_remote

from belief._utils.warnings import warn
from belief.result.older import BEFORE, modern
from belief.result.result import Result
from belief.spark.params import SETTINGS

if TYPE_CHECKING:
    from belief.spark.selector import BeliefSelectorModel

PIECE = 2**25  # characters: a piece travels in one task, and Spark refuses tasks of 128 MiB


class ParamsWriter(DefaultParamsWriter):
    """Writes the Params; overwrites on Connect too, which PySpark's own writer does not."""

    def _handleOverwrite(self, path: str) -> None:
        if not is_remote():
            super()._handleOverwrite(path)
            return
        from pyspark.ml.connect.readwrite import RemoteMLWriter

        RemoteMLWriter.handleOverwrite(path, True)


class ModelWriter(ParamsWriter):
    """Writes the Params and the Result."""

    instance: BeliefSelectorModel

    def saveImpl(self, path: str) -> None:
        super().saveImpl(path)
        text = json.dumps(self.instance.toLocal().to_dict())
        for start in range(0, len(text), PIECE):
            piece = self.sparkSession.createDataFrame([(start, text[start : start + PIECE])], "start long, text string")
            piece.write.mode("append").parquet(f"{path}/result")


class ParamsReader(MLReader[Any]):
    """Reads what ParamsWriter wrote, for this class and no other."""

    def __init__(self, cls: type) -> None:
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        name = f"{self._cls.__module__}.{self._cls.__name__}"
        if metadata["class"] != name:
            raise ValueError(f"{path} holds a {metadata['class']}, not a {name}: load it with its own class.")
        loaded = self._made(path)._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(loaded, modern_params(metadata, path, [p.name for p in loaded.params]))
        return loaded

    def _made(self, path: str) -> Any:
        return self._cls()


class ModelReader(ParamsReader):
    """Reads what ModelWriter wrote."""

    def _made(self, path: str) -> Any:
        pieces = self.sparkSession.read.parquet(f"{path}/result").orderBy("start").toLocalIterator()
        return self._cls(Result.from_dict(json.loads("".join(row.text for row in pieces))))


def modern_params(metadata: dict[str, Any], path: str, known: Collection[str]) -> dict[str, Any]:
    """The metadata with the Params of this version; warns of those that it does not know, which are left out."""
    settings = {name: setting for setting, name in SETTINGS.items()}
    settings_known = [settings.get(name, name) for name in known]
    given, strange = modern(_renamed(metadata["paramMap"], settings), settings_known)
    defaults, more = modern(_renamed(metadata["defaultParamMap"], settings), settings_known)
    before = {name: was for name, was in BEFORE.items() if name in settings_known}
    unknown = sorted(_renamed(dict.fromkeys([*strange, *more]), SETTINGS))
    if unknown:
        warn(f"{path} was saved by another version of belief-fs: it has Params this one lacks: {', '.join(unknown)}.")
    return {
        **metadata,
        "paramMap": _renamed(given, SETTINGS),
        "defaultParamMap": _renamed({**before, **defaults}, SETTINGS),
    }


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in values.items()}
