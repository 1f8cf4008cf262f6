"""Recognise identifiers by what the cells of a column hold, and by its name in eight languages.

Entry points: :func:`sfumato.table.identifiers.recognise.recognise` looks at the cells,
:mod:`sfumato.table.identifiers.column_names` at the name. Everything is said as a pattern and a share, never as a value.
"""
