"""Cells of every kind in the made tables, one function a kind, written from public descriptions of the formats.

Check digits are worked out here, by the published rules, and with no library: ISO 13616 (IBAN), ISO 7812 (cards),
ISO 7064, and the descriptions of the national numbers by the offices that give them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date, timedelta
from random import Random

from identifiers import words

Maker = Callable[[Random, str], str]
"""Makes one cell, with a source of randomness and a language."""

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def pick(draw: Random, text: str) -> str:
    """One of the words that are separated by bars, or by blanks where there is no bar."""
    return draw.choice(text.split("|") if "|" in text else text.split())


def digits(draw: Random, n: int) -> str:
    return "".join(draw.choice("0123456789") for _ in range(n))


def filled(draw: Random, form: str) -> str:
    """Replace each # by a digit, each @ by a letter and each ! by a digit from 1 to 9."""
    return "".join(
        draw.choice("0123456789")
        if c == "#"
        else draw.choice(_LETTERS)
        if c == "@"
        else draw.choice("123456789")
        if c == "!"
        else c
        for c in form
    )


def grouped(text: str, size: int, by: str = " ") -> str:
    return by.join(text[i : i + size] for i in range(0, len(text), size))


# People.


def first_name(draw: Random, language: str) -> str:
    return pick(draw, words.FIRST_NAMES[language])


def last_name(draw: Random, language: str) -> str:
    return pick(draw, words.LAST_NAMES[language])


def full_name(draw: Random, language: str) -> str:
    first = first_name(draw, language)
    if draw.random() < 0.15:
        first += f" {first_name(draw, language)}"
    last = last_name(draw, language)
    if language in ("es", "pt") and draw.random() < 0.8:
        last += f" {last_name(draw, language)}"
    return f"{first} {last}"


def name_with_comma(draw: Random, language: str) -> str:
    last = last_name(draw, language)
    return f"{last.upper() if draw.random() < 0.3 else last}, {first_name(draw, language)}"


def given_name(draw: Random, language: str) -> str:
    """Give a first name, of which three in ten are from elsewhere."""
    if draw.random() < 0.3:
        return pick(draw, draw.choice(list(words.FOREIGN_NAMES.values()))[2])
    return first_name(draw, language)


def foreign_name(draw: Random, language: str) -> str:
    family, middle, given = draw.choice(list(words.FOREIGN_NAMES.values()))
    if middle:
        return f"{pick(draw, family)} {pick(draw, middle)} {pick(draw, given)}"
    return f"{pick(draw, given)} {pick(draw, family)}"


_PLAIN = str.maketrans("äöüéèêëáàâãåíìîóòôõúùûçñłńśźżćąęßřÁÉÍÓÚÄÖÜ ", "aoueeeeaaaaaiiioooouuucnlnszzcaesrAEIOUAOU.")


def _ascii(text: str) -> str:
    return text.translate(_PLAIN).lower().replace("'", "").encode("ascii", "ignore").decode()


_TOP = {"en": "co.uk", "de": "de", "fr": "fr", "es": "es", "it": "it", "pt": "pt", "nl": "nl", "pl": "pl"}


def email(draw: Random, language: str) -> str:
    first, last = _ascii(first_name(draw, language)), _ascii(last_name(draw, language))
    user = draw.choice([f"{first}.{last}", f"{first[0]}{last}", f"{last}{draw.randrange(100)}", f"{first}_{last}"])
    host = draw.choice(
        [f"example.{_TOP[language]}", "mail.example.com", f"post.example.{_TOP[language]}", "example.org"]
    )
    text = f"{user}@{host}"
    return text.upper() if draw.random() < 0.1 else text


_PHONES = {
    "en": "+44 20 #### ####|020 #### ####|07!## ######|(0161) ### ####|+44 7!## ######",
    "de": "+49 !## #######|0!## / ######|0!##-#######|+49 (0) !# #######|0!##/### ## ##",
    "fr": "+33 ! ## ## ## ##|01 ## ## ## ##|06.##.##.##.##|07########|+33 (0)6 ## ## ## ##",
    "es": "+34 6## ### ###|9## ## ## ##|6########|+34 9########|(+34) 91 ### ## ##",
    "it": "+39 06 #######|02 ########|3!# #######|+39 3!# ### ####|06/#######",
    "pt": "+351 9!# ### ###|21 ### ## ##|9!#######|+351 22 ### ####|(+351) 21#######",
    "nl": "+31 6 ########|020-#######|06-########|+31 (0)20 ### ####|06 #### ####",
    "pl": "+48 !## ### ###|!##-###-###|(22) ### ## ##|+48 !########|22 ### ## ##",
}


