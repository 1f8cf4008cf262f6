"""The papers' own systems by name: a mechanism with the settings that a paper describes, such as ``paper:hamdist``.

A preset is no mechanism of its own. The registry builds the mechanism that it names, with its settings, and the
manifest of a release states that mechanism and all parameters. Settings that make it the paper's system cannot be
changed under its name; the others, such as k, can. A name with ``ours:`` is a system of a paper with a choice of ours
in the place of one that the paper prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import InvalidParameterError

PAPERS_OWN, OUR_CHOICE = "paper:", "ours:"
"""Begin the names of presets, and of no mechanism: as the paper prints it, or with a choice of ours."""


@dataclass(frozen=True)
class Preset:
    """A paper's system.

    Parameters
    ----------
    mechanism : str
        What makes it; empty where no mechanism on one table does (several parties).
    title : str
        The paper's own name of it.
    section : str
        Where the paper describes it.
    fixed : mapping
        Settings that make it what its name says.
    usual : mapping
        The paper's values of settings that may be changed.
    differs : str
        What is not as printed, and why. A reading that was chosen because it comes nearest is called fitted.
    example : mapping
        Settings of the printed example where the usual ones would take long.
    """

    mechanism: str
    title: str
    section: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    differs: str = ""
    example: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        """All settings that the preset gives its mechanism."""
        return {**self.usual, **self.fixed}


_CONTAINMENT = "Zhang, Mohammed, Dave, Al Hasan (2017)"
_TREE = "Yang, Wang, Hu, Li (2019)"
_GREEDY = {"on_infeasible": "stop", "reveals": "ones"}
_BREACH = {"lists": "both", "search": "lists", "test": "paired", "metric": "accuracy", "max_performance_loss": 100.0}
_QUICK_LEARNER = {"learner": "naive-bayes", "attacker": "naive-bayes"}
_BREACH_SECTION = "Jafer, Matwin, Sokolova (2017)"
_ERP = {"refine": False, "rule": "literal", "criterion": "gain", "splits": "binary", "min_samples_leaf": 2}
_ERP_GROWN = (
    "How the tree is grown is not printed: binary splits, as in Figure 1, by information gain with leaves of two rows, "
    "which is fitted (nearest to Table 2)"
)
_ERP_DIFFERS = (
    "prunes as Figure 2 says. Where that is silent: a branch that costs no error has the largest ω, of several the one "
    "that gains most; of equal ω (to nine digits) the node nearer to the root goes first, then the one further left. "
    f"{_ERP_GROWN}"
)
_NOISE_DIFFERS = (
    "the printed noise is smaller than its ε needs (decision 6), so the release promises the larger ε that this noise "
    "gives; calibration=proven adds enough. n_features: as many as paper:hamdist keeps at k = 5"
)

PRESETS: Mapping[str, Preset] = {
    "paper:hamdist": Preset(
        "greedy-containment",
        "Greedy HamDist",
        f"{_CONTAINMENT}, Algorithm 2",
        {**_GREEDY, "criterion": "hamming_separation"},
        {"k": 5},
    ),
    "paper:distcnt": Preset(
        "greedy-containment",
        "Greedy DistCnt",
        f"{_CONTAINMENT}, Algorithm 3",
        {**_GREEDY, "criterion": "distinguished_pairs"},
        {"k": 5},
        differs="stops at zero gain, where the printed algorithm never ends",
    ),
    "paper:maximal": Preset(
        "maximal-containment",
        "Maximal",
        f"{_CONTAINMENT}, Algorithm 1",
        {"search": "top-r", "criterion": "hamming_separation"},
        {"k": 5, "r": 20},
        differs="searches frequent itemsets, as the paper does; exact-containment has all feasible sets",
    ),
    "paper:cm": Preset(
        "greedy-containment",
        "CM Greedy (baseline)",
        f"{_CONTAINMENT}, Definition 2 and section 5.2",
        {**_GREEDY, "criterion": "classification_metric"},
        {"k": 5},
        differs="goes on at zero gain, as the paper's five features of Adult require",
    ),
    "paper:k-anonymity-hamdist": Preset(
        "greedy-containment",
        "k-anonymity HamDist (baseline)",
        f"{_CONTAINMENT}, section 5.2",
        {**_GREEDY, "reveals": "both", "criterion": "hamming_separation"},
        {"k": 5},
    ),
    "paper:k-anonymity-distcnt": Preset(
        "greedy-containment",
        "k-anonymity DistCnt (baseline)",
        f"{_CONTAINMENT}, section 5.2",
        {**_GREEDY, "reveals": "both", "criterion": "distinguished_pairs"},
        {"k": 5},
        differs="stops at zero gain, where the printed algorithm never ends",
    ),
    "paper:rf": Preset(
        "random-flipping",
        "RF, random flipping (baseline)",
        f"{_CONTAINMENT}, section 5.2; clusters by Byun et al. (2007)",
        {"keep_frequent": False},
        {"k": 5},
    ),
    "paper:laplace-dp": Preset(
        "laplace-dp",
        "Laplace-DP (baseline)",
        f"{_CONTAINMENT}, section 5.2",
        {"calibration": "paper"},
        {"epsilon": 1.0},
        differs=_NOISE_DIFFERS,
    ),
    "paper:exponential-dp": Preset(
        "exponential-dp",
        "Exponential-DP (baseline)",
        f"{_CONTAINMENT}, section 5.2",
        {"calibration": "paper"},
        {"epsilon": 1.0},
        differs=_NOISE_DIFFERS,
    ),
    "paper:pbi": Preset(
        "breach-aware",
        "candidates along both ranked lists, chosen by E(S)",
        f"{_BREACH_SECTION}, Figures 4 and 5, section 4",
        _BREACH,
        {"learner": "c45", "attacker": "c45", "n_folds": 10, "max_breach_increase": "distp"},
        differs="a candidate with PBI above max_breach_increase is never released",
        example=_QUICK_LEARNER,
    ),
    "paper:wrapper": Preset(
        "best-first-wrapper",
        "WFS, wrapper-based feature selection that knows no privacy (baseline)",
        f"{_BREACH_SECTION}, section 4.3",
        {"metric": "accuracy", "allow_increase": True},
        {"learner": "c45", "attacker": "c45", "direction": "forward", "n_stale": 5, "n_folds": 5, "n_repeats": 5},
        differs="the paper names best-first search in both directions, and no more; learner, folds and the end of the "
        "search are Weka's own (J48, WrapperSubsetEval, BestFirst), which select the paper's columns of Pima",
        example=_QUICK_LEARNER,
    ),
    "paper:erp": Preset(
        "error-risk-tree",
        "ERP-only: error-risk pruning, one domain for each group",
        f"{_TREE}, Figure 2",
        {**_ERP, "generalization": "uniform"},
        {"k": 10},
        differs=f"{_ERP_DIFFERS}. At k = 3 it leaves one group of Figure 1, while Table 1 goes on with group 2: see "
        "ours:erp-lowest",
    ),
    "paper:erp-tiered": Preset(
        "error-risk-tree",
        "error-risk pruning with tiered generalization (the proposed method)",
        f"{_TREE}, Figure 2 and Table 1",
        {**_ERP, "generalization": "tiered"},
        {"k": 10},
        differs=f"{_ERP_DIFFERS}. Tiered cells are the same whatever rule prunes. Promises (k,k) and global (1,k): "
        "tiered cells are not k-anonymous",
    ),
    "ours:erp-lowest": Preset(
        "error-risk-tree",
        "ERP-only, but only branches that must go are pruned",
        f"after {_TREE}, Figure 2",
        {**_ERP, "rule": "lowest", "generalization": "uniform"},
        {"k": 10},
        differs="prunes a branch only if an undersized leaf is left among its children, so that ω decides nothing. "
        "Reason: it keeps the most groups and the least training error of all prunings with k rows in every leaf, and "
        f"group 2 of Table 1, which Figure 2 as printed does not keep. {_ERP_GROWN}",
    ),
    "paper:mondrian": Preset(
        "mondrian",
        "Mondrian (baseline)",
        f"{_TREE}, Table 2; LeFevre, DeWitt, Ramakrishnan (2008)",
        {"split": "gain", "criterion": "entropy", "strict": True},
        {"k": 10},
        differs="neither how it cuts categorical columns nor where it stops is printed; ours cuts as long as both "
        "parts have k rows, and has a lower penalty on Adult than the printed one",
    ),
    "paper:gain-slicing": Preset(
        "gain-recoding",
        "feature-based anonymization: the high slice is published unchanged",
        "Gachanga, Kimwele, Nderu (2019), sections 3 and 4",
        {"slicing": True, "gain_correction": "none", "regroup": False},
        {"k": 5, "l": 3, "max_suppressed_fraction": 0.015, "threshold": 0.02},
        differs="gains by H(C) - H(C|X), since Equation 3 is not information gain; for the paper's slices of Adult "
        "give gain_target=sex, the class that its Table 1 was computed with",
    ),
    "paper:recoding-without-gain": Preset(
        "global-recoding",
        "k = 5 and l = 3 without information gain (baseline): every quasi-identifier is coarsened",
        "Gachanga, Kimwele, Nderu (2019), Table 3",
        {"loss": "loss", "weights": "equal", "guide": "label", "regroup": False},
        {"k": 5, "l": 3, "max_suppressed_fraction": 0.015},
        differs="what the search minimizes is not printed: the loss that ARX takes by default",
    ),
    "paper:collaborate": Preset(
        "",
        "privacy-utility feature selection of several parties",
        "Sheikhalishahi, Martinelli (2017), sections III and IV",
        differs="needs several parties, so it is a command of its own",
    ),
}


def is_preset(name: str) -> bool:
    """Whether a name is that of a preset, known or not."""
    return name.startswith((PAPERS_OWN, OUR_CHOICE))


def find_preset(name: str) -> Preset:
    """Look a preset up by name.

    Raises
    ------
    InvalidParameterError
        If there is none, or none that a release can be made with.
    """
    if name not in PRESETS:
        raise InvalidParameterError("mechanism", f"got '{name}'", allowed=f"one of {', '.join(PRESETS)}")
    preset = PRESETS[name]
    if not preset.mechanism:
        hint = "several parties select columns in a session (collaborate), which can be simulated on one table"
        raise InvalidParameterError("mechanism", f"got '{name}'", allowed="a system for one table", hint=hint)
    return preset


def with_preset(name: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Give the mechanism that makes a preset, with all its settings and those that are given.

    Raises
    ------
    InvalidParameterError
        If a given setting would make it another system than its name says.

    Examples
    --------
    >>> with_preset("paper:rf", {"k": 8})
    ('random-flipping', {'k': 8, 'keep_frequent': False})
    """
    preset = find_preset(name)
    for key, value in preset.fixed.items():
        if key in parameters and str(parameters[key]).lower() != str(value).lower():
            raise InvalidParameterError(
                f"{key} of {name}",
                f"got {parameters[key]!r}",
                allowed=f"{value!r} under this name",
                hint=f"choose the mechanism {preset.mechanism} to set it",
                remedy=("mechanism",),
            )
    return preset.mechanism, {**preset.usual, **parameters, **preset.fixed}


def presets_of(mechanism: str) -> dict[str, Preset]:
    """Presets that a mechanism makes."""
    return {name: preset for name, preset in PRESETS.items() if preset.mechanism == mechanism}
