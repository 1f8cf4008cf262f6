"""Dates as countries write them: every format gives back the day that was written, and nothing else is a date."""

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.schema import Kind
from sfumato.table.kinds import guess_kind
from sfumato.table.reading.columns import format_named, guessed_format
from sfumato.table.reading.dates import date_format, date_formats
from sfumato.table.reading.months import _NAMES, folded, month_of
from sizes import examples

ENGLISH = _NAMES["English"].split()


def written(day: date, day_part: str, *, padded: bool = True, names: str = "English") -> str:
    """Write a day in a format, by the words of its name alone."""
    number = "{:02}" if padded else "{}"
    name = _NAMES[names].split()[day.month - 1].title()
    text = day_part.replace("YYYY", f"{day.year:04}").replace("YY", f"{day.year % 100:02}")
    text = text.replace("MMM", name).replace("MM", number.format(day.month))
    return text.replace("DD", number.format(day.day))


FORMATS = sorted({one.day_part for one in date_formats()})
DAYS = st.dates(date(1969, 1, 1), date(2068, 12, 31))


@pytest.mark.slow
@pytest.mark.parametrize("day_part", FORMATS)
@examples(10)
@given(days=st.lists(DAYS, min_size=1, max_size=8), padded=st.booleans())
def test_every_format_gives_back_the_day(day_part, days, padded):
    texts = [written(day, day_part, padded=padded or day_part == "YYYYMMDD") for day in days]

    assert date_format(day_part).read(pa.array(texts)).to_pylist() == [day.isoformat() for day in days]


@pytest.mark.slow
@pytest.mark.parametrize("day_part", FORMATS)
@examples(10)
@given(moment=st.datetimes(datetime(1969, 1, 1), datetime(2068, 12, 31)), half=st.booleans())
def test_a_time_after_a_date_is_kept(day_part, moment, half):
    moment = moment.replace(microsecond=0)
    time = f"{moment:%I:%M:%S %p}" if half else f"{moment:%H:%M:%S}"
    found = date_format(f"{day_part} HH:MM").read(pa.array([f"{written(moment.date(), day_part)} {time}"]))

    assert found.to_pylist() == [moment.isoformat(sep=" ")]


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(_NAMES))
@examples(10)
@given(days=st.lists(DAYS, min_size=1, max_size=6))
def test_month_names_of_eight_languages_in_one_column_with_their_short_forms(language, days):
    texts = [written(day, "DD MMM YYYY", padded=False, names=language) for day in days]

    found, doubt = guessed_format(pa.array(texts), Kind.CATEGORICAL)
    assert (found.name, doubt) == ("DD MMM YYYY", "")
    assert found.read(pa.array(texts)).to_pylist() == [day.isoformat() for day in days]


@pytest.mark.parametrize(
    "text",
    [
        "3. April 2021",
        "3 avril 2021",
        "03-Apr-2021",
        "3 de abril de 2021",
        "3rd Apr. 2021",
        "3 kwietnia 2021",
        "3 KWI 2021",
    ],
)
def test_spellings_of_one_day(text):
    assert guessed_format(pa.array([text]), Kind.CATEGORICAL)[0].read(pa.array([text])).to_pylist() == ["2021-04-03"]


def test_no_word_means_two_months():
    """A short form that begins the names of two months (juin, juillet) is no month."""
    assert month_of("jui") is None
    for names in _NAMES.values():
        assert [month_of(name) for name in names.split()] == list(range(1, 13))
        assert [month_of(folded(name).upper()) for name in names.split()] == list(range(1, 13))


