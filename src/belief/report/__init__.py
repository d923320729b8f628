"""A Result as one HTML file that needs nothing else: result -> plain dict -> pictures -> page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from belief.result.result import Result

__all__ = ["render"]


def render(result: Result, title: str | None = None) -> str:
    """Make a page of a result: one HTML file that loads nothing and needs no network.

    Parameters
    ----------
    result : Result
    title : str, default=None
        The title of the page.

    Returns
    -------
    str
        The page, to be written as UTF-8. It needs matplotlib and Jinja2, the extra `report`.

    Examples
    --------
    >>> import belief, pathlib, tempfile
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=4, random_state=0)
    >>> page = belief.report.render(result, title="Why customers leave")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "report.html").write_text(page, encoding="utf-8")
    """
    from belief.report.content import content_of
    from belief.report.figures import pictures_of
    from belief.report.page import page_of

    said = content_of(result, title)
    return page_of(said, pictures_of(result, said["pictures"]))
