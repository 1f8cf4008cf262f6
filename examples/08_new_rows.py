"""Recode training rows, bring test rows into the same form, and test a classifier on them."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from sfumato import GeneralizedEncoder, Mondrian
from sfumato.datasets.admissions import admissions
from sfumato.schema import Role

table = admissions(n_rows=1200)
train, test = table.take(np.arange(800)), table.take(np.arange(800, 1200))
learned_from = [column.name for column in table.schema if column.role.is_one_of([Role.QUASI_IDENTIFIER])]

for k in (2, 10, 50):
    recoder = Mondrian(k=k, split="gain").fit(train)  # finds a recoding; nothing is released
    own, new = recoder.transform(train), recoder.transform(test)  # the test rows were never looked at before

    encoder = GeneralizedEncoder().fit(own, {name: train.schema[name] for name in learned_from})
    model = LogisticRegression(max_iter=2000).fit(encoder.transform(own), own["readmitted"].codes)
    auc = roc_auc_score(new["readmitted"].codes, model.predict_proba(encoder.transform(new))[:, 1])
    unknown = sum(int(rows.sum()) for rows in recoder.recoding_.unknown(test).values())
    print(f"k = {k:>2}: AUC {auc:.3f} on {new.n_rows} test rows, {unknown} values unknown to the recoding")
