"""Writing of a Result into an AnnData table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from belief.result.result import Result


def write_anndata(result: Result, adata: Any, key: str) -> None:
    """Write the ranking to columns of `adata.var`, and the settings to `adata.uns[key]`."""
    if not hasattr(adata, "var") or not hasattr(adata, "uns"):
        raise ValueError(
            f"write_to needs an AnnData table; got a {type(adata).__name__}. Pass the table from which the features"
            " were selected."
        )
    names, features = [str(name) for name in adata.var_names], list(result.feature_names)
    if names == features:
        positions = np.arange(len(names))
    else:
        known = {name: j for j, name in enumerate(names)}
        unknown = [name for name in features if name not in known]
        if unknown or len(known) < len(names):
            problem = f"no variable {unknown[0]!r}" if unknown else "several variables with the same name"
            raise ValueError(
                f"The AnnData table has {problem}. Pass the table from which the features were selected, with unique"
                " var_names."
            )
        positions = np.array([known[name] for name in features])
    selected = np.isin(np.arange(len(features)), result.selected)
    columns = {
        "rank": (result.ranking.astype(float), np.nan),
        "relevance": (result.relevance, np.nan),
        "q_value": (result.q_value, np.nan),
        "selected": (selected, False),
    }
    for name, (values, rest) in columns.items():
        column = np.full(len(names), rest)
        column[positions] = values
        adata.var[f"{key}_{name}"] = column
    settings = {name: value for name, value in result.settings.items() if value is not None}
    for name, value in settings.items():
        if isinstance(value, dict):  # the keys of dictionaries in AnnData files must be strings
            settings[name] = {str(k): v for k, v in value.items()}
    facts = {"task": result.task, "seed": result.seed, "n_rows": result.n_rows, "sample_size": result.sample_size}
    adata.uns[key] = {"settings": settings, **facts}
