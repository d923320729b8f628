"""Saving and loading: the Params as every stage of pyspark.ml keeps them, and of a model the Result beside them.

`path/metadata` holds the class, the uid and the Params as JSON; `path/result` the Result as JSON, in pieces.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader
from pyspark.sql.utils import is_remote

from belief.result.result import Result

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
        DefaultParamsReader.getAndSetParams(loaded, metadata)
        return loaded

    def _made(self, path: str) -> Any:
        return self._cls()


class ModelReader(ParamsReader):
    """Reads what ModelWriter wrote."""

    def _made(self, path: str) -> Any:
        pieces = self.sparkSession.read.parquet(f"{path}/result").orderBy("start").toLocalIterator()
        return self._cls(Result.from_dict(json.loads("".join(row.text for row in pieces))))
