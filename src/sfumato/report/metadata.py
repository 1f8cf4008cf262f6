"""A release described for catalogues and for people: Croissant 1.1, DCAT-AP 3 and a data dictionary.

All is taken from the released table and its manifest, so that whoever has the release may read it. What only the
publisher knows (title, licence, address, date) is given by the publisher, or is not said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.atomic import check_writable, write_atomically
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.manifest import Manifest
from sfumato.mechanisms.base import Release
from sfumato.report.guarantee_texts import assumptions_of, guarantee_in_words
from sfumato.report.not_covered import not_promised
from sfumato.report.summarize import column_changes
from sfumato.schema import Column, Kind, Role
from sfumato.table.binary import BinaryTable
from sfumato.table.io.write import missing_text

CROISSANT = "http://mlcommons.org/croissant/1.1"
DCAT_AP = "http://data.europa.eu/r5r/"

_MEDIA_TYPES = {
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "csv.gz": "application/gzip",
    "tsv.gz": "application/gzip",
    "parquet": "application/vnd.apache.parquet",
    "excel": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "libsvm": "text/plain",
    "jsonl": "application/jsonl",
    "jsonl.gz": "application/gzip",
    "sav": "application/x-spss-sav",
    "zsav": "application/x-spss-sav",
    "dta": "application/x-stata-dta",
    "xpt": "application/x-sas-xport",
}
_CROISSANT_MEDIA_TYPES = _MEDIA_TYPES | {"parquet": "application/x-parquet"}
_CROISSANT_READS = ("csv", "tsv", "parquet")
"""Formats whose columns a reader of Croissant finds by name."""


@dataclass(frozen=True)
class Publication:
    """What a publisher says of a release; every ``None`` and every empty text is left out.

    Parameters
    ----------
    title : str or None
        ``None``: the name of the released file.
    license, url : str or None
        Addresses (``https://…``) of the licence, and of the folder or page where the file is.
    date : str or None
        Day of publication, as 2026-11-18. No date is made up, so that the same release gives the same bytes.
    """

    title: str | None = None
    description: str = ""
    license: str | None = None
    publisher: str | None = None
    url: str | None = None
    date: str | None = None
    version: str | None = None
    keywords: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.date is not None and not _is_day(self.date):
            raise InvalidParameterError("date", "got something else", allowed="a day such as 2026-11-18")
        for name in ("license", "url"):
            value = getattr(self, name)
            if value is not None and not value.startswith(("https://", "http://")):
                raise InvalidParameterError(name, f"got '{value}'", allowed="an address that begins with https://")


def _is_day(text: str) -> bool:
    try:
        return bool(np.datetime64(text, "D").astype(str) == text)
    except ValueError:
        return False


@dataclass(frozen=True)
class ReleasedColumn:
    """What a recipient should know of one column, without any of its values but those that the manifest lists."""

    name: str
    role: str
    type: str
    change: str
    cells: str
    missing: str | None
    n_distinct: int | None
    promises: tuple[str, ...]


def columns_of(release: Release) -> list[ReleasedColumn]:
    """Describe every released column.

    Examples
    --------
    >>> from sfumato import Mondrian, release
    >>> from sfumato.datasets.admissions import admissions
    >>> table = admissions(n_rows=50).keep(["age", "readmitted"])
    >>> [(column.name, column.type, column.change) for column in columns_of(release(table, Mondrian(k=5)))]
    [('age', 'text', 'coarsened'), ('readmitted', 'text', 'kept unchanged')]
    """
    manifest, table = release.manifest, release.table
    changes = {str(entry["name"]): str(entry["change"]) for entry in _changes(release)}
    rules = {str(rule["name"]): rule for rule in manifest.recodings if "name" in rule and "column" in rule}
    features = set(table.feature_names) if isinstance(table, BinaryTable) else set()
    found = []
    for entry in manifest.output["columns"]:
        name, rule = str(entry["name"]), rules.get(str(entry["name"]))
        is_feature = name in features
        plain = table.coded_part
        column = None if is_feature or name not in plain.columns else plain[name]
        described = Column(name, Role(entry["role"]), Kind(entry["kind"]))
        has_missing = column is not None and column.missing_code is not None
        found.append(
            ReleasedColumn(
                name,
                str(entry["role"]),
                "integer" if is_feature else _type_of(described, rule, column.values if column else None),
                changes.get(str(rule["column"]) if rule else name, ""),
                _cells_in_words(rule, is_feature=is_feature),
                missing_text(plain.schema, name) if has_missing else None,
                column.n_distinct if column is not None else None,
                tuple(
                    guarantee_in_words(promise)["title"]
                    for promise in manifest.guarantees
                    if name in (*promise.get("columns", ()), promise.get("sensitive"))
                ),
            )
        )
    return found


def _changes(release: Release) -> list[Mapping[str, Any]]:
    listed: list[Mapping[str, Any]] = column_changes(release.manifest, release.table, most=None)["changes"]
    return listed


def _type_of(column: Column, rule: Mapping[str, Any] | None, values: Any) -> str:
    """Type of a column's cells: ``integer``, ``number``, ``date`` or ``text``."""
    if rule is not None and rule["rule"] in ("generalized", "hierarchy"):
        return "text"
    if column.kind is Kind.DATE:
        return "date"
    if column.kind is not Kind.NUMERIC or values is None:
        return "text"
    numbers = np.array([float(value) for value in values.to_pylist() if value is not None])
    return "integer" if np.array_equal(numbers, np.trunc(numbers)) and _spelled_whole(values) else "number"


def _spelled_whole(values: Any) -> bool:
    """Whether no number is written with decimals: a text such as 5.0 is no integer to most readers."""
    return not any("." in text or "e" in text.lower() for text in map(str, values.drop_null().to_pylist()))


def _cells_in_words(rule: Mapping[str, Any] | None, *, is_feature: bool) -> str:
    if is_feature:
        return "1 (yes) or 0 (no)"
    if rule is None or rule["rule"] == "as-is":
        return "values"
    if rule["rule"] == "typical":
        return "one value for all rows of a class: the median, or the most frequent value; not the person's own"
    if rule["rule"] == "generalized":
        ordered = "a range [from, to], both included, " if rule.get("kind") != str(Kind.CATEGORICAL) else ""
        return rf"{ordered}a set {{a|b}} of possible values (\N in it: missing), a single value, or * (any value)"
    return "labels of a hierarchy; the manifest lists the values that each label covers"


# Croissant 1.1, with the vocabulary for responsible AI (RAI 1.0) for what is and is not promised.


_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context of the specification, whole: readers compare it word by word."""

_CROISSANT_TYPES = {"integer": "sc:Integer", "number": "sc:Float", "date": "sc:Date", "text": "sc:Text"}


def croissant(release: Release, said: Publication) -> dict[str, Any]:
    """Describe a release in Croissant 1.1: the file with its hash, its columns, what is promised and what is not.

    A column of whole numbers with missing cells is a ``sc:Float``, as readers have no missing whole number.
    """
    manifest = release.manifest
    name, format_name = _written(manifest)
    described: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [CROISSANT, "http://mlcommons.org/croissant/RAI/1.0"],
        "name": said.title or name,
        "description": _description(release, said),
        **({"license": said.license} if said.license else {}),
        **({"url": said.url} if said.url else {}),
        **({"datePublished": said.date} if said.date else {}),
        **({"version": said.version} if said.version else {}),
        **({"creator": {"@type": "sc:Organization", "name": said.publisher}} if said.publisher else {}),
        **({"keywords": list(said.keywords)} if said.keywords else {}),
        "rai:personalSensitiveInformation": _promises(manifest),
        "rai:dataLimitations": [*_limits(release), *assumptions_of(manifest)],
        "rai:dataPreprocessingProtocol": [_done(manifest)],
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": "release",
                "name": name,
                "description": "The released table.",
                "contentUrl": name,
                "encodingFormat": _CROISSANT_MEDIA_TYPES[format_name],
                "sha256": manifest.output["sha256"],
            }
        ],
    }
    if format_name in _CROISSANT_READS:
        fields = [_field(column) for column in columns_of(release)]
        described["recordSet"] = [{"@type": "cr:RecordSet", "@id": "rows", "name": "rows", "field": fields}]
    return described


def _field(column: ReleasedColumn) -> dict[str, Any]:
    type_name = "number" if column.type == "integer" and column.missing is not None else column.type
    return {
        "@type": "cr:Field",
        "@id": f"rows/{column.name}",
        "name": column.name,
        "description": _column_in_words(column),
        "dataType": _CROISSANT_TYPES[type_name],
        "source": {"fileObject": {"@id": "release"}, "extract": {"column": column.name}},
    }


def _column_in_words(column: ReleasedColumn) -> str:
    covered = f"; covered by {', '.join(column.promises)}" if column.promises else "; no guarantee covers it"
    return f"{column.role}, {column.change or 'released'}; cells: {column.cells}{covered}"


# DCAT-AP 3, as JSON-LD with its own short context, so that reading it needs no network.


_DCAT_CONTEXT = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def dcat_ap(release: Release, said: Publication) -> dict[str, Any]:
    """Describe a release as a ``dcat:Dataset`` of DCAT-AP 3 with one distribution.

    Guarantees and what they do not cover are statements of provenance. Without an address the file is named relative
    to this description.
    """
    manifest = release.manifest
    name, format_name = _written(manifest)
    where = f"{said.url.rstrip('/')}/{name}" if said.url else name
    statements = [*_promises(manifest), *_limits(release), *assumptions_of(manifest), _done(manifest)]
    return {
        "@context": _DCAT_CONTEXT,
        "@id": f"{where}#dataset",
        "@type": "dcat:Dataset",
        "dct:conformsTo": {"@id": DCAT_AP},
        "dct:title": _english(said.title or name),
        "dct:description": _english(_description(release, said)),
        **({"dct:publisher": {"@type": "foaf:Agent", "foaf:name": said.publisher}} if said.publisher else {}),
        **({"dct:issued": {"@value": said.date, "@type": "xsd:date"}} if said.date else {}),
        **({"dcat:version": said.version} if said.version else {}),
        **({"dcat:keyword": [_english(word) for word in said.keywords]} if said.keywords else {}),
        "dct:provenance": [
            {"@type": "dct:ProvenanceStatement", "rdfs:label": _english(sentence)} for sentence in statements
        ],
        "foaf:page": {"@id": f"{where}.manifest.json", "@type": "foaf:Document"},
        "dcat:distribution": {
            "@id": f"{where}#distribution",
            "@type": "dcat:Distribution",
            "dct:title": _english(name),
            "dcat:accessURL": {"@id": said.url or where},
            "dcat:downloadURL": {"@id": where},
            "dcat:mediaType": {"@id": f"http://www.iana.org/assignments/media-types/{_MEDIA_TYPES[format_name]}"},
            **({"dct:license": {"@id": said.license, "@type": "dct:LicenseDocument"}} if said.license else {}),
            "spdx:checksum": {
                "@type": "spdx:Checksum",
                "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
                "spdx:checksumValue": {"@value": manifest.output["sha256"], "@type": "xsd:hexBinary"},
            },
        },
    }


def _english(text: str) -> dict[str, str]:
    return {"@value": text, "@language": "en"}


# The data dictionary, for people.


def data_dictionary(release: Release, said: Publication) -> str:
    """Describe every column of a release in Markdown, below what is promised and what is not."""
    manifest = release.manifest
    name, _ = _written(manifest)
    lines = [f"# {_plain(said.title or name)}", ""]
    lines += [_plain(said.description), ""] if said.description else []
    given = {"File": f"`{name}`", "Publisher": said.publisher, "Licence": said.license, "Address": said.url}
    given |= {"Published": said.date, "Version": said.version}
    lines += [f"- {what}: {text}" for what, text in given.items() if text]
    lines += [f"- Rows: {manifest.output['rows']:,}", f"- SHA-256: `{manifest.output['sha256']}`", ""]
    lines += ["## Promised", "", *(f"- {_plain(text)}" for text in _promises(manifest)), ""]
    lines += ["## Not promised", "", *(f"- {_plain(text)}" for text in _limits(release)), ""]
    lines += ["## Assumed", "", *(f"- {_plain(text)}" for text in assumptions_of(manifest)), ""]
    lines += ["## How it was made", "", _plain(_done(manifest)), "", "## Columns", ""]
    lines += ["| column | role | type | what was done | cells | missing | distinct cells | covered by |"]
    lines += [f"|{' --- |' * 8}"]
    for column in columns_of(release):
        missing = "never" if column.missing is None else f"`{column.missing}`" if column.missing else "an empty cell"
        cells = [column.name, column.role, column.type, column.change, column.cells, missing]
        cells += [
            "" if column.n_distinct is None else f"{column.n_distinct:,}",
            ", ".join(column.promises) or "nothing",
        ]
        lines.append(f"| {' | '.join(_plain(cell) for cell in cells)} |")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Text that stays in its line and its cell of a table, whatever a column is called."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


# What all three say.


def _written(manifest: Manifest) -> tuple[str, str]:
    """Name and format of the released file; a release that is not in a file has no metadata."""
    name, format_name = manifest.output.get("name"), str(manifest.output.get("format"))
    if not name or not manifest.output.get("sha256") or format_name not in _MEDIA_TYPES:
        problem = "describes no released file"
        raise ManifestError(problem, hint="publish the release first; folders of part files have no metadata yet")
    return str(name), format_name


def _description(release: Release, said: Publication) -> str:
    parts = [said.description] if said.description else []
    return " ".join([*parts, _done(release.manifest), *_promises(release.manifest)])


def _promises(manifest: Manifest) -> list[str]:
    found = [guarantee_in_words(entry) for entry in manifest.guarantees]
    said = [f"{one['title']}: {one['statement'].rstrip('.')}. {one['found']}" for one in found]
    return said or ["Nothing is promised."]


def _limits(release: Release) -> list[str]:
    own = [text for entry in release.manifest.guarantees for text in guarantee_in_words(entry)["not_promised"]]
    return list(dict.fromkeys([*own, *(text.removeprefix("not promised: ") for text in not_promised(release))]))


def _done(manifest: Manifest) -> str:
    name, n_rows = manifest.mechanism["name"], manifest.output["rows"]
    said = f"{n_rows:,} rows with {len(manifest.output['columns']):,} columns, released by sfumato ({name})"
    return f"{said}; identifiers are not released, and an independent audit re-computed what is promised."


# Files next to the release.


KINDS: Mapping[str, tuple[str, Callable[[Release, Publication], Any]]] = {
    "croissant": (".croissant.json", croissant),
    "dcat-ap": (".dcat.jsonld", dcat_ap),
    "dictionary": (".dictionary.md", data_dictionary),
}
"""By name: what follows the name of the release in that of the file, and what makes its content."""


def metadata_path(released: Path, kind: str) -> Path:
    """Where the description of a release is, next to its table.

    Examples
    --------
    >>> metadata_path(Path("out/release.csv"), "croissant").as_posix()
    'out/release.csv.croissant.json'
    """
    return released.parent / (released.name + KINDS[kind][0])


def metadata_bytes(release: Release, kind: str, said: Publication) -> bytes:
    """Describe a release as the content of a file; the same release and the same words give the same bytes."""
    made = KINDS[kind][1](release, said)
    text = made if isinstance(made, str) else json.dumps(made, indent=2, ensure_ascii=False) + "\n"
    return text.encode()


def write_metadata(
    release: Release, released: Path, kinds: Iterable[str], said: Publication, *, force: bool = False
) -> list[Path]:
    """Write descriptions of a published release next to its table, all of them or none.

    Raises
    ------
    ManifestError
        If the release is not in a file.
    OutputError
        If one of the files cannot be written, or is there already and ``force`` is off.
    """
    contents = {metadata_path(released, kind): metadata_bytes(release, kind, said) for kind in kinds}
    for path in contents:
        check_writable(path, force=force)
    for path, content in contents.items():
        write_atomically(path, content, force=force)
    return list(contents)
