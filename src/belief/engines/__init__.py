"""Engines, which apply the method to data in memory, in files, and on a cluster.

Their interface is `Engine` in `belief.method.protocols`.

An engine knows where the rows are and runs the kernels on them. It imports `belief.kernels`, `belief.data`,
`belief.method` and `belief._utils`, and nothing above. Code that computes numbers belongs in `belief.kernels`.
"""
