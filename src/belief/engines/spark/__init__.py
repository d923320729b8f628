"""The Spark engine: blocks of a DataFrame on executors."""
