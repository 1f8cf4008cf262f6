"""What scikit-learn lacks: a C4.5 tree with multiway splits, gain ratio and fractional missing values."""
