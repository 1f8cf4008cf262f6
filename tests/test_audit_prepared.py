"""Prepared columns: the audit does everything again by its own means, and refuses what was not done or forged."""

import csv
import hashlib
import io
import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from manifest_texts import text_of
from sfumato.audit.claims import read_claims
from sfumato.audit.original.preparation import prepared_again
from sfumato.cli.main import run
from sfumato.errors import ManifestRefusedError
from sfumato.manifest import manifest_digest
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.publishing.propose import make_release
from sfumato.publishing.publish import publish
from sfumato.publishing.reaudit import audit_published
from sfumato.schema import Column, Kind, Role, Schema
from sfumato.table.coding import Table
from sfumato.table.preparing.declared import Preparation
from sfumato.table.preparing.keyed import PreparationKeys
from sfumato.table.preparing.prepared import prepared

CANARY = "ZQX"
ROLES = {
    "id": Role.IDENTIFIER,
    "sex": Role.QUASI_IDENTIFIER,
    "born": Role.QUASI_IDENTIFIER,
    "zip": Role.OTHER,
    "income": Role.SENSITIVE,
    "visit": Role.OTHER,
    "note": Role.OTHER,
}
KINDS = {"born": Kind.DATE, "income": Kind.NUMERIC, "visit": Kind.DATE}
PREPARE = {
    "id": {"pseudonym": True},
    "born": {"age_at": "2026-01-01", "top": 90},
    "zip": {"mask": {"keep_first": 2}},
    "income": {"top": 100000, "bottom": 1000, "round": 1000},
    "visit": {"shift_days": 30},
    "note": {"drop": True},
}


def rows(n=60):
    for i in range(n):
        yield {
            "id": f"{CANARY}{i:03d}",
            "sex": "fm"[i % 2],
            "born": f"{1930 + i * 7 % 70}-0{1 + i % 9}-1{i % 9}",
            "zip": ["10115", "10117", "20095"][i % 3],
            "income": str(100 + i * i * 61),
            "visit": f"2025-0{1 + i * 5 % 9}-2{i % 8}",
            "note": f"{CANARY} seen",
        }


