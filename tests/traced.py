"""Run the method and keep intermediate results, which tests compare with the oracle."""

import warnings
from types import SimpleNamespace

import numpy as np

from belief.method.algorithm import Run
from belief.method.protocols import Storage
from belief.method.settings import Settings

PLAIN = {"significance": None, "copies": "keep"}


def run(engine, settings, given=()):
    """Return the fields of the result, and three objects of the run.

    These are `difference` (the definition of differences between values), `tally` (the sums of these differences over
    the pairs of neighbours) and `measure` (the redundancy of the features).

    If the settings are a dict, copies of rows are kept and there are no significance tests by default, so that all
    features define the distances.
    """
    settings = settings if isinstance(settings, Settings) else Settings(**{**PLAIN, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the warnings for tables with few rows are tested elsewhere
        run = Run(engine, settings, lambda *_: None, Storage(), lambda: np.array(given, np.int64))
        found = run.execute(check=lambda *_: None)
    kept = {"difference": run.difference, "tally": run.tally, "measure": run.estimate.measure}
    return SimpleNamespace(**found, **kept)
