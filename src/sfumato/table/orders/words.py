"""Scales of words with a well-known order, in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish.

A scale is a text of its levels from lowest to highest, separated by ``<``; spellings of one level are separated by
``/``. Words are compared in lower case, without accents, and with one blank for all that is neither letter nor digit.
Left out on purpose: words whose order depends on who asks (seasons, smoking status, yes/no/maybe), and single letters
that are codes more often than grades (A, B, C).
"""

from __future__ import annotations

import re
from functools import cache

from sfumato.table.column_names import folded

_NOT_A_WORD = re.compile(r"[\W_]+")

_LEVELS = """
none / zero < minimal / negligible < very low < low < medium / moderate / mid / middle / average / intermediate < high < very high / extremely high
very low / extremely low < low / below normal < normal < high / above normal / elevated < very high / extremely high
sehr niedrig / sehr gering < niedrig / gering / tief < mittel / mäßig / mittelmäßig / durchschnittlich < hoch < sehr hoch
très faible / très bas / très basse < faible / bas / basse < moyen / moyenne / modéré / modérée < élevé / élevée / haut / haute / fort / forte < très élevé / très élevée / très fort / très forte
muy bajo / muy baja < bajo / baja < medio / media / moderado / moderada < alto / alta / elevado / elevada < muy alto / muy alta
molto basso / molto bassa < basso / bassa < medio / media / moderato / moderata < alto / alta / elevato / elevata < molto alto / molto alta
muito baixo / muito baixa < baixo / baixa < médio / média / moderado / moderada < alto / alta / elevado / elevada < muito alto / muito alta
zeer laag / heel laag < laag / lage < gemiddeld / matig / middel < hoog / hoge < zeer hoog / heel hoog
bardzo niski / bardzo niska / bardzo niskie < niski / niska / niskie < średni / średnia / średnie / umiarkowany / umiarkowana / umiarkowane < wysoki / wysoka / wysokie < bardzo wysoki / bardzo wysoka / bardzo wysokie
low income < lower middle income < middle income < upper middle income < high income
lower / lower class < lower middle / lower middle class < middle / middle class < upper middle / upper middle class < upper / upper class
"""
_SEVERITY = """
none / absent < minimal / trace < mild / slight < moderate < severe < very severe / critical / life threatening < fatal
none < minor < moderate < serious < severe < critical < maximal / fatal
keine / kein < leicht / gering / mild < mittel / mäßig / mittelschwer / moderat < schwer / stark < sehr schwer / sehr stark
aucun / aucune / absent / absente < léger / légère < modéré / modérée < sévère / grave < très sévère / très grave
ninguno / ninguna / ausente < leve < moderado / moderada < grave / severo / severa < muy grave / muy severo
nessuno / nessuna / assente < lieve < moderato / moderata < grave / severo / severa < molto grave
nenhum / nenhuma / ausente < leve / ligeiro / ligeira < moderado / moderada < grave / severo / severa < muito grave
geen < licht / mild < matig < ernstig < zeer ernstig
brak / żaden < łagodny / łagodna / łagodne / lekki / lekka / lekkie < umiarkowany / umiarkowana / umiarkowane < ciężki / ciężka / ciężkie < bardzo ciężki / bardzo ciężka / bardzo ciężkie
routine / elective / non urgent / nonurgent < semi urgent / less urgent < urgent < very urgent / emergency / emergent < immediate / resuscitation
severely underweight < underweight < normal / normal weight / healthy weight < overweight / pre obese < obese / obesity < severely obese / morbidly obese
"""
_FREQUENCY = """
never < almost never / hardly ever < rarely / seldom < sometimes / occasionally < often / frequently < very often < always
never < rarely / seldom < sometimes / occasionally < often / frequently < usually / most of the time < almost always / nearly always < always
never < less than monthly < yearly / annually / once a year < quarterly < monthly / once a month < biweekly / fortnightly < weekly / once a week < daily / every day / once a day / daily or almost daily < hourly
nie / niemals < fast nie < selten < manchmal / gelegentlich / ab und zu < oft / häufig < sehr oft / sehr häufig < immer
jamais < presque jamais < rarement < parfois / quelquefois / de temps en temps < souvent < très souvent < toujours
nunca < casi nunca < raramente / rara vez < a veces / algunas veces < a menudo / frecuentemente / con frecuencia < muy a menudo / casi siempre < siempre
mai < quasi mai < raramente < a volte / qualche volta / talvolta < spesso < molto spesso / quasi sempre < sempre
nunca < quase nunca < raramente < às vezes / por vezes / algumas vezes < frequentemente / muitas vezes < quase sempre < sempre
nooit < bijna nooit < zelden < soms / af en toe < vaak < zeer vaak / bijna altijd < altijd
nigdy < prawie nigdy < rzadko < czasami / czasem / niekiedy < często < bardzo często / prawie zawsze < zawsze
"""
_OPINIONS = """
strongly disagree / disagree strongly / completely disagree / totally disagree < disagree < somewhat disagree / slightly disagree < neutral / neither agree nor disagree / undecided / neither < somewhat agree / slightly agree < agree < strongly agree / agree strongly / completely agree / totally agree
stimme überhaupt nicht zu / stimme gar nicht zu / trifft gar nicht zu / trifft überhaupt nicht zu < stimme nicht zu / stimme eher nicht zu / trifft nicht zu / trifft eher nicht zu < neutral / teils teils / weder noch / unentschieden < stimme zu / stimme eher zu / trifft zu / trifft eher zu < stimme voll zu / stimme voll und ganz zu / trifft voll zu / trifft voll und ganz zu
pas du tout d'accord < pas d'accord / plutôt pas d'accord < neutre / ni d'accord ni pas d'accord / sans opinion < d'accord / plutôt d'accord < tout à fait d'accord
totalmente en desacuerdo / muy en desacuerdo < en desacuerdo < neutral / ni de acuerdo ni en desacuerdo < de acuerdo < totalmente de acuerdo / muy de acuerdo
totalmente in disaccordo / fortemente in disaccordo < in disaccordo < neutrale / né d'accordo né in disaccordo < d'accordo < totalmente d'accordo / fortemente d'accordo
discordo totalmente / discordo fortemente < discordo < neutro / nem concordo nem discordo < concordo < concordo totalmente / concordo fortemente
helemaal mee oneens / helemaal niet mee eens / zeer mee oneens < mee oneens / niet mee eens / oneens < neutraal / niet mee eens niet mee oneens < mee eens / eens < helemaal mee eens / zeer mee eens
zdecydowanie się nie zgadzam / zdecydowanie nie < nie zgadzam się / raczej się nie zgadzam / raczej nie < nie mam zdania / trudno powiedzieć / ani tak ani nie < zgadzam się / raczej się zgadzam / raczej tak < zdecydowanie się zgadzam / zdecydowanie tak
very dissatisfied / very unsatisfied / extremely dissatisfied < dissatisfied / unsatisfied < somewhat dissatisfied < neutral / neither satisfied nor dissatisfied < somewhat satisfied < satisfied < very satisfied / extremely satisfied
sehr unzufrieden < unzufrieden / eher unzufrieden < neutral / teils teils / weder noch < zufrieden / eher zufrieden < sehr zufrieden
très insatisfait / très insatisfaite < insatisfait / insatisfaite < neutre < satisfait / satisfaite < très satisfait / très satisfaite
muy insatisfecho / muy insatisfecha < insatisfecho / insatisfecha < neutral < satisfecho / satisfecha < muy satisfecho / muy satisfecha
very unlikely / extremely unlikely < unlikely < neutral / neither likely nor unlikely < likely < very likely / extremely likely
not important / not at all important / unimportant < slightly important < moderately important / somewhat important < important < very important < extremely important
not at all < a little / a little bit / slightly < somewhat / moderately < quite a bit / quite < very / very much / a lot < extremely
much worse < worse / slightly worse < same / about the same / unchanged / no change < better / slightly better < much better
decreased / down / decrease < steady / stable / unchanged / same / no change < increased / up / increase
very liberal / extremely liberal < liberal < slightly liberal < moderate / middle of the road < slightly conservative < conservative < very conservative / extremely conservative
"""
_QUALITY = """
very poor / very bad / terrible < poor / bad < fair / average / acceptable / ok / okay < good < very good < excellent / outstanding
insufficient / unsatisfactory < sufficient < satisfactory < good < very good < excellent / outstanding
sehr schlecht < schlecht < mäßig / mittelmäßig / mittel < gut < sehr gut < ausgezeichnet / exzellent
ungenügend < mangelhaft < ausreichend < befriedigend < gut < sehr gut
très mauvais / très mauvaise < mauvais / mauvaise < passable / moyen / moyenne < assez bon / assez bonne / assez bien < bon / bonne / bien < très bon / très bonne / très bien < excellent / excellente
muy malo / muy mala < malo / mala < regular / aceptable < bueno / buena < muy bueno / muy buena < excelente
insuficiente < suficiente < bien < notable < sobresaliente
pessimo / pessima / molto scarso < scarso / scarsa / cattivo / cattiva < sufficiente / discreto / discreta < buono / buona < molto buono / molto buona < ottimo / ottima / eccellente
muito mau / muito má / péssimo / péssima / muito ruim < mau / má / ruim < razoável / regular < bom / boa < muito bom / muito boa < excelente / ótimo / ótima
zeer slecht < slecht < matig / redelijk / voldoende < goed < zeer goed < uitstekend
bardzo zły / bardzo zła / bardzo złe / bardzo źle < zły / zła / złe / źle < przeciętny / przeciętna / przeciętne / średni / średnia < dobry / dobra / dobre / dobrze < bardzo dobry / bardzo dobra / bardzo dobre / bardzo dobrze < doskonały / doskonała / doskonałe
bronze < silver < gold < platinum < diamond
"""
_SIZES = """
tiny / very small / extra small < small < medium / mid / medium sized < large / big < very large / extra large / huge
xxxs / 3xs < xxs / 2xs < xs < s < m < l < xl < xxl / 2xl < xxxl / 3xl < xxxxl / 4xl < 5xl
sehr klein < klein < mittel / mittelgroß < groß < sehr groß
très petit / très petite < petit / petite < moyen / moyenne < grand / grande < très grand / très grande
muy pequeño / muy pequeña < pequeño / pequeña < mediano / mediana < grande < muy grande
molto piccolo / molto piccola < piccolo / piccola < medio / media < grande < molto grande
muito pequeno / muito pequena < pequeno / pequena < médio / média < grande < muito grande
zeer klein < klein < middelgroot / gemiddeld < groot < zeer groot
bardzo mały / bardzo mała / bardzo małe < mały / mała / małe < średni / średnia / średnie < duży / duża / duże < bardzo duży / bardzo duża / bardzo duże
very short < short < medium / average < long < very long
very short < short < medium / average < tall < very tall
very slow < slow < medium / moderate < fast < very fast
very light < light < medium / moderate < heavy < very heavy
very weak < weak < medium / moderate < strong < very strong
very easy < easy < medium / moderate / intermediate < hard / difficult < very hard / very difficult
very cold < cold < cool < mild < warm < hot < very hot
"""
_PEOPLE = """
newborn / neonate < infant / baby < toddler < child < adolescent / teenager / teen < young adult / young < adult < middle aged < senior / elderly / old / older adult
beginner / novice / basic < intermediate < advanced / proficient < expert
junior < mid / intermediate / mid level < senior < lead / principal
"""
_ORDINALS = """
first < second < third < fourth < fifth < sixth < seventh < eighth < ninth < tenth
erster / erste / erstes < zweiter / zweite / zweites < dritter / dritte / drittes < vierter / vierte / viertes < fünfter / fünfte / fünftes < sechster / sechste / sechstes
premier / première < deuxième / second / seconde < troisième < quatrième < cinquième < sixième
primero / primera / primer < segundo / segunda < tercero / tercera / tercer < cuarto / cuarta < quinto / quinta < sexto / sexta
primo / prima < secondo / seconda < terzo / terza < quarto / quarta < quinto / quinta < sesto / sesta
primeiro / primeira < segundo / segunda < terceiro / terceira < quarto / quarta < quinto / quinta < sexto / sexta
eerste < tweede < derde < vierde < vijfde < zesde
pierwszy / pierwsza / pierwsze < drugi / druga / drugie < trzeci / trzecia / trzecie < czwarty / czwarta / czwarte < piąty / piąta / piąte < szósty / szósta / szóste
"""
_EDUCATION = """
preschool < 1st 4th < 5th 6th < 7th 8th < 9th < 10th < 11th < 12th < hs grad < some college < assoc voc < assoc acdm < bachelors < masters < prof school < doctorate
none / no education / no formal education / no schooling < preschool / kindergarten < primary / primary school / primary education / elementary / elementary school < lower secondary / lower secondary education / middle school < secondary / secondary school / secondary education / high school / upper secondary / upper secondary education < post secondary / post secondary non tertiary < tertiary / tertiary education / higher / higher education / university / university degree < postgraduate
none / no education / no formal education / no schooling < primary / primary school / elementary / elementary school < middle school / junior high / junior high school < some high school / less than high school < high school / hs / high school diploma / high school graduate / high school degree / high school or equivalent < some college / some college no degree < associate / associates / associate degree / associate s / associate s degree < bachelor / bachelors / bachelor degree / bachelor s / bachelor s degree / bachelors degree < master / masters / master degree / master s / master s degree / masters degree < professional degree / professional school < doctorate / doctoral / doctoral degree / doctorate degree / phd / ph d
kein abschluss / kein schulabschluss / ohne abschluss < hauptschule / hauptschulabschluss < realschule / realschulabschluss / mittlere reife < fachhochschulreife < abitur / hochschulreife < bachelor < master / diplom / magister < promotion / doktorat
aucun / aucun diplôme / sans diplôme < primaire < collège / brevet < lycée / secondaire / bac / baccalauréat < licence < master < doctorat
ninguno / sin estudios < primaria / primarios / educación primaria < secundaria / secundarios / educación secundaria < bachillerato < superior / superiores / universitaria / universitarios / educación superior < doctorado
nessuno / nessun titolo < elementare / licenza elementare < media / licenza media < diploma / superiore < laurea < dottorato
nenhum / nenhuma / sem escolaridade < fundamental / ensino fundamental / primário < médio / ensino médio / secundário < superior / ensino superior < mestrado < doutorado / doutoramento
geen < basisonderwijs / basisschool < vmbo < havo < vwo
geen < basisonderwijs / basisschool < vmbo < mbo < hbo < wo
brak < podstawowe < gimnazjalne < zawodowe / zasadnicze zawodowe < średnie < wyższe
"""
_CALENDAR = """
monday / mon < tuesday / tue / tues < wednesday / wed < thursday / thu / thur / thurs < friday / fri < saturday / sat < sunday / sun
montag / mo < dienstag / di < mittwoch / mi < donnerstag / do < freitag / fr < samstag / sonnabend / sa < sonntag / so
lundi / lun < mardi / mar < mercredi / mer < jeudi / jeu < vendredi / ven < samedi / sam < dimanche / dim
lunes / lun < martes / mar < miércoles / mié < jueves / jue < viernes / vie < sábado / sáb < domingo / dom
lunedì / lun < martedì / mar < mercoledì / mer < giovedì / gio < venerdì / ven < sabato / sab < domenica / dom
segunda / segunda feira / seg < terça / terça feira / ter < quarta / quarta feira / qua < quinta / quinta feira / qui < sexta / sexta feira / sex < sábado / sáb < domingo / dom
maandag / ma < dinsdag / di < woensdag / wo < donderdag / do < vrijdag / vr < zaterdag / za < zondag / zo
poniedziałek / pon / pn < wtorek / wt < środa / śr < czwartek / czw / cz < piątek / pt < sobota / sob / sb < niedziela / niedz / nd
january / jan < february / feb < march / mar < april / apr < may < june / jun < july / jul < august / aug < september / sep / sept < october / oct < november / nov < december / dec
januar / jänner / jan < februar / feb < märz / mär / mrz < april / apr < mai < juni / jun < juli / jul < august / aug < september / sep / sept < oktober / okt < november / nov < dezember / dez
janvier / janv / jan < février / févr / fév < mars / mar < avril / avr < mai < juin / jui < juillet / juil < août / aoû < septembre / sept / sep < octobre / oct < novembre / nov < décembre / déc
enero / ene < febrero / feb < marzo / mar < abril / abr < mayo / may < junio / jun < julio / jul < agosto / ago < septiembre / sep / sept < octubre / oct < noviembre / nov < diciembre / dic
gennaio / gen < febbraio / feb < marzo / mar < aprile / apr < maggio / mag < giugno / giu < luglio / lug < agosto / ago < settembre / set < ottobre / ott < novembre / nov < dicembre / dic
janeiro / jan < fevereiro / fev < março / mar < abril / abr < maio / mai < junho / jun < julho / jul < agosto / ago < setembro / set < outubro / out < novembro / nov < dezembro / dez
januari / jan < februari / feb < maart / mrt < april / apr < mei < juni / jun < juli / jul < augustus / aug < september / sep / sept < oktober / okt < november / nov < december / dec
styczeń / sty < luty / lut < marzec / mar < kwiecień / kwi < maj < czerwiec / cze < lipiec / lip < sierpień / sie < wrzesień / wrz < październik / paź < listopad / lis < grudzień / gru
"""

