import datetime
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import audit_release
from sfumato.audit.auditor import AuditorHas, PublisherKnows
from sfumato.audit.claims import ClaimedRecoding
from sfumato.audit.reading.values import evaluate
from sfumato.guarantees import Containment, KAnonymity
from sfumato.schema import Kind, Role
from sfumato.table.binary import BinaryTable, Feature, as_binary_matrix
from unit.audit.audit_oracles import CANARY, binary_table, manifest_of, sealed, small_rows, table_from_rows, table_of

ORIGINAL = table_of(
    {
        "ssn": ["s1", "s2", "s3", "s4"],
        "age": ["20", "35", None, "50"],
        "city": ["rome", "oslo", "rome", "bonn"],
        "flag": ["1", "0", "1", "1"],
        "ill": ["yes", "no", "no", "yes"],
    },
    {"ssn": Role.IDENTIFIER, "ill": Role.TARGET},
    {"age": Kind.NUMERIC},
)
YOUNG = {"name": "young", "column": "age", "rule": "interval", "upto": 35}
MIDDLE = {"name": "middle", "column": "age", "rule": "interval", "above": 20, "upto": 50.0}
ROMAN = {"name": "roman", "column": "city", "rule": "one-of", "values": ["rome", "milan"]}
NO_AGE = {"name": "no age", "column": "age", "rule": "missing"}
FLAG = {"name": "flagged", "column": "flag", "rule": "as-is"}


def audit(released, original=ORIGINAL, columns=None, check_roles=False, **changes):
    """Audit without the level of the promise, so that only the comparison with the original can fail."""
    qi = [
        c["name"]
        for c in (columns or manifest_of(released, [])["output"]["columns"])
        if c["role"] == "quasi-identifier"
    ]
    manifest = manifest_of(released, [(KAnonymity(2, tuple(qi)), 1)], original, **changes)
    if columns is not None:
        manifest = sealed(manifest | {"output": manifest["output"] | {"columns": columns}})
    report = audit_release(
        released,
        manifest,
        AuditorHas(original=original, roles=check_roles),
        publisher=PublisherKnows(levels_are_stated=False),
    )
    return replace(report, checks=tuple(check for check in report.checks if check.name != "k-anonymity: level"))


def failed(report) -> list[str]:
    return [check.name for check in report.checks if not check.passed]


def released(**columns):
    return table_of(columns | {"ill": ["yes", "no", "no", "yes"]}, {"ill": Role.TARGET})


def test_columns_released_unchanged_pass():
    assert audit(ORIGINAL.keep(["age", "city", "ill"])).passed


@pytest.mark.parametrize(
    ("rule", "cells"),
    [
        (YOUNG, [1, 1, 0, 0]),
        (MIDDLE, [0, 1, 0, 1]),
        (ROMAN, [1, 0, 1, 0]),
        (NO_AGE, [0, 0, 1, 0]),
        (FLAG, [1, 0, 1, 1]),
    ],
    ids=lambda rule: rule["rule"] if isinstance(rule, dict) else "",
)
def test_a_recoding_is_computed_again(rule, cells):
    """The stated rule must give exactly the released cells, written as numbers or as text."""
    assert audit(released(**{rule["name"]: cells}), recodings=[rule]).passed
    assert audit(released(**{rule["name"]: [str(c) for c in cells]}), recodings=[rule]).passed
    for row in range(4):
        wrong = [1 - c if i == row else c for i, c in enumerate(cells)]
        report = audit(released(**{rule["name"]: wrong}), recodings=[rule])

        assert report.failures == (f"cells do not follow from the original: '{rule['name']}' differs in 1 rows",)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (YOUNG | {"column": "city"}, "'young' has a rule (interval) that cannot be applied to 'city'"),
        (
            {"name": "young", "column": "age", "rule": "as-is"},
            "'young' has a rule (as-is) that cannot be applied to 'age'",
        ),
        (YOUNG | {"column": "height"}, "'young' was computed from a column that the original lacks"),
    ],
    ids=["not numbers", "not 0/1", "unknown column"],
)
def test_a_rule_that_cannot_be_applied_fails(rule, said):
    report = audit(released(young=[1, 1, 0, 0]), recodings=[rule])

    assert said in report.failures[-1]


def test_a_released_feature_holds_zeros_and_ones_in_one_spelling():
    """A second spelling of 1 could mark rows."""
    for cells in (["1", "1.0", "0", "0"], ["1", "1", "2", "0"], ["1", "1", None, "0"]):
        assert failed(audit(released(young=cells), recodings=[YOUNG])) == ["cells"]


