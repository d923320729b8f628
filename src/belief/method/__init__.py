"""The BELIEF method, in the symbols of the paper. It accesses data only through the interfaces in `protocols.py`.

Modules of this package import only each other, numpy, scipy and `belief._utils`.
"""
