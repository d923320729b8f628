"""Rows that lie in blocks on other machines or in other processes: all of it but the cluster itself.

cluster.py   what a cluster must do                 engine.py     the Engine protocol, over any cluster
staging.py   rows become blocks                     placing.py    where each block is in the whole
tasks.py     what workers do with blocks            sums.py       the same with pairs of rows
gathering.py pairs whose rows are brought together  merging.py    the answers of workers become one
blocks.py    a block, packed and unpacked           folder.py     blocks in files that all workers reach
owner.py     whose those files are
records.py   dataclasses as arrays, by features     wire.py       arrays as bytes
"""
