r"""Shares of single sensitive values in classes: β-likeness, δ-disclosure privacy and (α,k)-anonymity.

With the share q of a value in a class and p in the whole released table: :math:`(q - p)/p` for β-likeness of [CK12]_,
:math:`|\ln(q/p)|` for δ-disclosure privacy of [BS08]_ and q itself for (α,k)-anonymity of [WLFW06]_. A table's level is
the largest, and **infinite** where no number would do: for a table without rows, a value that a class lacks (δ), more
than the :math:`-\ln p` that enhanced β-likeness allows whatever β is, and a class of fewer than k rows (α).

A missing value is a value. β and δ are taken between values, whatever their spelling, and between spellings; the larger
level counts, for a class that holds one spelling only says something. α counts values: one of two spellings is more
frequent than either.

References
----------
.. [CK12] Cao, Karras: Publishing Microdata with a Robust Privacy Guarantee. PVLDB 5(11) (2012).
.. [BS08] Brickell, Shmatikov: The Cost of Privacy: Destruction of Data-Mining Utility in Anonymized Data Publishing.
   KDD (2008).
.. [WLFW06] Wong, Li, Fu, Wang: (α, k)-Anonymity: An Enhanced k-Anonymity Model for Privacy Preserving Data Publishing.
   KDD (2006).
"""

from __future__ import annotations

from sfumato.audit.kinds import Judging, judge
from sfumato.audit.reading.equivalence import EquivalenceClasses
from sfumato.guarantees import ROUNDING, AlphaKAnonymity, BetaLikeness, DeltaDisclosure

LIKENESS = """
SELECT CASE
    WHEN count(*) = 0 OR ($enhanced AND bool_or(ratio - 1 > -ln(share) + $slack)) THEN 'inf'
    ELSE greatest(max(ratio) - 1, 0)
END
FROM (
    SELECT pairs.n * n_rows / (totals.n * size) AS ratio, totals.n / n_rows AS share
    FROM pairs JOIN totals USING (value), (SELECT sum(n) AS n_rows FROM totals)
)
"""
"""Largest gain of a value. Only values of a class can have q > p.

The two sides of the comparison with -ln p have rounding errors, hence the slack that every level has.
"""
DISCLOSURE = """
SELECT CASE
    WHEN count(*) = 0 OR count(*) < (SELECT count(*) FROM classes) * (SELECT count(*) FROM totals) THEN 'inf'
    ELSE max(abs(ln(pairs.n * n_rows / (totals.n * size))))
END
FROM pairs JOIN totals USING (value), (SELECT sum(n) AS n_rows FROM totals)
"""
LARGEST_SHARE = "SELECT CASE WHEN coalesce(min(size), 0) < $k THEN 'inf' ELSE max(n / size) END FROM pairs"


def measure_likeness(guarantee: BetaLikeness, classes: EquivalenceClasses) -> float:
    """Smallest β that holds, in the guarantee's variant."""
    return classes.ask(LIKENESS, enhanced=guarantee.likeness == "enhanced", slack=ROUNDING)


judge(
    BetaLikeness.kind,
    Judging(parameters=("beta", "likeness"), in_classes=measure_likeness, between_spellings=True),
)
judge(
    DeltaDisclosure.kind,
    Judging(parameters=("delta",), in_classes=lambda _, classes: classes.ask(DISCLOSURE), between_spellings=True),
)
judge(
    AlphaKAnonymity.kind,
    Judging(parameters=("alpha", "k"), in_classes=lambda guarantee, classes: classes.ask(LARGEST_SHARE, k=guarantee.k)),
)
