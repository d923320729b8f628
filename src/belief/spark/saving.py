"""Saving and loading of selectors and models on Spark.

`path/metadata` has the class, the uid, the Params and a format number as JSON, like other stages of pyspark.ml.
`path/result` has the Result of a model as JSON, in pieces.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.ml import Model
from pyspark.ml.param import Params
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable
from pyspark.sql.utils import is_remote

from belief.result.result import Result

FORMAT = 1


class Writer(DefaultParamsWriter):
    """A writer of selectors and models. Unlike PySpark's writer, it can overwrite on Spark Connect."""

    piece_characters = 2**25  # a piece is sent with one task, and Spark limits the size of tasks to 128 MiB

    def saveImpl(self, path: str) -> None:
        self.saveMetadata(self.instance, path, self.sparkSession, extraMetadata={"beliefFormat": FORMAT})
        if not isinstance(self.instance, Model):
            return
        result: Result = self.instance.toLocal()  # type: ignore[attr-defined]
        text = json.dumps(result.to_dict())
        for start in range(0, len(text), self.piece_characters):
            row = (start, text[start : start + self.piece_characters])
            piece = self.sparkSession.createDataFrame([row], "start long, text string")
            piece.write.mode("append").parquet(f"{path}/result")

    def _handleOverwrite(self, path: str) -> None:
        if not is_remote():
            super()._handleOverwrite(path)
            return
        from pyspark.ml.connect.readwrite import RemoteMLWriter

        RemoteMLWriter.handleOverwrite(path, True)


class Reader(MLReader[Any]):
    """A reader of saved selectors and models."""

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
        arguments = []
        if issubclass(self._cls, Model):
            pieces = self.sparkSession.read.parquet(f"{path}/result").orderBy("start").toLocalIterator()
            arguments = [Result.from_dict(json.loads("".join(row.text for row in pieces)))]
        instance = self._cls(*arguments)._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(instance, metadata)
        return instance


class Saved(Params, MLReadable[Any], MLWritable):
    """Base class of the selector and of the model, which can be saved and loaded."""

    def write(self) -> Writer:
        """Return a writer with the methods `overwrite` and `save`."""
        return Writer(self)

    @classmethod
    def read(cls) -> Reader:
        """Return a reader of what `write` saved."""
        return Reader(cls)