def test_a_column_from_nowhere_fails():
    report = audit(released(height=["1", "2", "3", "4"]))

    assert "'height' is neither a column of the original nor a stated recoding" in report.failures[0]


def test_a_changed_cell_and_changed_order_fail():
    changed = released(city=["rome", "oslo", "bonn", "bonn"])
    swapped = ORIGINAL.keep(["city", "ill"]).take(np.array([1, 0, 2, 3]))

    assert "'city' differs in 1 rows" in audit(changed).failures[0]
    assert "'city' differs in 2 rows; 'ill' differs in 2 rows" in audit(swapped).failures[0]


def test_a_missing_value_must_stay_missing():
    assert "'age' differs in 1 rows" in audit(released(age=["20", "35", "0", "50"])).failures[0]


def test_typed_cells_may_be_released_as_text():
    typed = table_of(
        {
            "whole": [1, 2, None],
            "real": [0.1, 1.0, -2.5e10],
            "truth": [True, False, None],
            "day": [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1), None],
            "word": ["a", "b", "c"],
        }
    )
    text = table_of(
        {
            "whole": ["1", "2", None],
            "real": ["0.1", "1", "-25000000000"],
            "truth": ["true", "false", None],
            "day": ["2024-01-31", "2024-02-01", None],
            "word": ["a", "b", "c"],
        }
    )

    assert audit(text, typed).passed
    assert audit(typed, text).passed


def test_typed_cells_are_recoded_by_what_they_mean():
    typed = table_of({"n": [1, 2, None], "f": [0.5, 1.0, 2.0], "b": [True, False, None]})
    recodings = [
        {"name": "n1", "column": "n", "rule": "one-of", "values": ["1"]},
        {"name": "f1", "column": "f", "rule": "one-of", "values": ["1", "2.0"]},
        {"name": "fi", "column": "f", "rule": "interval", "above": 0.5},
        {"name": "b1", "column": "b", "rule": "one-of", "values": ["true"]},
        {"name": "b", "column": "b", "rule": "as-is"},
    ]
    cells = {"n1": [1, 0, 0], "f1": [0, 1, 1], "fi": [0, 1, 1], "b1": [1, 0, 0], "b": [1, 0, 0]}

    assert audit(table_of(cells), typed, recodings=recodings).passed


def test_an_identifier_may_not_be_released_under_any_name():
    """The original says that ssn is an identifier, whatever the manifest calls it."""
    plain = table_of({"ssn": ["s1", "s2", "s3", "s4"]})
    recoded = table_of({"first": [1, 0, 0, 0]})
    rule = {"name": "first", "column": "ssn", "rule": "one-of", "values": ["s1"]}

    assert failed(audit(plain, dropped_columns=["age", "city", "flag", "ill"])) == ["identifiers"]
    assert failed(audit(recoded, recodings=[rule], dropped_columns=["age", "city", "flag", "ill"])) == ["identifiers"]


@pytest.mark.parametrize(
    ("dropped", "said"),
    [
        (["ssn", "age"], "neither released nor stated as dropped: 'flag'"),
        (["ssn", "age", "city", "flag"], "stated as dropped but released: 'city'"),
        (["ssn", "age", "flag", "row 7 is ill"], "those stated as dropped are not columns of the original, each once"),
        (["ssn", "age", "flag", "age"], "those stated as dropped are not columns of the original, each once"),
        (["ssn", "flag", "age"], "those stated as dropped are not in the order of the original"),
    ],
    ids=["incomplete", "released", "strange", "twice", "order"],
)
def test_dropped_columns_are_stated_completely_and_truly(dropped, said):
    (failure,) = audit(ORIGINAL.keep(["city", "ill"]), dropped_columns=dropped).failures

    assert said in failure


def test_a_recoded_column_is_not_dropped():
    report = audit(released(young=[1, 1, 0, 0]), recodings=[YOUNG], dropped_columns=["ssn", "age", "city", "flag"])

    assert report.failures == ("stated as dropped but released: 'age'",)


def test_a_recoding_of_nothing_released_fails():
    assert failed(audit(ORIGINAL.keep(["age", "city", "flag", "ill"]), recodings=[ROMAN])) == ["dropped columns"]


