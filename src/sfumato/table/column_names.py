"""What a column's name says about it: patterns over the words of the name."""

from __future__ import annotations

import re

_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_NOT_A_WORD = re.compile(r"[\W_]+")


def split_name(name: str) -> str:
    """Write a column name as lower-case words with blanks around.

    Examples
    --------
    >>> split_name("patientID_2")
    ' patient id 2 '
    """
    return f" {' '.join(_NOT_A_WORD.split(_WORD_BREAK.sub(' ', name))).strip().lower()} "


def _words(phrases: str) -> re.Pattern[str]:
    """Match one of the comma-separated phrases as whole words, or the plural of its last word."""
    return re.compile(f" ({'|'.join(phrases.split(', '))})s? ")


IDENTIFIER_NAMES = _words(
    "e ?mail, (?:tele|cell |mobile )?phone, mobile, fax, ssn, social security(?: number| no)?, mrn, "
    "medical record(?: number| no)?, nhs(?: number| no)?, passport, iban, driv\\w+ licen[cs]e, licen[cs]e plate, "
    "number plate, ip(?: address)?, mac address, imei, url, user ?name, login, uuid, guid, sur ?name, fore ?name, "
    "(?:first|last|full|family|given|middle|maiden|nick) ?name, street, address, credit card, "
    "(?:account|card|policy|insurance|tax|national|identity)(?: number| no| nbr| nr| id), "
    "(?:patient|person|customer|client|employee|student|subject|respondent|participant|member|user|citizen|donor) ?"
    "(?:id|name|nbr|number|num|no|nr|key|code)"
)
"""Names people, whatever else the column's name says."""

KEY_NAMES = _words("id, identifier, key, nbr, pid, uid")
"""May be a person's key or a code of something else: how many values it has decides."""

TARGET_NAMES = (
    re.compile(r"^ (target|class|label|outcome|y|response|readmitted|(?:salary|income|target) ?class|class ?label) $"),
    _words("target, label, outcome, readmitted, readmission, churn(?:ed)?, defaulted, survived, fraud"),
    re.compile(r"(?<! work)(?<! social)(?<! passenger)(?<! ticket)(?<! travel)(?<! p) (class) $"),
    re.compile(r"^ (?:annual |yearly )?(income|salary|wage|earning)s? $"),
)
"""Targets, from the plainest name to the most doubtful."""

SENSITIVE_NAMES = _words(
    "diagnos[ie]s, diag, icd(?: \\d+)?(?: code)?, disease, illness, hiv, aids, cancer, abortion, mental, psychiatric, "
    "addiction, genetic, religion, religious, faith, politic\\w*, sexual orientation, salary, income, wage, earning, "
    "debt, credit score, criminal\\w*, conviction, crime"
)

QUASI_IDENTIFIER_NAMES = _words(
    "age, sex, gender, zip(?: ?code)?, post ?code, postal(?: code)?, birth ?(?:date|day|year|place)?, "
    "(?:date|year|place) of birth, dob, yob, born, race, ethnic\\w*, marital(?: status)?, marriage, education, "
    "school\\w*, degree, occupation, job, profession, employ\\w*, work ?class, (?:native )?country, nationality, "
    "citizenship, city, town, state, county, region, province, district, municipality, language, household, children, "
    "height, weight, insurance, relationship, admission, discharge, date, year, month, weekday"
)