SCALES = {
    "levels": _LEVELS,
    "degrees of severity": _SEVERITY,
    "frequencies": _FREQUENCY,
    "answers of a scale": _OPINIONS,
    "grades of quality": _QUALITY,
    "sizes": _SIZES,
    "stages of life or skill": _PEOPLE,
    "ordinal numbers": _ORDINALS,
    "levels of education": _EDUCATION,
    "days of the week or months": _CALENDAR,
}
"""Scales by what they are called, one a line."""

SPELLED_TWICE = "the values are words of a known scale, but two of them are the same level"
DISAGREEING = "the values are words of several known scales, which order them differently"


def word_of(text: str) -> str:
    """Write a text as it is compared with the words of scales.

    Examples
    --------
    >>> word_of("Very-LOW "), word_of("Bachelor's"), word_of("Août")
    ('very low', 'bachelor s', 'aout')
    """
    return _NOT_A_WORD.sub(" ", folded(text)).strip()


@cache
def scales() -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
    """Every scale: what it is called, and the spellings of each of its levels, lowest first."""
    return tuple(
        (name, tuple(tuple(map(word_of, level.split(" / "))) for level in line.split(" < ")))
        for name, lines in SCALES.items()
        for line in lines.strip().splitlines()
    )


@cache
def _levels_of_words() -> dict[str, dict[int, int]]:
    """For each word the scales that it is in, by number, with its level there."""
    found: dict[str, dict[int, int]] = {}
    for number, (_, levels) in enumerate(scales()):
        for level, spellings in enumerate(levels):
            for word in spellings:
                found.setdefault(word, {}).setdefault(number, level)
    return found