@pytest.mark.parametrize(
    ("texts", "name", "doubt"),
    [
        (["03/04/2021", "05/06/2021"], "DD/MM/YYYY", "day first; no value above 12 decides"),
        (["03/04/2021", "13/06/2021"], "DD/MM/YYYY", ""),
        (["03/04/2021", "05/16/2021"], "MM/DD/YYYY", ""),
        (["03.04.2021", "05.06.2021"], "DD.MM.YYYY", ""),
        (["03-04-2021"], "DD-MM-YYYY", "day first; no value above 12 decides"),
        (["2021/04/03"], "YYYY/MM/DD", ""),
        (["2021年4月3日", "2021年12月31日"], "YYYY年MM月DD日", ""),
        (["2021. 4. 3.", "2021. 12. 31."], "YYYY.MM.DD", ""),
        (["2021-4-3", "2021-12-31"], "YYYY-MM-DD", ""),
        (["03.04.2021 00:00:00", "05.06.2021 00:00"], "DD.MM.YYYY 00:00", ""),
        (["03.04.2021 00:00:00", "05.06.2021 12:30"], "DD.MM.YYYY HH:MM", ""),
        (["03/04/21", "31/12/68"], "DD/MM/YY from 1969", "two-digit years are 1969 to 2068"),
        (["3.4.21", "31.12.68"], "DD.MM.YY from 1969", "two-digit years are 1969 to 2068"),
        (["20210403", "20211231", "19991130"], "YYYYMMDD", "numbers of eight digits that all are dates"),
    ],
)
def test_the_format_of_a_column_and_what_is_a_guess_in_it(texts, name, doubt):
    found, said = guessed_format(pa.array(texts), guess_kind(pa.array(texts)))

    assert (found.name, said) == (name, doubt)


@pytest.mark.parametrize(
    "texts",
    [
        ["03/04/2021", "2021-04-03"],  # two formats
        ["03.04.2021", "31.02.2021"],  # no such day
        ["13/25/2021"],
        ["44289", "44290", "44291", "44292"],  # may be serial numbers, but nobody says so
        ["20210403", "20211331", "20210101"],  # no such month
        ["20210403", "20210404"],  # too few to be sure
        ["1.2.10", "1.2.11", "1.10.3"],  # versions
        ["1-2-10", "3-4-12"],
        ["192.168.1.10", "10.0.0.1"],
        ["2021-04", "2021-05"],
        ["12:30", "13:45"],
        ["3 brumaire 2021"],
    ],
)
def test_what_is_no_date_stays_what_it_is(texts):
    values = pa.array(texts)
    found, _ = guessed_format(values, guess_kind(values))

    assert found is None or found.kind is not Kind.DATE


@given(st.integers(1, 2_958_465).filter(lambda serial: serial != 60), st.integers(0, 86_399))
def test_serial_numbers_of_spreadsheets_have_the_day_that_excel_shows(serial, second):
    """Excel counts a 29 February 1900 that never was, so that the days before it are one off."""
    day = date(1899, 12, 30 if serial > 60 else 31) + timedelta(days=serial)
    texts = pa.array([str(serial), f"{serial + second / 86_400:.9f}"])

    whole, moment = date_format("excel").read(texts).to_pylist()
    assert whole == day.isoformat()
    expected = datetime(day.year, day.month, day.day) + timedelta(seconds=second)
    assert moment == (day.isoformat() if second == 0 else expected.isoformat(sep=" "))


def test_serial_numbers_that_are_no_day():
    assert date_format("excel").read(pa.array(["0", "60", "2958466", "-3", "x", None])).to_pylist() == [None] * 6


@pytest.mark.parametrize(("text", "year"), [("03.04.24", 2024), ("03.04.25", 1925), ("03.04.68", 1968)])
def test_two_digit_years_begin_where_it_is_said(text, year):
    found = format_named("dd.mm.yy FROM 1925", Kind.DATE)

    assert found.read(pa.array([text])).to_pylist() == [f"{year}-04-03"]
    assert found.name == "DD.MM.YY from 1925"


@pytest.mark.parametrize("name", ["DD/MM/YYYY from 1925", "DDMMYY", "", "%d.%m.%Y", "from 1925", "excel from 1900"])
def test_names_that_are_no_format(name):
    assert date_format(name) is None
