"""The number of random cases in tests: a third by default, all with BELIEF_THOROUGH=1 (`make test-all`)."""

import os

THOROUGH = os.environ.get("BELIEF_THOROUGH") == "1"


def examples(n):
    """Return how many of n random cases to run."""
    return n if THOROUGH else max(1, n // 3)


# checks of scikit-learn that fail for every selector that accepts row weights
NOT_REPETITION = {
    f"check_sample_weight_equivalence_on_{kind}_data": "a weight is not a repetition: copies would be neighbours"
    for kind in ("dense", "sparse")
}
