"""An address names a server and nobody who logs in; what is not understood is refused without being shown."""

from __future__ import annotations

import os
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.cli.main import run
from sfumato.errors import InputError, InvalidParameterError
from sfumato.table.io.databases.address import database_of, is_address
from sfumato.table.io.read import ReadOptions

SECRET = "CANARY-hunter2"

WITH_SECRETS = [
    f"postgresql://me:{SECRET}@db.example/people",
    f"postgresql://{SECRET}@db.example/people",
    f"postgres://me:{SECRET}@db.example",
    f"POSTGRESQL://:{SECRET}@db.example/people",
    f"postgresql://db.example/people?password={SECRET}",
    f"postgresql://db.example/people?user={SECRET}",
    f"postgresql://db.example/people?sslpassword={SECRET}",
    f"postgresql://db.example/people?passfile=/home/{SECRET}",
    f"postgresql://db.example/people?options=-c%20x={SECRET}",
    f"postgresql://db.example/people?{SECRET}=1",
    f"postgresql://db.example/people?host=me:{SECRET}@other",
    f"postgresql://db.example/people?sslmode=%40{SECRET}",
    f"postgresql://db.example/me:{SECRET}@people",
    f"postgresql://db.example:{SECRET}/people",
    f"postgresql://db.example%3A{SECRET}%40x/people",
    f"postgresql://db.example/people?port=5432&password={SECRET}",
    f"postgresql://db.example/people password={SECRET}",
    f"postgresql://db.example/people#{SECRET}:x",
    f"postgresql+psycopg://me:{SECRET}@db.example/people",
    f"jdbc:postgresql://db.example/people?password={SECRET}",
    f"postgresql:/me:{SECRET}@db.example/people",
    f"sqlite://me:{SECRET}@/people.db?key={SECRET}",
]


@pytest.mark.parametrize("address", WITH_SECRETS)
def test_an_address_with_a_secret_is_refused_and_not_repeated(address: str) -> None:
    from sfumato.table.io.read import read_table

    with pytest.raises(InputError) as caught:
        read_table(address)

    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)
    assert SECRET not in str(caught.value.path)


@pytest.mark.parametrize("address", [WITH_SECRETS[i] for i in (0, 4, 12, 18, 20)])
@pytest.mark.parametrize(
    "command",
    [
        ["init", "{}"],
        ["--debug", "release", "{}", "-o", "out.csv"],
        ["--debug", "release", "{}", "-m", "global-recoding", "--memory", "1GB", "-o", "out.csv"],
        ["--debug", "release", "{}", "-m", "global-recoding", "--engine", "spark://x:1", "-o", "out.parquet"],
        ["audit", "{}"],
        ["audit", "{}", "--memory", "1GB"],
        ["audit", "{}", "--engine", "spark://x:1"],
        ["compare", "{}"],
        ["release", "people.csv", "-m", "mondrian", "--population-table", "{}", "-p", "k_map=2", "-o", "out.csv"],
    ],
    ids=lambda command: "-".join(part.strip("-{}") for part in command[:2]) if isinstance(command, list) else None,
)
def test_no_command_shows_the_secret(tmp_path, monkeypatch, capfd, address: str, command: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age,y\n1,a\n2,b\n")

    code = run([part.format(address) for part in command])

    said = capfd.readouterr()
    assert code in (2, 3)
    assert SECRET not in said.out + said.err
    assert all(SECRET not in name for name in os.listdir(tmp_path))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("postgresql://db.example/people", "postgresql://db.example/people"),
        ("postgres://db.example:5433/people", "postgresql://db.example:5433/people"),
        ("postgresql:///people", "postgresql:///people"),
        ("postgresql://", "postgresql:///"),
        ("postgresql://[::1]:5432/people", "postgresql://[::1]:5432/people"),
        ("postgresql://a,b:5433/people", "postgresql://a,b:5433/people"),
        ("postgresql:///people?host=/var/run/postgresql", "postgresql:///people?host=/var/run/postgresql"),
        ("postgresql://db/people?sslmode=verify-full", "postgresql://db/people?sslmode=verify-full"),
    ],
)
def test_a_plain_address_is_taken(address: str, place: str) -> None:
    found = database_of(address)

    assert is_address(address)
    assert found is not None
    assert (found.kind, found.place, found.path) == ("postgresql", place, None)


@given(user=st.text(string.ascii_letters, min_size=1), secret=st.text("ab@:/%?", min_size=1), rest=st.text("ab@:/%?="))
def test_whatever_comes_before_an_at_sign_is_not_shown(user: str, secret: str, rest: str) -> None:
    mark = "".join(f"{ord(character):x}z" for character in secret)

    with pytest.raises(InputError) as caught:
        database_of(f"postgresql://{user}:Z{mark}@{rest}")

    assert f"Z{mark}" not in str(caught.value)


def test_table_and_query_are_for_databases_and_one_at_a_time() -> None:
    with pytest.raises(InvalidParameterError, match="one at a time"):
        database_of("postgresql://db/people", query="select 1", table="people")
    with pytest.raises(InvalidParameterError, match="given for a database"):
        database_of("people.csv", query="select 1")
    with pytest.raises(InvalidParameterError, match="given for a database"):
        database_of("people.csv", table="people")
    with pytest.raises(InvalidParameterError, match="one SELECT statement"):
        database_of("postgresql://db/people", query=" ; ")


def test_a_query_is_in_no_repr() -> None:
    query = f"select * from people where name = '{SECRET}'"

    assert SECRET not in repr(ReadOptions(query=query))
    assert SECRET not in repr(database_of("postgresql://db/people", query=query))
    assert database_of("postgresql://db/people", query=query).label == "query"  # type: ignore[union-attr]
