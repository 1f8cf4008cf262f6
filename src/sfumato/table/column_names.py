"""What a column's name says about it, in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish.

Names are compared word by word (``paid`` is not ``id``; ``patientID`` and ``patient-id`` are), in lower case and
without accents. Languages that write a noun as one word (``Versichertennr``) have such words among the phrases.
"""

from __future__ import annotations

import re
import unicodedata

_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_NOT_A_WORD = re.compile(r"[\W_]+")
_UNFOLDED = str.maketrans({"ł": "l", "ß": "ss", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "’": "'", "º": "o", "°": "o"})


def split_name(name: str) -> str:
    """Write a column name as lower-case words with blanks around.

    Examples
    --------
    >>> split_name("patientID_2")
    ' patient id 2 '
    """
    return f" {' '.join(_NOT_A_WORD.split(_WORD_BREAK.sub(' ', name))).strip().lower()} "


def folded(text: str) -> str:
    """Write a text in lower case and without accents.

    Examples
    --------
    >>> folded("Łódź, Straße")
    'lodz, strasse'
    """
    lower = text.lower()
    if lower.isascii():
        return lower
    parts = unicodedata.normalize("NFKD", lower.translate(_UNFOLDED))
    return "".join(c for c in parts if not unicodedata.combining(c))


def folded_name(name: str) -> str:
    """Write a column name as :func:`split_name` does, without accents.

    Examples
    --------
    >>> folded_name("numéroPatient"), folded_name("nº utente")
    (' numero patient ', ' no utente ')
    """
    return folded(split_name(name))


def _words(*phrases: str) -> re.Pattern[str]:
    """Match one of the comma-separated phrases as whole words, or the plural of its last word."""
    return re.compile(f" ({'|'.join(', '.join(phrases).split(', '))})s? ")


_NUMBER_DE = "(?:nummer|nr|id|kennung)"
_NUMBER_NL = "(?:nummer|nr|id)"
_NUMBER = r"(?:n|no|nr|num|numero|numer|codigo|codice|code|id)(?: d[aeiou]s?| del| della)?(?: la| l)?"