def test_incomplete_rows_are_found_again():
    """Only the third row of the original has a missing value."""
    complete = ORIGINAL.without_incomplete_rows()
    dropped = {"tokens": list(ORIGINAL.schema.missing), "rows": "dropped", "n_dropped": 1}

    assert audit(complete.keep(["age", "ill"]), missing=dropped).passed
    assert failed(audit(complete.keep(["age", "ill"]), missing=dropped | {"n_dropped": 2})) == ["row balance", "cells"]
    assert failed(audit(complete.keep(["age", "ill"]))) == ["row balance", "cells"]
    assert failed(audit(ORIGINAL.keep(["age", "ill"]), missing=dropped)) == ["row balance", "cells"]


def test_rows_dropped_at_the_door_count_as_dropped():
    """The reader may have left the incomplete rows out already."""
    complete = ORIGINAL.without_incomplete_rows()
    dropped = {"tokens": list(ORIGINAL.schema.missing), "rows": "dropped", "n_dropped": 1}
    source = manifest_of(ORIGINAL, [])["input"]

    assert audit(complete.keep(["age", "ill"]), complete, missing=dropped, input=source).passed
    assert failed(audit(complete.keep(["age", "ill"]), complete, input=source)) == ["row balance", "cells"]


def test_the_right_incomplete_rows_must_be_dropped():
    kept_wrong = ORIGINAL.keep(["city", "ill"]).take(np.array([0, 1, 2]))

    report = audit(kept_wrong, missing={"tokens": list(ORIGINAL.schema.missing), "rows": "dropped", "n_dropped": 1})

    assert "'city' differs in 1 rows" in report.failures[0]


def test_suppressed_rows_may_be_left_out_but_not_moved_or_made_up():
    def suppressed(rows):
        return audit(ORIGINAL.keep(["city", "flag", "ill"]).take(np.array(rows)), suppressed_rows=4 - len(rows))

    assert suppressed([0, 2, 3]).passed
    assert suppressed([1]).passed
    assert failed(suppressed([2, 0, 3])) == ["cells"]
    assert failed(suppressed([0, 0])) == ["cells"]
    made_up = table_of({"city": ["rome", CANARY], "ill": ["yes", "no"]}, {"ill": Role.TARGET})
    assert failed(audit(made_up, suppressed_rows=2)) == ["cells"]
    assert failed(audit(made_up, suppressed_rows=1)) == ["row balance", "cells"]


@pytest.mark.slow
@given(small_rows(1), st.data())
def test_any_part_of_a_table_is_faithful_and_any_other_cell_is_not(rows, data):
    original = table_from_rows(rows, [i % 2 for i in range(len(rows))])
    chosen = data.draw(st.sets(st.sampled_from(range(len(rows))))) if rows else set()
    part = original.take(np.array(sorted(chosen), dtype=np.intp))
    if not chosen:
        return

    assert audit(part, original, suppressed_rows=len(rows) - len(chosen)).passed
    other = original.to_arrow().set_column(0, original.schema.names()[0], pa.array([9] * len(rows), pa.int64()))
    changed = type(original).from_arrow(other, original.schema).take(np.array(sorted(chosen), dtype=np.intp))
    assert failed(audit(changed, original, suppressed_rows=len(rows) - len(chosen))) == ["cells"]


def test_the_size_of_the_original_is_compared():
    source = manifest_of(ORIGINAL, [])["input"]

    assert failed(audit(ORIGINAL.keep(["age", "ill"]), input=source | {"rows": 5})) == ["original's size"]
    assert failed(audit(ORIGINAL.keep(["age", "ill"]), input=source | {"columns": 6})) == ["original's size"]


def test_a_quasi_identifier_cannot_become_another_role_unnoticed():
    columns = [
        {"name": "city", "role": "other", "kind": "categorical"},
        {"name": "young", "role": "other", "kind": "categorical"},
        {"name": "ill", "role": "target", "kind": "categorical"},
    ]
    part = released(city=["rome", "oslo", "rome", "bonn"], young=[1, 1, 0, 0])

    report = audit(part, columns=columns, recodings=[YOUNG], check_roles=True)

    assert report.failures == ("columns whose roles were declared have another role in the manifest: 'city', 'young'",)
    some = audit(part, columns=columns, recodings=[YOUNG], check_roles=["city"])
    assert some.failures == ("columns whose roles were declared have another role in the manifest: 'city'",)
    none = audit(part, columns=columns, recodings=[YOUNG])
    assert none.passed
    (said,) = [one.message for one in none.unchecked if one.name == "roles"]
    assert "no guarantee covers 'city' (other), 'young' (other), 'ill' (target)" in said
    assert audit(part, recodings=[YOUNG], check_roles=True).passed


