"""What a column of its own is recognised as, in eight languages, and what is said of it."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from identifiers import formats, planted, words
from identifiers.formats import Maker
from sfumato.schema import WITHHELD
from sfumato.table.io.read import ReadOptions, read_table
from sfumato.table.roles import ColumnGuess, describe_columns

N_ROWS = 300
LEAST_RECALL = 0.98


def guess_of(name: str, cells: list[str]) -> ColumnGuess:
    """Describe a column in a table with another one after it, so that it is not the last."""
    other = (["a", "b", "c"] * len(cells))[: len(cells)]
    table = pa.table({name: pa.array(cells, pa.string()), "q": other})
    return describe_columns(read_table(table, options=ReadOptions(mixed_as_text=True)))[0]


def cells_of(maker: Maker, language: str) -> list[str]:
    draw = Random(f"{maker.__name__}/{language}")
    return [maker(draw, language) for _ in range(N_ROWS)]


SEEN: dict[str, tuple[Maker, ...]] = {
    "e-mail addresses": (formats.email,),
    "phone numbers": (formats.phone,),
    "bank account numbers (IBAN)": (formats.iban,),
    "card numbers": (formats.card,),
    "web addresses": (formats.url,),
    "network addresses": (formats.ip_address,),
    "coordinates": (formats.coordinates, formats.coordinates_in_degrees),
    "full dates of birth": (formats.birth_date, formats.birth_date_iso),
    "postal addresses": (formats.address, formats.full_address),
    "given and family names": (formats.full_name, formats.name_with_comma),
    "given or family names": (formats.first_name, formats.last_name),
    "free text": (formats.note,),
}


@pytest.mark.parametrize("seen", SEEN)
def test_what_was_seen_is_said_as_a_pattern_whatever_the_name(seen: str) -> None:
    """In eight languages, under a name that says nothing, the reason says what the cells look like."""
    reasons = [guess_of("v1", cells_of(maker, at)).reason for maker in SEEN[seen] for at in words.LANGUAGES]
    others = [reason for reason in reasons if f"looks like {seen} in " not in reason]

    assert len(others) <= (1 - LEAST_RECALL) * len(reasons), others


@pytest.mark.parametrize("kind", ["latitude", "longitude"])
def test_degrees_are_known_by_their_name_and_decimals(kind: str) -> None:
    """A column of degrees alone is withheld where its name says so, in eight languages."""
    maker = {"latitude": formats.latitude, "longitude": formats.longitude}[kind]
    names = dict(zip(words.LANGUAGES, words.HEADERS[kind].split("|"), strict=True))

    assert [at for at in names if guess_of(names[at], cells_of(maker, at)).column.role not in WITHHELD] == []


@pytest.mark.slow
def test_reasons_hold_no_cell_value() -> None:
    """What is said of a column with planted identifiers shows none of them."""
    for run in planted.sample((*planted.LANGUAGES, *planted.HELD_OUT)):
        reason = guess_of(run.column, list(run.columns[run.column])).reason

        assert planted.held(reason, run.identifiers) == 0, run.id
