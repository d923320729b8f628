"""The method BELIEF itself, in the paper's symbols. It accesses data only through the interfaces in `protocols.py`.

It may import numpy, scipy and `belief._utils`.
"""
