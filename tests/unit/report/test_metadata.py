"""Descriptions of a release: Croissant as its own library reads it, DCAT-AP as RDF, and the dictionary."""

import json
import logging
import warnings
from pathlib import Path

import pytest

from sfumato.cli.main import run
from sfumato.datasets.admissions import admissions
from sfumato.errors import InvalidParameterError, ManifestError
from sfumato.mechanisms.mondrian.mechanism import Mondrian
from sfumato.publishing.propose import make_release
from sfumato.report.metadata import Publication, croissant
from sfumato.table.io.write import write_table

NAMES = ["name", "age", "sex", "insurance", "smoker", "discharge_diagnosis", "readmitted"]
ROLES = [
    *("--target", "readmitted", "--sensitive", "discharge_diagnosis", "--identifiers", "name"),
    *("--quasi-identifiers", "age,sex,insurance", "--other", "smoker"),
]
SAID = [
    *("--title", "Stays", "--license", "https://creativecommons.org/licenses/by/4.0/", "--publisher", "City Hospital"),
    *("--url", "https://data.example/stays", "--date", "2026-11-18", "--version", "1.0.0", "--keyword", "health"),
]


def released(tmp_path, monkeypatch, output="release.csv", mechanism="mondrian"):
    monkeypatch.chdir(tmp_path)
    with Path("stays.csv").open("wb") as file:
        write_table(admissions(n_rows=150).keep(NAMES), file, "csv")
    assert run(["release", "stays.csv", "-m", mechanism, "-k", "4", *ROLES, "-o", output]) == 0
    return output


