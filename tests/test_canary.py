"""A planted cell value never appears in an error, a log or a repr."""

import logging
import traceback

import pytest

import sfumato
from sfumato.cli.main import run
from sfumato.errors import SfumatoError
from sfumato.selection.containment import GreedyContainmentSelector
from sfumato.table.binarize import binarize
from sfumato.table.read import read_table

CANARY = "CANARY-7f3a"

BROKEN = {
    "ragged": f"a,b,y\n{CANARY},1,p\n{CANARY},{CANARY}\n",
    "too many cells": f"a,b,y\n1,2,p\n{CANARY},{CANARY},1,2\n",
    "unclosed quote": f'a,b,y\n1,2,p\n"{CANARY},1,2\n',
    "one class": f"a,b,y\n1,2,{CANARY}\n3,4,{CANARY}\n",
    "no header": f"{CANARY},{CANARY},{CANARY}\n1,2,3\n",
    "nul": f"a,b,y\n{CANARY}\x00,1,p\n",
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("command", ["init", "release", "audit"])
def test_no_message_shows_a_cell(tmp_path, monkeypatch, capsys, caplog, kind, command):
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.DEBUG)
    (tmp_path / "in.csv").write_text(BROKEN[kind])
    extra = {"init": [], "release": ["-o", "out.csv", "-k", "2"], "audit": []}[command]

    run([command, "in.csv", "--target", "y", *extra])

    shown = capsys.readouterr()
    seen = shown.out + shown.err + caplog.text
    header_is_canary = kind == "no header"
    assert header_is_canary or CANARY not in seen


def test_a_number_column_with_a_stray_text(tmp_path):
    (tmp_path / "in.csv").write_text("a,y\n" + "1,p\n2,q\n" * 20 + f"{CANARY},p\n")
    table = read_table(tmp_path / "in.csv")
    columns = [sfumato.Column("a", kind=sfumato.Kind.NUMERIC), sfumato.Column("y", role=sfumato.Role.TARGET)]

    with pytest.raises(SfumatoError) as caught:
        read_table(tmp_path / "in.csv", schema=sfumato.Schema.of(columns))

    assert "line 42" in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert CANARY not in repr(table)


def test_reprs_show_shapes_and_no_cells(tmp_path):
    content = "a,b,y\n" + f"{CANARY},1,p\n{CANARY},0,q\n" * 4
    (tmp_path / "in.csv").write_text(content)
    table = read_table(tmp_path / "in.csv")
    table = table.with_schema(table.schema.with_roles({"y": sfumato.Role.TARGET}))
    binary = binarize(table)
    release = sfumato.release(table, GreedyContainmentSelector(k=2))

    for thing in (table, table.columns["a"], table.columns, binary, release, release.table, table.source):
        assert CANARY not in repr(thing)
        assert CANARY not in str(thing)
    assert CANARY not in repr(sfumato.audit_release(release.table, release.manifest.to_dict(), original=table))