def phone(draw: Random, language: str) -> str:
    return filled(draw, pick(draw, _PHONES[language]))


_PROFILES = "https://www.example.org/people/{0}-{1}|http://{1}.example.com/|https://social.example.net/@{0}{1}|www.example.{2}/~{1}"


def url(draw: Random, language: str) -> str:
    first, last = _ascii(first_name(draw, language)), _ascii(last_name(draw, language)).replace(".", "")
    return pick(draw, _PROFILES).format(first, last, _TOP[language])


def url_with_user(draw: Random, language: str) -> str:
    form = "https://{0}@files.example.{1}/inbox|ftp://{0}:secret@example.{1}/|ssh://{0}@host{2}.example.org"
    return pick(draw, form).format(login(draw, language), _TOP[language], draw.randrange(1, 40))


def handle(draw: Random, language: str) -> str:
    first, last = _ascii(first_name(draw, language)), _ascii(last_name(draw, language)).replace(".", "")
    return "@" + draw.choice(
        [
            f"{first}_{last}",
            f"{first}{draw.randrange(50, 2010)}",
            f"the.{first}.{last}",
            f"{first[0]}_{last}{digits(draw, 2)}",
        ]
    )


def login(draw: Random, language: str) -> str:
    first, last = _ascii(first_name(draw, language)), _ascii(last_name(draw, language)).replace(".", "")
    return draw.choice(
        [
            f"{first[0]}{last}{draw.randrange(1, 9)}",
            f"{first}.{last}",
            f"{last}_{first[0]}",
            f"{last[:5]}{first[:2]}{digits(draw, 2)}",
        ]
    )


def device_name(draw: Random, language: str) -> str:
    if draw.random() < 0.2:
        return f"DESKTOP-{''.join(draw.choice('ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789') for _ in range(7))}"
    return pick(draw, words.DEVICES[language]).format(x=first_name(draw, language))


def photo_path(draw: Random, language: str) -> str:
    day = _day(draw, 2019, 2023).strftime("%Y%m%d")
    user = login(draw, language)
    return draw.choice(
        [
            f"/home/{user}/Pictures/IMG_{day}_{digits(draw, 6)}.jpg",
            f"C:\\Users\\{user}\\Documents\\scan_{digits(draw, 4)}.pdf",
            f"DCIM/100APPLE/IMG_{digits(draw, 4)}.HEIC",
            f"\\\\server\\{user}\\{day}-{digits(draw, 3)}.png",
        ]
    )


_PLATES = {
    "en": "@@!# @@@",
    "de": "M-@@ !###|B-@ !##|KA-@@ !#|HH-@@ !##",
    "fr": "@@-###-@@",
    "es": "#### BC@|#### @DF",
    "it": "@@ ### @@",
    "pt": "##-@@-##",
    "nl": "@@-###-@|##-@@@-#",
    "pl": "WA !####|KR !##@@|PO !@###",
}


def plate(draw: Random, language: str) -> str:
    return filled(draw, pick(draw, f"{_PLATES[language]}|{_PLATES[language]}"))


def mac_address(draw: Random, language: str) -> str:
    pairs = [f"{draw.randrange(256):02x}" for _ in range(6)]
    text = draw.choice(":-").join(pairs)
    return text.upper() if draw.random() < 0.5 else text


def mac_with_word(draw: Random, language: str) -> str:
    return f"{draw.choice(('MAC', 'MAC:', 'Wi-Fi', 'eth0'))} {mac_address(draw, language)}"


def imei(draw: Random, language: str) -> str:
    body = f"35{digits(draw, 12)}"
    return body + luhn_digit(body)


def imei_with_word(draw: Random, language: str) -> str:
    whole = imei(draw, language)
    return f"IMEI {whole[:2]}-{whole[2:8]}-{whole[8:14]}-{whole[14]}"


def ip_address(draw: Random, language: str) -> str:
    if draw.random() < 0.2:
        return ":".join(f"{draw.randrange(1 << 16):x}" for _ in range(8))
    return ".".join(str(draw.randrange(1, 255)) for _ in range(4))


