"""C4.5 trees: multiway splits, gain ratio, fractional missing values; ``estimators`` is the entry."""
