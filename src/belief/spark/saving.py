"""Saving and loading of selectors and models on Spark.

`path/metadata` has the class, the uid, the Params and a format number as JSON, like other stages of pyspark.ml.
`path/result` has the Result of a model as JSON, in pieces.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReader
from pyspark.sql.utils import is_remote

from belief.result.result import Result

if TYPE_CHECKING:
    from belief.spark.selector import BeliefSelectorModel

FORMAT = 1


class ParamsWriter(DefaultParamsWriter):
    """A writer of the Params of a selector. Unlike PySpark's writer, it can overwrite on Spark Connect."""

    def saveImpl(self, path: str) -> None:
        self.saveMetadata(self.instance, path, self.sparkSession, extraMetadata={"beliefFormat": FORMAT})

    def _handleOverwrite(self, path: str) -> None:
        if not is_remote():
            super()._handleOverwrite(path)
            return
        from pyspark.ml.connect.readwrite import RemoteMLWriter

        RemoteMLWriter.handleOverwrite(path, True)


class ModelWriter(ParamsWriter):
    """A writer of the Params and the Result of a model."""

    piece_characters = 2**25  # a piece is sent with one task, and Spark limits the size of tasks to 128 MiB
    instance: BeliefSelectorModel

    def saveImpl(self, path: str) -> None:
        super().saveImpl(path)
        text = json.dumps(self.instance.toLocal().to_dict())
        for start in range(0, len(text), self.piece_characters):
            row = (start, text[start : start + self.piece_characters])
            piece = self.sparkSession.createDataFrame([row], "start long, text string")
            piece.write.mode("append").parquet(f"{path}/result")


class ParamsReader(MLReader[Any]):
    """A reader of saved selectors."""

    def __init__(self, cls: type) -> None:
        super().__init__()
        self._cls = cls

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        name = f"{self._cls.__module__}.{self._cls.__name__}"
        if metadata["class"] != name:
            raise ValueError(f"{path} holds a {metadata['class']}, not a {name}. Load it with the class that saved it.")
        found = metadata.get("beliefFormat")
        if found != FORMAT:
            raise ValueError(
                f"{path} has format {found}, but this version of belief-fs reads format {FORMAT}."
                " Load it with the version that saved it, or fit again."
            )
        instance = self._create(path)._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance

    def _create(self, path: str) -> Any:
        return self._cls()


class ModelReader(ParamsReader):
    """A reader of saved models."""

    def _create(self, path: str) -> Any:
        pieces = self.sparkSession.read.parquet(f"{path}/result").orderBy("start").toLocalIterator()
        return self._cls(Result.from_dict(json.loads("".join(row.text for row in pieces))))
