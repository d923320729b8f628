"""The method BELIEF itself, in the paper's symbols. It knows the data only through the protocols in `protocols.py`.

It may import numpy, scipy and `belief._utils`.
"""
