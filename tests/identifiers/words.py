"""Words for the corpus in eight languages, written by hand.

Names are among the most frequent in the census lists of Germany, France, Spain, Italy, Portugal, the Netherlands,
Poland and the United Kingdom. The detector's own list comes from elsewhere, so that finding these is no memory test.
"""

from __future__ import annotations

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl")

FIRST_NAMES = {
    "en": "Oliver Amelia George Isla Harry Olivia Noah Ava Jack Emily Charlie Sophie Thomas Grace James Margaret "
    "William "
    "Susan Robert Patricia David Linda Michael Barbara Christopher Jean",
    "de": "Peter Ursula Wolfgang Monika Michael Petra Klaus Sabine Thomas Renate Manfred Helga Helmut Karin Jürgen "
    "Brigitte Uwe Ingrid Heinz Erika Stefan Andrea Günter Gisela Leon Mia",
    "fr": "Jean Marie Pierre Nathalie Michel Isabelle André Catherine Philippe Monique Alain Sylvie Bernard Françoise "
    "Nicolas Martine Christophe Céline Laurent Chloé Lucas Manon Hugo Léa Gérard Jacqueline",
    "es": "Antonio Carmen Manuel Josefa José Isabel Francisco Dolores Juan Pilar Javier Teresa Jesús Cristina Carlos "
    "Lucía Miguel Ángeles Rafael Mercedes Alejandro Concepción Pablo Rosario Sergio Paula",
    "it": "Giuseppe Maria Giovanni Anna Antonio Rosa Mario Angela Luigi Giovanna Francesco Teresa Angelo Lucia "
    "Vincenzo "
    "Carmela Pietro Caterina Salvatore Francesca Carlo Antonietta Domenico Concetta Alessandro Giulia",
    "pt": "João Maria Francisco Ana Rodrigo Leonor Martim Matilde Santiago Beatriz Tomás Mariana Afonso Carolina "
    "Duarte "
    "Inês Gonçalo Margarida Guilherme Joana Pedro Lurdes Joaquim Fátima Rui Conceição",
    "nl": "Johannes Maria Jan Johanna Cornelis Anna Hendrik Wilhelmina Willem Cornelia Pieter Elisabeth Gerrit "
    "Hendrika "
    "Daan Sanne Sem Femke Bram Lotte Thijs Anouk Kees Truus Jeroen Marloes",
    "pl": "Jan Anna Stanisław Maria Andrzej Katarzyna Józef Małgorzata Tadeusz Agnieszka Jerzy Krystyna Zbigniew "
    "Barbara "
    "Krzysztof Ewa Henryk Elżbieta Ryszard Zofia Kazimierz Teresa Marek Magdalena Jakub Zuzanna",
}

LAST_NAMES = {
    "en": "Smith Jones Williams Taylor Brown Davies Evans Wilson Thomas Johnson Roberts Robinson Thompson Wright "
    "Walker "
    "White Edwards Hughes Green Hall Lewis Harris Clarke Patel Jackson Wood Turner Martin Cooper Hill",
    "de": "Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer Koch Bauer Richter Klein "
    "Wolf Schröder Neumann Schwarz Zimmermann Braun Krüger Hofmann Hartmann Lange Werner Krause Lehmann Köhler Maier",
    "fr": "Martin Bernard Thomas Petit Robert Richard Durand Dubois Moreau Laurent Simon Michel Lefebvre Leroy Roux "
    "David "
    "Bertrand Morel Fournier Girard Bonnet Dupont Lambert Fontaine Rousseau Vincent Muller Lefevre Faure Mercier",
    "es": "García Rodríguez González Fernández López Martínez Sánchez Pérez Gómez Martín Jiménez Hernández Ruiz Díaz "
    "Moreno Muñoz Álvarez Romero Gutiérrez Alonso Navarro Torres Domínguez Ramos Vázquez Ramírez Gil Serrano Blanco",
    "it": "Rossi Russo Ferrari Esposito Bianchi Romano Colombo Bruno Ricci Greco Marino Gallo Costa Conti Mancini "
    "Giordano "
    "Rizzo Lombardi Barbieri Moretti Fontana Caruso Mariani Ferrara Santoro Rinaldi Leone Longo Galli Martini",
    "pt": "Silva Santos Ferreira Pereira Oliveira Costa Rodrigues Martins Sousa Fernandes Gonçalves Gomes Lopes "
    "Marques "
    "Alves Almeida Ribeiro Pinto Carvalho Teixeira Moreira Correia Mendes Nunes Soares Vieira Monteiro Cardoso Rocha",
    "nl": "de Jong|Jansen|de Vries|van den Berg|van Dijk|Bakker|Janssen|Visser|Smit|Meijer|de Boer|Mulder|de Groot|"
    "Bos|Vos|"
    "Peters|Hendriks|van Leeuwen|Dekker|Brouwer|de Wit|Dijkstra|Smits|de Graaf|van der Meer|Kok|Jacobs|de Haan",
    "pl": "Nowak Kowalski Wiśniewski Wójcik Kowalczyk Kamiński Lewandowski Zieliński Szymański Woźniak Dąbrowski "
    "Kozłowski "
    "Jankowski Mazur Wojciechowski Kwiatkowski Krawczyk Kaczmarek Piotrowski Grabowski Zając Pawłowski Michalski Król",
}

