"""The result of a run, its explanation in words, and its conversion to and from JSON.

It imports `method` and `_utils`, and `report` to display itself in notebooks.
"""

from belief.result.result import Result as Result
