"""`belief.compare`: cross-validated comparison of feature selectors on the user's table."""
