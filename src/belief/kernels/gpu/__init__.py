"""The kernels for dense rows on a device: torch everywhere, compiled kernels (Triton, Gluon) where the device has them.

    points.py   rows as fp16 points, and the proven bounds of their distances
    scan.py     candidates: products compared where they are made          hopper.py    the same in Gluon, for Hopper
    search.py   chunk after chunk, exact distances, the best lists         compiled.py  the rest in Triton, any GPU
    exact.py    d² in float64, rounding, keys       lists.py  the best so far       sums.py, moments.py  sums

Who is here has asked for a device, so torch is imported as any other library.
"""
