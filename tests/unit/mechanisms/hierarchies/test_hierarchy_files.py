"""Hierarchy files: what is written is read again, ARX's files are read, and faults are named by line."""

import codecs
import csv
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproductions.adult_hierarchies import adult_hierarchies
from reproductions.public_data import load_adult
from sfumato.errors import InputError, InvalidParameterError, OutputError
from sfumato.mechanisms.hierarchies.files import faults_of_file, hierarchy_text, read_hierarchy, write_hierarchy
from sfumato.mechanisms.hierarchies.hierarchy import Hierarchy, covered

ARX_SHAPES = {
    "age": (100, 5),
    "education": (16, 4),
    "marital-status": (7, 3),
    "native-country": (41, 3),
    "occupation": (14, 3),
    "race": (5, 2),
    "salary-class": (2, 2),
    "sex": (2, 2),
    "workclass": (8, 3),
}
cells = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(';",|\n\r\té '), min_size=1).map(
    lambda text: "x" + text.strip() + "x"
)


def written(tmp_path, content):
    path = tmp_path / "h.csv"
    path.write_bytes(content)
    return path


@given(values=st.lists(cells, min_size=1, unique=True, max_size=6), label=cells)
def test_special_characters_come_back(tmp_path_factory, values, label):
    path = tmp_path_factory.mktemp("hierarchy") / "h.csv"
    rows = [(value, label, "*") for value in values]

    write_hierarchy(Hierarchy.from_rows(rows), path)

    assert list(read_hierarchy(path).rows()) == rows


@given(st.lists(cells, min_size=1, unique=True, max_size=6))
def test_other_programs_read_what_is_written(values):
    rows = [[value, "*"] for value in values]
    lines = hierarchy_text(Hierarchy.from_rows(rows)).splitlines(keepends=True)

    assert list(csv.reader(lines, delimiter=";")) == rows


@pytest.mark.parametrize(
    "content",
    [
        b"Male;*\nFemale;*\n",
        b"Male;*\r\nFemale;*\r\n",
        b"Male;*\rFemale;*",
        codecs.BOM_UTF8 + b"Male;*\nFemale;*\n",
        "Male;*\nFemale;*\n".encode("utf-16"),
        b"\n\nMale;*\n  \n;\nFemale;*\n\n",
        b' Male ; * \n"Female";"*"\n',
        gzip.compress(b"Male;*\nFemale;*\n"),
    ],
    ids=["lf", "crlf", "cr", "bom", "utf-16", "blank", "quoted", "gzip"],
)
def test_one_hierarchy_in_many_dresses(tmp_path, content):
    assert read_hierarchy(written(tmp_path, content)).labels == (("Male", "Female"), ("*",))


def test_delimiter_and_encoding_can_be_named(tmp_path):
    path = written(tmp_path, "Köln,NRW,*\n".encode("latin-1"))

    assert read_hierarchy(path, delimiter=",", encoding="latin-1").labels == (("Köln",), ("NRW",), ("*",))
    with pytest.raises(InputError, match="is not utf-8 text"):
        read_hierarchy(path)
    with pytest.raises(InvalidParameterError, match="delimiter must be a semicolon"):
        read_hierarchy(path, delimiter="::")


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (b"a;x;*\n\nsecret;x\n", 3, "has 2 levels, the first row 3"),
        (b"a;x;*\nsecret;y;*\n\nsecret;y;*\n", 4, "lines 2 and 4 of a hierarchy are for the same value"),
        (b"a;x;*\nsecret;x;secret\n", 2, "lines 1 and 2 of a hierarchy have the same label on level 1"),
        (b'a;x;*\n"secret;x;*\n', 2, "never closed"),
        (b"a;x;*\nsecret;;*\n", 2, "no label on level 1"),
        (b'"secret\nb";x;*\n"secret\nb";x;*\n', 3, "lines 1 and 3"),
        (b" \n;;\n", None, "without rows"),
        (b"", None, "is empty"),
    ],
)
def test_faults_name_file_and_line_and_no_value(tmp_path, content, line, said):
    path = written(tmp_path, content)

    with pytest.raises(InputError) as caught:
        read_hierarchy(path)

    assert caught.value.line == line
    assert caught.value.path == str(path)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_all_faults_of_a_file_are_listed_up_to_a_number(tmp_path):
    assert [fault.line for fault in faults_of_file(written(tmp_path, b"a;x\n" * 4))] == [2, 3, 4]
    assert len(faults_of_file(written(tmp_path, b"a;x\n" * 100))) == 20


def test_a_file_that_exists_is_kept(tmp_path):
    path = written(tmp_path, b"mine\n")
    hierarchy = Hierarchy.from_rows([("a", "*")])

    with pytest.raises(OutputError, match="exists already"):
        write_hierarchy(hierarchy, path)
    assert path.read_bytes() == b"mine\n"
    write_hierarchy(hierarchy, path, force=True)
    assert path.read_bytes() == b"a;*\n"


@pytest.mark.parametrize("name", ARX_SHAPES)
def test_files_of_arx_are_read_as_they_stand(shared_data, name):
    path = shared_data / "adult-arx" / f"adult_hierarchy_{name}.csv"

    hierarchy = read_hierarchy(path)

    assert (hierarchy.n_values, hierarchy.n_levels) == ARX_SHAPES[name]
    assert hierarchy.labels[-1] == ("*",)
    assert hierarchy_text(hierarchy) == path.read_text().rstrip("\n") + "\n"


@pytest.mark.slow
def test_adult_hierarchies_cover_adult(shared_data):
    """All rows of both parts, the missing ones too, which no file lists."""
    adult = load_adult("all")
    hierarchies = adult_hierarchies()

    assert len(hierarchies) == 11
    for name, hierarchy in hierarchies.items():
        found = covered(hierarchy, adult[name], name, adult.schema[name].kind, missing=("?",))
        assert found.labels[-1] == ("*",)
        assert len(found.labels[0]) == adult[name].n_distinct
    assert [len(level) for level in hierarchies["hours-per-week"].labels] == [99, 10, 6, 3, 1]
    assert hierarchies["hours-per-week"].labels[3] == ("[1, 34]", "[35, 40]", "[41, 99]")
