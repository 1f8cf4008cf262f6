"""What a release of a tree says of disclosure: BIG, ICR and TIDI before and after pruning, and the ratios pruned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.learning.c45.tree import LEAF, Tree
from sfumato.mechanisms.tree.error_risk import ErrorRisk, PrunedTree

MEASURES = {"big": "granularity", "icr": "reidentification", "tidi": "information"}
"""Figures of [ERP19]_ by their short names, and where :class:`ErrorRisk` keeps them."""


def disclosure_evidence(tree: Tree, risk: ErrorRisk, pruned: PrunedTree) -> dict[str, Any]:
    """Sum up BIG, ICR and TIDI of the leaves of a tree and of the groups that pruning made of them, in bits.

    Least of all leaves or groups with rows, and mean over *rows*, each with the figure of its leaf or group. Pruning
    raises the least TIDI and lowers the mean: where binary leaves fill the domain of a node t, the mean of their TIDI
    by rows exceeds R(t) by the divergence of the shares of rows from the shares of the domain, which is never negative.

    The ratios ω are those that branches had in the tree before pruning, of the branches that became groups.

    Parameters
    ----------
    risk : ErrorRisk
        Of the tree before pruning.

    References
    ----------
    .. [ERP19] Yang, Wang, Hu, Li: A Decision Tree Approach for Assessing and Mitigating Background and Identity
       Disclosure Risks. ICIS 2019.
    """
    leaves = np.flatnonzero((tree.attribute == LEAF) & (tree.weights > 0))
    ratios = risk.ratio[pruned.groups[tree.attribute[pruned.groups] != LEAF]]
    is_finite = np.isfinite(ratios)
    return {
        "n_leaves": len(leaves),
        "n_groups": len(pruned.groups),
        **_summed_up(risk, leaves, "leaves"),
        **_summed_up(risk, pruned.groups, "groups"),
        "n_branches_pruned": len(ratios),
        "n_branches_pruned_at_no_error": int((~is_finite).sum()),
        "largest_error_risk_ratio": float(ratios[is_finite].max()) if is_finite.any() else None,
    }


def _summed_up(risk: ErrorRisk, nodes: NDArray[np.integer], of: str) -> dict[str, float]:
    weights = risk.n_rows[nodes]
    found = {}
    for name, kept in MEASURES.items():
        bits = getattr(risk, kept)[nodes]
        found[f"least_{name}_bits_of_{of}"] = float(bits.min())
        found[f"mean_{name}_bits_of_{of}"] = float(np.average(bits, weights=weights))
    return found
