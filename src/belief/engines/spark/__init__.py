"""The engine for Spark DataFrames. Rows stay in blocks on the executors; only sums and row ids go to the driver.

From a DataFrame to a result:

frame.py      check the schema of a DataFrame          parquet.py    read Parquet files with pyarrow
reading.py    Arrow batches to rows                    staging.py    rows to blocks, on the executors
blocks.py     blocks, and the position of every row    folder.py     blocks in files
executors.py  run jobs with mapInArrow                 session.py    sessions, job descriptions, errors
workers.py    check the Python of the workers

These modules do not need Spark, and are tested with a process pool instead (tests/pool_cluster.py):

engine.py     the Engine protocol over a cluster       gathering.py  bring the rows of pairs together
jobs.py       computations on blocks, and the          wire.py       dicts of arrays to bytes
              interface of a cluster                   ../records.py dataclasses to dicts of arrays
"""
