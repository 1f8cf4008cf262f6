"""What somebody gets who names no mechanism: the promise as asked for, or a refusal; never a weaker one."""

import os
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.cli.main import run
from sfumato.errors import InvalidParameterError, PrivacyNotAchievableError, SchemaError
from sfumato.guarantees import LDiversity
from sfumato.mechanisms.auto import Automatic
from sfumato.project.file import DEFAULT_MECHANISM
from sfumato.schema import Column, Role, Schema
from sfumato.table.coding import Table

QUASI, SENSITIVE, TARGET = Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET


def table_of(**columns):
    """Make a table of columns that are given as role and values."""
    arrays = {name: pa.array(values) for name, (_, values) in columns.items()}
    return Table.from_arrow(pa.table(arrays), Schema.of(Column(name, role) for name, (role, _) in columns.items()))


def people(n_rows=60, **more):
    """Make a table of an age and a town that say something about being ill."""
    ages = [20 + 7 * i % 41 for i in range(n_rows)]
    columns = {"age": (QUASI, ages), "town": (QUASI, ["abc"[i % 3] for i in range(n_rows)])}
    ill = (TARGET, ["yn"[age + i % 5 > 42] for i, age in enumerate(ages)])
    return table_of(**{**columns, "ill": ill, **more})


def cells(table, names):
    return list(zip(*(table[name].cells().to_pylist() for name in names), strict=True))


def kinds(release):
    return [entry["kind"] for entry in release.manifest.guarantees]


def levels_by_hand(table):
    """Count rows of the smallest group, and different values of each sensitive column in the group with the fewest."""
    groups = cells(table, table.schema.names(QUASI))
    seen = {name: defaultdict(set) for name in table.schema.names(SENSITIVE)}
    for name, values in seen.items():
        for group, value in zip(groups, table[name].cells().to_pylist(), strict=True):
            values[group].add(value)
    return min(Counter(groups).values()), {name: min(map(len, values.values())) for name, values in seen.items()}


def test_it_is_the_default():
    assert Automatic.mechanism_name == DEFAULT_MECHANISM


def value_lists(n_rows):
    return st.one_of(
        st.lists(st.integers(0, 9), min_size=n_rows, max_size=n_rows),
        st.lists(st.sampled_from(["a", "b", "c", None]), min_size=n_rows, max_size=n_rows),
        st.just(["x"] * n_rows),
    )


@st.composite
def tables(draw):
    """Draw a small table of one to three quasi-identifiers, up to two sensitive columns, perhaps a target."""
    n_rows = draw(st.integers(1, 24))
    columns = {f"q{i}": (QUASI, draw(value_lists(n_rows))) for i in range(draw(st.integers(1, 3)))}
    for i in range(draw(st.integers(0, 2))):
        columns[f"s{i}"] = (SENSITIVE, draw(st.lists(st.sampled_from("uvw"), min_size=n_rows, max_size=n_rows)))
    if draw(st.booleans()):
        columns["y"] = (TARGET, draw(st.lists(st.sampled_from("yn"), min_size=n_rows, max_size=n_rows)))
    return table_of(**columns)


@pytest.mark.slow
@given(table=tables(), k=st.integers(2, 6), l=st.sampled_from([1, 2, 3]))
def test_the_promise_is_kept_or_nothing_is_released(table, k, l):  # noqa: E741  # the field's own name
    """Audited, and counted by hand; refused only where the whole table as one group would not do."""
    asked = [len(set(table[name].cells().to_pylist())) >= l for name in table.schema.names(SENSITIVE)]
    if table.n_rows < k or not all(asked):
        with pytest.raises(PrivacyNotAchievableError):
            sfumato.release(table, Automatic(k=k, l=l))
        return
    release = sfumato.release(table, Automatic(k=k, l=l))

    smallest, fewest = levels_by_hand(release.table)
    assert smallest >= k
    assert all(found >= l for found in fewest.values())
    promised = ["k-anonymity"] + ["l-diversity"] * (len(asked) if l > 1 else 0)
    assert kinds(release) == promised
    assert release.table.n_rows == table.n_rows


