"""Good files of every kind that sfumato reads, to be damaged, and the functions that read them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.soak.mutations import damaged, damaged_archive, damaged_gzip, damaged_json, damaged_lines_of_json
from benchmarks.soak.orders import COLUMNS

CSV = """name,age,born,"city, part",weight,ill
"Zoë ""Z"" A",31,1990-02-28,"a
b",71.5,yes
Bob,44,1977-01-01,'x',?,no
,29,,"",1e3,yes
Ann,44,1977-01-01, y ,-0.0,no
Cy,31,1990-02-28,x,NA,no
Dee,29,2001-12-31,é,71.5,yes
"""
ARFF = """% a comment
@RELATION people
@attribute age numeric
@attribute 'the city' {a, 'b c', "d"}
@attribute born date "yyyy-MM-dd"
@attribute note string
@attribute ill {yes,no}
@DATA
31, a, "1990-02-28", 'it\\'s', yes
?, 'b c', ?, plain, no
44, d, "2001-12-31", "q", no
{0 12, 1 d, 4 no}
"""
LIBSVM = "+1 1:1 3:1 # comment\n-1 2:1 4:1\n+1 1:1 2:1\n-1\n+1 3:1 4:1\n-1 1:1 3:1\n"
HIERARCHY = 'nurse;health;*\ndoctor;health;*\n"a;b";kitchen;*\ncook;kitchen;*\n;other;*\n'
NUMERIC_HIERARCHY = "17;[0, 20);[0, 40);*\n25;[20, 40);[0, 40);*\n41;[40, 60);[40, 80);*\n"

Read = Callable[[Path], object]


@dataclass(frozen=True)
class Specimen:
    """A kind of file: good examples of it, how it is damaged, and what reads it.

    Parameters
    ----------
    suffix : str
        Of the damaged files.
    examples : list of bytes
        Good ones.
    read : callable
        Reads a file of this kind; whatever it raises must be a deliberate error.
    damage : callable
        Damages one of the examples.
    """

    name: str
    suffix: str
    examples: list[bytes]
    read: Read
    damage: Callable[..., bytes] = damaged
    allowed: tuple[type[Exception], ...] = field(default=())


def specimens(folder: Path) -> list[Specimen]:
    """Write and collect good files of all kinds; the folder keeps what some of them name."""
    return [*_tables(folder), *_descriptions(folder), *_of_sessions(folder)]


def _read_table(path: Path) -> object:
    from sfumato.table.io.read import ReadOptions, read_table
    from sfumato.table.roles import describe_columns

    table = read_table(path, options=ReadOptions(mixed_as_text=True))
    describe_columns(table)
    return table


def _tables(folder: Path) -> list[Specimen]:
    from sfumato.datasets.admissions import admissions
    from sfumato.table.io.read import read_table

    mixed = folder / "mixed.csv"
    mixed.write_text(CSV, encoding="utf-8")
    tables = [read_table(mixed), admissions(n_rows=40).keep(COLUMNS)]
    text = [CSV.encode(), CSV.replace(",", ";").encode(), CSV.encode("utf-16"), _written(tables[1], "csv")]
    tabs = [_written(table, "tsv") for table in tables]
    return [
        Specimen("CSV", ".csv", text, _read_table),
        Specimen("TSV", ".tsv", tabs, _read_table),
        Specimen("CSV in gzip", ".csv.gz", [gzip.compress(one) for one in text], _read_table, damaged_gzip),
        Specimen("Parquet", ".parquet", _parquet_files(tables), _read_table),
        Specimen("Excel", ".xlsx", [_written(table, "excel") for table in tables], _read_table, damaged_archive),
        Specimen("ARFF", ".arff", [ARFF.encode()], _read_table),
        Specimen("libsvm", ".svm", [LIBSVM.encode()], _read_table),
    ]


def _written(table: Any, format_name: str) -> bytes:
    import io

    from sfumato.table.io.write import write_table

    file = io.BytesIO()
    write_table(table, file, format_name)
    return file.getvalue()


def _parquet_files(tables: list[Any]) -> list[bytes]:
    """Write Parquet files as we do, and one as others do: no checksums, dictionaries, nested and dated columns."""
    import datetime
    import io

    import pyarrow as pa
    import pyarrow.parquet

    day = datetime.date(2020, 2, 29)
    foreign = pa.table(
        {
            "n": pa.array([1, None, 3] * 20, pa.int8()),
            "t": pa.array(["a", "b", None] * 20).dictionary_encode(),
            "d": pa.array([day, None, day] * 20),
            "b": pa.array([True, False, None] * 20),
            "f": pa.array([0.5, float("nan"), None] * 20),
        }
    )
    file = io.BytesIO()
    pyarrow.parquet.write_table(foreign, file, compression="gzip", data_page_version="2.0")
    return [*(_written(table, "parquet") for table in tables), file.getvalue()]


def _descriptions(folder: Path) -> list[Specimen]:
    """Project files, hierarchies and manifests."""
    from sfumato.mechanisms.hierarchies.files import faults_of_file, read_hierarchy
    from sfumato.project.file import load_project

    projects = _projects(folder)
    manifests = _manifests(folder)
    hierarchies = [HIERARCHY.encode(), NUMERIC_HIERARCHY.encode()]
    return [
        Specimen("project TOML", ".toml", projects, lambda path: load_project(path).read()),
        Specimen("hierarchy", ".csv", hierarchies, lambda path: (faults_of_file(path), read_hierarchy(path))),
        Specimen("manifest JSON", ".json", list(manifests), _ReadManifest(folder, manifests), damaged_json),
    ]


def _projects(folder: Path) -> list[bytes]:
    from sfumato.project.describe import describe_data

    people = folder / "people.csv"
    people.write_bytes(_people())
    (folder / "city.csv").write_text("a;x;*\nb;x;*\nc;y;*\n", encoding="utf-8")
    described = describe_data(people, folder).text
    full = """
