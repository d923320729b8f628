"""Engines, which apply the method to data in memory, in files, and on a cluster.

All engines implement the interface `Engine` in `belief.method.protocols`. An engine knows where the rows are and runs
the kernels on them; the kernels themselves are in `belief.kernels`.
"""
