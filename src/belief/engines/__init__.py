"""Engines: the Engine protocol of `belief.method.protocols` over data in memory, in files, and on a cluster.

An engine knows where the rows are and runs the kernels on them. It imports `belief.kernels`, `belief.data`,
`belief.method` and `belief._utils`, and nothing above. Code that computes numbers belongs in `belief.kernels`.
"""
