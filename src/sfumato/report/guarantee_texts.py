"""The guarantees of a release in words for people who were not there; ``guarantees`` has those of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.guarantees import ROW, guarantee_from_dict

if TYPE_CHECKING:  # the page's server takes these words too, and loads no heavy library
    from sfumato.manifest import Manifest

NOTHING = "–"

NOT_MEASURED = "not_measured"
"""Key of the reason why something was not measured."""
NO_ORIGINAL = "the original was not given"
NO_TARGET = "the release has no target to predict"
QUICK = "skipped on request, to save time"

_ONE_ROW = "Every person has one row. A person with several rows may form a group alone."
ASSUMPTIONS = (
    "There is one release of one table. Combining releases of overlapping tables can break every promise.",
    "The roles of the columns are right. No guarantee covers a quasi-identifier that has another role.",
    _ONE_ROW,
    "Missing counts as a value of its own: missing values are equal to each other.",
)


def assumptions_of(manifest: Manifest) -> list[str]:
    """Say what the promises of a release rest on; what it says of persons takes the place of the usual assumption."""
    kept = (manifest.input or {}).get("one_row_per_person")
    said = _ONE_ROW
    if any(entry.get("unit", ROW) != ROW for entry in manifest.guarantees):
        said = "The column that tells persons apart does so. Rows of one person may still be linked by what they hold."
    elif kept:
        said = (
            f"The column that tells persons apart does so. Of each person the {kept['rule']} row was kept, and "
            f"{kept['n_dropped']:,} further rows were left out."
        )
    return [said if sentence == _ONE_ROW else sentence for sentence in ASSUMPTIONS]


def guarantee_in_words(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Say what an entry of a manifest promises, what was found, and what is not promised.

    Examples
    --------
    >>> guarantee_in_words({"kind": "k-anonymity", "k": 5, "columns": ["age"], "audited": 7})["found"]
    'Found: the smallest group of equal rows has 7 rows. Promised: at least 5.'
    """
    own = {name: value for name, value in entry.items() if name not in ("statement", "audited")}
    guarantee = guarantee_from_dict(own)
    words = guarantee.explained
    units = "persons" if guarantee.by_persons else "rows"
    fields = {name: number_in_words(value) for name, value in guarantee.to_dict().items()}
    return {
        "kind": guarantee.kind,
        "title": words.title,
        "statement": guarantee.in_plain_words(),
        "level": entry.get("audited"),
        "found": words.found.format(**fields, units=units, level=number_in_words(entry.get("audited"))),
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