def order_of_words(texts: list[str]) -> tuple[tuple[str, ...], str]:
    """Put words of one scale in order, lowest first; with what the scale is, or nothing and why there is no order.

    All texts have to be levels of one scale, each another one. Where several scales have them all, these have to agree
    on what lies between what.

    Examples
    --------
    >>> order_of_words(["high", "low", "medium"])
    (('low', 'medium', 'high'), 'levels')
    >>> order_of_words(["low", "Low", "high"])[0], order_of_words(["red", "low", "high"])
    ((), ((), ''))
    """
    known = _levels_of_words()
    words = [word_of(text) for text in texts]
    fitting = set(known.get(words[0], ()))
    for word in words[1:]:
        fitting &= set(known.get(word, ()))
        if not fitting:
            return (), ""
    orders = {number: _in_order(texts, [known[word][number] for word in words]) for number in sorted(fitting)}
    if any(order is None for order in orders.values()):
        return (), SPELLED_TWICE
    first = next(iter(orders))
    chosen = orders[first]
    if chosen is None or any(order not in (chosen, chosen[::-1]) for order in orders.values()):
        return (), DISAGREEING
    return chosen, scales()[first][0]


def _in_order(texts: list[str], levels: list[int]) -> tuple[str, ...] | None:
    if len(set(levels)) < len(levels):
        return None
    return tuple(text for _, text in sorted(zip(levels, texts, strict=True)))
