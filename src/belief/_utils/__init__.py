"""General helpers for text, validation, warnings, threads and optional imports. They import no other part of belief."""