STREETS = {
    "en": "{n} High Street|{n} Church Road|{n} Station Road|Flat {m}, {n} Park Avenue|{n} Mill Lane|{n} Victoria Road|"
    "{n} Green Lane|{n}a Manor Drive|{n} Queensway Close",
    "de": "Hauptstraße {n}|Gartenstr. {n}|Bahnhofstraße {n}a|Am Markt {n}|Lindenweg {n}|Schillerplatz {n}|"
    "Im Winkel {n}|"
    "Berliner Allee {n}|Kirchgasse {n}",
    "fr": "{n} rue de la République|{n} bis avenue Victor Hugo|{n}, place de l'Église|{n} boulevard Voltaire|"
    "{n} chemin des Vignes|{n} impasse du Moulin|{n} allée des Tilleuls|{n} quai de la Loire",
    "es": "Calle Mayor {n}, {m}º B|C/ Real, {n}|Avenida de la Constitución {n}|Plaza España {n}, {m}º|"
    "Paseo del Prado {n}|"
    "Avda. de Andalucía {n}|Camino Viejo {n}|Calle del Sol, {n}",
    "it": "Via Roma {n}|Via Garibaldi, {n}|Piazza Dante {n}|Corso Italia {n}/A|Viale Europa {n}|Vicolo del Forno {n}|"
    "Via Giuseppe Verdi {n}|Largo Augusto {n}",
    "pt": "Rua da Liberdade {n}, {m}º Esq|Avenida da República, {n}|Rua do Carmo {n}|Travessa das Flores {n}|"
    "Praça do Comércio {n}|Largo da Sé {n}|R. de Santa Catarina {n}|Estrada Nova {n}",
    "nl": "Kerkstraat {n}|Dorpsstraat {n} {m}hg|Stationsweg {n}|Molenlaan {n}|Julianaplein {n}|Prinsengracht {n}|"
    "Beatrixlaan {n}-{m}|Oude Dijk {n}|Raadhuisplein {n}",
    "pl": "ul. Polna {n}/{m}|ul. Leśna {n}|ulica Słoneczna {n} m. {m}|al. Jana Pawła II {n}|pl. Wolności {n}|"
    "ul. Szkolna {n}|"
    "os. Tysiąclecia {n}/{m}|ul. 3 Maja {n}",
}