IDENTIFIER_NAMES = _words(
    # English
    "e ?mail, (?:tele|cell |mobile )?phone, mobile, fax, ssn, social security(?: number| no)?, mrn, "
    "medical record(?: number| no)?, nhs(?: number| no)?, passport, iban, driv\\w+ licen[cs]e, licen[cs]e plate, "
    "number plate, ip(?: address)?, mac address, imei, url, user ?name, login, uuid, guid, sur ?name, fore ?name, "
    "(?:first|last|full|family|given|middle|maiden|nick) ?name, street, address, credit card, "
    "(?:account|card|policy|insurance|tax|national|identity)(?: number| no| nbr| nr| id), national insurance(?: no)?, "
    "(?:patient|person|customer|client|employee|student|subject|respondent|participant|member|user|citizen|donor) ?"
    "(?:id|name|nbr|number|num|no|nr|key|code), (?:case|record|chart|file)(?: number| no| nbr| nr), web ?site, "
    "home ?page, (?:gps |geo )?coordinates?",
    # German
    f"telefon(?:nummer|nr)?, handy(?:nummer|nr)?, mobil(?:nummer|nr|telefon), telefax, e mail ?adresse, mailadresse, "
    f"anschrift, (?:\\w+ )?adresse, strasse, hausnummer, vorname, nachname, familienname, geburtsname, zuname, "
    f"bankverbindung, konto(?:nummer|nr), kreditkarten?(?:nummer|nr)?, karten(?:nummer|nr), web ?seite, "
    f"koordinaten, steuer ?{_NUMBER_DE}, steueridentifikationsnummer, "
    f"(?:sozial|renten|kranken)?versicherungs ?(?:nummer|nr), (?:kranken)?versicherten ?{_NUMBER_DE}, "
    f"(?:patienten?|personal|personen|kunden|mitglieds?|fall|akten|matrikel|probanden|teilnehmer|ausweis|(?:reise)?pass|"
    f"vertrags|policen?) ?(?:{_NUMBER_DE}|name|schluessel), patienten?",
    # French
    "courriel, mel, telephone portable, compte bancaire, rib, carte bancaire, site web, coordonnees(?: gps)?, "
    "nom de famille, nom de naissance, prenom, nom (?:et )?prenom, nom complet, securite sociale, nir, "
    f"{_NUMBER} (?:dossier|patient|assure|client|adherent|salarie|telephone|compte|carte|securite sociale|ss)e?",
    # Spanish
    "correo(?: electronico)?, telefono(?: movil)?, movil, cuenta bancaria, tarjeta de credito, pagina web, sitio web, "
    "direccion(?: \\w+)?, domicilio, calle, coordenadas(?: gps)?, dni, nie, nif, pasaporte, seguridad social, "
    "nombre y apellido, nombre de pila, nombre completo, (?:primer |segundo )?apellido, historia clinica, "
    f"{_NUMBER} (?:historia(?: clinica)?|paciente|expediente|cliente|socio|afiliacion|empleado|tarjeta|cuenta)",
    # Italian
    "posta elettronica, telefono, cellulare, conto corrente, carta di credito, sito web, indirizzo(?: \\w+)?, "
    "coordinate, codice fiscale, tessera sanitaria, nome e cognome, cognome(?: e nome)?, nome di battesimo, "
    "nominativo, "
    f"passaporto, "
    f"{_NUMBER} (?:paziente|cliente|cartella(?: clinica)?|pratica|tessera|telefono|conto|dipendente|passaporto)",
    # Portuguese
    "correio eletronico, telemovel, telefone, conta bancaria, cartao de credito, cartao de cidadao, "
    "pagina (?:web|pessoal), "
    "endereco(?: \\w+)?, morada, rua, contribuinte, niss, bilhete de identidade, passaporte, nome completo, "
    "nome proprio, "
    f"apelido, sobrenome, "
    f"{_NUMBER} (?:utente|beneficiario|processo|doente|cliente|funcionario|contribuinte|cartao|conta)",
    # Dutch
    f"e mailadres, mailadres, telefoon(?:nummer|nr)?, mobiel(?:nummer|nr)?, rekening ?(?:nummer|nr), "
    f"credit ?card ?(?:nummer|nr)?, "
    f"webpagina, (?:woon|post|ip )?adres, straat(?:naam)?, huisnummer, coordinaten, bsn, burgerservicenummer, "
    f"sofinummer, "
    f"(?:polis|verzekerden?|patient(?:en)?|dossier|client(?:en)?|klant(?:en)?|lid|personeels|paspoort) ?{_NUMBER_NL}, "
    f"voornaam, achternaam, geboortenaam, voorletter, volledige naam",
    # Polish
    "adres(?: \\w+)*, telefon komorkowy, komorka, rachunek(?: bankowy)?, karta kredytowa, strona internetowa, "
    "ulica(?: i numer)?, wspolrzedne(?: gps)?, pesel, dowod osobisty, paszport, imie i nazwisko, "
    "nazwisko(?: \\w+)?, imiona, "
    f"{_NUMBER} (?:pacjenta|kartoteki|klienta|karty|sprawy|ubezpieczenia|telefonu|konta|dowodu|paszportu|pracownika)",
)
"""Names people, whatever else the column's name says."""

FIRST_NAMES = _words(
    "(?:first|last|family|given|middle|maiden|full) ?name, sur ?name, fore ?name, vor ?name, nach ?name, "
    "familienname, zu ?name, rufname, geburtsname, prenom, nom de famille, nom de naissance, nombre de pila, apellido, "
    "cognome, nome proprio, apelido, sobrenome, voornaam, achternaam, geboortenaam, imie, imiona, nazwisko"
)
"""Names of people however few they are; of other identifiers a handful of values may be codes of something else."""

NAMES_OF_NAMES = frozenset(
    f" {word} "
    for word in ("name", "names", "nom", "noms", "nombre", "nombres", "nome", "nomi", "naam", "namen", "imie")
)
"""Names of a person where they are the whole name of the column; ``drug_name`` and ``nombre de visites`` are none."""

