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
    from sfumato.learning.c45.estimators import C45Classifier, C45Regressor
    from sfumato.manifest import Manifest
    from sfumato.mechanisms.base import Release
    from sfumato.mechanisms.baselines.flipping import RandomFlipper
    from sfumato.mechanisms.baselines.noisy_counts import ExponentialReleaser, LaplaceReleaser
    from sfumato.mechanisms.breach.selector import BreachAwareSelector
    from sfumato.mechanisms.buckets.anatomy import Anatomy
    from sfumato.mechanisms.buckets.slicing import Slicer
    from sfumato.mechanisms.containment.exact import ExactContainmentSelector
    from sfumato.mechanisms.containment.greedy import GreedyContainmentSelector
    from sfumato.mechanisms.containment.maximal import MaximalContainmentSelector
    from sfumato.mechanisms.containment.optimal import OptimalContainmentSelector
    from sfumato.mechanisms.hierarchies.files import read_hierarchy
    from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy
    from sfumato.mechanisms.lattice.gain import GainRecoder
    from sfumato.mechanisms.lattice.recoder import GlobalRecoder
    from sfumato.mechanisms.mondrian.mechanism import Mondrian
    from sfumato.mechanisms.tree.mechanism import ErrorRiskTree
    from sfumato.project.file import load_project
    from sfumato.publishing.api import release
    from sfumato.publishing.from_project import publish_project
    from sfumato.publishing.out_of_core.api import audit_large, release_large
    from sfumato.publishing.publish import publish
    from sfumato.schema import Column, Kind, Role, Schema
    from sfumato.table.binarize import BinarizePlan, binarize
    from sfumato.table.binary import BinaryTable
    from sfumato.table.coding import Table
    from sfumato.table.io.read import ReadOptions, read_table

_HOMES = {
    "Anatomy": "sfumato.mechanisms.buckets.anatomy",
    "AuditReport": "sfumato.audit.verify",
    "BinarizePlan": "sfumato.table.binarize",
    "BinaryTable": "sfumato.table.binary",
    "BreachAwareSelector": "sfumato.mechanisms.breach.selector",
    "BreachBound": "sfumato.guarantees",
    "BreachPlaneDisplay": "sfumato.displays.breach_plane",
    "C45Classifier": "sfumato.learning.c45.estimators",
    "C45Regressor": "sfumato.learning.c45.estimators",
    "Column": "sfumato.schema",
    "Containment": "sfumato.guarantees",
    "DifferentialPrivacy": "sfumato.guarantees",
    "ErrorRiskTree": "sfumato.mechanisms.tree.mechanism",
    "ExactContainmentSelector": "sfumato.mechanisms.containment.exact",
    "ExponentialReleaser": "sfumato.mechanisms.baselines.noisy_counts",
    "GainRecoder": "sfumato.mechanisms.lattice.gain",
    "GeneralizedEncoder": "sfumato.evaluation.encoding",
    "GlobalAnonymity": "sfumato.guarantees",
    "GlobalRecoder": "sfumato.mechanisms.lattice.recoder",
    "GreedyContainmentSelector": "sfumato.mechanisms.containment.greedy",
    "Hierarchy": "sfumato.mechanisms.hierarchies.hierarchy",
    "KAnonymity": "sfumato.guarantees",
    "KKAnonymity": "sfumato.guarantees",
    "Kind": "sfumato.schema",
    "LDiversity": "sfumato.guarantees",
    "LaplaceReleaser": "sfumato.mechanisms.baselines.noisy_counts",
    "Manifest": "sfumato.manifest",
    "MaximalContainmentSelector": "sfumato.mechanisms.containment.maximal",
    "Mondrian": "sfumato.mechanisms.mondrian.mechanism",
    "OptimalContainmentSelector": "sfumato.mechanisms.containment.optimal",
    "PrivacyGain": "sfumato.guarantees",
    "RandomFlipper": "sfumato.mechanisms.baselines.flipping",
    "ReadOptions": "sfumato.table.io.read",
    "Release": "sfumato.mechanisms.base",
    "Role": "sfumato.schema",
    "Schema": "sfumato.schema",
    "Slicer": "sfumato.mechanisms.buckets.slicing",
    "TCloseness": "sfumato.guarantees",
    "Table": "sfumato.table.coding",
    "audit_large": "sfumato.publishing.out_of_core.api",
    "audit_release": "sfumato.audit.verify",
    "binarize": "sfumato.table.binarize",
    "compare": "sfumato.evaluation.compare",
    "cross_validated_utility": "sfumato.evaluation.utility",
    "evaluate": "sfumato.evaluation.scores",
    "link": "sfumato.attack.linkage",
    "load_project": "sfumato.project.file",
    "publish": "sfumato.publishing.publish",
    "publish_project": "sfumato.publishing.from_project",
    "read_hierarchy": "sfumato.mechanisms.hierarchies.files",
    "read_table": "sfumato.table.io.read",
    "release": "sfumato.publishing.api",
    "release_large": "sfumato.publishing.out_of_core.api",
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