CITIES = {
    "en": "London|Manchester|Leeds|Bristol|Sheffield|Liverpool|Newcastle upon Tyne|Nottingham|Cardiff|Belfast|Glasgow|"
    "Southampton|Leicester|Plymouth|Reading|Derby|Oxford|Cambridge|York|Exeter|Milton Keynes|Lincoln",
    "de": "Berlin|Hamburg|München|Köln|Frankfurt am Main|Stuttgart|Düsseldorf|Leipzig|Dortmund|Essen|Bremen|Dresden|"
    "Hannover|Nürnberg|Duisburg|Bochum|Bielefeld|Bonn|Münster|Mannheim|Karlsruhe|Augsburg",
    "fr": "Paris|Marseille|Lyon|Toulouse|Nice|Nantes|Montpellier|Strasbourg|Bordeaux|Lille|Rennes|Toulon|Reims|"
    "Saint-Étienne|Le Havre|Dijon|Grenoble|Angers|Nîmes|Brest|Limoges|Tours",
    "es": "Madrid|Barcelona|Valencia|Sevilla|Zaragoza|Málaga|Murcia|Palma|Bilbao|Alicante|Córdoba|Valladolid|Vigo|"
    "Gijón|"
    "Granada|Vitoria|Oviedo|Pamplona|Almería|San Sebastián|Burgos|Salamanca",
    "it": "Roma|Milano|Napoli|Torino|Palermo|Genova|Bologna|Firenze|Bari|Catania|Venezia|Verona|Messina|Padova|Trieste|"
    "Brescia|Parma|Modena|Reggio Emilia|Perugia|Livorno|Cagliari",
    "pt": "Lisboa|Porto|Braga|Coimbra|Funchal|Setúbal|Aveiro|Évora|Faro|Leiria|Guimarães|Viseu|Vila Nova de Gaia|"
    "Amadora|"
    "Almada|Barcelos|Santarém|Beja|Bragança|Viana do Castelo|Odivelas|Portimão",
    "nl": "Amsterdam|Rotterdam|Den Haag|Utrecht|Eindhoven|Tilburg|Groningen|Almere|Breda|Nijmegen|Enschede|Haarlem|"
    "Arnhem|"
    "Zaandam|Amersfoort|Apeldoorn|Maastricht|Leiden|Dordrecht|Zwolle|Deventer|Delft",
    "pl": "Warszawa|Kraków|Łódź|Wrocław|Poznań|Gdańsk|Szczecin|Bydgoszcz|Lublin|Białystok|Katowice|Gdynia|"
    "Częstochowa|Radom|"
    "Toruń|Kielce|Gliwice|Zabrze|Bytom|Olsztyn|Bielsko-Biała|Rzeszów",
}

OCCUPATIONS = {
    "en": "Nurse|Baker|Cook|Carpenter|Teacher|Driver|Farmer|Lawyer|Mason|Clerk|Engineer|Cleaner|Shop assistant|Plumber",
    "de": "Lehrer|Bäcker|Koch|Schreiner|Krankenpfleger|Fahrer|Landwirt|Jurist|Maurer|Verkäufer|Ingenieur|Schmied|"
    "Friseur",
    "fr": "Infirmier|Boulanger|Cuisinier|Menuisier|Enseignant|Chauffeur|Agriculteur|Avocat|Maçon|Ingénieur|Vendeur|"
    "Coiffeur",
    "es": "Enfermero|Panadero|Cocinero|Carpintero|Profesor|Conductor|Agricultor|Abogado|Albañil|Ingeniero|Camarero|"
    "Pastor",
    "it": "Infermiere|Panettiere|Cuoco|Falegname|Insegnante|Autista|Agricoltore|Avvocato|Muratore|Ingegnere|"
    "Cameriere|Sarto",
    "pt": "Enfermeiro|Padeiro|Cozinheiro|Carpinteiro|Professor|Motorista|Agricultor|Advogado|Pedreiro|Engenheiro|"
    "Pintor",
    "nl": "Verpleegkundige|Bakker|Kok|Timmerman|Leraar|Chauffeur|Boer|Advocaat|Metselaar|Ingenieur|Kapper|Visser|"
    "Kuiper",
    "pl": "Pielęgniarka|Piekarz|Kucharz|Stolarz|Nauczyciel|Kierowca|Rolnik|Prawnik|Murarz|Inżynier|Sprzedawca|Kowal|"
    "Krawiec",
}

DIAGNOSES = {
    "en": "Type 2 diabetes|Essential hypertension|Asthma|Hip fracture|Pneumonia|Stroke|Gallstones|Migraine|"
    "Heart failure",
    "de": "Diabetes mellitus Typ 2|Bluthochdruck|Asthma bronchiale|Schenkelhalsfraktur|Lungenentzündung|"
    "Schlaganfall|Migräne",
    "fr": "Diabète de type 2|Hypertension|Asthme|Fracture du fémur|Pneumonie|AVC|Calculs biliaires|Migraine|Angine",
    "es": "Diabetes tipo 2|Hipertensión|Asma|Fractura de cadera|Neumonía|Ictus|Cálculos biliares|Migraña|Anemia",
    "it": "Diabete di tipo 2|Ipertensione|Asma|Frattura del femore|Polmonite|Ictus|Calcoli biliari|Emicrania|Anemia",
    "pt": "Diabetes tipo 2|Hipertensão|Asma|Fratura da anca|Pneumonia|AVC|Cálculos biliares|Enxaqueca|Anemia",
    "nl": "Diabetes type 2|Hypertensie|Astma|Heupfractuur|Longontsteking|Beroerte|Galstenen|Migraine|Hartfalen",
    "pl": "Cukrzyca typu 2|Nadciśnienie|Astma|Złamanie biodra|Zapalenie płuc|Udar|Kamica żółciowa|Migrena|"
    "Niedokrwistość",
}

