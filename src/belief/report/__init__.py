"""The HTML report of a Result, in one self-contained file.

A report is made in three steps: the result becomes a plain dictionary, the figures are drawn, and a template is filled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from belief.comparison.curve import SizeCurve
    from belief.result.result import Result

__all__ = ["render"]


def render(result: Result, title: str | None = None, curve: SizeCurve | None = None) -> str:
    """Render a result as a self-contained HTML page, which needs no network.

    Parameters
    ----------
    result : Result
    title : str, default=None
        The title of the page.
    curve : SizeCurve, default=None
        The return value of :func:`belief.score_by_size`; the page then also shows how many features suffice.

    Returns
    -------
    str
        The HTML page, to be written as UTF-8. This function needs matplotlib and Jinja2, the extra `report`.

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
