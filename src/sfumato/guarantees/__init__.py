"""What a release can promise: a file per family, each guarantee declared there once (see :mod:`.base`).

Declared are a guarantee's data, the level that it promises, its words for people, and how it is asked for. Measuring
happens elsewhere: in ``measures`` for mechanisms, and in ``audit``, which shares nothing with them but the data of a
promise. Every module of this folder is loaded, so that a new guarantee needs no line here.
"""
# ruff: noqa: I001  # the order of these lines is the one in which guarantees are listed for people

from importlib import import_module
from pkgutil import iter_modules

from sfumato.counting import ROUNDING
from sfumato.guarantees.base import GUARANTEES, AboutValues, Guarantee, SearchedBy, declared, guarantee_from_dict
from sfumato.guarantees.anonymity import GlobalAnonymity, KAnonymity, KKAnonymity
from sfumato.guarantees.containment import REVEALING, Containment, UniquePatterns
from sfumato.guarantees.population import AboutPopulation, KMap, Presence
from sfumato.guarantees.diversity import DiversityVariant, LDiversity, check_diversity
from sfumato.guarantees.closeness import ClosenessDistance, TCloseness
from sfumato.guarantees.value_shares import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, LikenessVariant
from sfumato.guarantees.buckets import BucketDiversity, BucketSize
from sfumato.guarantees.estimated import BreachBound
from sfumato.guarantees.entropy import PrivacyGain
from sfumato.guarantees.differential_privacy import ONE_ROW_CHANGED, DifferentialPrivacy
from sfumato.schema import ROW

for _found in iter_modules(__path__):  # those that are not named above come last, by name
    import_module(f"{__name__}.{_found.name}")

__all__ = [
    "GUARANTEES",
    "ONE_ROW_CHANGED",
    "REVEALING",
    "ROUNDING",
    "ROW",
    "AboutPopulation",
    "AboutValues",
    "AlphaKAnonymity",
    "BetaLikeness",
    "BreachBound",
    "BucketDiversity",
    "BucketSize",
    "ClosenessDistance",
    "Containment",
    "DeltaDisclosure",
    "DifferentialPrivacy",
    "DiversityVariant",
    "GlobalAnonymity",
    "Guarantee",
    "KAnonymity",
    "KKAnonymity",
    "KMap",
    "LDiversity",
    "LikenessVariant",
    "Presence",
    "PrivacyGain",
    "SearchedBy",
    "TCloseness",
    "UniquePatterns",
    "check_diversity",
    "declared",
    "guarantee_from_dict",
]
