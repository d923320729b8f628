"""The HTML report of a Result, in one self-contained file: result -> plain dictionary -> figures -> page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from belief.comparison.curve import SizeCurve
    from belief.result.result import Result

__all__ = ["render"]


def render(result: Result, title: str | None = None, curve: SizeCurve | None = None) -> str:
    """Render a result as an HTML page that loads nothing and needs no network.

    Parameters
    ----------
    result : Result
    title : str, default=None
        The title of the page.
    curve : SizeCurve, default=None
        The return value of :func:`belief.score_by_size`, to show how many features suffice.

    Returns
    -------
    str
        The page; write it as UTF-8. Needs matplotlib and Jinja2, the extra `report`.

    Examples
    --------
    >>> import belief, pathlib, tempfile
    >>> result = belief.select(str(belief.datasets.CHURN), label="left", n_features_to_select=4, random_state=0)
    >>> page = belief.report.render(result, title="Why customers leave")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "report.html").write_text(page, encoding="utf-8")
    """
    from belief._utils.validation import check_result
    from belief.report.content import collect_content
    from belief.report.figures import draw_figures
    from belief.report.templating import render_template

    check_result(result)
    content = collect_content(result, title, curve)
    return render_template("page.html", {**content, "pictures": draw_figures(result, content["pictures"], curve)})
