"""Kernels: functions from arrays to arrays, compiled by numba, in plain numpy, or in torch and Triton for GPUs.

A kernel computes on one block of rows. It opens no files, starts no threads and does not use engines. Kernels import
only `belief.method`, for its definitions, and `belief._utils`.
"""
