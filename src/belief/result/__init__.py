"""The result of a run, its explanation in words, and conversion to and from JSON. Imports `method` and `_utils`."""

from belief.result.result import Result as Result