def raw_table(n=60):
    schema = Schema.of(
        [Column(name, role, KINDS.get(name, Kind.CATEGORICAL), confirmed=True) for name, role in ROLES.items()]
    )
    return Table.from_arrow(pa.Table.from_pylist(list(rows(n))), schema)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Give a release with all operations, its files, its raw original and the secret that nobody else has."""
    folder = tmp_path_factory.mktemp("prepared")
    raw, keys = raw_table(), PreparationKeys(bytes(range(32)))
    table = prepared(raw, [Preparation.of(name, asked) for name, asked in PREPARE.items()], keys)
    release = make_release(table, Mondrian(k=5))
    path = folder / "release.csv"
    publish(release, path, original=table)
    return path, raw, keys.release


def audited(path, raw=None, key=None, roles=True):
    return audit_published(path, f"{path}.manifest.json", original=raw, key=key, check_roles=roles if raw else False)


class TestAgainByOwnMeans:
    def test_confirmed_with_the_key(self, made):
        report = audited(*made)
        assert report.verdict == "confirmed", report.unchecked

    def test_what_rests_on_the_key_is_an_exception_without_it(self, made):
        path, raw, _ = made
        report = audited(path, raw)
        assert report.passed
        assert [one.name for one in report.unchecked] == ["cells"]

    @pytest.mark.parametrize(("moved", "failed"), [(0, set()), (100, {"cells"})])
    def test_a_date_that_moved_too_far_is_refused_without_the_key(self, moved, failed, made, tmp_path):
        later = set_cell("visit", lambda own, other: str(date.fromordinal(date.fromisoformat(own).toordinal() + moved)))
        report = audited(forged(made, tmp_path, cells=later), made[1])
        assert {check.name for check in report.checks if not check.passed} == failed
        assert "cells" in {one.name for one in report.unchecked}

    def test_another_key_is_refused(self, made):
        path, raw, _ = made
        assert not audited(path, raw, bytes(32)).passed

    def test_the_original_must_have_the_declared_role(self, made):
        path, raw, key = made
        report = audited(path, raw.with_schema({"id": Role.QUASI_IDENTIFIER}), key)
        assert not report.passed

    def test_no_cell_and_no_key_is_published(self, made):
        path, _, key = made
        for text in (path.read_text(), Path(f"{path}.manifest.json").read_text()):
            assert CANARY not in text
            assert key.hex() not in text
        stated = json.loads(Path(f"{path}.manifest.json").read_text())["input"]["prepared"]
        assert [(e["column"], e["operation"]) for e in stated] == [
            ("id", "pseudonym"),
            ("born", "age"),
            ("born", "top"),
            ("zip", "mask"),
            ("income", "bottom"),
            ("income", "top"),
            ("income", "round"),
            ("visit", "shift"),
            ("note", "drop"),
        ]

    @given(data=st.data())
    def test_both_implementations_agree(self, data, made):
        """On numbers, texts and dates of all types, and on all that may be asked."""
        n = data.draw(st.integers(1, 12))
        whole = st.integers(-5000, 5000)
        cells = {
            "who": data.draw(st.lists(st.sampled_from(["a", "b", None]), min_size=n, max_size=n)),
            "text": data.draw(
                st.lists(st.one_of(st.none(), st.text("abÄ1", min_size=1, max_size=6)), min_size=n, max_size=n)
            ),
            "int": pa.array(data.draw(st.lists(st.one_of(st.none(), whole), min_size=n, max_size=n)), pa.int64()),
            "float": pa.array(
                [
                    None if v is None else v / 7
                    for v in data.draw(st.lists(st.one_of(st.none(), whole), min_size=n, max_size=n))
                ],
                pa.float64(),
            ),
            "number": [
                None if v is None else repr(v / 8)
                for v in data.draw(st.lists(st.one_of(st.none(), whole), min_size=n, max_size=n))
            ],
            "day": pa.array(
                data.draw(
                    st.lists(st.one_of(st.none(), st.dates(date(1900, 1, 1), date(2020, 1, 1))), min_size=n, max_size=n)
                ),
                pa.date32(),
            ),
            "day text": [
                None if v is None else str(v)
                for v in data.draw(
                    st.lists(st.one_of(st.none(), st.dates(date(1900, 1, 1), date(2020, 1, 1))), min_size=n, max_size=n)
                )
            ],
            "id": pa.array(range(n)),
        }
        kinds = {
            "int": Kind.NUMERIC,
            "float": Kind.NUMERIC,
            "number": Kind.NUMERIC,
            "day": Kind.DATE,
            "day text": Kind.DATE,
        }
        roles = {"who": Role.PERSON, "id": Role.IDENTIFIER}
        columns = [Column(name, roles.get(name, Role.OTHER), kinds.get(name, Kind.CATEGORICAL)) for name in cells]
        arrays = {name: own if isinstance(own, pa.Array) else pa.array(own, pa.string()) for name, own in cells.items()}
        raw = Table.from_arrow(pa.table(arrays), Schema.of(columns))
        number = st.sampled_from(
            [
                {"round": 0.5},
                {"round": 100},
                {"top": 10},
                {"bottom": 0.5, "round": 0.25},
                {"top": 300, "bottom": -300, "round": 30},
            ]
        )
        dates = st.sampled_from(
            [{"age_at": "2020-02-29"}, {"age_at": "2021-03-01", "top": 60, "round": 5}, {"shift_days": 9}]
        )
        asked = {
            "text": {"mask": {"keep_first": data.draw(st.integers(0, 3)), "keep_last": data.draw(st.integers(0, 3))}},
            "int": data.draw(number),
            "float": data.draw(number),
            "number": data.draw(number),
            "day": data.draw(dates),
            "day text": data.draw(dates),
            "id": {"pseudonym": True},
        }
        keys = PreparationKeys(b"k" * 32)
        table = prepared(raw, [Preparation.of(name, one) for name, one in asked.items()], keys)
        entries = json.loads(Path(f"{made[0]}.manifest.json").read_text())
        entries["input"]["prepared"] = [entry for one in table.prepared.preparations for entry in one.entries()]
        again, _, found = prepared_again(raw, read_claims(entries), keys.release, None)
        assert found[0].passed, found[0].message
        for name in cells:
            assert again[name].values.type == table[name].values.type
            assert again[name].cells().to_pylist() == table[name].cells().to_pylist(), name
            assert again.schema[name].kind is table.schema[name].kind
            assert again.schema[name].role is table.schema[name].role


def forged(made, folder, cells=None, manifest=None):
    """Write the release with a changed cell or manifest, with hash and digest that fit."""
    path, _, _ = made
    text, entries = path.read_text(), json.loads(Path(f"{path}.manifest.json").read_text())
    if cells is not None:
        read = list(csv.reader(io.StringIO(text)))
        cells(read)
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerows(read)
        text = written.getvalue()
    if manifest is not None:
        manifest(entries)
    entries["output"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    entries["digest"] = manifest_digest(entries)
    target = folder / "release.csv"
    target.write_text(text)
    Path(f"{target}.manifest.json").write_text(text_of(entries))
    return target


def set_cell(column, change):
    def do(read):
        place = read[0].index(column)
        read[1][place] = change(read[1][place], read[2][place])

    return do


def set_entry(operation, column, **changes):
    def do(entries):
        next(e for e in entries["input"]["prepared"] if (e["operation"], e["column"]) == (operation, column)).update(
            changes
        )

    return do


def without(column):
    def do(entries):
        entries["input"]["prepared"] = [e for e in entries["input"]["prepared"] if e["column"] != column]

    return do


SHOWN_BY_THE_FILE = {
    "a number above the top": set_cell("income", lambda own, other: "101000"),
    "a number below the bottom": set_cell("income", lambda own, other: "0"),
    "a number that is not rounded": set_cell("income", lambda own, other: "1500"),
    "a text that is not masked": set_cell("zip", lambda own, other: "10115"),
    "a pseudonym of another form": set_cell("id", lambda own, other: "K17"),
    "a pseudonym in two rows": set_cell("id", lambda own, other: other),
    "a date that is none": set_cell("visit", lambda own, other: "summer"),
}
SHOWN_BY_THE_ORIGINAL = {
    "another rounded number": set_cell("income", lambda own, other: "42000" if own != "42000" else "43000"),
    "another mask": set_cell("zip", lambda own, other: "99###"),
    "another pseudonym": set_cell("id", lambda own, other: "p" + "0" * 24),
    "another shifted date": set_cell("visit", lambda own, other: "2025-12-24"),
}
SHOWN_BY_THE_MANIFEST = {
    "another top": set_entry("top", "income", value=200000),
    "another bottom": set_entry("bottom", "income", value=0),
    "a finer rounding": set_entry("round", "income", value=500),
    "another day": set_entry("age", "born", at="2016-01-01"),
    "a shorter mask": set_entry("mask", "zip", keep_first=1),
    "another shift": set_entry("shift", "visit", days=31),
    "another scope": set_entry("pseudonym", "id", scope="project"),
    "no pseudonyms": without("id"),
    "no rounding": without("income"),
    "no mask": without("zip"),
    "no shift": without("visit"),
    "no age": without("born"),
}


@pytest.mark.parametrize("what", SHOWN_BY_THE_FILE)
def test_a_forged_cell_is_refused_without_the_original(what, made, tmp_path):
    report = audited(forged(made, tmp_path, cells=SHOWN_BY_THE_FILE[what]))
    failed = {check.name for check in report.checks if not check.passed}
    assert "prepared cells" in failed


@pytest.mark.parametrize("what", SHOWN_BY_THE_ORIGINAL)
def test_a_forged_cell_is_refused_with_the_original(what, made, tmp_path):
    _, raw, key = made
    report = audited(forged(made, tmp_path, cells=SHOWN_BY_THE_ORIGINAL[what]), raw, key)
    failed = {check.name for check in report.checks if not check.passed}
    assert "cells" in {name.partition(":")[0] for name in failed}, failed


@pytest.mark.parametrize("what", SHOWN_BY_THE_MANIFEST)
def test_a_forged_statement_is_not_confirmed(what, made, tmp_path):
    _, raw, key = made
    report = audited(forged(made, tmp_path, manifest=SHOWN_BY_THE_MANIFEST[what]), raw, key)
    if what == "another scope":  # which only the project's key could tell
        assert report.verdict != "confirmed"
    else:
        assert not report.passed


def set_list(listed):
    def do(entries):
        entries["input"]["prepared"] = listed

    return do


@pytest.mark.parametrize(
    "listed",
    [
        [{"column": "zip", "operation": "mask", "keep_first": 2, "keep_last": 0, "character": "ab"}],
        [{"column": "born", "operation": "age", "at": "2026-02-30"}],
        [{"column": "visit", "operation": "shift", "days": 0, "scope": "release", "by": None}],
        [
            {"column": "income", "operation": "round", "value": 1000},
            {"column": "income", "operation": "top", "value": 9000},
        ],
        [{"column": "note", "operation": "drop"}, {"column": "note", "operation": "drop"}],
    ],
)
def test_what_cannot_have_been_done_is_no_manifest(listed, made, tmp_path):
    path = forged(made, tmp_path, manifest=set_list(listed))
    with pytest.raises(ManifestRefusedError):
        audited(path)


def write_data(folder):
    with (folder / "people.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROLES))
        writer.writeheader()
        writer.writerows(rows())


PROJECT = """
[data]
path = "people.csv"
[columns]
id = { role = "identifier", prepare = { pseudonym = true SCOPE } }
sex = { role = "quasi-identifier" }
born = { role = "quasi-identifier", kind = "date", prepare = { age_at = "2026-01-01", top = 90 } }
zip = { role = "other", prepare = { mask = { keep_first = 2 } } }
income = { role = "sensitive", kind = "numeric", prepare = { top = 100000, bottom = 1000, round = 1000 } }
visit = { role = "quasi-identifier", kind = "date", prepare = { shift_days = 30 } }
note = { role = "other", prepare = { drop = true } }
[release]
mechanism = "mondrian"
"""


def pseudonyms(path):
    with path.open(newline="") as file:
        return {row["id"] for row in csv.DictReader(file)}


@pytest.mark.slow
class TestCommandLine:
    def test_a_project_is_confirmed_with_its_key_and_by_an_auditor(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        write_data(tmp_path)
        (tmp_path / "sfumato.toml").write_text(PROJECT.replace("SCOPE", ""))
        assert run(["release", "-o", "one.csv"]) == 0
        said = capsys.readouterr().err
        assert "'income' is coded as 1000 where it is less" in said
        assert CANARY not in said
        assert run(["audit", "one.csv", "--manifest", "one.csv.manifest.json", "--project", "sfumato.toml"]) == 0
        assert run(["audit-key", "one.csv.manifest.json", "-o", "one.key"]) == 0
        roles = ["--identifiers", "id", "--quasi-identifiers", "sex,born,visit", "--sensitive", "income"]
        roles += ["--other", "zip,note"]
        given = ["audit", "one.csv", "--manifest", "one.csv.manifest.json", "--original", "people.csv", *roles]
        assert run([*given, "--key", "one.key"]) == 0
        assert run(given) == 8
        assert "give --key" in capsys.readouterr().out
        assert run(["release", "-o", "same.csv"]) == 0
        assert (tmp_path / "same.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()
        assert run(["release", "-k", "6", "-o", "two.csv"]) == 0
        assert not pseudonyms(tmp_path / "one.csv") & pseudonyms(tmp_path / "two.csv")

    def test_pseudonyms_of_a_project_join_and_warn(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        write_data(tmp_path)
        (tmp_path / "sfumato.toml").write_text(PROJECT.replace("SCOPE", ', scope = "project"'))
        for k, name in ((5, "one.csv"), (6, "two.csv")):
            assert run(["release", "-k", str(k), "-o", name]) == 0
            assert "whoever has two of them can join their rows" in capsys.readouterr().err
            assert run(["audit", name, "--manifest", f"{name}.manifest.json", "--project", "sfumato.toml"]) == 0
        assert pseudonyms(tmp_path / "one.csv") == pseudonyms(tmp_path / "two.csv")

    def test_flags(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        write_data(tmp_path)
        roles = ["--identifiers", "id,note", "--quasi-identifiers", "sex,born,zip", "--sensitive", "income"]
        flags = ["--prepare", "income=top:100000,bottom:1000,round:1000", "--prepare", "born=age_at:2026-01-01,top:90"]
        flags += ["--prepare", "zip=keep_first:2", "--prepare", "visit=drop"]
        assert run(["release", "people.csv", "-m", "mondrian", *roles, *flags, "-o", "one.csv"]) == 0
        assert "'zip' is masked: the first 2 characters stay" in capsys.readouterr().err
        given = ["audit", "one.csv", "--manifest", "one.csv.manifest.json", "--original", "people.csv", *roles]
        assert run([*given, "--other", "visit"]) == 0
        assert run(["report", "one.csv", "--original", "people.csv", "--quick", "-o", "report.html"]) == 0
        assert "rounded to the nearest multiple of 1000" in (tmp_path / "report.html").read_text()
        attack = ["attack", "people.csv", "one.csv", "--manifest", "one.csv.manifest.json"]
        capsys.readouterr()
        assert run(attack) == 0
        assert "prepared as the manifest says" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("flag", "code", "said"),
        [
            ("income", 2, "COLUMN=OPERATION"),
            ("nowhere=drop", 3, "nowhere"),
            ("income=top:x", 3, "no finite number"),
            ("sex=round:5", 3, "kind"),
            ("zip=pseudonym", 3, "several rows"),
        ],
    )
    def test_what_cannot_be_done_is_said_in_a_sentence(self, flag, code, said, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        write_data(tmp_path)
        roles = ["--identifiers", "id,zip,note", "--quasi-identifiers", "sex,born", "--other", "visit,income"]
        assert run(["release", "people.csv", *roles, "--prepare", flag, "-o", "one.csv"]) == code
        err = capsys.readouterr().err
        assert said in err
        assert CANARY not in err
        assert not (tmp_path / "one.csv").exists()

    def test_differential_privacy_takes_no_preparation(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        write_data(tmp_path)
        given = ["release", "people.csv", "-m", "laplace-dp", "--target", "sex", "--quasi-identifiers", "zip"]
        assert run([*given, "--prepare", "zip=keep_first:2", "-o", "one.csv"]) == 2
        assert "preparations of columns" in capsys.readouterr().err


def test_python_prepares_a_frame():
    frame = pa.table({"sex": list("fm") * 20, "n": [i * 37 for i in range(40)], "ill": list("ynnn") * 10})
    made = sfumato.release(
        frame, target="ill", k=5, roles={"n": "sensitive"}, prepare={"n": {"top": 500, "round": 100}}
    )
    assert set(made.data.to_arrow().column("n").to_pylist()) == {0, 100, 200, 300, 400, 500}
    assert made.manifest.prepared[0] == {"column": "n", "operation": "top", "value": 500}


def test_python_publishes_with_the_frame_as_original(tmp_path):
    frame = pa.table({"id": [f"K{i}" for i in range(40)], "sex": list("fm") * 20, "ill": list("ynnn") * 10})
    asked = {"id": {"pseudonym": True}}
    made = sfumato.release(frame, target="ill", k=5, roles={"id": "identifier"}, prepare=asked)
    published = sfumato.publish(made, tmp_path / "one.csv", original=frame)
    assert published.audit.verdict == "confirmed"


VISITS = """
[data]
path = "visits.csv"
RULE
[columns]
who = { role = "person" }
sex = { role = "quasi-identifier" }
age = { role = "quasi-identifier", kind = "numeric", prepare = { round = 10 } }
came = { role = "other", kind = "date", confirmed = true, prepare = { shift_days = 30 } }
left = { role = "other", kind = "date", confirmed = true, prepare = { shift_days = 30 } }
[release]
mechanism = "mondrian"
parameters = { k = 3 }
"""


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["", 'one_row_per_person = "last"', 'missing_rows = "drop"'])
def test_stays_of_persons_keep_their_length(rule, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stays = {}
    with (tmp_path / "visits.csv").open("w") as file:
        file.write("who,sex,age,came,left\n")
        for i in range(60):
            came = date(2024, 1 + i % 12, 1 + i % 28)
            stays[i] = 1 + i % 7
            age = "" if i == 7 else str(20 + i)
            file.write(f"w{i % 25},{'fm'[i % 25 % 2]},{age},{came},{date.fromordinal(came.toordinal() + stays[i])}\n")
    (tmp_path / "sfumato.toml").write_text(VISITS.replace("RULE", rule))
    assert run(["release", "-o", "one.csv"]) == 0
    given = ["audit", "one.csv", "--manifest", "one.csv.manifest.json"]
    assert run([*given, "--project", "sfumato.toml"]) == 0
    assert run(["audit-key", "one.csv.manifest.json", "-o", "one.key"]) == 0
    roles = ["--person", "who", "--quasi-identifiers", "sex,age", "--other", "came,left"]
    assert run([*given, "--original", "visits.csv", *roles, "--key", "one.key"]) == 0
    with (tmp_path / "one.csv").open(newline="") as file:
        found = [date.fromisoformat(row["left"]) - date.fromisoformat(row["came"]) for row in csv.DictReader(file)]
    assert {stay.days for stay in found} <= set(stays.values())


@pytest.mark.slow
def test_out_of_core_gives_the_same_bytes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path)
    roles = [
        "--identifiers",
        "id,note",
        "--quasi-identifiers",
        "sex,born,zip",
        "--sensitive",
        "income",
        "--other",
        "visit",
    ]
    flags = [
        "--prepare",
        "income=top:100000,bottom:1000,round:1000",
        "--prepare",
        "born=age_at:2026-01-01,top:90,round:10",
    ]
    flags += ["--prepare", "zip=keep_first:2", "--prepare", "visit=drop"]
    given = ["release", "people.csv", "-m", "global-recoding", *roles, *flags]
    assert run([*given, "-o", "one.csv"]) == 0
    assert run([*given, "--memory", "600MB", "-o", "two.csv"]) == 0
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    audit = ["audit", "two.csv", "--manifest", "two.csv.manifest.json", "--original", "people.csv", *roles]
    audit += ["--memory", "600MB", "--accept", "figures"]
    assert run(audit) == 0
    text = (tmp_path / "two.csv").read_text()
    (tmp_path / "two.csv").write_text(text.replace("000\n", "500\n", 1))
    assert run(audit) == 5
    capsys.readouterr()
    assert run([*given, "--prepare", "id=pseudonym", "--memory", "600MB", "-o", "three.csv"]) == 0
    with (tmp_path / "three.csv").open(newline="") as file:
        names = [row["id"] for row in csv.DictReader(file)]
    assert len(set(names)) == len(names)
    assert all(name.startswith("p") and len(name) > 20 for name in names)  # row by row, in memory


@pytest.mark.slow
def test_a_ledger_knows_prepared_releases(tmp_path, monkeypatch):
    """What releases say together is judged on prepared columns: with the project, and with originals as they are."""
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "visits.csv").open("w") as file:
        file.write("who,sex,age,came,left\n")
        for i in range(60):
            file.write(f"w{i},{'fm'[i % 2]},{20 + i % 30},2024-01-01,2024-01-02\n")
    (tmp_path / "sfumato.toml").write_text(VISITS.replace("RULE", ""))
    assert run(["release", "-o", "one.csv"]) == 0
    assert run(["release", "-o", "two.csv"]) == 0
    given = ["audit", "one.csv", "--manifest", "one.csv.manifest.json", "--with", "two.csv.manifest.json"]
    assert run([*given, "--project", "sfumato.toml"]) == 0
    assert run([*given, "--original", "visits.csv", "--with-original", "visits.csv", "--person", "who", "--accept",
                "roles,cells,commitment"]) == 0  # fmt: skip