SPARSE = binary_table([[1, 0, 1], [0, 0, 1], [1, 1, 1]], 3, table_of({"y": ["a", "b", "a"]}, {"y": Role.TARGET}))


def test_a_sparse_original_may_be_released_sparse_or_coded():
    part = SPARSE.select([0, 2])

    assert audit(part, SPARSE).passed
    assert audit(part.to_table(), SPARSE).passed
    assert audit(part, SPARSE.to_table()).passed
    as_text = table_of({"f0": ["1", "0", "1"], "f2": ["1", "1", "1"], "y": ["a", "b", "a"]}, {"y": Role.TARGET})
    assert audit(as_text, SPARSE).passed


def test_a_changed_bit_of_a_sparse_original_is_found():
    wrong = binary_table([[1, 0, 1], [0, 0, 1], [1, 1, 0]], 3, SPARSE.companions)

    assert "'f2' differs in 1 rows" in audit(wrong, SPARSE).failures[0]
    assert "'f2' differs in 1 rows" in audit(wrong.to_table(), SPARSE).failures[0]
    assert "'f2' differs in 1 rows" in audit(wrong, SPARSE.to_table()).failures[0]


def test_rows_of_a_sparse_original_may_be_suppressed():
    kept = binary_table([[1, 0, 1], [1, 1, 1]], 3, SPARSE.companions.take(np.array([0, 2])))
    moved = binary_table([[1, 1, 1], [1, 0, 1]], 3, SPARSE.companions.take(np.array([0, 2])))

    assert audit(kept, SPARSE, suppressed_rows=1).passed
    assert failed(audit(moved, SPARSE, suppressed_rows=1)) == ["cells"]


def test_a_renamed_feature_is_a_recoding():
    renamed = table_of({"word": [1, 0, 1], "y": ["a", "b", "a"]}, {"y": Role.TARGET})
    rule = {"name": "word", "column": "f0", "rule": "as-is"}

    assert audit(renamed, SPARSE, recodings=[rule]).passed
    assert failed(audit(renamed, SPARSE, recodings=[rule | {"column": "f1"}])) == ["cells"]


def test_a_binarized_original_is_compared_by_feature_and_rule():
    features = (
        Feature("young", "age", "interval", upto=35.0),
        Feature("old", "age", "interval", above=35.0),
        Feature("roman", "city", "one-of", ("rome",)),
    )
    matrix = as_binary_matrix(np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0]]))
    original = BinaryTable(matrix, features, table_of({"y": ["a", "b", "a"]}, {"y": Role.TARGET}))
    part = original.select([0, 2])
    rules = [features[0].to_dict(), features[2].to_dict()]

    assert audit(part, original, recodings=rules).passed
    assert manifest_of(part.select([1]), [], original, recodings=rules[1:])["dropped_columns"] == ["age"]
    assert audit(part.select([1]), original, recodings=rules[1:]).passed
    wrong = [features[0].to_dict() | {"upto": 40.0}, features[2].to_dict()]
    report = audit(part, original, recodings=wrong)
    assert "'young' has another rule than in the original" in report.failures[0]


def test_a_wide_sparse_original_is_compared_feature_by_feature():
    """3,000 features of which 200 are released; the rest is stated as dropped."""
    rng = np.random.default_rng(0)
    original = binary_table((rng.random((60, 3000)) < 0.05).astype(int).tolist(), 3000)
    part = original.select(np.arange(200))
    manifest = manifest_of(part, [(Containment(2, part.feature_names), 1)], original)

    report = audit_release(
        part, manifest, AuditorHas(original=original, roles=True), publisher=PublisherKnows(levels_are_stated=False)
    )
    assert [check.name for check in report.checks if not check.passed] == ["containment: level"]
    assert len(manifest["dropped_columns"]) == 2800
    manifest["dropped_columns"].pop()
    report = audit_release(
        part, sealed(manifest), AuditorHas(original=original), publisher=PublisherKnows(levels_are_stated=False)
    )
    assert report.failures[1:] == ("neither released nor stated as dropped: 'f2999'",)


def test_a_stated_column_that_is_not_released_has_no_cells():
    stated = manifest_of(ORIGINAL.keep(["age", "ill"]), [])["output"]["columns"]

    report = audit(ORIGINAL.keep(["ill"]), columns=stated, dropped_columns=["ssn", "city", "flag"])

    assert "'age' is not in the release" in report.failures[-1]


def test_an_unknown_rule_has_no_result():
    assert evaluate(ClaimedRecoding("x", "age", "magic"), ORIGINAL["age"].values) is None
