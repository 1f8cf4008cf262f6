"""The corpus is the one that was written before the detector, and large enough."""

from __future__ import annotations

from identifiers import corpus, words


def test_the_corpus_is_the_frozen_one() -> None:
    assert corpus.fingerprint() == corpus.FROZEN


def test_the_corpus_has_enough_columns_of_each_label_in_eight_languages() -> None:
    columns = list(corpus.columns())

    assert len(columns) >= 400
    assert {column.language for column in columns} == set(words.LANGUAGES)
    for language in words.LANGUAGES:
        assert (
            min(sum(c.is_identifier is label for c in columns if c.language == language) for label in (True, False))
            >= 30
        )


def test_about_a_quarter_of_the_columns_is_held_out() -> None:
    for label in (True, False):
        columns = [column for column in corpus.columns() if column.is_identifier is label]

        assert 0.2 < sum(column.is_held_out for column in columns) / len(columns) < 0.3