_CENTRES = {
    "en": (52.5, -1.5),
    "de": (51.0, 10.0),
    "fr": (46.5, 2.5),
    "es": (40.0, -3.5),
    "it": (43.0, 12.0),
    "pt": (39.5, -8.0),
    "nl": (52.2, 5.3),
    "pl": (52.0, 19.0),
}


def latitude(draw: Random, language: str) -> str:
    return f"{_CENTRES[language][0] + draw.uniform(-2, 2):.6f}"


def longitude(draw: Random, language: str) -> str:
    return f"{_CENTRES[language][1] + draw.uniform(-2, 2):.6f}"


def coordinates(draw: Random, language: str) -> str:
    return f"{latitude(draw, language)}, {longitude(draw, language)}"


def coordinates_in_degrees(draw: Random, language: str) -> str:
    north, east = float(latitude(draw, language)), float(longitude(draw, language))
    parts = []
    for angle, marks in ((north, "NS"), (east, "EW")):
        size = abs(angle)
        minutes = size % 1 * 60
        parts.append(f"{int(size)}°{int(minutes):02d}'{minutes % 1 * 60:04.1f}\"{marks[angle < 0]}")
    return " ".join(parts)


_PLUS = "23456789CFGHJMPQRVWX"


def plus_code(draw: Random, language: str) -> str:
    """Open Location Code of a building: ten signs of an alphabet of twenty."""
    signs = "".join(draw.choice(_PLUS) for _ in range(8))
    return f"{draw.choice(('8F', '9F', '9C', '8C'))}{signs[:6]}+{signs[6:]}"


def short_plus_code(draw: Random, language: str) -> str:
    return f"{plus_code(draw, language)[4:]} {pick(draw, words.CITIES[language])}"


def address_without_street_word(draw: Random, language: str) -> str:
    place = pick(draw, words.PLACES_TO_LIVE[language]).format(n=draw.randrange(1, 180), m=draw.randrange(1, 30))
    return f"{place}, {postcode(draw, language)} {pick(draw, words.CITIES[language])}"


def address(draw: Random, language: str) -> str:
    return pick(draw, words.STREETS[language]).format(n=draw.randrange(1, 180), m=draw.randrange(1, 30))


def full_address(draw: Random, language: str) -> str:
    return f"{address(draw, language)}, {postcode(draw, language)} {pick(draw, words.CITIES[language])}"


def note(draw: Random, language: str) -> str:
    parts = [pick(draw, part) for part in words.NOTES[language]]
    text = f"{parts[0]}, {parts[1]}" if draw.random() < 0.3 else f"{parts[0]}, {parts[1]}; {parts[2]}."
    return text.format(name=full_name(draw, language), n=draw.randrange(2, 60))


# Dates.


_DAYS = {"en": "%d/%m/%Y", "de": "%d.%m.%Y", "fr": "%d/%m/%Y", "es": "%d/%m/%Y", "it": "%d/%m/%Y", "pt": "%d-%m-%Y"}
_DAYS |= {"nl": "%d-%m-%Y", "pl": "%d.%m.%Y"}


def _day(draw: Random, first: int, last: int) -> date:
    start = date(first, 1, 1)
    return start + timedelta(days=draw.randrange((date(last, 12, 31) - start).days))


def birth_date(draw: Random, language: str) -> str:
    return _day(draw, 1928, 2012).strftime(_DAYS[language])


def birth_date_iso(draw: Random, language: str) -> str:
    return _day(draw, 1928, 2012).isoformat()


def visit_date(draw: Random, language: str) -> str:
    return _day(draw, 2021, 2023).strftime(_DAYS[language])


def visit_date_iso(draw: Random, language: str) -> str:
    return _day(draw, 2019, 2023).isoformat()


def timestamp(draw: Random, language: str) -> str:
    return f"{_day(draw, 2021, 2023).isoformat()} {_clock(draw)}"


def local_timestamp(draw: Random, language: str) -> str:
    return f"{_day(draw, 2021, 2023).strftime(_DAYS[language])} {_clock(draw)}"


def _clock(draw: Random) -> str:
    return f"{draw.randrange(24):02d}:{draw.randrange(60):02d}:{draw.randrange(60):02d}"


# Numbers of banks.


