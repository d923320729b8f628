"""The comparison of feature selectors by cross-validation on the user's table: `belief.compare` and its parts."""
