"""What scikit-learn lacks: a C4.5 tree with multiway splits, gain ratio and fractional missing values."""

from sfumato.learning.c45.estimators import C45Classifier, C45Regressor

__all__ = ["C45Classifier", "C45Regressor"]
