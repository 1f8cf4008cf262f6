"""What cannot be done with rows that are not in memory is declared once: messages and docs say the same."""

from tests.limits_of_rows import BEGIN, PAGE, with_limits


def test_the_docs_list_what_is_declared():
    """Run ``python -m tests.limits_of_rows`` where this fails."""
    text = PAGE.read_text("utf-8")

    assert BEGIN in text
    assert with_limits(text) == text
