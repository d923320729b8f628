"""Run the method and keep intermediate results, which tests compare with the oracle."""

import warnings
from types import SimpleNamespace

import numpy as np

from belief.method.algorithm import Run
from belief.method.protocols import Storage
from belief.method.settings import Settings

PLAIN = {"significance": None, "copies": "keep"}


def run(engine, settings, given=()):
    """Return the fields of the result, and the difference, the tally and the redundancy measure.

    Unless the settings ask for it there is no test of significance, so that neighbours are searched by all features.
    """
    settings = settings if isinstance(settings, Settings) else Settings(**{**PLAIN, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few rows: tested elsewhere
        run = Run(engine, settings, lambda *_: None, Storage(), lambda: np.array(given, np.int64))
        found = run.execute(check=lambda *_: None)
    kept = {"difference": run.difference, "tally": run.tally, "measure": run.estimate.measure}
    return SimpleNamespace(**found, **kept)
