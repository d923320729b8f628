"""Kernels: functions from arrays to arrays, compiled by numba, in plain numpy, or in torch and Triton for GPUs.

A kernel computes on one block of rows. It opens no file, starts no thread and knows nothing of engines. Kernels import
`belief.method` for its definitions, and `belief._utils`.
"""
