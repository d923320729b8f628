"""Spark as a cluster: blocks of a DataFrame on executors.

frame.py (the input) → reading.py (its batches as rows) → store.py (where blocks are) → jobs.py (what runs on them)
"""