_BANK_NUMBERS = {
    "en": ("GB", "@@@@##############"),
    "de": ("DE", "##################"),
    "fr": ("FR", "#######################"),
    "es": ("ES", "####################"),
    "it": ("IT", "@######################"),
    "pt": ("PT", "#####################"),
    "nl": ("NL", "@@@@##########"),
    "pl": ("PL", "########################"),
}


def iban(draw: Random, language: str) -> str:
    country, form = _BANK_NUMBERS[language]
    number = filled(draw, form)
    if country == "ES":  # bank and branch, two check digits, account
        office, account = number[:8], number[10:]
        number = office + _spanish_check_digit(f"00{office}") + _spanish_check_digit(account) + account
    as_digits = "".join(str(int(c, 36)) for c in f"{number}{country}00")
    whole = f"{country}{98 - int(as_digits) % 97:02d}{number}"
    return grouped(whole, 4) if draw.random() < 0.5 else whole


def _spanish_check_digit(number: str) -> str:
    check = 11 - sum(int(c) * 2**i % 11 for i, c in enumerate(number)) % 11
    return str({10: 1, 11: 0}.get(check, check))


def luhn_digit(number: str) -> str:
    doubled = [int(c) * (2 - i % 2) for i, c in enumerate(reversed(number))]
    return str(-sum(d // 10 + d % 10 for d in doubled) % 10)


def card(draw: Random, language: str) -> str:
    start = draw.choice(["4", "51", "52", "53", "54", "55"])
    body = start + digits(draw, 15 - len(start))
    whole = body + luhn_digit(body)
    return draw.choice([whole, grouped(whole, 4), grouped(whole, 4, "-")])


# Numbers of people: of the nation and of the insurance.


def nhs_number(draw: Random, language: str) -> str:
    while True:
        body = filled(draw, "4########")
        check = -sum(int(c) * (10 - i) for i, c in enumerate(body)) % 11
        if check < 10:
            whole = body + str(check)
            return f"{whole[:3]} {whole[3:6]} {whole[6:]}" if draw.random() < 0.6 else whole


def nino(draw: Random, language: str) -> str:
    start = draw.choice("ABCEHJKLMPRSTWXY") + draw.choice("ABCEHJKLMPRSTWXYZ")
    body = digits(draw, 6)
    end = draw.choice("ABCD")
    return f"{start} {grouped(body, 2)} {end}" if draw.random() < 0.5 else start + body + end


def social_security_number(draw: Random, language: str) -> str:
    return f"{draw.randrange(1, 665):03d}-{draw.randrange(1, 100):02d}-{draw.randrange(1, 10000):04d}"


def steuer_id(draw: Random, language: str) -> str:
    order = list("0123456789")
    draw.shuffle(order)
    if order[0] == "0":
        order[0], order[1] = order[1], order[0]
    left_out, twice = draw.sample(range(1, 10), 2)
    order[left_out] = order[twice]  # one digit twice, one not at all
    product = 10
    for digit in order:
        total = (int(digit) + product) % 10 or 10
        product = total * 2 % 11
    check = (11 - product) % 10
    whole = "".join(order) + str(check)
    return f"{whole[:2]} {grouped(whole[2:], 3)}" if draw.random() < 0.5 else whole


def versichertennummer(draw: Random, language: str) -> str:
    letter = draw.choice(_LETTERS)
    body = digits(draw, 8)
    numbers = f"{_LETTERS.index(letter) + 1:02d}{body}"
    products = [int(c) * (1 + i % 2) for i, c in enumerate(numbers)]
    return f"{letter}{body}{sum(p // 10 + p % 10 for p in products) % 10}"


def nir(draw: Random, language: str) -> str:
    place = f"{draw.randrange(1, 95):02d}{draw.randrange(1, 600):03d}{draw.randrange(1, 999):03d}"
    body = f"{draw.choice('12')}{draw.randrange(30, 99)}{draw.randrange(1, 13):02d}{place}"
    key = 97 - int(body) % 97
    spaced = f"{body[0]} {body[1:3]} {body[3:5]} {body[5:7]} {body[7:10]} {body[10:]} {key:02d}"
    return spaced if draw.random() < 0.5 else f"{body}{key:02d}"


def dni(draw: Random, language: str) -> str:
    number = draw.randrange(10_000_000, 79_999_999)
    letter = "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23]
    return f"{number}-{letter}" if draw.random() < 0.3 else f"{number}{letter}"


def afiliacion(draw: Random, language: str) -> str:
    province, number = draw.randrange(1, 53), draw.randrange(10_000_000, 99_999_999)
    check = (province * 10**8 + number) % 97
    return f"{province:02d}/{number}/{check:02d}" if draw.random() < 0.5 else f"{province:02d}{number}{check:02d}"


_ODD = dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True))
_ODD |= dict(
    zip(
        _LETTERS,
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def codice_fiscale(draw: Random, language: str) -> str:
    names = "".join(draw.choice("BCDFGLMNPRSTVZ") for _ in range(6))
    day = draw.randrange(1, 29) + draw.choice((0, 40))
    year_of_birth, month, place = draw.randrange(30, 99), draw.choice("ABCDEHLMPRST"), draw.choice("ABCDEFGHIL")
    body = f"{names}{year_of_birth}{month}{day:02d}{place}{draw.randrange(100, 999)}"
    total = sum(_ODD[c] if i % 2 == 0 else int(c, 36) if c.isdigit() else _LETTERS.index(c) for i, c in enumerate(body))
    whole = body + _LETTERS[total % 26]
    return whole.lower() if draw.random() < 0.1 else whole


def tessera_sanitaria(draw: Random, language: str) -> str:
    return f"8038000{draw.randrange(10, 200):03d}{digits(draw, 10)}"


def nif(draw: Random, language: str) -> str:
    body = draw.choice("12") + digits(draw, 7)
    check = 11 - sum(int(c) * (9 - i) for i, c in enumerate(body)) % 11
    whole = f"{body}{check if check < 10 else 0}"
    return grouped(whole, 3) if draw.random() < 0.5 else whole


def niss(draw: Random, language: str) -> str:
    body = draw.choice("12") + digits(draw, 9)
    check = 9 - sum(int(c) * w for c, w in zip(body, (29, 23, 19, 17, 13, 11, 7, 5, 3, 2), strict=True)) % 10
    return f"{body}{check}"


def bsn(draw: Random, language: str) -> str:
    while True:
        body = filled(draw, "!#######")
        check = sum(int(c) * (9 - i) for i, c in enumerate(body)) % 11
        if check < 10:
            whole = f"{body}{check}"
            return f"{whole[:4]}.{whole[4:6]}.{whole[6:]}" if draw.random() < 0.3 else whole


def verzekerdennummer(draw: Random, language: str) -> str:
    return filled(draw, "!#########")


def pesel(draw: Random, language: str) -> str:
    day = _day(draw, 1930, 2015)
    month = day.month + (20 if day.year >= 2000 else 0)
    body = f"{day.year % 100:02d}{month:02d}{day.day:02d}{digits(draw, 4)}"
    return f"{body}{-sum(int(c) * w for c, w in zip(body, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), strict=True)) % 10}"


def ekuz(draw: Random, language: str) -> str:
    return f"80616{draw.randrange(1, 17):05d}{digits(draw, 10)}"


NATIONAL: dict[str, tuple[Maker, ...]] = {
    "en": (nino, social_security_number),
    "de": (steuer_id,),
    "fr": (nir,),
    "es": (dni,),
    "it": (codice_fiscale,),
    "pt": (nif,),
    "nl": (bsn,),
    "pl": (pesel,),
}
INSURANCE: dict[str, tuple[Maker, ...]] = {
    "en": (nhs_number,),
    "de": (versichertennummer,),
    "fr": (nir,),
    "es": (afiliacion,),
    "it": (tessera_sanitaria,),
    "pt": (niss,),
    "nl": (verzekerdennummer,),
    "pl": (ekuz,),
}


_WORDS_OF_NUMBERS = {
    "en": ("SSN {0}", social_security_number),
    "de": ("Steuer-ID {0}", steuer_id),
    "fr": ("NIR {0}", nir),
    "es": ("DNI {0}", dni),
    "it": ("CF {0}", codice_fiscale),
    "pt": ("NIF {0}", nif),
    "nl": ("BSN {0}", bsn),
    "pl": ("PESEL {0}", pesel),
}


def national_number(draw: Random, language: str) -> str:
    return draw.choice(NATIONAL[language])(draw, language)


def insurance_number(draw: Random, language: str) -> str:
    return INSURANCE[language][0](draw, language)


def national_number_with_word(draw: Random, language: str) -> str:
    form, maker = _WORDS_OF_NUMBERS[language]
    return form.format(maker(draw, language))


# Codes that are given to one person each.


def short_code(draw: Random, language: str) -> str:
    """Five signs such as KX7Q2, as booking systems give them."""
    return filled(draw, draw.choice(("@@!@!", "@!@@!", "!@@!@", "@@@!!")))


def five_digit_key(draw: Random, language: str) -> str:
    return f"{draw.randrange(1000, 9999)}{draw.randrange(1, 10)}"


def letter_code(draw: Random, language: str) -> str:
    return f"P1{digits(draw, 5)}"


def case_code(draw: Random, language: str) -> str:
    return f"{draw.choice(('2021', '2022', '2023'))}-{digits(draw, 6)}"


def long_number(draw: Random, language: str) -> str:
    return str(draw.randrange(1_000_000, 9_999_999))


def universal_code(draw: Random, language: str) -> str:
    return str(uuid.UUID(int=draw.getrandbits(128), version=4))


def hexadecimal_code(draw: Random, language: str) -> str:
    return f"{draw.getrandbits(48):012x}"


# What is no identifier.


_POSTCODES = {
    "en": "S!# !@@|M! !@@|LS!! !@@|BS! !@@",
    "de": "1#!##|8####|5####|0!###",
    "fr": "75!##|13###|69###|0!###",
    "es": "28###|08###|41###|46###",
    "it": "00!##|20###|80###|10###",
    "pt": "1###-###|4###-###|3###-###",
    "nl": "10## @@|30## @@|2!## @@|35## @@",
    "pl": "0!-###|3!-###|5#-###|6#-###",
}


def postcode(draw: Random, language: str) -> str:
    return filled(draw, pick(draw, _POSTCODES[language]))


def icd_code(draw: Random, language: str) -> str:
    return filled(draw, draw.choice(("E1!.#", "I2!.#", "J4!.#", "S7!.0", "K8!.#", "I!!")))


def atc_code(draw: Random, language: str) -> str:
    return draw.choice("ACJN") + filled(draw, "0!@A0#")


def glucose(draw: Random, language: str) -> str:
    return f"{draw.gauss(6, 1.5):.4f}"


def amount(draw: Random, language: str) -> str:
    return f"{draw.lognormvariate(7, 1):.2f}"


def tiny_measure(draw: Random, language: str) -> str:
    return f"{draw.expovariate(1) * 1e-6:.3e}"


def whole_weight(draw: Random, language: str) -> str:
    return str(round(draw.gauss(3300, 500) / 10) * 10)


def age(draw: Random, language: str) -> str:
    return str(min(98, max(0, round(draw.gauss(55, 20)))))


def year(draw: Random, language: str) -> str:
    return str(draw.randrange(1930, 2015))


def count(draw: Random, language: str) -> str:
    return str(int(draw.expovariate(0.3)))


def percent(draw: Random, language: str) -> str:
    return f"{draw.uniform(0, 100):.1f}"


def rating(draw: Random, language: str) -> str:
    return str(draw.randrange(1, 6))


def hours(draw: Random, language: str) -> str:
    return str(draw.choice((8, 16, 20, 30, 35, 38, 40, 40, 40, 45, 50)))


def time_of_day(draw: Random, language: str) -> str:
    return f"{draw.randrange(24):02d}:{draw.randrange(0, 60, 5):02d}"


def rounded_salary(draw: Random, language: str) -> str:
    return str(round(draw.lognormvariate(10.4, 0.4) / 500) * 500)


def list_price(draw: Random, language: str) -> str:
    cents = draw.choice((1990, 4950, 12999, 100, 24500, 143737, 8900, 1250, 555, 78000, 3300))
    whole, rest = divmod(cents, 100)
    return f"{whole:,}".replace(",", ".") + f",{rest:02d}" if language != "en" else f"{whole:,}.{rest:02d}"


def product_code(draw: Random, language: str) -> str:
    return draw.choice(("A12-3", "A12-4", "B07-1", "C33-9", "C40-2", "D01-7", "D01-8", "E90-5", "F11-6", "G22-2"))


def blood_group(draw: Random, language: str) -> str:
    return draw.choice(("A+", "A-", "B+", "B-", "AB+", "AB-", "0+", "0-"))


def word_of(lists: dict[str, str]) -> Maker:
    """Make cells of one of the word lists."""
    return lambda draw, language: pick(draw, lists[language])
