"""Ordinary columns as hospitals, statistics offices and companies have them: none of them names a person.

Some values look as if they did: diseases, hospitals and cars are called after people, countries and months share names
with them. Values have uneven counts, a few cells are missing, misspelt or padded with blanks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from identifiers import formats, words
from identifiers.formats import Maker

N_ROWS = 2_000


@dataclass(frozen=True)
class Ordinary:
    """One column: what it holds, in which language, its name and its cells (``None`` is missing)."""

    what: str
    language: str
    name: str
    cells: tuple[str | None, ...]

    @property
    def id(self) -> str:
        return f"{self.what}/{self.language}/{self.name}"


# Categories of eight languages, under the headers of words.HEADERS.
WORDS = {
    "sex": words.SEX,
    "city": words.CITIES,
    "occupation": words.OCCUPATIONS,
    "diagnosis": words.DIAGNOSES,
    "department": words.DEPARTMENTS,
    "answer": words.ANSWERS,
    "yes no": words.YES_NO,
    "marital": words.MARITAL,
    "country": words.COUNTRIES,
    "education": words.EDUCATION,
    "insurer": words.INSURERS,
    "month": {language: months.replace(" ", "|") for language, months in words.MONTHS.items()},
    "remark": words.PHRASES,
    "drug": dict.fromkeys(words.LANGUAGES, words.DRUGS),
}

# Codes, numbers, dates and amounts of eight languages, under the headers of words.HEADERS.
MADE: dict[str, Maker] = {
    "age": formats.age,
    "year": formats.year,
    "icd": formats.icd_code,
    "product": formats.product_code,
    "glucose": formats.glucose,
    "amount": formats.amount,
    "tiny": formats.tiny_measure,
    "weight": formats.whole_weight,
    "visit": formats.visit_date,
    "blood": formats.blood_group,
    "percent": formats.percent,
    "count": formats.count,
    "hours": formats.hours,
    "rating": formats.rating,
    "time": formats.time_of_day,
    "salary": formats.rounded_salary,
    "price": formats.list_price,
}
POOLED: dict[str, tuple[Maker, int]] = {"postcode": (formats.postcode, 60), "atc": (formats.atc_code, 60)}

_MOST_VALUES_WITHOUT_A_NAME = 20
"""A text column with more values under a name that says nothing may be left out: nobody knows what it is."""
_KNOWN_WITHOUT_A_NAME = ("icd", "atc", "visit", "time", "price")

# Further categories of the first four languages: the header, and the values of each.
_IN_FOUR = ("en", "de", "fr", "es")
CATEGORIES: dict[str, tuple[str, str, str, str]] = {
    "ward": (
        "ward: Ward 3B|Ward 4A|Ward 12|St Mary's wing|Victoria ward|Nightingale ward|Day unit|ICU 1|ICU 2",
        "Station: Station 3B|Station 4A|Station 12|Haus Elisabeth|Haus Martin|Virchow 2|Tagesklinik|ITS 1|ITS 2",
        "unité: Unité 3B|Unité 4A|Aile Pasteur|Pavillon Laennec|Pavillon Sainte-Anne|Hôpital de jour|Réa 1|Réa 2",
        "unidad: Planta 3B|Planta 4A|Ala San José|Pabellón Santa Ana|Hospital de día|UCI 1|UCI 2|Paritorio",
    ),
    "job title": (
        "job_title: Account manager|Software engineer|Sales representative|Team lead|Office assistant|HR manager|"
        "Warehouse worker|Data analyst|Chief nurse|Head of marketing|Intern|Electrician|Van driver|Legal counsel",
        "Position: Sachbearbeiter|Teamleiterin|Softwareentwickler|Vertriebsleiter|Lagerist|Assistenz|Werkstudent|"
        "Buchhalterin|Elektriker|Schichtführer|Justiziar|Bereichsleiterin|Hausmeister|Einkäufer|Pflegedienstleitung",
        "poste: Chargé de clientèle|Développeur|Chef d'équipe|Comptable|Magasinier|Assistante de direction|Stagiaire|"
        "Technicien|Responsable achats|Juriste|Électricien|Cadre de santé|Conducteur|Acheteuse|Agent d'entretien",
        "puesto: Administrativo|Programador|Jefe de equipo|Contable|Mozo de almacén|Comercial|Becario|Electricista|"
        "Responsable de compras|Abogada|Técnico de laboratorio|Director financiero|Conductor|Conserje|Encargada",
    ),
    "eponym": (
        "diagnosis: Crohn's disease|Parkinson's disease|Alzheimer's disease|Hodgkin lymphoma|Graves' disease|"
        "Hashimoto thyroiditis|Sjögren syndrome|Bell's palsy|Wilson's disease|Marfan syndrome|Addison's disease",
        "Diagnose: Morbus Crohn|Morbus Parkinson|Morbus Basedow|Hashimoto-Thyreoiditis|Morbus Bechterew|Sudeck|"
        "Hodgkin-Lymphom|Alzheimer|Morbus Wilson|Marfan-Syndrom|Morbus Addison|Dupuytren-Kontraktur|Scheuermann",
        "diagnostic: Maladie de Crohn|Maladie de Parkinson|Maladie d'Alzheimer|Maladie de Basedow|Horton|Sjögren|"
        "Lymphome de Hodgkin|Maladie de Wilson|Syndrome de Marfan|Maladie de Verneuil|Dupuytren|Charcot",
        "diagnóstico: Enfermedad de Crohn|Parkinson|Alzheimer|Enfermedad de Graves|Linfoma de Hodgkin|Chagas|"
        "Síndrome de Sjögren|Tiroiditis de Hashimoto|Enfermedad de Wilson|Síndrome de Marfan|Dupuytren",
    ),
    "country of birth": (
        "country: United Kingdom|India|Poland|Pakistan|Ireland|Romania|Nigeria|Bangladesh|Italy|Jordan|Georgia|Chad|"
        "Germany|France|Spain|Israel|Jamaica|Kenya|Cuba|Chile|Mali|Oman|Togo|Peru|Dominica|Guinea|Cyprus|Malta|Niger",
        "Geburtsland: Deutschland|Türkei|Polen|Syrien|Rumänien|Italien|Kosovo|Kroatien|Ukraine|Jordanien|Georgien|"
        "Tschad|Israel|Jamaika|Kenia|Kuba|Chile|Mali|Oman|Togo|Peru|Guinea|Zypern|Malta|Niger|Irak|Iran|Kasachstan",
        "pays de naissance: France|Algérie|Maroc|Portugal|Tunisie|Italie|Sénégal|Comores|Mali|Jordanie|Géorgie|Tchad|"
        "Haïti|Cameroun|Espagne|Madagascar|Bénin|Togo|Gabon|Guinée|Niger|Chili|Pérou|Laos|Israël|Chypre|Malte",
        "país: España|Marruecos|Rumanía|Colombia|Venezuela|Ecuador|Argentina|Perú|Honduras|Jordania|Georgia|Chad|"
        "República Dominicana|Cuba|Bolivia|Paraguay|Brasil|China|Italia|Malí|Chile|Togo|Santa Lucía|San Marino|Omán",
    ),
    "city of birth": (
        "city: Victoria|Charlotte|Florence|Austin|Jackson|Lincoln|Madison|Houston|Denver|Cleveland|St. Louis|Savannah|"
        "San Jose|San Diego|Santa Ana|Boston|Chester|Lancaster|Warwick|Stirling|Dallas|Phoenix|Columbus|Nelson|Bath",
        "Wohnort: Bad Homburg|St. Augustin|Ludwigsburg|Karlsruhe|Friedrichshafen|Wilhelmshaven|Ingolstadt|Essen|Ulm|"
        "Marl|Hagen|Siegen|Herne|Celle|Hof|Fürth|Worms|Bernau|Michelstadt|Heinsberg|Viersen|Johanngeorgenstadt|Halle",
        "commune: Saint-Denis|Saint-Étienne|Sainte-Maxime|Villeneuve|Saint-Martin|Nancy|Laval|Brest|Vichy|Colmar|Lens|"
        "Saint-Malo|Montreuil|Sarlat|Martigues|Roanne|Vincennes|Charleville|Châlons|Meaux|Cannes|Antibes|Le Mans",
        "municipio: Santiago|San Fernando|Santa Lucía|San José|Santa Cruz|Mérida|León|Jaén|Soria|Victoria|Lorca|"
        "Alfonso XII|Reus|Toledo|Ávila|Lugo|Cartagena|Gerona|Marbella|Don Benito|Villarreal|San Juan|Ronda|Zamora",
    ),
    "religion": (
        "religion: Church of England|Catholic|Muslim|Hindu|Sikh|Jewish|Buddhist|none|Methodist|Other",
        "Konfession: evangelisch|römisch-katholisch|muslimisch|jüdisch|orthodox|ohne|alevitisch|buddhistisch",
        "religion: catholique|musulmane|protestante|juive|bouddhiste|orthodoxe|sans religion|autre",
        "religión: católica|musulmana|evangélica|judía|ortodoxa|budista|ninguna|otra",
    ),
    "colour": (
        "colour: Rose|Amber|Violet|Olive|Ruby|Hazel|Jade|Ginger|Ivory|Scarlet|Grey|White|Black|Navy",
        "Farbe: Rosa|Viola|Oliv|Rubin|Jade|Bernstein|Elfenbein|Grau|Weiß|Schwarz|Blau|Anthrazit|Silber",
        "couleur: Rose|Violette|Olive|Rubis|Jade|Ambre|Ivoire|Gris|Blanc|Noir|Bleu|Prune|Cerise",
        "color: Rosa|Violeta|Oliva|Rubí|Jade|Ámbar|Marfil|Gris|Blanco|Negro|Azul|Celeste|Vino",
    ),
    "hospital": (
        "hospital: St Thomas' Hospital|Guy's Hospital|John Radcliffe|Queen Elizabeth|Royal Victoria|St George's|"
        "King's College|Addenbrooke's|Great Ormond Street|James Cook|Whittington|Hammersmith|Princess Alexandra",
        "Klinik: St. Elisabeth|St. Josef|Marienhospital|Charité|Klinikum rechts der Isar|Robert-Bosch-Krankenhaus|"
        "Katharinenhospital|Rudolf Virchow|Paul Gerhardt Stift|Ernst von Bergmann|Vivantes|Sankt Gertrauden",
        "établissement: Hôpital Saint-Louis|Hôpital Necker|Pitié-Salpêtrière|Hôpital Cochin|Édouard Herriot|"
        "Lariboisière|Hôpital Saint-Antoine|Clinique Pasteur|Gustave Roussy|Paul Brousse|Henri Mondor|Georges Pompidou",
        "hospital: La Paz|Gregorio Marañón|Ramón y Cajal|Virgen del Rocío|San Carlos|Reina Sofía|Vall d'Hebron|Clínic|"
        "Sant Pau|Santa Creu|Puerta de Hierro|Miguel Servet|Infanta Leonor|Doctor Peset|Son Espases",
    ),
    "employer": (
        "employer: Tesco|Marks & Spencer|Rolls-Royce|Barclays|John Lewis|Morrisons|BT|Ernst & Young|Lloyds|Boots|"
        "J Sainsbury|HSBC|Johnson Matthey|NHS|Royal Mail|self-employed",
        "Arbeitgeber: Siemens|Robert Bosch|Daimler|BASF|Henkel|Heinrich Schmid|Otto|Dr. Oetker|Carl Zeiss|Adidas|"
        "Deutsche Bahn|Volkswagen|Rossmann|Müller|Fielmann|selbständig|Stadt München",
        "employeur: Renault|Michelin|Peugeot|Leroy Merlin|Carrefour|La Poste|SNCF|Louis Vuitton|Bouygues|Auchan|"
        "Fabre|Thales|Airbus|Mairie de Lyon|indépendant|Société Générale",
        "empresa: El Corte Inglés|Mercadona|Santander|Telefónica|Iberdrola|Antonio Puig|García Carrión|Ferrovial|"
        "Seat|Zara|Correos|Renfe|Ayuntamiento|autónomo|Pascual|Meliá",
    ),
    "car": (
        "make: Ford|Vauxhall|Mercedes|Audi|Lincoln|Chrysler|Bentley|Aston Martin|Seat Leon|Skoda|Porsche|Morgan",
        "Marke: Mercedes|Opel|Porsche|Borgward|Audi|Ford|Alfa Romeo|Maybach|Horch|Skoda|VW|Ferrari",
        "marque: Renault Clio|Renault Zoé|Renault Mégane|Peugeot|Citroën|Mercedes|Dacia|Alfa Romeo|Opel|Ford",
        "marca: Seat León|Seat Ibiza|Renault Clio|Mercedes|Citroën|Ford Fiesta|Opel Corsa|Dacia|Alfa Romeo|Kia",
    ),
    "region": (
        "region: North East|North West|Yorkshire and the Humber|East Midlands|West Midlands|East of England|London|"
        "South East|South West|Wales|Scotland|Northern Ireland",
        "Bundesland: Bayern|Berlin|Brandenburg|Bremen|Hamburg|Hessen|Niedersachsen|Nordrhein-Westfalen|Saarland|"
        "Rheinland-Pfalz|Sachsen|Sachsen-Anhalt|Schleswig-Holstein|Thüringen|Baden-Württemberg|Mecklenburg-Vorpommern",
        "région: Bretagne|Normandie|Occitanie|Grand Est|Île-de-France|Hauts-de-France|Pays de la Loire|Corse|Guyane|"
        "Nouvelle-Aquitaine|Auvergne-Rhône-Alpes|Centre-Val de Loire|La Réunion|Martinique",
        "comunidad autónoma: Andalucía|Aragón|Asturias|Islas Baleares|Canarias|Cantabria|Castilla y León|Cataluña|"
        "Castilla-La Mancha|Extremadura|Galicia|La Rioja|Madrid|Murcia|Navarra|País Vasco|Valencia",
    ),
    "contract": (
        "contract: permanent|fixed-term|agency|apprentice|zero hours|self-employed",
        "Vertrag: unbefristet|befristet|Leiharbeit|Ausbildung|Minijob|Werkvertrag",
        "contrat: CDI|CDD|intérim|apprentissage|stage|vacation",
        "contrato: indefinido|temporal|fijo discontinuo|formación|prácticas|autónomo",
    ),
    "payment": (
        "payment: credit card|direct debit|cash|PayPal|bank transfer|invoice",
        "Zahlungsart: Rechnung|Lastschrift|PayPal|Kreditkarte|Vorkasse|Barzahlung",
        "paiement: carte bancaire|prélèvement|espèces|chèque|virement|PayPal",
        "forma de pago: tarjeta|domiciliación|efectivo|transferencia|Bizum|PayPal",
    ),
    "discharge": (
        "discharge_disposition: home|home with care|rehabilitation|nursing home|hospice|other hospital|died|"
        "left against advice",
        "Entlassungsgrund: nach Hause|Reha|Pflegeheim|anderes Krankenhaus|Hospiz|verstorben|gegen ärztlichen Rat",
        "mode de sortie: domicile|SSR|EHPAD|transfert|décès|contre avis médical|HAD",
        "tipo de alta: domicilio|residencia|traslado|defunción|alta voluntaria|hospitalización a domicilio",
    ),
    "referral": (
        "referred by: GP|emergency department|self|consultant|school nurse|social services|walk-in centre",
        "Einweiser: Hausarzt|Notaufnahme|Facharzt|Rettungsdienst|Selbsteinweiser|Pflegeheim|Gesundheitsamt",
        "adressé par: médecin traitant|urgences|SAMU|spécialiste|de lui-même|maison de retraite|PMI",
        "derivado por: médico de cabecera|urgencias|especialista|iniciativa propia|servicios sociales|residencia",
    ),
    "relative": (
        "informant: mother|father|spouse|son|daughter|neighbour|carer|friend|self",
        "Angehörige: Mutter|Vater|Ehepartner|Sohn|Tochter|Nachbarin|Betreuer|Freund|keine",
        "accompagnant: mère|père|conjoint|fils|fille|voisine|aide-soignante|ami|aucun",
        "acompañante: madre|padre|cónyuge|hijo|hija|vecina|cuidador|amigo|ninguno",
    ),
    "weekday": (
        "weekday: Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
        "Wochentag: Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag",
        "jour: lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche",
        "día: lunes|martes|miércoles|jueves|viernes|sábado|domingo",
    ),
    "month": (
        "month: Jan|Feb|Mar|April|May|June|July|August|Sept|Oct|Nov|Dec",
        "Monat: Jan|Feb|März|April|Mai|Juni|Juli|August|Sept|Okt|Nov|Dez",
        "mois: janv.|févr.|mars|avril|mai|juin|juil.|août|sept.|oct.|nov.|déc.",
        "mes: ene|feb|mar|abr|may|jun|jul|ago|sep|oct|nov|dic",
    ),
    "company department": (
        "department: Sales|Marketing|Finance|HR|IT|Legal|R&D|Logistics|Customer service|Production",
        "Abteilung: Vertrieb|Marketing|Finanzen|Personal|IT|Recht|Entwicklung|Logistik|Kundendienst|Produktion",
        "service: Ventes|Marketing|Finances|RH|Informatique|Juridique|R&D|Logistique|SAV|Production",
        "departamento: Ventas|Marketing|Finanzas|RRHH|Informática|Legal|I+D|Logística|Atención al cliente|Producción",
    ),
    "product": (
        "product: iPhone 13|iPhone 14 Pro|Galaxy S21|Pixel 7|MacBook Pro|iPad Air|Kindle|Echo Dot|PlayStation 5|Alexa",
        "Produkt: iPhone 13|Galaxy S21|MacBook Pro|Thermomix TM6|Bosch PSR 18|Miele W1|Kärcher K5|Billy|Alexa|Siri",
        "produit: iPhone 13|Galaxy S21|MacBook Pro|Clio V|Livret A|Box Internet|Forfait 20 Go|Assurance auto|Alexa",
        "producto: iPhone 13|Galaxy S21|MacBook Pro|Cuenta Nómina|Seguro hogar|Tarifa 20 GB|Fibra 600|Alexa",
    ),
    "sector": (
        "sector: Agriculture|Manufacturing|Construction|Retail|Transport|Hospitality|Finance|Education|Health|Public",
        "Branche: Landwirtschaft|Industrie|Bau|Handel|Verkehr|Gastgewerbe|Banken|Erziehung|Gesundheit|Verwaltung",
        "secteur: Agriculture|Industrie|Construction|Commerce|Transports|Hébergement|Banque|Enseignement|Santé",
        "sector: Agricultura|Industria|Construcción|Comercio|Transporte|Hostelería|Banca|Educación|Sanidad",
    ),
    "procedure": (
        "procedure: Appendectomy|Hip replacement|Cataract surgery|Colonoscopy|Caesarean section|Whipple procedure|"
        "Coronary bypass|Knee arthroscopy|Hysterectomy|Cholecystectomy|MRI head|CT abdomen|X-ray chest",
        "Prozedur: Appendektomie|Hüft-TEP|Kataraktoperation|Koloskopie|Sectio|Whipple-Operation|ACVB|Arthroskopie Knie|"
        "Hysterektomie|Cholezystektomie|MRT Schädel|CT Abdomen|Röntgen Thorax",
        "acte: Appendicectomie|Prothèse de hanche|Cataracte|Coloscopie|Césarienne|Pontage coronarien|Arthroscopie|"
        "Hystérectomie|Cholécystectomie|IRM cérébrale|Scanner abdominal|Radio thorax",
        "procedimiento: Apendicectomía|Prótesis de cadera|Cataratas|Colonoscopia|Cesárea|Bypass coronario|"
        "Artroscopia|Histerectomía|Colecistectomía|RM craneal|TC abdomen|Radiografía de tórax",
    ),
    "allergy": (
        "allergy: none|penicillin|nuts|latex|pollen|house dust mite|shellfish|bee venom|eggs",
        "Allergie: keine|Penicillin|Nüsse|Latex|Pollen|Hausstaubmilben|Meeresfrüchte|Bienengift|Eier",
        "allergie: aucune|pénicilline|fruits à coque|latex|pollen|acariens|crustacés|venin d'abeille|œufs",
        "alergia: ninguna|penicilina|frutos secos|látex|polen|ácaros|marisco|veneno de abeja|huevo",
    ),
    "school": (
        "school type: comprehensive|grammar|academy|independent|St John's College|King Edward VI|sixth form|special",
        "Schule: Goethe-Gymnasium|Schiller-Realschule|Albert-Schweitzer-Schule|Gesamtschule Nord|Anne-Frank-Schule|"
        "Grundschule am Park|Berufskolleg|Waldorfschule",
        "lycée: Victor Hugo|Jean Jaurès|Louis-le-Grand|Marie Curie|Jules Ferry|Henri IV|Claude Monet|Saint-Exupéry",
        "instituto: Miguel de Cervantes|Ramiro de Maeztu|Isabel la Católica|Federico García Lorca|San Isidro|Goya",
    ),
    "language": (
        "first language: English|Polish|Punjabi|Urdu|Bengali|Gujarati|Arabic|French|Portuguese|Welsh|Somali",
        "Muttersprache: Deutsch|Türkisch|Russisch|Arabisch|Polnisch|Rumänisch|Kurdisch|Italienisch|Farsi|Englisch",
        "langue: français|arabe|portugais|espagnol|turc|anglais|breton|créole|berbère|wolof|chinois",
        "lengua: castellano|catalán|gallego|euskera|árabe|rumano|inglés|chino|valenciano|francés",
    ),
    "income class": (
        "income: <=10K|10K-20K|20K-30K|30K-50K|50K-75K|75K-100K|>100K",
        "Einkommen: unter 1.000 €|1.000 bis 2.000 €|2.000 bis 3.000 €|3.000 bis 5.000 €|über 5.000 €",
        "revenu: moins de 1 000 €|1 000 à 2 000 €|2 000 à 3 000 €|3 000 à 5 000 €|plus de 5 000 €",
        "ingresos: menos de 1.000 €|1.000-2.000 €|2.000-3.000 €|3.000-5.000 €|más de 5.000 €",
    ),
    "ethnic group": (
        "ethnicity: White British|White Irish|Indian|Pakistani|Bangladeshi|Black African|Black Caribbean|Chinese|Mixed",
        "Herkunft: deutsch|türkisch|polnisch|syrisch|italienisch|russisch|afghanisch|vietnamesisch|sonstige",
        "origine: France métropolitaine|DOM|Maghreb|Afrique subsaharienne|Europe du Sud|Asie du Sud-Est|autre",
        "origen: España|Latinoamérica|Magreb|Europa del Este|África subsahariana|Asia|otro",
    ),
    "status": (
        "status: active|inactive|pending|cancelled|closed|on hold|draft",
        "Status: aktiv|inaktiv|offen|storniert|abgeschlossen|in Bearbeitung|Entwurf",
        "statut: actif|inactif|en attente|annulé|clos|en cours|brouillon",
        "estado: activo|inactivo|pendiente|anulado|cerrado|en curso|borrador",
    ),
}

# Codes that are the same in every language; each under one header a language.
CODES: dict[str, tuple[str, str]] = {
    "icd": (
        "ICD-10|ICD|CIM-10|CIE-10",
        "E11.9 I10 J45.9 S72.0 I50.1 K80.2 G43.9 I25.1 N18.3 M54.5 F32.1 J44.0 C50.9 Z51.1 R07.4 K35.8 H25.1 L40.0 "
        "A41.9 B18.2 D50.9 O80 P07.3 Q21.1 T81.4 U07.1 I63.9 J18.9 K21.0 N39.0 M17.1 E66.0",
    ),
    "drg": ("DRG|DRG|GHM|GRD", "G67A G67B F62A F62B I47C O60D E65C B70A J65Z P67D L63F D30B H08B K62C A11F I68D"),
    "atc": (
        "ATC code|ATC|code ATC|código ATC",
        "A10BA02 C09AA05 C08CA01 C10AA01 M01AE01 A02BC02 C07AB07 H03AA01 N02BE01 B01AC06 J01CA04 R03AC02 N06AB06 "
        "C03CA01 N05BA12 A11CC05 M04AA01 R06AE07 G04CA02 B01AF01 A10AE04 N02AX02",
    ),
    "iso country": (
        "country_code|Land|code pays|código país",
        "GB DE FR ES IT PT NL PL RO TR SY MA DZ TN IN PK BD NG UA RU CN US BR CO EC VE AF IQ IR AT CH BE",
    ),
    "nuts": ("NUTS|NUTS|NUTS|NUTS", "DE212 DE111 FR101 ES300 ES511 UKI31 UKD33 DEA11 FRL04 ES612 DE300 DE600 UKE42"),
    "nace": ("NACE|WZ 2008|code NAF|CNAE", "86.10 47.11 62.01 41.20 56.10 85.31 49.41 01.13 84.11 64.19 10.71 96.02"),
    "tnm": ("TNM|TNM|TNM|TNM", "T1N0M0 T2N0M0 T2N1M0 T3N1M0 T3N2M0 T4N2M1 TisN0M0 T1N1M0"),
    "classes": ("ASA|ASA|ASA|ASA", "I II III IV V"),
    "currency": ("currency|Währung|devise|divisa", "EUR GBP USD CHF SEK PLN TRY JPY CZK DKK"),
    "cost centre": (
        "cost centre|Kostenstelle|centre de coût|centro de coste",
        "K-4711 K-4712 K-5100 K-5230 K-6001 K-7",
    ),
    "licence": ("licence class|Führerschein|permis|permiso", "AM A1 A2 A B BE C1 C CE D1 D T"),
    "age group": ("age_group|Altersgruppe|tranche d'âge|grupo de edad", "0-17 18-29 30-39 40-49 50-64 65-79 80+"),
    "quarter": ("quarter|Quartal|trimestre|trimestre", "2022Q1 2022Q2 2022Q3 2022Q4 2023Q1 2023Q2 2023Q3 2023Q4"),
    "room": ("room|Raum|salle|sala", "A101 A102 A103 B201 B202 B203 C301 C302 OP1 OP2"),
}


def columns() -> Iterator[Ordinary]:
    """Make all columns, always the same ones."""
    for what, values in WORDS.items():
        for language in words.LANGUAGES:
            yield from _under_both_names(what, language, values[language].split("|"))
    for what, maker in MADE.items():
        for language in words.LANGUAGES:
            yield from _under_both_names(what, language, None, maker)
    for what, (maker, size) in POOLED.items():
        for language in words.LANGUAGES:
            draw = Random(f"pool of {what}/{language}")
            yield from _under_both_names(what, language, [maker(draw, language) for _ in range(size)])
    for what, of_languages in CATEGORIES.items():
        for language, text in zip(_IN_FOUR, of_languages, strict=True):
            name, values_ = text.split(": ", 1)
            yield Ordinary(what, language, name, _drawn(what, language, values_.split("|")))
    for what, (names, codes) in CODES.items():
        for language, name in zip(_IN_FOUR, names.split("|"), strict=True):
            yield Ordinary(what, language, name, _drawn(what, language, codes.split()))


def _under_both_names(
    what: str, language: str, values: list[str] | None, maker: Maker | None = None
) -> Iterator[Ordinary]:
    """Give the column under the name that says what it holds and, if cells alone can show it, under another."""
    name = words.HEADERS[what].split("|")[words.LANGUAGES.index(language)]
    if values is None and maker is not None:
        draw = Random(f"{what}/{language}")
        cells = tuple(_with_dirt(draw, maker(draw, language), language) for _ in range(N_ROWS))
    else:
        cells = _drawn(what, language, values or [])
    yield Ordinary(what, language, name, cells)
    # a postcode with a zero in front is a text, too
    is_text = what == "postcode" or any(cell and any(c.isalpha() for c in cell) for cell in cells)
    if not is_text or what in _KNOWN_WITHOUT_A_NAME or len(values or []) <= _MOST_VALUES_WITHOUT_A_NAME:
        yield Ordinary(what, language, f"v{Random(what).randrange(1, 99)}", cells)


def _drawn(what: str, language: str, values: list[str]) -> tuple[str | None, ...]:
    """Draw cells: the values have uneven counts, and one cell in four hundred is misspelt."""
    draw = Random(f"{what}/{language}")
    draw.shuffle(values)
    weights = [(rank + 1) ** -0.8 for rank in range(len(values))]
    return tuple(
        _misspelt(draw, cell) if draw.random() < 1 / 400 else _with_dirt(draw, cell, language)
        for cell in draw.choices(values, weights, k=N_ROWS)
    )


def _misspelt(draw: Random, cell: str) -> str:
    at = draw.randrange(len(cell))
    return cell[:at] + cell[at + 1 :] if len(cell) > 1 else cell


def _with_dirt(draw: Random, cell: str, language: str) -> str | None:
    chance = draw.random()
    if chance < 0.05:
        return None
    if chance < 0.06 and not cell.replace(".", "").replace("e-", "").replace("-", "").isdigit():
        return words.UNKNOWN[language]
    return f" {cell} " if chance < 0.08 else cell
