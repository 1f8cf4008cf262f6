"""Recognise identifiers by what the cells of a column hold, and by its name in eight languages.

Entry points: :func:`sfumato.table.identifiers.recognise.recognise` looks at the cells,
:mod:`sfumato.table.column_names` at the name. What was seen is said as a pattern and a share, never as a value.
:mod:`sfumato.table.identifiers.text_columns` refuses to release text that is no category and that nobody has confirmed.
"""
