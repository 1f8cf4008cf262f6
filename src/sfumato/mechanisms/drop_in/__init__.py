"""Drop-in releases: the original's columns and types, so that any library trains on them.

``classes`` says which rows were made equal. ``typical`` gives all rows of a class one value a column. ``draws`` keeps
every value and moves it to another row of its class. ``copies`` counts the rows that come out as an original row.
"""
