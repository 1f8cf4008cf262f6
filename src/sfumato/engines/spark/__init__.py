"""Rows on a Spark cluster: the session, its errors in our words, tables (``table.open_cluster``) and frames."""
