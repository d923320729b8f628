"""General helpers: text, validation, warnings, threads and optional imports. They import no other folder."""