DEPARTMENTS = {
    "en": "Surgery|Cardiology|Paediatrics|Neurology|Intensive care|Emergency",
    "de": "Chirurgie|Kardiologie|Pädiatrie|Neurologie|Intensivstation|Notaufnahme",
    "fr": "Chirurgie|Cardiologie|Pédiatrie|Neurologie|Réanimation|Urgences",
    "es": "Cirugía|Cardiología|Pediatría|Neurología|UCI|Urgencias",
    "it": "Chirurgia|Cardiologia|Pediatria|Neurologia|Terapia intensiva|Pronto soccorso",
    "pt": "Cirurgia|Cardiologia|Pediatria|Neurologia|Cuidados intensivos|Urgência",
    "nl": "Chirurgie|Cardiologie|Kindergeneeskunde|Neurologie|Intensive care|Spoedeisende hulp",
    "pl": "Chirurgia|Kardiologia|Pediatria|Neurologia|Intensywna terapia|Izba przyjęć",
}

INSURERS = {
    "en": "Bupa|Aviva|Vitality|NHS|AXA Health|WPA|Self-pay",
    "de": "AOK Bayern|TK|Barmer|DAK-Gesundheit|IKK classic|BKK Mobil|privat",
    "fr": "CPAM|MGEN|Harmonie Mutuelle|AG2R|Malakoff|MSA|aucune",
    "es": "Sanitas|Adeslas|Asisa|DKV|Mapfre|Seguridad Social|ninguno",
    "it": "UniSalute|Generali|Allianz|SSN|Reale Mutua|Intesa|nessuna",
    "pt": "Médis|Multicare|ADSE|SNS|Fidelidade|Allianz|nenhum",
    "nl": "Zilveren Kruis|VGZ|CZ|Menzis|DSW|ONVZ|onverzekerd",
    "pl": "NFZ|PZU Zdrowie|Luxmed|Medicover|Allianz|Warta|brak",
}

ANSWERS = {
    "en": "Strongly agree|Agree|Neither agree nor disagree|Disagree|Strongly disagree|Don't know",
    "de": "stimme voll zu|stimme eher zu|teils teils|stimme eher nicht zu|stimme gar nicht zu|weiß nicht",
    "fr": "Tout à fait d'accord|Plutôt d'accord|Ni l'un ni l'autre|Plutôt pas d'accord|Pas du tout d'accord|"
    "Ne sait pas",
    "es": "Muy de acuerdo|De acuerdo|Ni de acuerdo ni en desacuerdo|En desacuerdo|Muy en desacuerdo|No sabe",
    "it": "Molto d'accordo|D'accordo|Né l'uno né l'altro|In disaccordo|Molto in disaccordo|Non so",
    "pt": "Concordo totalmente|Concordo|Nem concordo nem discordo|Discordo|Discordo totalmente|Não sei",
    "nl": "Helemaal mee eens|Mee eens|Neutraal|Mee oneens|Helemaal mee oneens|Weet niet",
    "pl": "Zdecydowanie tak|Raczej tak|Trudno powiedzieć|Raczej nie|Zdecydowanie nie|Nie wiem",
}

YES_NO = {
    "en": "yes|no",
    "de": "ja|nein",
    "fr": "oui|non",
    "es": "sí|no",
    "it": "sì|no",
    "pt": "sim|não",
    "nl": "ja|nee",
    "pl": "tak|nie",
}

SEX = {
    "en": "male|female",
    "de": "männlich|weiblich|divers",
    "fr": "homme|femme",
    "es": "hombre|mujer",
    "it": "maschio|femmina",
    "pt": "masculino|feminino",
    "nl": "man|vrouw",
    "pl": "mężczyzna|kobieta",
}

MARITAL = {
    "en": "single|married|divorced|widowed|separated",
    "de": "ledig|verheiratet|geschieden|verwitwet|getrennt lebend",
    "fr": "célibataire|marié|divorcé|veuf|pacsé",
    "es": "soltero|casado|divorciado|viudo|separado",
    "it": "celibe|coniugato|divorziato|vedovo|separato",
    "pt": "solteiro|casado|divorciado|viúvo|união de facto",
    "nl": "ongehuwd|gehuwd|gescheiden|verweduwd|samenwonend",
    "pl": "wolny|żonaty|rozwiedziony|wdowiec|w separacji",
}