PERSON_NAMES = _words(
    "(?:patient|person|customer|client|employee|student|subject|respondent|participant|member|user|citizen|donor) ?"
    "(?:id|nbr|number|num|no|nr|key|code), mrn, medical record(?: number| no)?, nhs(?: number| no)?, ssn, "
    "social security(?: number| no)?, household(?: id| number| no)?",
    f"(?:patienten?|kunden|mitglieds?|versicherten|personen?|mitarbeiter|studenten|matrikel|haushalts?) ?{_NUMBER_DE}",
    f"(?:patient|klant|persoons?|client|burgerservice|huishoud) ?{_NUMBER_NL}, bsn, pesel",
    f"{_NUMBER} (?:patiente?|paciente|paziente|pacjenta|cliente?|klienta|utente|usuario|persona|personne|osoby)",
)
"""Numbers one person (or household) each, so that rows with equal values are about the same one."""

KEY_NAMES = _words(
    "id, identifier, key, nbr, pid, uid",
    "kennung, schluessel, lfd nr, identifiant, identificador, clave, identificativo, chave, sleutel, "
    "identyfikator, klucz",
)
"""May be a person's key or a code of something else: how many values it has decides."""

BIRTH_DATE_NAMES = _words(
    "birth ?dat[ae], birth ?day, date of birth, dob, born(?: on)?, geburts ?datum, geb ?dat(?:um)?, geboren(?: am)?, "
    "geburtstag, date (?:de )?naissance, ne le, fecha (?:de )?nacimiento, data (?:di )?nascita, "
    "data (?:de )?nascimento, "
    "geboorte ?datum, data urodzenia"
)

DIAGNOSIS_NAMES = _words(
    "diagnos[ie]s, diagnosen?, (?:haupt|neben)diagnosen?, diagnosti[ck], diagnostico, diagnosi, diag(?: \\d+)?, dx, "
    "icd(?: \\d+)*(?: \\w+)*, cim(?: 10)?, cie(?: 10)?, cid(?: 10)?, rozpoznanie, krankheit, code"
)
"""Where three digits, or a letter and four digits, are a code of ICD."""

POSTCODE_NAMES = _words(
    "zip(?: ?code)?, post ?code, postal(?: code)?, plz, postleitzahl, code postal, cp, codigo postal, cap, "
    "kod pocztowy, postcode"
)

QUANTITY_NAMES = _words(
    "age, income, salary, wage, earning, pay(?:ment)?, debt, price, amount, amt, cost, charge, fee, revenue, sale, "
    "balance, bal, limit, bill, budget, weight, height, length, width, area, size, distance, volume, year, month, day, "
    "date, time, duration, count, total, sum, number of \\w+, population, score, value, rate, dose, steps",
    "alter, einkommen, gehalt, lohn, schulden, preis, betrag, kosten, umsatz, gewicht, grosse, lange, flache, jahr, "
    "monat, tag, datum, dauer, anzahl, summe, wert, menge",
    "revenu, salaire, dette, prix, montant, cout, poids, taille, annee, mois, duree, nombre de \\w+, valeur, surface",
    "edad, ingresos, salario, sueldo, deuda, precio, importe, monto, coste, costo, peso, altura, ano, mes, valor",
    "eta, reddito, stipendio, debito, prezzo, importo, costo, altezza, anno, mese, valore, quantita",
    "idade, rendimento, divida, preco, quantia, custo, quantidade",
    "leeftijd, inkomen, salaris, loon, schuld, prijs, bedrag, kosten, gewicht, lengte, jaar, maand, aantal, waarde",
    "wiek, dochod, zarobki, wynagrodzenie, dlug, cena, kwota, koszt, waga, wzrost, rok, miesiac, liczba, wartosc",
)
"""Names of what is measured, counted or paid: its numbers number nobody."""

