"""Helpers that read the published answers of an experiment and the text of its page."""

from common import Answers


def kept_answers(module):
    """Return the published answers of an experiment."""
    found = Answers(module.ANSWERS, module.configuration())
    assert found.answers, f"{module.ANSWERS.name} has answers of another configuration: run the experiment again"
    return found


def words_of(page):
    """Return the text of a page before its first generated part, in one line."""
    return " ".join(page.read_text().partition("<!--")[0].split())