EDUCATION = {
    "en": "Primary|GCSE|A levels|Bachelor|Master|Doctorate",
    "de": "Hauptschule|Mittlere Reife|Abitur|Bachelor|Master|Promotion",
    "fr": "Brevet|CAP|Baccalauréat|Licence|Master|Doctorat",
    "es": "Primaria|ESO|Bachillerato|Grado|Máster|Doctorado",
    "it": "Licenza media|Diploma|Laurea triennale|Laurea magistrale|Dottorato",
    "pt": "Básico|Secundário|Licenciatura|Mestrado|Doutoramento",
    "nl": "Basisonderwijs|vmbo|havo|vwo|hbo|wo",
    "pl": "podstawowe|zawodowe|średnie|licencjat|magister|doktorat",
}

COUNTRIES = {
    "en": "United Kingdom|Ireland|India|Pakistan|Poland|Nigeria|Romania",
    "de": "Deutschland|Türkei|Polen|Syrien|Italien|Rumänien|Österreich",
    "fr": "France|Algérie|Maroc|Portugal|Tunisie|Italie|Sénégal",
    "es": "España|Marruecos|Rumanía|Colombia|Venezuela|Ecuador|Italia",
    "it": "Italia|Romania|Albania|Marocco|Cina|Ucraina|Egitto",
    "pt": "Portugal|Brasil|Cabo Verde|Angola|Ucrânia|França|Índia",
    "nl": "Nederland|Turkije|Suriname|Marokko|Duitsland|Polen|Indonesië",
    "pl": "Polska|Ukraina|Białoruś|Niemcy|Gruzja|Wietnam|Rosja",
}

MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "januari februari maart april mei juni juli augustus september oktober november december",
    "pl": "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
}

REMARKS = {  # the few that everybody writes: no free text
    "en": "nothing abnormal|follow-up in 6 weeks|discharged home|transferred|no change",
    "de": "o.B.|Kontrolle in 6 Wochen|nach Hause entlassen|verlegt|unverändert",
    "fr": "RAS|contrôle dans 6 semaines|retour à domicile|transféré|inchangé",
    "es": "sin hallazgos|control en 6 semanas|alta a domicilio|trasladado|sin cambios",
    "it": "nella norma|controllo tra 6 settimane|dimesso a domicilio|trasferito|invariato",
    "pt": "sem alterações|controlo em 6 semanas|alta para o domicílio|transferido|igual",
    "nl": "geen bijzonderheden|controle over 6 weken|naar huis|overgeplaatst|onveranderd",
    "pl": "bez zmian|kontrola za 6 tygodni|wypisany do domu|przeniesiony|stan stabilny",
}

DRUGS = "Metformin|Ramipril|Amlodipin|Simvastatin|Ibuprofen|Pantoprazol|Bisoprolol|Levothyroxin|Insulin glargin|Aspirin"