class TestWhatMakesTheRelease:
    def test_a_target_is_kept_predictable_and_without_one_the_detail(self):
        table = people()
        without = table.with_schema(table.schema.with_roles({"ill": Role.OTHER}))

        assert repr(Automatic(k=4).for_table(table)) == "Mondrian(k=4, split='score')"
        assert repr(Automatic(k=4).for_table(without)) == "Mondrian(k=4)"

    def test_a_target_of_one_class_has_nothing_to_keep(self):
        table = people(ill=(TARGET, ["y"] * 60))

        assert Automatic().for_table(table).split == "penalty"
        assert kinds(sfumato.release(table, Automatic())) == ["k-anonymity"]

    def test_l_is_asked_for_where_a_column_is_sensitive(self):
        table = people(hiv=(SENSITIVE, ["uv"[i % 2] for i in range(60)]))

        assert Automatic().for_table(people()).privacy == ()
        assert Automatic().for_table(table).privacy == [LDiversity(2)]
        assert Automatic(l=1).for_table(table).privacy == ()

    @pytest.mark.parametrize(
        ("parameters", "word"), [({"k": 1}, "k"), ({"l": 0.5}, "l"), ({"attacker_knows": "some"}, "attacker_knows")]
    )
    def test_settings_that_make_no_sense_are_refused(self, parameters, word):
        with pytest.raises(InvalidParameterError, match=f"^{word} must be"):
            Automatic(**parameters).release(people())


class TestSeveralSensitiveColumns:
    def table(self, n_values=2):
        return people(
            hiv=(SENSITIVE, ["uv"[i % 2] for i in range(60)]), drug=(SENSITIVE, [i % n_values for i in range(60)])
        )

    @pytest.mark.slow
    def test_each_has_a_promise_of_its_own_that_is_audited(self):
        release = sfumato.release(self.table(3), Automatic(k=5))

        assert kinds(release) == ["k-anonymity", "l-diversity", "l-diversity"]
        assert [entry["sensitive"] for entry in release.manifest.guarantees[1:]] == ["hiv", "drug"]
        assert all(entry["audited"] >= 2 for entry in release.manifest.guarantees[1:])

    def test_one_out_of_reach_is_named_and_the_promise_is_not_weakened(self):
        with pytest.raises(
            PrivacyNotAchievableError, match=r"distinct 2-diversity of the sensitive column.*'drug' has"
        ):
            sfumato.release(self.table(1), Automatic(k=5))

    @pytest.mark.slow
    def test_the_audit_refuses_a_release_that_covers_one_of_them_only(self):
        """The promise about the other column is checked by itself."""
        only_one = sfumato.release(self.table(), sfumato.Mondrian(k=2, privacy=[LDiversity(2, sensitive="hiv")]))
        smallest, fewest = levels_by_hand(only_one.table)
        manifest = only_one.manifest.to_dict()
        manifest["guarantees"] = [*manifest["guarantees"], {**manifest["guarantees"][1], "sensitive": "drug"}]

        assert (smallest >= 2, fewest["hiv"]) == (True, 2)
        assert not sfumato.audit_release(only_one.table, manifest).passed


@pytest.mark.parametrize("n_rows", [5, 9])
def test_fewer_than_twice_k_rows_are_one_group(n_rows):
    release = sfumato.release(people(n_rows), Automatic(k=5))

    assert set(Counter(cells(release.table, ["age", "town"])).values()) == {n_rows}


def test_fewer_rows_than_k_are_refused_whatever_is_asked_of_sensitive_columns():
    table = people(4, hiv=(SENSITIVE, ["u"] * 4))

    with pytest.raises(PrivacyNotAchievableError, match="groups of k = 5 rows in a table of 4") as refused:
        sfumato.release(table, Automatic(k=5))
    assert refused.value.remedy == ()


def test_columns_that_are_constant_stay_as_they_are():
    table = people(age=(QUASI, [7] * 60), town=(QUASI, ["a"] * 60))

    assert set(cells(sfumato.release(table, Automatic()).table, ["age", "town"])) == {("7", "a")}


@pytest.mark.slow
def test_a_quasi_identifier_that_determines_the_target():
    table = people(town=(QUASI, ["ab"[i % 2] for i in range(60)]), ill=(TARGET, ["yn"[i % 2] for i in range(60)]))
    release = sfumato.release(table, Automatic(k=5))

    assert levels_by_hand(release.table)[0] >= 5
    assert set(cells(release.table, ["town", "ill"])) == {("a", "y"), ("b", "n")}


def test_more_classes_than_folds_and_fewer_rows_of_each():
    table = people(ill=(TARGET, [f"class {i % 29}" for i in range(60)]))

    assert levels_by_hand(sfumato.release(table, Automatic(k=5)).table)[0] >= 5


@pytest.mark.slow
def test_2500_columns():
    drawn = np.random.default_rng(3).integers(0, 3, (40, 2_500))
    columns = {f"c{j}": (QUASI, drawn[:, j].tolist()) for j in range(2_500)}
    release = sfumato.release(table_of(**columns, y=(TARGET, ["yn"[i % 2] for i in range(40)])), Automatic(k=5))

    assert levels_by_hand(release.table)[0] >= 5


