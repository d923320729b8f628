"""Random tables from hypothesis, with mixed columns, missing values, ties, copies, constants and 2 to 6 classes."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class Case:
    X: np.ndarray
    labels: np.ndarray
    discrete: np.ndarray
    settings: dict

    def oracle(self):
        """Return the settings as arguments of the oracle, `naive.belief`."""
        s = self.settings
        return {
            "n_select": s["n_features_to_select"], "discrete": self.discrete, "k": s["n_neighbors"],
            "s": s["sample_size"], "share": s["batch_size"], "neighborhood": s["neighborhood"], "scale": s["scale"],
            "redundancy": s["redundancy"], "theta": s["theta"], "eta": s["eta"], "kappa": s["kappa"],
            "sampling": s["sampling"], "class_weight": s["class_weight"], "seed": s["random_state"],
        }  # fmt: skip


@st.composite
def columns(draw, rng, m):
    """Draw the values of a feature, and whether it is discrete."""
    kind = draw(st.sampled_from(["noise", "grid", "grid", "nominal", "nominal", "many", "sparse", "constant"]))
    if kind == "noise":
        return rng.standard_normal(m) * draw(st.sampled_from([1e-3, 1.0, 1e4])) + draw(
            st.sampled_from([0.0, 100.0])
        ), False
    if kind == "grid":
        return rng.integers(0, draw(st.integers(2, 5)), m).astype(float), False
    if kind == "nominal":
        return rng.integers(0, draw(st.integers(2, 6)), m).astype(float), True
    if kind == "many":  # more levels than are embedded
        return rng.integers(0, 60, m).astype(float), True
    if kind == "sparse":
        return np.where(rng.random(m) < 0.1, rng.standard_normal(m), 0.0), False
    return np.full(m, 3.0), draw(st.booleans())


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 6))
    m = draw(st.integers(n_classes, 60))
    made = [draw(columns(rng, m)) for _ in range(draw(st.integers(1, 8)))]
    made += [made[i % len(made)] for i in range(draw(st.integers(0, 2)))]  # copies of features
    X = np.column_stack([x for x, _ in made])
    discrete = np.array([d for _, d in made])
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.0, 0.2]))] = np.nan
    X = X[np.concatenate([np.arange(m), rng.integers(0, m, draw(st.integers(0, 60)))])]  # copies of rows
    labels = rng.integers(0, n_classes, len(X))
    labels[:n_classes] = np.arange(n_classes)
    if draw(st.booleans()):
        labels.sort()  # the rows of files are often sorted by class
    if draw(st.booleans()):
        X = X.astype(np.float32).astype(np.float64)
    s = draw(st.integers(1, len(X)))
    sampling = draw(st.sampled_from(["balanced", "random", "proportional"]))
    redundancy = draw(st.sampled_from(["agreement", "agreement", "mcr", "mcr", None]))
    settings = {
        "n_features_to_select": draw(st.integers(1, X.shape[1])),
        "n_neighbors": draw(st.sampled_from(["auto", 1, 2, 3, 5, 7])),
        "sample_size": max(s, n_classes) if sampling == "proportional" else s,
        "sampling": sampling,
        "class_weight": draw(st.sampled_from(["balanced", "prior", dict(enumerate([1, 3, 0.5, 2, 1, 1]))])),
        "batch_size": draw(st.sampled_from([0.1, 0.25, 0.4, 1.0])),
        "neighborhood": draw(st.sampled_from(["per_class", "pooled"])),
        "scale": draw(st.sampled_from(["auto", "standard", "sigma", "none"])),
        "redundancy": redundancy,
        "theta": draw(st.sampled_from(["auto", 0.3, 1.0] + ["mean"] * (redundancy == "mcr"))),
        "eta": draw(st.sampled_from([0.5, 1.0, 2.0])),
        "kappa": draw(st.sampled_from([0.0, 0.5, 2 / 3, 0.8, 1.0])),
        "random_state": draw(st.integers(0, 2**40)),
    }
    return Case(X, labels.astype(np.int32), discrete, settings)
