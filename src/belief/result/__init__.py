"""What a run returns: the result, its explanation, and reading and writing both."""

from belief.result.result import Result as Result
