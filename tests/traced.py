"""Run the method and keep intermediate results, which tests compare with the oracle."""

import warnings
from types import SimpleNamespace

from belief.method.algorithm import Run
from belief.method.protocols import Storage
from belief.method.settings import Settings


def run(engine, settings):
    """Return the fields of the Outcome, and the difference, the tally, the null and the redundancy measure."""
    settings = settings if isinstance(settings, Settings) else Settings(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few rows: tested elsewhere
        run = Run(engine, settings, phase=lambda *_: None, storage=Storage())
        outcome = run.execute(check=lambda *_: None)
    kept = {
        "difference": run.difference,
        "tally": run.tally,
        "null": run.estimate.null,
        "measure": run.estimate.measure,
    }
    return SimpleNamespace(**vars(outcome), **kept)