PEOPLE_NAMES = _words(
    "employee, staff, worker, colleague, manager, doctor, physician, surgeon, nurse, therapist, teacher, contact, "
    "owner, author, person, patient, customer, client, responsible, supervisor, mitarbeiter(?:in)?, arzt, aerztin, "
    "arztin, behandler(?:in)?, pfleger(?:in)?, lehrer(?:in)?, kunde, kundin, ansprechpartner(?:in)?, "
    "betreuer(?:in)?, leiter(?:in)?, employee?, medecin, infirmiere?, salariee?, responsable, empleado, medico, "
    "enfermera, profesor, contacto, "
    "dipendente, paziente, infermiere, funcionario, doente, enfermeiro, medewerker, arts, verpleegkundige, klant, "
    "pracownik, lekarz, pielegniarka, pacjent"
)
"""Names of columns that are about somebody: what is written in two words there is a name."""

PLACE_NAMES = _words(
    "country(?: name)?, state, city, town, county, region, province, district, municipality, birth ?place, hospital, "
    "school, airport, place, ort, wohnort, stadt, land, bundesland, landkreis, gemeinde, geburtsort, krankenhaus, "
    "klinik, schule, ville, commune, departement, pays, lycee, ecole, hopital, ciudad, municipio, provincia, pais, "
    "escuela, citta, comune, regione, paese, cidade, concelho, distrito, localidade, woonplaats, gemeente, provincie, "
    "miasto, miejscowosc, wojewodztwo, powiat, gmina, kraj"
)
"""Where names of people are those of places."""

CATEGORY_NAMES = _words(
    "type, kind, category, group, class, level, grade, rank, status, state, stage, code, special(?:ty|ity|i[sz]ation), "
    "department, dept, ward, unit, division, section, sector, industry, branch, product, brand, model, make, colou?r, "
    "size, method, treatment, drug, medication, medicine, procedure, therapy, reason, cause, source, channel, "
    "payer(?: code)?, plan, employer, company, firm, position, title, role, field, subject, "
    "course, program(?:me)?, major, species, breed",
    "typ, art, kategorie, gruppe, klasse, stufe, grad, fach\\w*, abteilung, station, klinik, bereich, branche, "
    "produkt, marke, modell, farbe, grosse, methode, behandlung, medikament, arzneimittel, wirkstoff, prozedur, "
    "eingriff, therapie, arbeitgeber, firma, grund, ursache, quelle, stelle, tatigkeit, kostentrager",
    "categorie, groupe, classe, niveau, statut, specialite, service, unite, secteur, produit, marque, modele, couleur, "
    "traitement, medicament, acte, motif, raison, origine, poste, metier, employeur, entreprise",
    "tipo, categoria, grupo, clase, nivel, estado, especialidad, departamento, servicio, unidad, sector, producto, "
    "marca, modelo, color, tratamiento, medicamento, procedimiento, motivo, causa, origen, puesto, cargo, empresa",
    "gruppo, livello, stato, specialita, reparto, unita, settore, prodotto, colore, trattamento, farmaco, procedura",
    "servico, unidade, setor, produto, cor, tratamento, procedimento, especialidade",
    "soort, categorie, groep, niveau, afdeling, specialisme, merk, kleur, behandeling, geneesmiddel, reden",
    "rodzaj, kategoria, grupa, klasa, poziom, oddzial, specjalnosc, produkt, marka, kolor, leczenie, lek, przyczyna",
)
"""Names of columns that hold categories; they say nothing about what others know."""

DEGREES_NAMES = _words(
    "latitude, lat, longitude, lon, long, lng, breitengrad, langengrad, laengengrad, latitud, longitud, latitudine, "
    "longitudine, breedtegraad, lengtegraad, szerokosc(?: geograficzna)?, dlugosc(?: geograficzna)?"
)

TARGET_NAMES = (
    re.compile(r"^ (target|class|label|outcome|y|response|readmitted|(?:salary|income|target) ?class|class ?label) $"),
    _words(
        "target, label, outcome, readmitted, readmission, churn(?:ed)?, defaulted, survived, fraud",
        "zielvariable, zielgrosse, wiederaufnahme, rehospitalisation, reingreso, readmissao, heropname",
    ),
    re.compile(r"(?<! work)(?<! social)(?<! passenger)(?<! ticket)(?<! travel)(?<! p) (class) $"),
    re.compile(r"^ (?:annual |yearly )?(income|salary|wage|earning)s? $"),
)
"""Targets, from the plainest name to the most doubtful."""

