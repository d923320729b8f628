"""What the pages of the documentation say."""


def words_of(page):
    """What a page says before its first table of answers, in one line."""
    return " ".join(page.read_text().partition("<!--")[0].split())
