"""Run the method and keep intermediate results, which tests compare with the oracle."""

import warnings
from types import SimpleNamespace

import pytest

from belief.method import algorithm
from belief.method.settings import Settings


def run(engine, settings):
    """Return the fields of the Outcome, and the difference, the tally, the null and the redundancy measure."""
    kept = SimpleNamespace()

    class TracedRun(algorithm._Run):
        def make_outcome(self, estimate, reason):
            kept.tally, kept.difference, kept.null, kept.measure = (
                self.tally,
                self.difference,
                estimate.null,
                estimate.measure,
            )
            return super().make_outcome(estimate, reason)

    chosen = settings if isinstance(settings, Settings) else Settings(**settings)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few rows: tested elsewhere
        patch.setattr(algorithm, "_Run", TracedRun)
        outcome = algorithm.belief(engine, chosen, lambda *described: None, lambda *phase: None)
    return SimpleNamespace(**vars(outcome), **vars(kept))