[data]
path = "people.csv"
format = "csv"
delimiter = ","
encoding = "utf-8"
header = true
missing = ["", "?"]
default_role = "other"
[columns]
age = { role = "quasi-identifier", kind = "numeric" }
city = { role = "quasi-identifier", hierarchy = "city.csv" }
ill = { role = "target" }
[release]
mechanism = "mondrian"
output = "out.csv"
[release.parameters]
k = 3
[compare]
weights = [1, 1, 1]
classifiers = ["naive-bayes"]
"""
    return [described.encode(), full.encode()]


def _people(n_rows: int = 60) -> bytes:
    rng = np.random.default_rng(5)
    lines = ["age,city,smokes,sport,illness,ill"]
    for age, city, smokes, sport, illness, ill in rng.integers(0, [40, 3, 2, 2, 3, 2], size=(n_rows, 6)):
        lines.append(f"{20 + age // 4},{'abc'[city]},{smokes},{sport},{'uvw'[illness]},{'yes' if ill else 'no'}")
    return ("\n".join(lines) + "\n").encode()


def _manifests(folder: Path) -> dict[bytes, Path]:
    """Release with several mechanisms; gives the manifests and the tables that they speak of."""
    import sfumato
    from sfumato.errors import SfumatoError
    from sfumato.mechanisms.registry import build_mechanism, registered_mechanisms
    from sfumato.publishing.publish import publish

    table = sfumato.read_table(folder / "people.csv")
    roles = {"illness": sfumato.Role.SENSITIVE, "ill": sfumato.Role.TARGET}
    table = table.with_schema(table.schema.with_roles(roles))
    found = {}
    for name, mechanism in registered_mechanisms().items():
        known = {parameter.name for parameter in mechanism.parameters}
        given = {"k": 3, "n_features": 2, "max_suppressed_fraction": 0.5}
        try:
            release = sfumato.release(table, build_mechanism(name, {k: v for k, v in given.items() if k in known}))
            done = publish(release, folder / f"{name}.csv", original=table)
        except SfumatoError:
            continue  # not for this table
        found[done.manifest_path.read_bytes()] = done.table_path
    return found


class _ReadManifest:
    """Audits a release by a damaged manifest, and refuses to see one confirmed that says something else."""

    def __init__(self, folder: Path, manifests: dict[bytes, Path]) -> None:
        self.tables = {json.loads(manifest)["mechanism"]["name"]: path for manifest, path in manifests.items()}
        self.good = [json.loads(manifest) for manifest in manifests]
        self.original = folder / "people.csv"

    def __call__(self, path: Path) -> object:
        from sfumato.publishing.reaudit import audit_published, read_original
        from sfumato.table.io.read import DEFAULT_OPTIONS

        original = read_original(self.original, DEFAULT_OPTIONS)
        report = audit_published(self._table(path), path, original=original)
        if report.passed and json.loads(path.read_bytes()) not in self.good:
            raise AssertionError("a changed manifest was confirmed")
        return report

    def _table(self, path: Path) -> Path:
        content = path.read_bytes()
        named = [table for name, table in self.tables.items() if f'"{name}"'.encode() in content]
        return (named or list(self.tables.values()))[0]


def _of_sessions(folder: Path) -> list[Specimen]:
    """Files and messages of a collaboration."""
    from sfumato.collaborate.config import load_party_config, party_config_text
    from sfumato.collaborate.roster import Peer
    from sfumato.collaborate.shared_schema import read_shared_schema
    from sfumato.collaborate.transport.keys import make_keys
    from sfumato.collaborate.transport.messages import UnreadableMessageError, decode
    from sfumato.web.tasks.transcripts import read as read_transcript

    names = ("ann", "bob", "cid")
    files = make_keys(folder, names)
    peers = [Peer(name, "127.0.0.1", 7001 + place, files[name].certificate) for place, name in enumerate(names)]
    given = {"key": files["ann"].key, "ca": files["authority"].certificate}
    config = party_config_text("ann", "trial", peers, **given, timeout=0.2, start_timeout=0.2).encode()
    return [
        Specimen("party.toml", ".toml", [config], lambda path: load_party_config(path).roster.fingerprints),
        Specimen("shared schema", ".json", [_shared_schema(folder)], read_shared_schema, damaged_json),
        Specimen(
            "transcript",
            ".jsonl",
            [_transcript(folder)],
            lambda path: read_transcript(folder, _tell_nothing, path=str(path)),
            damaged_lines_of_json,
        ),
        Specimen(
            "message",
            ".bin",
            _messages(),
            lambda path: decode(path.read_bytes()),
            allowed=(UnreadableMessageError,),
        ),
    ]


def _tell_nothing(*_: object, **__: object) -> None:
    return None


def _shared_schema(folder: Path) -> bytes:
    import sfumato
    from sfumato.collaborate.shared_schema import SharedSchema, write_shared_schema

    table = sfumato.read_table(folder / "people.csv")
    table = table.with_schema(table.schema.with_roles({"ill": sfumato.Role.TARGET}))
    path = folder / "shared.json"
    write_shared_schema(SharedSchema.of_table(table, cuts={"age": [22.0, 25.0]}), path)
    return path.read_bytes()


def _transcript(folder: Path) -> bytes:
    from sfumato.collaborate.session.transcript import Transcript

    path = folder / "ann.jsonl"
    transcript = Transcript(path)
    transcript.describe(party="ann", roster=["ann", "bob", "cid"], session="trial")
    for stage in ("hello", "seeds", "counts/64/echo"):
        transcript.note("sent", stage, "bob", 139, "00ff")
        transcript.note("received", stage, "cid", 139, None)
    transcript.end(outcome="complete")
    return path.read_bytes()


def _messages() -> list[bytes]:
    from sfumato.collaborate.transport.messages import Kind, Message, encode

    stages = ("hello", "counts/64/seeds-sum")
    return [
        encode(Message(kind, bytes(32), number, stages[number % 2], b"payload")) for number, kind in enumerate(Kind)
    ]
