"""Words for made tables in eight languages, written by hand.

Names are among the most frequent in the census lists of Germany, France, Spain, Italy, Portugal, the Netherlands,
Poland and the United Kingdom. The detector's own list comes from elsewhere, so that finding these is no memory test.
"""

from __future__ import annotations

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl")

# Names of columns that say what they hold, in the order of LANGUAGES.
HEADERS = {
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

FIRST_NAMES = {
    "en": "Oliver Amelia George Isla Harry Olivia Noah Ava Jack Emily Charlie Sophie Thomas Grace James Margaret "
    "William Susan Robert Patricia David Linda Michael Barbara Christopher Jean Alfie Freya Theodore Poppy "
    "Archie Evie Leo Florence Arthur Willow Oscar Rosie Henry Daisy Joshua Phoebe Samuel Alice Edward Maisie "
    "Benjamin Harriet Daniel Imogen Alexander Eleanor Joseph Martha Lucas Beatrice Max Nancy Mohammed Zara "
    "Ethan Abigail Finley Hannah Callum Megan Kieran Bethany Gareth Rhiannon Angus Morag Nigel Maureen Trevor "
    "Doreen Keith Sheila Graham Beryl Clive Hazel Derek Gillian Stuart Lorraine Neil Tracey Wayne Debbie "
    "Darren Kelly Craig Stacey Lee Natasha Gavin Shannon Declan Siobhan",
    "de": "Peter Ursula Wolfgang Monika Michael Petra Klaus Sabine Thomas Renate Manfred Helga Helmut Karin Jürgen "
    "Brigitte Uwe Ingrid Heinz Erika Stefan Andrea Günter Gisela Leon Mia Ben Emma Paul Hannah Finn Lina Noah "
    "Lea Luis Marie Jonas Sophie Felix Lena Maximilian Emilia Henry Clara Elias Anna Moritz Ida Anton Frieda "
    "Karl Greta Jakob Mathilda Fritz Lotte Horst Hannelore Dieter Christa Gerhard Elfriede Werner Waltraud "
    "Rolf Hildegard Siegfried Gertrud Reinhard Irmgard Bernd Edeltraud Joachim Rosemarie Norbert Anneliese "
    "Rainer Margarete Volker Heike Torsten Silke Andreas Kerstin Frank Anja Matthias Katrin Jens Nadine Sven "
    "Tanja Dirk Sandra Kai Melanie Tobias Jasmin Dennis Saskia",
    "fr": "Jean Marie Pierre Nathalie Michel Isabelle André Catherine Philippe Monique Alain Sylvie Bernard "
    "Françoise Nicolas Martine Christophe Céline Laurent Chloé Lucas Manon Hugo Léa Gérard Jacqueline Gabriel "
    "Jade Raphaël Louise Arthur Alice Jules Ambre Adam Rose Maël Romane Ethan Lina Nathan Zoé Théo Camille "
    "Enzo Inès Mathis Clara Clément Juliette Antoine Pauline Maxime Marion Romain Laura Julien Émilie "
    "Thibault Aurélie Sébastien Virginie Fabrice Sandrine Stéphane Véronique Thierry Corinne Didier Brigitte "
    "Pascal Évelyne Gilles Josette Serge Odette Roger Simone Marcel Paulette Lucien Ginette Fernand Yvette "
    "René Huguette Guy Denise Yves Colette Raymond Suzanne Mohamed Fatima Karim Samira Mehdi Yasmine Bruno "
    "Élodie Kévin Mélanie",
    "es": "Antonio Carmen Manuel Josefa José Isabel Francisco Dolores Juan Pilar Javier Teresa Jesús Cristina "
    "Carlos Lucía Miguel Ángeles Rafael Mercedes Alejandro Concepción Pablo Rosario Sergio Paula Hugo Martina "
    "Mateo Sofía Martín Valeria Leo Julia Daniel Daniela Lucas Alba Álvaro Noa Adrián Carla David Sara Mario "
    "Emma Diego Claudia Marcos Laia Iker Aitana Rubén Rocío Iván Silvia Óscar Patricia Raúl Nuria Alberto "
    "Beatriz Fernando Raquel Luis Marta Jorge Elena Ángel Laura Pedro Ana Vicente Encarnación Ramón Antonia "
    "Joaquín Francisca Andrés Manuela Enrique Inmaculada Emilio Montserrat Julián Yolanda Gonzalo Lorena "
    "Ignacio Esther Santiago Susana Eduardo Margarita Jaime Verónica Salvador Amparo Agustín Milagros "
    "Gregorio Asunción",
    "it": "Giuseppe Maria Giovanni Anna Antonio Rosa Mario Angela Luigi Giovanna Francesco Teresa Angelo Lucia "
    "Vincenzo Carmela Pietro Caterina Salvatore Francesca Carlo Antonietta Domenico Concetta Alessandro "
    "Giulia Leonardo Sofia Tommaso Aurora Edoardo Ginevra Mattia Alice Gabriele Beatrice Riccardo Emma Andrea "
    "Giorgia Diego Vittoria Nicolò Matilde Davide Greta Federico Chiara Lorenzo Sara Marco Elisa Luca "
    "Valentina Stefano Silvia Roberto Paola Paolo Laura Massimo Daniela Maurizio Patrizia Claudio Barbara "
    "Fabio Cristina Sergio Ornella Renato Graziella Franco Luisa Bruno Rita Enrico Assunta Gino Iolanda Aldo "
    "Ines Walter Ivana Umberto Norma Gianluca Serena Simone Martina Emanuele Federica Raffaele Annamaria "
    "Gennaro Immacolata Ciro Nunzia",
    "pt": "João Maria Francisco Ana Rodrigo Leonor Martim Matilde Santiago Beatriz Tomás Mariana Afonso Carolina "
    "Duarte Inês Gonçalo Margarida Guilherme Joana Pedro Lurdes Joaquim Fátima Rui Conceição Miguel Sofia "
    "Gabriel Lara Lourenço Alice Vicente Clara Dinis Mafalda Salvador Íris Simão Diana Diogo Bianca Tiago "
    "Rita António Teresa José Rosa Manuel Isabel Carlos Helena Luís Paula Jorge Cristina Paulo Sandra "
    "Fernando Graça Vítor Sónia Nuno Susana Ricardo Patrícia Bruno Cláudia Hugo Filipa Sérgio Marta André "
    "Andreia Filipe Vera Daniel Raquel Marco Tânia Hélder Célia Armando Deolinda Américo Albertina Fernanda "
    "Adelino Natália Domingos Idalina Alberto Emília Augusto Olinda Henrique Glória Abílio Piedade",
    "nl": "Johannes Maria Jan Johanna Cornelis Anna Hendrik Wilhelmina Willem Cornelia Pieter Elisabeth Gerrit "
    "Hendrika Daan Sanne Sem Femke Bram Lotte Thijs Anouk Kees Truus Jeroen Marloes Lucas Julia Levi Mila "
    "Finn Tess Milan Zoë Luuk Saar Noud Fenna Mees Lieke Teun Sophie Jesse Eva Ruben Noor Lars Isa Stijn "
    "Fleur Gijs Roos Sven Iris Koen Naomi Niels Kim Mark Manon Jasper Esther Bart Ingrid Wouter Monique "
    "Marcel Petra Erik Yvonne Arjan Mirjam Rob Annemarie Henk Ria Piet Tineke Joop Bep Wim Corrie Klaas "
    "Geertje Dirk Jannie Sjaak Nel Aad Greet Theo Toos Frits Mieke Harm Aaltje Roelof Trijntje Mohamed Fatima "
    "Youssef Samira",
    "pl": "Jan Anna Stanisław Maria Andrzej Katarzyna Józef Małgorzata Tadeusz Agnieszka Jerzy Krystyna Zbigniew "
    "Barbara Krzysztof Ewa Henryk Elżbieta Ryszard Zofia Kazimierz Teresa Marek Magdalena Jakub Zuzanna "
    "Antoni Julia Szymon Maja Aleksander Hanna Franciszek Lena Filip Alicja Mikołaj Oliwia Wojciech Amelia "
    "Kacper Pola Adam Laura Michał Wiktoria Marcel Nadia Bartosz Natalia Dawid Karolina Mateusz Aleksandra "
    "Piotr Joanna Tomasz Monika Paweł Beata Marcin Dorota Grzegorz Renata Łukasz Iwona Rafał Jolanta Robert "
    "Bożena Dariusz Danuta Mariusz Halina Jacek Irena Sławomir Grażyna Mirosław Jadwiga Bogdan Wanda Czesław "
    "Stanisława Wiesław Genowefa Edward Helena Zdzisław Kazimiera Leszek Urszula Artur Sylwia Sebastian Edyta "
    "Przemysław Justyna",
}

LAST_NAMES = {
    "en": "Smith Jones Williams Taylor Brown Davies Evans Wilson Thomas Johnson Roberts Robinson Thompson Wright "
    "Walker White Edwards Hughes Green Hall Lewis Harris Clarke Patel Jackson Wood Turner Martin Cooper Hill "
    "Ward Moore Clark Baker Harrison King Morris Allen Khan Scott Watson Parker James Bennett Young Phillips "
    "Richardson Mitchell Bailey Carter Shaw Bell Collins Murphy Kelly Begum Hussain Marshall Ahmed Barker "
    "Fletcher Ellis Whittaker Holloway Pemberton Ashworth Entwistle Blenkinsop Thistlethwaite Ramsbottom "
    "Okafor MacDonald Campbell O'Brien O'Sullivan Llewellyn Prosser Cadwallader",
    "de": "Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer Koch Bauer Richter "
    "Klein Wolf Schröder Neumann Schwarz Zimmermann Braun Krüger Hofmann Hartmann Lange Werner Krause Lehmann "
    "Köhler Maier Herrmann König Walter Mayer Huber Kaiser Fuchs Peters Lang Scholz Möller Weiß Jung Hahn "
    "Schubert Vogel Friedrich Keller Günther Frank Berger Winkler Roth Beck Lorenz Baumann Franke Albrecht "
    "Schuster Simon Ludwig Böhm Winter Kraus Martin Schumacher Krämer Vogt Stein Jäger Otto Sommer Groß "
    "Seidel Heinrich Brandt Haas Schreiber Graf Dietrich Ziegler Kuhn Pohl Engel Horn Busch Bergmann Voigt "
    "Sauer Arnold Wolff Pfeiffer Obermayr Hinterhuber Kwiatkowski Yildiz",
    "fr": "Martin Bernard Thomas Petit Robert Richard Durand Dubois Moreau Laurent Simon Michel Lefebvre Leroy Roux "
    "David Bertrand Morel Fournier Girard Bonnet Dupont Lambert Fontaine Rousseau Vincent Muller Lefevre "
    "Faure Mercier Blanc Guérin Boyer Garnier Chevalier François Legrand Gauthier Garcia Perrin Robin Clément "
    "Morin Nicolas Henry Roussel Mathieu Gautier Masson Marchand Duval Denis Dumont Marie Lemaire Noël Meyer "
    "Dufour Meunier Brun Blanchard Giraud Joly Rivière Lucas Brunet Gaillard Barbier Arnaud Martinez Gérard "
    "Roche Renard Schmitt Roy Leroux Colin Vidal Caron Picard Roger Fabre Aubert Lemoine Renaud Dumas Lacroix "
    "Olivier Philippe Bourgeois Pierre Benoît Rey Leclerc Payet Rolland Le Guen",
    "es": "García Rodríguez González Fernández López Martínez Sánchez Pérez Gómez Martín Jiménez Hernández Ruiz "
    "Díaz Moreno Muñoz Álvarez Romero Gutiérrez Alonso Navarro Torres Domínguez Ramos Vázquez Ramírez Gil "
    "Serrano Blanco Molina Morales Suárez Ortega Delgado Castro Ortiz Rubio Marín Sanz Núñez Iglesias Medina "
    "Garrido Cortés Castillo Santos Lozano Guerrero Cano Prieto Méndez Cruz Calvo Gallego Herrera Márquez "
    "León Vidal Peña Flores Cabrera Campos Vega Fuentes Carrasco Diez Reyes Caballero Nieto Aguilar Pascual "
    "Santana Herrero Montero Lorenzo Hidalgo Giménez Ibáñez Ferrer Durán Santiago Benítez Vargas Mora Vicente "
    "Arias Carmona Crespo Román Pastor Soto Sáez Velasco Moya Soler Parra Esteban Bravo Gallardo Etxeberria",
    "it": "Rossi Russo Ferrari Esposito Bianchi Romano Colombo Bruno Ricci Greco Marino Gallo Costa Conti Mancini "
    "Giordano Rizzo Lombardi Barbieri Moretti Fontana Caruso Mariani Ferrara Santoro Rinaldi Leone Longo "
    "Galli Martini Martinelli Serra Conte Vitale Villa Marchetti Bianco Gentile Coppola Parisi Lombardo Monti "
    "Fabbri Pellegrini Palumbo Sanna Farina Rizzi Cattaneo Morelli Amato Silvestri Mazza Testa Grassi "
    "Pellegrino Carbone Giuliani Benedetti Barone Rossetti Caputo Montanari Guerra Palmieri Bernardi Martino "
    "Fiore Ferri Bellini Basile Riva Donati Piras Vitali Battaglia Sartori Neri Costantini Milani Pagano "
    "Ruggiero Sorrentino Orlando Damico Negri Zanella Squarzoni",
    "pt": "Silva Santos Ferreira Pereira Oliveira Costa Rodrigues Martins Jesus Sousa Fernandes Gonçalves Gomes "
    "Lopes Marques Alves Almeida Ribeiro Pinto Carvalho Teixeira Moreira Correia Mendes Nunes Soares Vieira "
    "Monteiro Cardoso Rocha Raposo Neves Coelho Cruz Cunha Pires Ramos Reis Simões Antunes Matos Fonseca "
    "Machado Araújo Barbosa Tavares Lourenço Castro Figueiredo Azevedo Freitas Magalhães Henriques Lima "
    "Guerreiro Batista Pinheiro Faria Miranda Barros Morais Nogueira Esteves Anjos Baptista Campos Mota "
    "Andrade Brito Sá Nascimento Leite Abreu Borges Melo Vaz Pinho Vicente Gaspar Assunção Maia Moura Valente "
    "Carneiro Garcia Neto Branco Loureiro Mourato",
    "nl": "Jansen Visser Smit Meijer Mulder Bakker Janssen Peters Hendriks Dekker Brouwer Dijkstra Smits Koster "
    "Prins Postma Kuiper Bosman Huisman Vermeulen Schouten Willems Hoekstra Kok Verhoeven Peeters Veenstra "
    "Bosch Vos Molenaar Scholten Kramer Maas Verbeek Wolters Martens Bos Driessen Blom Groen Koning "
    "Timmermans Sanders Hermans Boer Bouwman Gerritsen Kuijpers Hofman Wagenaar Schipper Kramers Jonker Kroon "
    "Groot Boersma Mol Evers Kosters Theunissen Klein Veldman Zwart Rietveld Terpstra Dijkhuizen Zijlstra "
    "Sikkema Hulsbosch",
    "pl": "Nowak Kowalski Wiśniewski Wójcik Kowalczyk Kamiński Lewandowski Zieliński Szymański Woźniak Dąbrowski "
    "Kozłowski Jankowski Mazur Wojciechowski Kwiatkowski Krawczyk Kaczmarek Piotrowski Grabowski Zając "
    "Pawłowski Michalski Król Wieczorek Jabłoński Wróbel Nowakowski Majewski Olszewski Stępień Malinowski "
    "Jaworski Adamczyk Dudek Nowicki Pawlak Górski Witkowski Walczak Sikora Baran Rutkowski Michalak Szewczyk "
    "Ostrowski Tomaszewski Pietrzak Zalewski Wróblewski Marciniak Jasiński Zawadzki Bąk Jakubowski Sadowski "
    "Duda Włodarczyk Chmielewski Borkowski Wilk Sokołowski Szczepański Sawicki Kucharski Lis Maciejewski "
    "Kubiak Kalinowski Mazurek Wysocki Czarnecki Kołodziej Urbański Kaźmierczak Sobczak",
}

FOREIGN_NAMES = {
    "Vietnamese": (
        "Nguyen Tran Le Pham Huynh Hoang Phan Vu Vo Dang Bui Do Ho Ngo Duong Ly",
        "Van Thi Huu Duc Minh Ngoc Thanh Quang",
        "Anh Tuan Hung Dung Linh Trang Huong Lan Phuong Thao Nam Khoa Bao Long Mai Hoa Quynh Vy",
    ),
    "Turkish": (
        "Yılmaz Kaya Demir Çelik Şahin Yıldız Yıldırım Öztürk Aydın Özdemir Arslan Doğan Kılıç Aslan Çetin Kara "
        "Koç Kurt Özkan Şimşek",
        "",
        "Mehmet Mustafa Ahmet Hüseyin Hasan İbrahim Osman Yusuf Murat Ömer Fatma Ayşe Emine Hatice Zeynep Elif "
        "Meryem Şerife Merve Büşra Gülsüm Emre",
    ),
    "Nigerian": (
        "Okafor Adeyemi Okonkwo Balogun Eze Abubakar Ogunleye Nwosu Adebayo Chukwu Bello Olawale Ibrahim "
        "Onyekachi Afolabi Nwachukwu Obi Akintola",
        "",
        "Chinedu Ngozi Oluwaseun Temitope Emeka Adaeze Babatunde Folake Ifeanyi Chiamaka Uchenna Amaka Tunde "
        "Yetunde Obinna Nkechi Segun Halima Kelechi Ebele",
    ),
    "Polish": (
        "Wiśniewska Wójcik Kowalczyk Kamińska Lewandowska Zielińska Szymańska Woźniak Dąbrowska Kozłowska Mazur "
        "Jankowska Krawczyk Piotrowska Grabowska Pawłowska Szczepaniak Brzęczyszczykiewicz",
        "",
        "Agnieszka Małgorzata Katarzyna Krzysztof Stanisław Tomasz Zbigniew Bożena Grażyna Jarosław Mirosława "
        "Wojciech Sławomir Wiesława Łukasz Żaneta",
    ),
    "Tamil": (
        "Subramaniam Krishnamurthy Venkatesan Rajagopal Sivakumar Balasubramanian Thirunavukkarasu Murugesan "
        "Palanisamy Chandrasekaran",
        "",
        "Lakshmi Karthik Meenakshi Senthil Priyadharshini Arumugam Kavitha Saravanan Deepa Vignesh Anitha Prakash "
        "Revathi Dinesh",
    ),
}
"""Family, middle and given names; people with such names live everywhere."""

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

# Texts that many rows share.
PHRASES = {
    "en": "no complaints|nothing abnormal|follow-up in 6 weeks|discharged home|transferred|no change|see letter",
    "de": "o.B.|beschwerdefrei|Kontrolle in 6 Wochen|nach Hause entlassen|verlegt|unverändert|siehe Arztbrief",
    "fr": "RAS|sans plainte|contrôle dans 6 semaines|retour à domicile|transféré|inchangé|voir courrier",
    "es": "sin hallazgos|sin molestias|control en 6 semanas|alta a domicilio|trasladado|sin cambios|ver informe|apto",
    "it": "nella norma|nessun disturbo|controllo tra 6 settimane|dimesso a domicilio|trasferito|invariato|vedi lettera",
    "pt": "sem alterações|sem queixas|controlo em 6 semanas|alta para o domicílio|transferido|igual|ver carta|apto",
    "nl": "geen bijzonderheden|geen klachten|controle over 6 weken|naar huis|overgeplaatst|onveranderd|zie brief",
    "pl": "bez zmian|bez dolegliwości|kontrola za 6 tygodni|wypisany do domu|przeniesiony|stan stabilny|patrz list",
}

# Short sentences of a remark that name somebody or something: {x}.
SENTENCES = {
    "en": "call back: {x}|according to {x}|now {x}|letter to {x}|asked {x} again|{x} noted|see {x} (new)",
    "de": "Rückruf: {x}|laut {x}|jetzt {x}|Brief an {x}|nochmals {x} gefragt|{x} notiert|siehe {x} (neu)",
    "fr": "à rappeler : {x}|selon {x}|désormais {x}|courrier pour {x}|redemander {x}|{x} noté|voir {x} (nouveau)",
    "es": "llamar: {x}|según {x}|ahora {x}|carta para {x}|preguntar de nuevo {x}|{x} anotado|ver {x} (nuevo)",
    "it": "richiamare: {x}|secondo {x}|ora {x}|lettera per {x}|chiedere di nuovo {x}|{x} annotato|vedi {x} (nuovo)",
    "pt": "ligar: {x}|segundo {x}|agora {x}|carta para {x}|perguntar de novo {x}|{x} anotado|ver {x} (novo)",
    "nl": "terugbellen: {x}|volgens {x}|nu {x}|brief naar {x}|opnieuw {x} gevraagd|{x} genoteerd|zie {x} (nieuw)",
    "pl": "oddzwonić: {x}|według {x}|teraz {x}|list do {x}|ponownie pytać {x}|{x} zapisano|patrz {x} (nowe)",
}

# Headers that promise something harmless.
MISLEADING = {
    "en": "diagnosis|employee|disease|status|medication|occupation",
    "de": "Diagnose|Mitarbeiter|Krankheit|Status|Medikament|Beruf",
    "fr": "diagnostic|employé|maladie|statut|médicament|profession",
    "es": "diagnóstico|empleado|enfermedad|estado|medicamento|profesión",
    "it": "diagnosi|dipendente|malattia|stato|farmaco|professione",
    "pt": "diagnóstico|funcionário|doença|estado|medicamento|profissão",
    "nl": "diagnose|medewerker|ziekte|status|medicijn|beroep",
    "pl": "rozpoznanie|pracownik|choroba|status|lek|zawód",
}

NEUTRAL = {
    "en": "remark|col7|info",
    "de": "Bemerkung|col7|info",
    "fr": "remarque|col7|info",
    "es": "observación|col7|info",
    "it": "annotazione|col7|info",
    "pt": "observação|col7|info",
    "nl": "opmerking|col7|info",
    "pl": "uwaga|col7|info",
}

# Where people live, without a word for a street.
PLACES_TO_LIVE = {
    "en": "{n} The Green|{n} Broadway|Rose Cottage, {n} Little Barton|{n} Kingsmead|The Old Rectory {m}",
    "de": "Am Anger {n}|Unter den Eichen {n}|Im Winkel {n}|An der Alten Mühle {n}a|Hinter dem Dorf {m}|Kirchblick {n}",
    "fr": "Le Bourg {n}|Lieu-dit Les Granges {m}|{n} Les Hauts de Vernay|La Croix Blanche {m}|Résidence Bellevue {n}",
    "es": "Los Olivos {n}, {m}º A|El Mirador {n}|Urb. Las Lomas {n}|La Dehesa {n}, {m}º C|Els Pins {n}",
    "it": "Località Poggio {n}|Borgo San Lorenzo {m}|Contrada Fiumara {n}|Cascina Nuova {m}|Frazione Monte {n}",
    "pt": "Quinta do Lago {n}|Lugar da Igreja {m}|Urbanização Vale Verde, lote {n}|Casal Novo {n}|Monte da Vinha {m}",
    "nl": "De Akkers {n}|Het Rietveld {n}|Achterom {n}|Kleine Houtweide {m}|Ruimzicht {n} {m}hg",
    "pl": "Stara Wieś {n}|Nowe Miasto {m}|Kolonia Leśna {n}|Wólka {n}/{m}|Dąbrowa Górna {n}",
}

# What people call their own devices: {x} is a first name.
DEVICES = {
    "en": "{x}'s iPhone|{x}'s iPad|Galaxy S21 of {x}|{x}'s MacBook Pro|{x}-laptop",
    "de": "iPhone von {x}|{x}s iPad|Galaxy S21 von {x}|MacBook von {x}|Laptop-{x}",
    "fr": "iPhone de {x}|iPad de {x}|Galaxy S21 de {x}|MacBook de {x}|PC-{x}",
    "es": "iPhone de {x}|iPad de {x}|Galaxy S21 de {x}|MacBook de {x}|portátil-{x}",
    "it": "iPhone di {x}|iPad di {x}|Galaxy S21 di {x}|MacBook di {x}|PC-{x}",
    "pt": "iPhone de {x}|iPad de {x}|Galaxy S21 de {x}|MacBook de {x}|PC-{x}",
    "nl": "iPhone van {x}|iPad van {x}|Galaxy S21 van {x}|MacBook van {x}|laptop-{x}",
    "pl": "iPhone – {x}|iPad ({x})|Galaxy S21 {x}|MacBook {x}|laptop-{x}",
}
