"""A labelled corpus of columns in eight languages: what names people, and what only looks like it.

Written before the detector, from public descriptions of the formats, and frozen: :data:`FROZEN` is the hash of all
cells and labels, which a test compares. A quarter of the columns, chosen by a hash of what they are, is held out:
nobody looks at them while the rules are written.

Half of the columns have a name that says nothing (``v17``). Half of the identifiers occur in one to eight rows of a
person, as in tables of visits. Five in a hundred cells are missing, three are no proper value, some have blanks around.

What the corpus leaves out, since people would not agree on the label: numbers of seven digits that repeat under a name
that says nothing; decimals with a comma that differ in every row (they are read as text today); times to the second.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from identifiers import formats, words
from identifiers.formats import Maker, word_of

N_ROWS = 300
FROZEN = "0a2049f080331d1d2179af12b9815850d299ebfa44000d03681585c615a9e102"
"""Of :func:`fingerprint`, from before the first rule was written."""


@dataclass(frozen=True)
class Labelled:
    """One column: its name, its cells (``None`` is missing), and whether it names people.

    ``kind`` says what it is (``iban``), ``variant`` tells columns of one kind and language apart.
    """

    kind: str
    language: str
    variant: str
    name: str
    cells: tuple[str | None, ...]
    is_identifier: bool

    @property
    def is_held_out(self) -> bool:
        """Whether nobody may look at it while rules are written."""
        return zlib.crc32(f"{self.kind}/{self.language}/{self.variant}".encode()) % 4 == 0


# Names of columns that say what they hold, in the order of words.LANGUAGES.


NAMES = {
    "email": "Email address|E-Mail|courriel|correo electrónico|posta elettronica|correio eletrónico|e-mailadres|"
    "adres e-mail",
    "phone": "Telephone|Telefonnummer|téléphone|teléfono|numero di telefono|telemóvel|telefoonnummer|numer telefonu",
    "iban": "IBAN|Bankverbindung|compte bancaire|cuenta bancaria|conto corrente|conta bancária|rekeningnummer|"
    "numer konta",
    "card": "Card number|Kreditkarte|carte bancaire|tarjeta de crédito|carta di credito|cartão de crédito|"
    "creditcardnummer|"
    "karta kredytowa",
    "url": "Website|Webseite|site web|página web|sito web|página pessoal|webpagina|strona internetowa",
    "ip": "IP address|IP-Adresse|adresse IP|dirección IP|indirizzo IP|endereço IP|IP-adres|adres IP",
    "coordinates": "Coordinates|Koordinaten|coordonnées GPS|coordenadas|coordinate|coordenadas GPS|coördinaten|"
    "współrzędne",
    "latitude": "latitude|Breitengrad|latitude_domicile|latitud|latitudine|latitude_casa|breedtegraad|"
    "szerokość geograficzna",
    "longitude": "lon|Längengrad|longitude|longitud|longitudine|longitude|lengtegraad|długość geograficzna",
    "birth date": "Date of birth|Geburtsdatum|date de naissance|fecha de nacimiento|data di nascita|data de nascimento|"
    "geboortedatum|data urodzenia",
    "address": "Home address|Anschrift|adresse postale|domicilio|indirizzo|morada|adres|ulica i numer",
    "national number": "National insurance no|Steuer-ID|numéro de sécurité sociale|DNI|codice fiscale|contribuinte|"
    "BSN|PESEL",
    "insurance number": "NHS number|Versichertennr.|n° assuré|nº afiliación|tessera sanitaria|nº beneficiário|"
    "verzekerdennummer|numer ubezpieczenia",
    "full name": "Full name|Name|nom et prénom|nombre y apellidos|nome e cognome|nome completo|naam|imię i nazwisko",
    "first name": "Forename|Vorname|prénom|nombre de pila|nome di battesimo|nome próprio|voornaam|imię",
    "last name": "Surname|Nachname|nom de famille|apellidos|cognome|apelido|achternaam|nazwisko",
    "code": "Patient ID|Patientennr|n° dossier|nº historia clínica|codice paziente|nº utente|patiëntnummer|"
    "numer pacjenta",
    "number": "Case number|Fallnummer|numéro de patient|número de paciente|numero cartella|número de processo|"
    "dossiernummer|"
    "nr kartoteki",
    "free text": "Notes|Bemerkung|commentaire|observaciones|note cliniche|observações|opmerkingen|uwagi",
    "sex": "Sex|Geschlecht|sexe|sexo|sesso|género|geslacht|płeć",
    "age": "Age|Alter|âge|edad|età|idade|leeftijd|wiek",
    "year": "Year of birth|Geburtsjahr|année de naissance|año de nacimiento|anno di nascita|ano de nascimento|"
    "geboortejaar|"
    "rok urodzenia",
    "postcode": "Postcode|PLZ|code postal|código postal|CAP|código postal|postcode|kod pocztowy",
    "city": "Town|Wohnort|ville|ciudad|comune|localidade|woonplaats|miejscowość",
    "occupation": "Occupation|Beruf|profession|profesión|professione|profissão|beroep|zawód",
    "icd": "ICD code|Hauptdiagnose|code CIM|código CIE|codice ICD|código CID|diagnosecode|kod ICD",
    "diagnosis": "Diagnosis|Diagnose|diagnostic|diagnóstico|diagnosi|diagnóstico|diagnose|rozpoznanie",
    "department": "Ward|Abteilung|service|servicio|reparto|serviço|afdeling|oddział",
    "product": "Product code|Artikelnummer|référence|código de producto|codice prodotto|código do produto|artikelcode|"
    "kod produktu",
    "glucose": "Glucose|Kreatinin|glycémie|glucosa|glicemia|glicose|glucose|glukoza",
    "amount": "Cost|Kosten|coût|coste|costo|custo|kosten|koszt",
    "tiny": "Concentration|Konzentration|concentration|concentración|concentrazione|concentração|concentratie|stężenie",
    "weight": "Birth weight|Geburtsgewicht|poids|peso al nacer|peso|peso à nascença|geboortegewicht|waga",
    "visit": "Date of visit|Aufnahme|date d'entrée|fecha de ingreso|data di ricovero|data de admissão|opnamedatum|"
    "data przyjęcia",
    "answer": "Satisfaction|Zufriedenheit|satisfaction|satisfacción|soddisfazione|satisfação|tevredenheid|zadowolenie",
    "yes no": "Smoker|Raucher|fumeur|fumador|fumatore|fumador|roker|palacz",
    "marital": "Marital status|Familienstand|état civil|estado civil|stato civile|estado civil|burgerlijke staat|"
    "stan cywilny",
    "country": "Nationality|Staatsangehörigkeit|nationalité|nacionalidad|cittadinanza|nacionalidade|nationaliteit|"
    "obywatelstwo",
    "education": "Education|Bildungsabschluss|niveau d'études|estudios|titolo di studio|escolaridade|opleiding|"
    "wykształcenie",
    "blood": "Blood group|Blutgruppe|groupe sanguin|grupo sanguíneo|gruppo sanguigno|grupo sanguíneo|bloedgroep|"
    "grupa krwi",
    "insurer": "Insurer|Krankenkasse|mutuelle|aseguradora|assicurazione|seguradora|zorgverzekeraar|ubezpieczyciel",
    "percent": "Share|Anteil|part|porcentaje|quota|percentagem|aandeel|udział",
    "count": "Visits|Anzahl Besuche|nombre de visites|número de visitas|numero di visite|número de visitas|"
    "aantal bezoeken|"
    "liczba wizyt",
    "hours": "Hours per week|Wochenstunden|heures par semaine|horas semanales|ore settimanali|horas semanais|"
    "uren per week|"
    "godziny tygodniowo",
    "month": "Month|Monat|mois|mes|mese|mês|maand|miesiąc",
    "remark": "Result|Ergebnis|résultat|resultado|esito|resultado|uitslag|wynik",
    "drug": "Drug name|Medikament|médicament|medicamento|farmaco|medicamento|medicijn|lek",
    "atc": "ATC|ATC-Code|code ATC|código ATC|codice ATC|código ATC|ATC-code|kod ATC",
    "rating": "Rating|Bewertung|note|valoración|valutazione|avaliação|beoordeling|ocena",
    "time": "Time|Uhrzeit|heure|hora|ora|hora|tijdstip|godzina",
    "salary": "Salary|Gehalt|salaire|salario|stipendio|salário|salaris|wynagrodzenie",
    "price": "Price|Preis|prix|precio|prezzo|preço|prijs|cena",
}


@dataclass(frozen=True)
class _Plan:
    """One kind of columns: who makes its cells, and in which variants it occurs."""

    kind: str
    makers: dict[str, tuple[Maker, ...]]
    is_identifier: bool
    is_named: tuple[bool, ...] = (True, False)
    pool: int | None = None
    """Number of distinct cells to draw from; None makes each anew."""


def _everywhere(*makers: Maker) -> dict[str, tuple[Maker, ...]]:
    return dict.fromkeys(words.LANGUAGES, makers)


_PLANS = (
    _Plan("email", _everywhere(formats.email), True),
    _Plan("phone", _everywhere(formats.phone), True),
    _Plan("iban", _everywhere(formats.iban), True),
    _Plan("card", _everywhere(formats.card), True),
    _Plan("url", _everywhere(formats.url), True),
    _Plan("ip", _everywhere(formats.ip_address), True),
    _Plan("coordinates", _everywhere(formats.coordinates, formats.coordinates_in_degrees), True),
    _Plan("latitude", _everywhere(formats.latitude), True, (True,)),
    _Plan("longitude", _everywhere(formats.longitude), True, (True,)),
    _Plan("birth date", _everywhere(formats.birth_date, formats.birth_date_iso), True),
    _Plan("address", _everywhere(formats.address, formats.full_address), True),
    _Plan("national number", formats.NATIONAL, True),
    _Plan("insurance number", formats.INSURANCE, True),
    _Plan("full name", _everywhere(formats.full_name, formats.name_with_comma), True),
    _Plan("first name", _everywhere(formats.first_name), True),
    _Plan("last name", _everywhere(formats.last_name), True),
    _Plan("code", _everywhere(formats.letter_code, formats.case_code), True),
    _Plan("number", _everywhere(formats.long_number, formats.universal_code, formats.hexadecimal_code), True),
    _Plan("free text", _everywhere(formats.note), True),
    _Plan("sex", _everywhere(word_of(words.SEX)), False),
    _Plan("age", _everywhere(formats.age), False),
    _Plan("year", _everywhere(formats.year), False),
    _Plan("postcode", _everywhere(formats.postcode), False, pool=110),
    _Plan("city", _everywhere(word_of(words.CITIES)), False),
    _Plan("occupation", _everywhere(word_of(words.OCCUPATIONS)), False),
    _Plan("icd", _everywhere(formats.icd_code), False),
    _Plan("diagnosis", _everywhere(word_of(words.DIAGNOSES)), False),
    _Plan("department", _everywhere(word_of(words.DEPARTMENTS)), False, (False,)),
    _Plan("product", _everywhere(formats.product_code), False),
    _Plan("glucose", _everywhere(formats.glucose), False),
    _Plan("amount", _everywhere(formats.amount), False),
    _Plan("tiny", _everywhere(formats.tiny_measure), False, (False,)),
    _Plan("weight", _everywhere(formats.whole_weight), False),
    _Plan("visit", _everywhere(formats.visit_date, formats.visit_date_iso), False),
    _Plan("answer", _everywhere(word_of(words.ANSWERS)), False, (False,)),
    _Plan("yes no", _everywhere(word_of(words.YES_NO)), False, (True,)),
    _Plan("marital", _everywhere(word_of(words.MARITAL)), False, (False,)),
    _Plan("country", _everywhere(word_of(words.COUNTRIES)), False, (False,)),
    _Plan("education", _everywhere(word_of(words.EDUCATION)), False, (True,)),
    _Plan("blood", _everywhere(formats.blood_group), False, (True,)),
    _Plan("insurer", _everywhere(word_of(words.INSURERS)), False),
    _Plan("percent", _everywhere(formats.percent), False, (False,)),
    _Plan("count", _everywhere(formats.count), False, (True,)),
    _Plan("hours", _everywhere(formats.hours), False, (True,)),
    _Plan("month", _everywhere(word_of(words.MONTHS)), False, (False,)),
    _Plan("remark", _everywhere(word_of(words.REMARKS)), False),
    _Plan("drug", _everywhere(lambda draw, language: formats.pick(draw, words.DRUGS)), False),
    _Plan("atc", _everywhere(formats.atc_code), False, pool=60),
    _Plan("rating", _everywhere(formats.rating), False, (True,)),
    _Plan("time", _everywhere(formats.time_of_day), False, (False,)),
    _Plan("salary", _everywhere(formats.rounded_salary), False),
    _Plan("price", _everywhere(formats.list_price), False),
)


def columns() -> Iterator[Labelled]:
    """Make all columns, always the same ones."""
    for plan in _PLANS:
        for position, language in enumerate(words.LANGUAGES):
            makers = plan.makers[language]
            for number, is_named in enumerate(plan.is_named):
                draw = Random(f"{plan.kind}/{language}/{number}")
                # both forms of a kind occur, the second one under the other kind of name in every second language
                maker = makers[(number + position) % len(makers)]
                repeats = plan.is_identifier and (number + position) % 2 == 0 and maker is not formats.long_number
                repeats = repeats or (maker is formats.long_number and is_named)
                name = NAMES[plan.kind].split("|")[position] if is_named else f"v{draw.randrange(1, 99)}"
                made = _repeated(draw, maker, language) if repeats else _drawn(draw, maker, language, plan.pool)
                cells = tuple(_with_dirt(draw, cell, language) for cell in made)
                variant = f"{'named' if is_named else 'unnamed'}{' repeated' if repeats else ''}"
                yield Labelled(plan.kind, language, variant, name, cells, plan.is_identifier)


def _drawn(draw: Random, maker: Maker, language: str, pool: int | None) -> list[str]:
    if pool is None:
        return [maker(draw, language) for _ in range(N_ROWS)]
    known = [maker(draw, language) for _ in range(pool)]
    return [draw.choice(known) for _ in range(N_ROWS)]


def _repeated(draw: Random, maker: Maker, language: str) -> list[str]:
    """One to eight rows a person, mostly few."""
    cells: list[str] = []
    while len(cells) < N_ROWS:
        cells += [maker(draw, language)] * min(8, 1 + int(draw.expovariate(0.7)))
    draw.shuffle(cells)
    return cells[:N_ROWS]


_IS_ONE_WORD_OR_NUMBER = 6


def _with_dirt(draw: Random, cell: str, language: str) -> str | None:
    chance = draw.random()
    if chance < 0.05:
        return None
    if chance < 0.07 and len(cell) > _IS_ONE_WORD_OR_NUMBER:
        return cell[: len(cell) // 2]
    if chance < 0.08 and not cell.replace(".", "").replace("e-", "").replace("-", "").isdigit():
        return words.UNKNOWN[language]
    return f" {cell} " if chance < 0.1 else cell


def fingerprint() -> str:
    """Hash of every name, cell and label."""
    digest = hashlib.sha256()
    for column in columns():
        entry = [column.kind, column.language, column.variant, column.name, list(column.cells), column.is_identifier]
        digest.update(json.dumps(entry, ensure_ascii=False).encode())
    return digest.hexdigest()
