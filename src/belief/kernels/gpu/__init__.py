"""Kernels for dense rows on a GPU: in torch for every device, and compiled (Triton, Gluon) where these run.

    points.py   rows as fp16 points, and proven bounds of their distances
    scan.py     candidates, found by products of points                hopper.py    the same in Gluon, for Hopper
    search.py   the search, chunk after chunk                          compiled.py  other kernels in Triton, any GPU
    ranking.py  exact distances, ties, the nearest rows so far         sums.py      sums over rows and over pairs

Only the GPU engine imports this package, so its modules import torch at the top.
"""
