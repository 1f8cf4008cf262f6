"""Task-aware privacy-preserving publishing of labelled tables.

The names below are the public interface; each, and each subpackage, is imported when it is first used, so that
``import sfumato`` is instant.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.attack.linkage import link
    from sfumato.attack.risk import risk_of
    from sfumato.audit.profile import risk_profile
    from sfumato.audit.verify import AuditReport, audit_release
    from sfumato.contract import Release
    from sfumato.displays.breach_plane import BreachPlaneDisplay
    from sfumato.evaluation.compare import compare
    from sfumato.evaluation.encoding import GeneralizedEncoder
    from sfumato.evaluation.scores import evaluate
    from sfumato.evaluation.utility import cross_validated_utility
    from sfumato.guarantees import (
        BreachBound,
        Containment,
        DifferentialPrivacy,
        GlobalAnonymity,
        KAnonymity,
        KKAnonymity,
        LDiversity,
        PrivacyGain,
        TCloseness,
    )
    from sfumato.large.api import audit_large, release_large
    from sfumato.learning.c45 import C45Classifier, C45Regressor
    from sfumato.manifest import Manifest
    from sfumato.perturbation.flipping import RandomFlipper
    from sfumato.perturbation.noisy_counts import ExponentialReleaser, LaplaceReleaser
    from sfumato.project import load_project
    from sfumato.project_release import publish_project
    from sfumato.publishing import publish
    from sfumato.recoding.anatomy import Anatomy
    from sfumato.recoding.gain import GainRecoder
    from sfumato.recoding.global_recoding import GlobalRecoder
    from sfumato.recoding.hierarchy import Hierarchy
    from sfumato.recoding.hierarchy_files import read_hierarchy
    from sfumato.recoding.mondrian_mechanism import Mondrian
    from sfumato.recoding.slicing import Slicer
    from sfumato.recoding.tree import ErrorRiskTree
    from sfumato.releasing import release
    from sfumato.schema import Column, Kind, Role, Schema
    from sfumato.selection.breach_selector import BreachAwareSelector
    from sfumato.selection.containment import GreedyContainmentSelector
    from sfumato.selection.exact import ExactContainmentSelector
    from sfumato.selection.maximal import MaximalContainmentSelector
    from sfumato.selection.optimal import OptimalContainmentSelector
    from sfumato.table.binarize import BinarizePlan, binarize
    from sfumato.table.binary import BinaryTable
    from sfumato.table.coding import Table
    from sfumato.table.read import ReadOptions, read_table

_HOMES = {
    "Anatomy": "sfumato.recoding.anatomy",
    "AuditReport": "sfumato.audit.verify",
    "BinarizePlan": "sfumato.table.binarize",
    "BinaryTable": "sfumato.table.binary",
    "BreachAwareSelector": "sfumato.selection.breach_selector",
    "BreachBound": "sfumato.guarantees",
    "BreachPlaneDisplay": "sfumato.displays.breach_plane",
    "C45Classifier": "sfumato.learning.c45",
    "C45Regressor": "sfumato.learning.c45",
    "Column": "sfumato.schema",
    "Containment": "sfumato.guarantees",
    "DifferentialPrivacy": "sfumato.guarantees",
    "ErrorRiskTree": "sfumato.recoding.tree",
    "ExactContainmentSelector": "sfumato.selection.exact",
    "ExponentialReleaser": "sfumato.perturbation.noisy_counts",
    "GainRecoder": "sfumato.recoding.gain",
    "GeneralizedEncoder": "sfumato.evaluation.encoding",
    "GlobalAnonymity": "sfumato.guarantees",
    "GlobalRecoder": "sfumato.recoding.global_recoding",
    "GreedyContainmentSelector": "sfumato.selection.containment",
    "Hierarchy": "sfumato.recoding.hierarchy",
    "KAnonymity": "sfumato.guarantees",
    "KKAnonymity": "sfumato.guarantees",
    "Kind": "sfumato.schema",
    "LDiversity": "sfumato.guarantees",
    "LaplaceReleaser": "sfumato.perturbation.noisy_counts",
    "Manifest": "sfumato.manifest",
    "MaximalContainmentSelector": "sfumato.selection.maximal",
    "Mondrian": "sfumato.recoding.mondrian_mechanism",
    "OptimalContainmentSelector": "sfumato.selection.optimal",
    "PrivacyGain": "sfumato.guarantees",
    "RandomFlipper": "sfumato.perturbation.flipping",
    "ReadOptions": "sfumato.table.read",
    "Release": "sfumato.contract",
    "Role": "sfumato.schema",
    "Schema": "sfumato.schema",
    "Slicer": "sfumato.recoding.slicing",
    "TCloseness": "sfumato.guarantees",
    "Table": "sfumato.table.coding",
    "audit_large": "sfumato.large.api",
    "audit_release": "sfumato.audit.verify",
    "binarize": "sfumato.table.binarize",
    "compare": "sfumato.evaluation.compare",
    "cross_validated_utility": "sfumato.evaluation.utility",
    "evaluate": "sfumato.evaluation.scores",
    "link": "sfumato.attack.linkage",
    "load_project": "sfumato.project",
    "publish": "sfumato.publishing",
    "publish_project": "sfumato.project_release",
    "read_hierarchy": "sfumato.recoding.hierarchy_files",
    "read_table": "sfumato.table.read",
    "release": "sfumato.releasing",
    "release_large": "sfumato.large.api",
    "risk_of": "sfumato.attack.risk",
    "risk_profile": "sfumato.audit.profile",
}

__all__ = [
    "Anatomy",
    "AuditReport",
    "BinarizePlan",
    "BinaryTable",
    "BreachAwareSelector",
    "BreachBound",
    "BreachPlaneDisplay",
    "C45Classifier",
    "C45Regressor",
    "Column",
    "Containment",
    "DifferentialPrivacy",
    "ErrorRiskTree",
    "ExactContainmentSelector",
    "ExponentialReleaser",
    "GainRecoder",
    "GeneralizedEncoder",
    "GlobalAnonymity",
    "GlobalRecoder",
    "GreedyContainmentSelector",
    "Hierarchy",
    "KAnonymity",
    "KKAnonymity",
    "Kind",
    "LDiversity",
    "LaplaceReleaser",
    "Manifest",
    "MaximalContainmentSelector",
    "Mondrian",
    "OptimalContainmentSelector",
    "PrivacyGain",
    "RandomFlipper",
    "ReadOptions",
    "Release",
    "Role",
    "Schema",
    "Slicer",
    "TCloseness",
    "Table",
    "audit_large",
    "audit_release",
    "binarize",
    "compare",
    "cross_validated_utility",
    "evaluate",
    "link",
    "load_project",
    "publish",
    "publish_project",
    "read_hierarchy",
    "read_table",
    "release",
    "release_large",
    "risk_of",
    "risk_profile",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("sfumato")
    if name not in _HOMES and not name.startswith("_") and importlib.util.find_spec(f"sfumato.{name}"):
        return importlib.import_module(f"sfumato.{name}")
    if name not in _HOMES:
        message = f"module 'sfumato' has no attribute '{name}'"
        raise AttributeError(message)
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute or name)


def __dir__() -> list[str]:
    return sorted(__all__)