# Free text: an opening, a middle and an end; {name} is a person, {n} a number.
NOTES = {
    "en": (
        "Patient came with her daughter {name}|Referred by Dr {name}|Seen at home on Tuesday|Phoned Mrs {name} at work|"
        "Arrived by ambulance after a fall|Lives alone since the spring",
        "complains of chest pain for {n} days|walks {n} metres without a stick|lost {n} kg since the last visit|"
        "does not want another operation|takes her tablets irregularly|slept badly the last {n} nights",
        "to be called back next week|letter sent to the family doctor|daughter will collect the results|"
        "asked to come again with the scans|transport ordered for {n} o'clock|no further treatment wanted",
    ),
    "de": (
        "Patientin kam mit Tochter {name}|Überwiesen von Dr. {name}|Hausbesuch am Dienstag|"
        "Anruf bei Frau {name} im Büro|"
        "Nach Sturz mit dem Rettungswagen gebracht|Lebt seit dem Frühjahr allein",
        "klagt seit {n} Tagen über Brustschmerzen|geht {n} Meter ohne Stock|hat {n} kg abgenommen|"
        "möchte keine weitere Operation|nimmt Tabletten unregelmäßig|schlief die letzten {n} Nächte schlecht",
        "Rückruf nächste Woche vereinbart|Brief an den Hausarzt geschickt|Tochter holt die Befunde ab|"
        "soll mit den Bildern wiederkommen|Transport für {n} Uhr bestellt|keine weitere Behandlung gewünscht",
    ),
    "fr": (
        "La patiente est venue avec sa fille {name}|Adressée par le Dr {name}|Vue à domicile mardi|Appel à Mme {name}|"
        "Amenée par le SAMU après une chute|Vit seule depuis le printemps",
        "se plaint de douleurs depuis {n} jours|marche {n} mètres sans canne|a perdu {n} kg|"
        "ne veut pas d'autre opération|prend ses comprimés irrégulièrement|a mal dormi les {n} dernières nuits",
        "à rappeler la semaine prochaine|courrier envoyé au médecin traitant|la fille prendra les résultats|"
        "reviendra avec les clichés|transport commandé pour {n} heures|aucun traitement souhaité",
    ),
    "es": (
        "La paciente vino con su hija {name}|Remitida por el Dr. {name}|Visitada en casa el martes|Llamada a {name}|"
        "Traída en ambulancia tras una caída|Vive sola desde la primavera",
        "refiere dolor desde hace {n} días|camina {n} metros sin bastón|ha perdido {n} kg|"
        "no quiere otra operación|toma las pastillas de forma irregular|durmió mal las últimas {n} noches",
        "llamar la próxima semana|carta enviada al médico de cabecera|la hija recogerá los resultados|"
        "volverá con las imágenes|transporte pedido para las {n}|no desea más tratamiento",
    ),
    "it": (
        "La paziente è venuta con la figlia {name}|Inviata dal dott. {name}|Vista a casa martedì|"
        "Chiamata la sig.ra {name}|"
        "Portata in ambulanza dopo una caduta|Vive sola dalla primavera",
        "lamenta dolore da {n} giorni|cammina {n} metri senza bastone|ha perso {n} kg|"
        "non vuole un'altra operazione|prende le compresse in modo irregolare|ha dormito male le ultime {n} notti",
        "da richiamare la prossima settimana|lettera inviata al medico curante|la figlia ritira i referti|"
        "tornerà con le lastre|trasporto ordinato per le {n}|non desidera altre cure",
    ),
    "pt": (
        "A doente veio com a filha {name}|Enviada pelo Dr. {name}|Vista em casa na terça|Telefonema à D. {name}|"
        "Trazida de ambulância após queda|Vive sozinha desde a primavera",
        "queixa-se de dor há {n} dias|anda {n} metros sem bengala|perdeu {n} kg|"
        "não quer outra operação|toma os comprimidos de forma irregular|dormiu mal nas últimas {n} noites",
        "ligar na próxima semana|carta enviada ao médico de família|a filha vem buscar os resultados|"
        "volta com as imagens|transporte pedido para as {n} horas|não deseja mais tratamento",
    ),
    "nl": (
        "Patiënte kwam met dochter {name}|Verwezen door dr. {name}|Huisbezoek op dinsdag|Gebeld met mevrouw {name}|"
        "Na een val met de ambulance gebracht|Woont sinds het voorjaar alleen",
        "klaagt al {n} dagen over pijn op de borst|loopt {n} meter zonder stok|is {n} kg afgevallen|"
        "wil niet nog een operatie|neemt de tabletten onregelmatig|sliep de laatste {n} nachten slecht",
        "volgende week terugbellen|brief naar de huisarts gestuurd|dochter haalt de uitslagen op|"
        "komt terug met de foto's|vervoer besteld voor {n} uur|geen verdere behandeling gewenst",
    ),
    "pl": (
        "Pacjentka przyszła z córką {name}|Skierowana przez dr {name}|Wizyta domowa we wtorek|Telefon do pani {name}|"
        "Przywieziona karetką po upadku|Od wiosny mieszka sama",
        "skarży się na ból od {n} dni|chodzi {n} metrów bez laski|schudła {n} kg|"
        "nie chce kolejnej operacji|nieregularnie bierze tabletki|źle spała przez ostatnie {n} nocy",
        "oddzwonić w przyszłym tygodniu|list wysłany do lekarza rodzinnego|córka odbierze wyniki|"
        "przyjdzie ze zdjęciami|transport zamówiony na godzinę {n}|nie chce dalszego leczenia",
    ),
}

UNKNOWN = {
    "en": "unknown",
    "de": "k.A.",
    "fr": "inconnu",
    "es": "desconocido",
    "it": "sconosciuto",
    "pt": "desconhecido",
    "nl": "onbekend",
    "pl": "brak danych",
}
