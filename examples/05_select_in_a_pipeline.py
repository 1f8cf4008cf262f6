"""Use a privacy-aware selector as a step of a scikit-learn pipeline."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from sfumato import GreedyContainmentSelector, binarize
from sfumato.datasets.admissions import admissions

features = binarize(admissions(n_rows=1000))
X = np.asarray(features.matrix.todense())
y = features.target().codes

for k in (2, 5, 20):
    pipeline = make_pipeline(GreedyContainmentSelector(k=k, on_infeasible="skip"), LogisticRegression(max_iter=1000))
    auc = cross_val_score(pipeline, X, y, cv=3, scoring="roc_auc").mean()
    n_kept = pipeline.fit(X, y)[0].get_support().sum()
    print(f"k = {k:>2}: {n_kept:>2} of {X.shape[1]} features, AUC {auc:.3f}")