def loaded_by_its_library(path):
    """Read a description as mlcroissant does; its warnings about what it recommends are returned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries that mlcroissant uses
        logging.getLogger("absl").setLevel(logging.ERROR)
        import mlcroissant

        dataset = mlcroissant.Dataset(jsonld=str(path))
        return dataset, list(dataset.records("rows")), dataset.metadata.ctx.issues


@pytest.mark.slow
@pytest.mark.parametrize("output", ["release.csv", "release.tsv", "release.parquet"])
def test_the_library_of_croissant_accepts_a_description_and_reads_all_rows_by_it(tmp_path, monkeypatch, output):
    released(tmp_path, monkeypatch, output)

    assert run(["metadata", output, *SAID]) == 0

    dataset, rows, issues = loaded_by_its_library(f"{output}.croissant.json")
    assert not issues.errors
    assert all("citeAs" in warning for warning in issues.warnings)
    assert dataset.metadata.conforms_to[0] == "http://mlcommons.org/croissant/1.1"
    assert len(rows) == json.loads(Path(f"{output}.manifest.json").read_text())["output"]["rows"]
    assert set(rows[0]) == {f"rows/{name}" for name in NAMES if name != "name"}
    assert isinstance(rows[0]["rows/smoker"], int)


@pytest.mark.slow
def test_a_changed_file_is_refused_by_the_library_of_croissant(tmp_path, monkeypatch):
    """The hash in the description is that of the file."""
    released(tmp_path, monkeypatch)
    assert run(["metadata", "release.csv", *SAID]) == 0

    Path("release.csv").write_text(Path("release.csv").read_text().replace("female", "male"))

    with pytest.raises(Exception, match=r"(?i)hash|generat"):
        loaded_by_its_library("release.csv.croissant.json")


@pytest.mark.slow
def test_what_is_promised_and_what_is_not_is_in_every_description(tmp_path, monkeypatch):
    released(tmp_path, monkeypatch)
    assert run(["metadata", "release.csv"]) == 0

    for suffix in ("croissant.json", "dcat.jsonld", "dictionary.md"):
        text = Path(f"release.csv.{suffix}").read_text(encoding="utf-8")
        assert "k-anonymity" in text, suffix
        assert "no guarantee covers it: 'smoker'" in text, suffix
        assert "'name'" not in text, suffix  # an identifier, which is not released
    assert r"a set {a\|b} of possible values (\N in it: missing)" in text


@pytest.mark.slow
def test_dcat_ap_is_rdf_with_the_mandatory_properties(tmp_path, monkeypatch):
    """DCAT-AP 3: a dataset has a title and a description, a distribution an access URL; a checksum has both parts."""
    rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")
    released(tmp_path, monkeypatch)
    assert run(["metadata", "release.csv", "--as", "dcat-ap", *SAID]) == 0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of rdflib's own parser, by itself
        graph = rdflib.Graph().parse("release.csv.dcat.jsonld", format="json-ld")

    dcat, dct = rdflib.Namespace("http://www.w3.org/ns/dcat#"), rdflib.Namespace("http://purl.org/dc/terms/")
    spdx = rdflib.Namespace("http://spdx.org/rdf/terms#")
    (dataset,) = graph.subjects(rdflib.RDF.type, dcat.Dataset)
    (distribution,) = graph.objects(dataset, dcat.distribution)
    (checksum,) = graph.objects(distribution, spdx.checksum)
    assert str(graph.value(dataset, dct.title)) == "Stays"
    assert graph.value(dataset, dct.description) is not None
    assert str(graph.value(distribution, dcat.accessURL)) == "https://data.example/stays"
    assert str(graph.value(distribution, dcat.downloadURL)) == "https://data.example/stays/release.csv"
    manifest = json.loads(Path("release.csv.manifest.json").read_text())
    assert str(graph.value(checksum, spdx.checksumValue)).lower() == manifest["output"]["sha256"]
    assert len(list(graph.objects(dataset, dct.provenance))) >= 5


@pytest.mark.slow
def test_a_release_with_metadata_is_described_as_the_command_does(tmp_path, monkeypatch):
    released(tmp_path, monkeypatch)
    assert run(["metadata", "release.csv"]) == 0
    alone = [path.read_bytes() for path in sorted(Path().glob("release.csv.[cd]*"))]

    arguments = ["release", "stays.csv", "-m", "mondrian", "-k", "4", *ROLES, "-o", "release.csv", "--metadata"]
    assert run(arguments) == 3  # there already
    assert run([*arguments, "--force"]) == 0

    assert [path.read_bytes() for path in sorted(Path().glob("release.csv.[cd]*"))] == alone
    assert len(alone) == 3


@pytest.mark.slow
def test_a_refused_release_has_no_description(tmp_path, monkeypatch, capsys):
    released(tmp_path, monkeypatch)
    text = Path("release.csv").read_text()
    Path("release.csv").write_text(text.replace(text.splitlines()[1] + "\n", "", 1))

    assert run(["metadata", "release.csv"]) == 5

    assert not list(Path().glob("release.csv.[cd]*"))


@pytest.mark.slow
def test_files_that_exist_are_replaced_with_force_only_and_the_bytes_are_the_same(tmp_path, monkeypatch):
    released(tmp_path, monkeypatch)
    assert run(["metadata", "release.csv", *SAID]) == 0
    first = {path: path.read_bytes() for path in Path().glob("release.csv.*")}

    assert run(["metadata", "release.csv", *SAID]) == 3
    assert run(["metadata", "release.csv", *SAID, "--force"]) == 0

    assert {path: path.read_bytes() for path in Path().glob("release.csv.*")} == first
    assert len(first) == 4


@pytest.mark.slow
def test_a_libsvm_file_is_described_without_columns_that_it_does_not_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mail.svm").write_text("".join(f"{i % 2} 1:1 {2 + i % 3}:1\n" for i in range(60)))
    assert run(["release", "mail.svm", "-m", "greedy-containment", "-k", "4", "-o", "release.svm"]) == 0

    assert run(["metadata", "release.svm"]) == 0

    assert "recordSet" not in json.loads(Path("release.svm.croissant.json").read_text())


def test_a_text_target_in_a_libsvm_file_is_refused_in_plain_words(tmp_path, monkeypatch, capsys):
    """It was called a bug of the program: the rows were put into order before the writer was asked."""
    monkeypatch.chdir(tmp_path)
    with Path("stays.csv").open("wb") as file:
        write_table(admissions(n_rows=150).keep(NAMES), file, "csv")

    code = run(["release", "stays.csv", "-m", "greedy-containment", "-k", "4", *ROLES, "-o", "release.svm"])

    assert code == 2
    assert "libsvm" in capsys.readouterr().err.splitlines()[-1]


def test_a_release_that_is_in_no_file_has_no_description():
    table = admissions(n_rows=60).keep(["age", "readmitted"])

    with pytest.raises(ManifestError, match="describes no released file"):
        croissant(make_release(table, Mondrian(k=5)), Publication())


@pytest.mark.parametrize("given", [{"date": "18.11.2026"}, {"license": "CC BY"}, {"url": "data.example"}])
def test_words_of_a_publisher_are_checked(given):
    with pytest.raises(InvalidParameterError, match=next(iter(given))):
        Publication(**given)
