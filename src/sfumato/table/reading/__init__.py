"""How the texts of a column are read where they are no plain numbers and no ISO dates.

``dates.py`` and ``numbers.py`` hold the formats, ``units.py`` and ``months.py`` the words in them, ``columns.py`` the
decision of one format for a whole column. The cells of a table are always plain: ``2021-04-03``, ``1234.5``.
"""
