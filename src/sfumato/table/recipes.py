"""Binarizations that a paper or a field has fixed, by name.

``adult-19``
    The 19 binary features of UCI Adult in the experiments of [kAC17]_ (section 5.1), on the columns as
    :func:`sfumato.datasets.public.load_adult` names them. From the paper: five age bands [0, 25], (25, 35], (35, 45],
    (45, 55], (55, ∞); never-married; white; gender; four bands of education and five of weekly hours; one feature each
    for work class and occupation. Ours, because the paper does not say:

    - education bands on ``education-num``: ≤ 8 (no diploma), 9 (high-school graduate), 10–12 (some college, associate
      degree), > 12 (bachelor and above);
    - weekly hours: ≤ 20, 20–35, 35–40, 40–50, > 50;
    - gender: male is 1;
    - work class: federal, local and state government; occupation: the manual ("blue-collar") trades. Every row has
      exactly three ones from the bands, so the printed density of 27.9 % (32,561 rows) fixes how common these two are
      together, 44–46 % of the rows. This pair gives 27.86 %. Other natural pairs: government with managers,
      professionals and technicians 27.71 %; self-employed with blue-collar 27.75 %; government or self-employed with
      managers and professionals 28.16 %; any pair with private work above 29 %;
    - a missing work class or occupation is 0, and there is no "missing" feature.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GOVERNMENT = ["Federal-gov", "Local-gov", "State-gov"]
_BLUE_COLLAR = ["Craft-repair", "Farming-fishing", "Handlers-cleaners", "Machine-op-inspct", "Transport-moving"]

RECIPES: Mapping[str, Mapping[str, Any]] = {
    "adult-19": {
        "missing_features": False,
        "unlisted": "drop",
        "columns": {
            "age": {"cuts": [25, 35, 45, 55]},
            "workclass": {"one_of": _GOVERNMENT, "name": "government"},
            "education-num": {"cuts": [8, 9, 12]},
            "marital-status": {"one_of": ["Never-married"], "name": "never-married"},
            "occupation": {"one_of": _BLUE_COLLAR, "name": "blue-collar"},
            "race": {"one_of": ["White"], "name": "white"},
            "sex": {"one_of": ["Male"], "name": "male"},
            "hours-per-week": {"cuts": [20, 35, 40, 50]},
        },
    },
}
"""Plans as :meth:`sfumato.table.binarize.BinarizePlan.from_dict` reads them."""
