"""Every guarantee in words for people who were not there: what was found, against whom, and what is not promised.

``docs/guarantees.md`` says the same at length. A new kind of guarantee needs an entry here; a test looks for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.guarantees import guarantee_from_dict

_KNOWS_ALL = "somebody who knows all quasi-identifying values of a person in the table"


NOTHING = "–"


@dataclass(frozen=True)
class GuaranteeWords:
    """What a kind of guarantee means.

    Parameters
    ----------
    title : str
    found : str
        What the audit found, with places for ``level`` and the guarantee's own fields.
    against : str
        Whom it protects against.
    not_promised : tuple of str
        What people may believe it to promise, and it does not.
    """

    title: str
    found: str
    against: str
    not_promised: tuple[str, ...]


WORDS: Mapping[str, GuaranteeWords] = {
    "k-anonymity": GuaranteeWords(
        "k-anonymity",
        "Found: the smallest group of equal rows has {level} rows. Promised: at least {k}.",
        _KNOWS_ALL,
        (
            "That the sensitive value stays unknown: if all rows of a group share it, it is disclosed.",
            "Anything about columns that were declared sensitive or other: they are released as they are.",
        ),
    ),
    "kk-anonymity": GuaranteeWords(
        "(k,k)-anonymity",
        "Found: every row of either table fits at least {level} rows of the other. Promised: at least {k}.",
        _KNOWS_ALL,
        (
            "k-anonymity: fewer than k released rows may be equal.",
            "That other columns stay unknown where all fitting rows agree on them.",
        ),
    ),
    "global-anonymity": GuaranteeWords(
        "global (1,k)-anonymity",
        "Found: every original row can belong to at least {level} released rows. Promised: at least {k}.",
        "somebody who knows the quasi-identifying values of everybody in the table, and that each has one row",
        (
            "k-anonymity: fewer than k released rows may be equal.",
            "That other columns stay unknown where all fitting rows agree on them.",
        ),
    ),
    "containment": GuaranteeWords(
        "k-anonymity by containment",
        "Found: whatever is known of a person, at least {level} rows have it. Promised: at least {k}.",
        "somebody who knows some revealing values of a person (by default the ones: conditions had, items bought)",
        (
            "Anything about values that are said not to reveal, by default the zeros.",
            "That no row is unique: a row may have a pattern of zeros and ones that no other row has.",
        ),
    ),
    "unique-patterns": GuaranteeWords(
        "few unique rows",
        "Found: a share of {level} of the rows is unique. Promised: at most {max_unique_fraction}.",
        _KNOWS_ALL,
        ("Anything about the other rows, which may be in groups of two.",),
    ),
    "l-diversity": GuaranteeWords(
        "l-diversity",
        "Found: the least diverse group reaches {level}. Promised: at least {l}, counted as {variant} values.",
        f"{_KNOWS_ALL}, and who wants the sensitive one",
        (
            "Protection where the values of a group mean nearly the same.",
            "Protection where one value of a group is far more frequent than the others.",
        ),
    ),
    "t-closeness": GuaranteeWords(
        "t-closeness",
        "Found: the group that differs most is at a distance of {level}. Promised: at most {t}.",
        f"{_KNOWS_ALL}, and how the sensitive ones are distributed in the whole table",
        ("Protection of that distribution itself: it is released.",),
    ),
    "bucket-diversity": GuaranteeWords(
        "diversity in buckets",
        "Found: a sensitive value makes up one part in {level} of a bucket at most. Promised: one part in {l}.",
        f"{_KNOWS_ALL}, also the bucket, and who takes the rows of a bucket as equally likely",
        (
            "k-anonymity, or that being in the table stays unknown: quasi-identifiers are released as they are.",
            "Protection against a model of how quasi-identifiers go with sensitive values.",
            "Protection against somebody who knows the sensitive values of others in the bucket.",
        ),
    ),
    "bucket-size": GuaranteeWords(
        "size of buckets",
        "Found: the smallest bucket has {level} rows. Promised: at least {k}.",
        "somebody who knows the values of one slice of columns and wants those of another",
        ("That the values within one slice are not unique to a person.",),
    ),
    "breach-bound": GuaranteeWords(
        "bound on what an attacker learns (estimated, not proven)",
        "Found by the audit's own attackers: an increase of {level} % or more (lower end of the interval). "
        "Promised: at most {max_breach_increase} %.",
        "an attacker of the kind named who trains on rows like the released ones",
        (
            "Anything against another kind of attacker, or from columns that are not quasi-identifiers.",
            "That the sensitive column is hard to predict: only that it is not easier than before.",
            "k-anonymity. On few rows only clear breaches are found.",
        ),
    ),
    "privacy-gain": GuaranteeWords(
        "gain by dropped columns",
        "Found: the dropped columns held a share of {level} of the largest entropy. "
        "Promised: at least {min_privacy_gain}.",
        "somebody who would have used the dropped columns",
        (
            "Anything about the columns that are released: a row may be unique on them.",
            "k-anonymity, or that a person cannot be found.",
        ),
    ),
    "differential-privacy": GuaranteeWords(
        "differential privacy",
        "Cannot be measured: no look at one release can confirm it. The audit re-computed how epsilon = {epsilon} was "
        "divided, and found the stated noise to be enough.",
        "anybody, whatever they know",
        (
            "Anything about class sizes and the list of features, which are taken as known.",
            "That the audit confirms it: it holds if the program did what the manifest says.",
        ),
    ),
}

ASSUMPTIONS = (
    "There is one release of one table. Releases of overlapping tables can be combined against all that is promised.",
    "The roles of the columns are right. A quasi-identifier declared as something else is covered by nothing.",
    "Every person has one row. Somebody with several rows may be a group of their own.",
    "A missing value counts as a value of its own, equal to other missing values.",
    "The manifest is published with the table. It may hold the SHA-256 of the original, by which somebody who can "
    "guess the whole original can confirm the guess.",
)


def guarantee_in_words(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Say what an entry of a manifest promises, what was found, and what is not promised.

    Examples
    --------
    >>> guarantee_in_words({"kind": "k-anonymity", "k": 5, "columns": ["age"], "audited": 7})["found"]
    'Found: the smallest group of equal rows has 7 rows. Promised: at least 5.'
    """
    own = {name: value for name, value in entry.items() if name not in ("statement", "audited")}
    guarantee = guarantee_from_dict(own)
    words = WORDS[guarantee.kind]
    fields = {name: number_in_words(value) for name, value in guarantee.to_dict().items()}
    return {
        "kind": guarantee.kind,
        "title": words.title,
        "statement": guarantee.describe(),
        "level": entry.get("audited"),
        "found": words.found.format(**fields | {"level": number_in_words(entry.get("audited"))}),
        "against": words.against,
        "not_promised": list(words.not_promised),
    }


def number_in_words(value: Any) -> str:
    """Write a number with at most four significant digits, a truth value as yes or no, anything else as it is.

    Examples
    --------
    >>> number_in_words(0.123456), number_in_words(5.0), number_in_words(12345)
    ('0.1235', '5', '12,345')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def share_in_words(value: float | None) -> str:
    r"""Write a share in percent, without a line end in it, so that only nothing is 0 and only all is 100.

    Examples
    --------
    >>> [share_in_words(share).replace("\xa0", " ") for share in (0.123456, 0.00001, 0.99999, 1.0)]
    ['12.3 %', '< 0.1 %', '> 99.9 %', '100 %']
    """
    if value is None:
        return NOTHING
    percent = 100 * value
    if 0 < percent < 0.1:
        return "<\u00a00.1\u00a0%"
    return ">\u00a099.9\u00a0%" if 99.9 < percent < 100 else f"{percent:.1f}".removesuffix(".0") + "\u00a0%"
