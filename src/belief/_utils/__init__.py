"""Helpers without knowledge of the method: optional imports, threads, warnings, terminal output."""