# ---- words and items


@pytest.fixture
def mail():
    """Make 120 sparse rows of eight items, three of which say something about the class."""
    drawn = np.random.default_rng(5)
    classes = np.arange(120) % 2
    items = drawn.random((120, 8)) < 0.35 + 0.4 * classes[:, None] * (np.arange(8) < 3)
    return "".join(
        f"{2 * label - 1} {' '.join(f'{j + 1}:1' for j in np.flatnonzero(row))}\n"
        for label, row in zip(classes, items, strict=True)
    )


@pytest.fixture
def folder(tmp_path, monkeypatch, mail):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.svm").write_text(mail)
    (tmp_path / "mixed.csv").write_text(
        "age,town,hiv,y\n" + "".join(f"{20 + i % 9},{'ab'[i % 2]},no,{'yn'[i % 3 > 0]}\n" for i in range(60))
    )
    return tmp_path


@pytest.mark.slow
def test_items_are_selected_under_strict_k_unless_attackers_know_ones_only(folder, capsys):
    assert run(["release", "mail.svm", "--quick", "-o", "all.csv"]) == 0
    strict = capsys.readouterr().err
    assert run(["release", "mail.svm", "--quick", "--attacker-knows", "ones", "-o", "ones.csv"]) == 0
    by_ones = capsys.readouterr().err

    assert "Promised:      k-anonymity: every row shares its values" in strict
    assert "0-values" not in strict
    assert "knowing any 1-values of a person in" in by_ones
    assert "0-values are not covered" in by_ones
    assert "Not covered:   attackers who also know 0-values (what a person does not have)" in by_ones
    n_columns = [len((folder / name).read_text().partition("\n")[0].split(",")) for name in ("all.csv", "ones.csv")]
    assert n_columns[0] <= n_columns[1]


def test_ones_of_columns_that_are_not_0_1_are_refused_in_one_line(folder, capsys):
    assert run(["release", "mixed.csv", "--target", "y", "--attacker-knows", "ones", "-o", "out.csv"]) == 2

    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--attacker-knows must be 'all' here, got 'ones', but not all quasi-identifiers are 0/1" in line
    assert not (folder / "out.csv").exists()


@pytest.mark.slow
def test_0_1_columns_of_a_plain_table_may_be_selected_by_ones():
    bits = {name: (QUASI, [i >> place & 1 for i in range(64)]) for place, name in enumerate("abc")}
    table = table_of(**bits, y=(TARGET, ["yn"[i % 2] for i in range(64)]))

    assert kinds(sfumato.release(table, Automatic(attacker_knows="ones"))) == ["containment"]
    assert kinds(sfumato.release(table, Automatic())) == ["k-anonymity"]


def test_a_selection_promises_no_l_and_says_so():
    bits = {name: (QUASI, [i >> place & 1 for i in range(64)]) for place, name in enumerate("abc")}
    table = table_of(
        **bits, y=(TARGET, ["yn"[i % 2] for i in range(64)]), s=(SENSITIVE, ["uv"[i % 2] for i in range(64)])
    )

    with pytest.raises(SchemaError, match="selecting features cannot promise l-diversity") as refused:
        Automatic(attacker_knows="ones").release(table)
    assert refused.value.remedy == ("no_l",)
    assert kinds(sfumato.release(table, Automatic(attacker_knows="ones", l=1))) == ["containment"]


# ---- on the command line


@pytest.mark.slow
def test_l_out_of_reach_is_exit_4_that_names_the_way_out(folder, capsys):
    order = ["release", "mixed.csv", "--target", "y", "--sensitive", "hiv", "--quick", "-o", "out.csv"]
    before = sorted(os.listdir(folder))
    assert run(order) == 4

    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "distinct 2-diversity" in line
    assert "'hiv' has fewer than 2 different values" in line
    assert line.endswith("(--no-l asks for k alone)")
    assert sorted(os.listdir(folder)) == before
    assert run([*order, "--no-l"]) == 0
    words = capsys.readouterr().err
    assert "k-anonymity: every row shares its values on 2 quasi-identifying columns with at least 4 other rows" in words
    assert "different values of 'hiv'" not in words


@pytest.mark.parametrize("option", [["--no-l"], ["--attacker-knows", "all"]])
def test_options_of_auto_are_refused_with_another_mechanism(folder, capsys, option):
    assert run(["release", "mixed.csv", "--target", "y", "-m", "mondrian", *option, "-o", "out.csv"]) == 2

    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"{option[0]} must be used with auto only, got it with mondrian" in line