SENSITIVE_NAMES = _words(
    "diagnos[ie]s, diag, icd(?: \\d+)?(?: code)?, disease, illness, hiv, aids, cancer, abortion, mental, psychiatric, "
    "addiction, genetic, religion, religious, faith, politic\\w*, sexual orientation, salary, income, wage, earning, "
    "debt, credit score, criminal\\w*, conviction, crime",
    "(?:haupt|neben)?diagnosen?, diagnosecode, krankheit, konfession, gehalt, einkommen, lohn, schulden, vorstrafen?",
    "diagnosti[ck], maladie, code cim, confession, salaire, revenu, dette",
    "diagnostico, enfermedad, codigo ci[ed], salario, sueldo, ingresos, deuda",
    "diagnosi, malattia, religione, stipendio, reddito, debito",
    "doenca, religiao, rendimento, divida",
    "ziekte, religie, geloof, salaris, inkomen, loon, schuld",
    "rozpoznanie, choroba, wyznanie, religia, wynagrodzenie, zarobki, dochod, dlug",
)

RELIGION_NAMES = _words(
    "religion, religious, faith, konfession, confession, religione, religiao, religie, geloof, wyznanie, religia"
)
"""Sensitive as a list of faiths; as a yes or no, the group that neighbours and census takers know a person to be in."""

QUASI_IDENTIFIER_NAMES = _words(
    "age, sex, gender, zip(?: ?code)?, post ?code, postal(?: code)?, birth ?(?:date|day|year|place)?, "
    "(?:date|year|place) of birth, dob, yob, born, race, ethnic\\w*, marital(?: status)?, marriage, education, "
    "school\\w*, degree, occupation, job, profession, employ\\w*, work ?class, (?:native )?country, nationality, "
    "citizenship, city, town, state, county, region, province, district, municipality, language, household, children, "
    "height, weight, insurance, relationship, admission, discharge, date, year, month, weekday",
    "alter, geschlecht, plz, postleitzahl, geburts\\w+, familienstand, bildung\\w*, beruf, staatsangehorigkeit, "
    "wohnort, "
    "bundesland, landkreis, herkunft\\w*, gewicht, grosse, krankenkasse, aufnahme\\w*, entlassung\\w*, datum, "
    "jahr, monat",
    "sexe, code postal, annee(?: de naissance)?, lieu de naissance, etat civil, niveau d etudes, nationalite, ville, "
    "commune, departement, poids, taille, mutuelle, date d entree, date de sortie, mois",
    "edad, sexo, genero, codigo postal, ano(?: de nacimiento)?, lugar de nacimiento, estado civil, estudios, "
    "profesion, "
    "nacionalidad, ciudad, municipio, provincia, peso, altura, aseguradora, fecha(?: \\w+)*, mes",
    "eta, sesso, genere, cap, anno(?: di nascita)?, luogo di nascita, stato civile, titolo di studio, professione, "
    "cittadinanza, comune, citta, regione, altezza, data(?: \\w+)+, mese",
    "idade, ano de nascimento, naturalidade, escolaridade, profissao, nacionalidade, localidade, cidade, concelho, "
    "distrito, seguradora",
    "leeftijd, geslacht, geboorte\\w+, burgerlijke staat, opleiding, beroep, nationaliteit, woonplaats, gemeente, "
    "provincie, lengte, zorgverzekeraar, opname\\w*, ontslag\\w*, jaar, maand",
    "wiek, plec, kod pocztowy, rok(?: urodzenia)?, miejsce urodzenia, stan cywilny, wyksztalcenie, zawod, "
    "obywatelstwo, "
    "miasto, miejscowosc, wojewodztwo, powiat, gmina, waga, wzrost, ubezpieczyciel, miesiac",
)
