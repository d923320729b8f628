"""The result of a run, its explanation in words, and its conversion to and from JSON.

This package imports `method` and `_utils`, and `report` to display results in notebooks.
"""

from belief.result.result import Result as Result
