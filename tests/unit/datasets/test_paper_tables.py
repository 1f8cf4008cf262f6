"""The papers' printed tables, cell by cell."""

from sfumato.datasets.papers import toy_containment_table


def test_the_toy_table_is_table_1_of_the_containment_paper() -> None:
    table = toy_containment_table()

    assert ["".join(map(str, row)) for row in table.matrix.toarray()] == [
        "10101",
        "10101",
        "10011",
        "10101",
        "11101",
        "11011",
    ]
    assert table.feature_names == ("x1", "x2", "x3", "x4", "x5")
    assert table.companions["class"].cells().to_pylist() == ["+1", "-1", "+1", "+1", "-1", "-1"]
    assert table.companions.schema.target == "class"
