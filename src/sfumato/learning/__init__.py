"""What is learned from tables: C4.5 trees (``c45.estimators``), and scores that guide mechanisms."""
