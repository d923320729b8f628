"""What the pages of the experiments say, and the answers that they show."""

from common import Answers


def kept_answers(module):
    """Return the published answers of an experiment."""
    found = Answers(module.ANSWERS, module.configuration())
    assert found.answers, f"{module.ANSWERS.name} is of another configuration: run the experiment again"
    return found


def words_of(page):
    """What a page says before its first table of answers, in one line."""
    return " ".join(page.read_text().partition("<!--")[0].split())
