"""Units and currencies that are recognised next to a number; any other has to be declared."""

from __future__ import annotations

_CURRENCIES = (
    "€ $ £ ¥ ₹ ₽ ₩ ₺ zł Kč kr Fr. R$ EUR USD GBP JPY CHF PLN CZK SEK NOK DKK HUF RON BGN TRY CNY INR BRL CAD AUD NZD "
    "MXN ZAR KRW RUB ILS US$ A$ C$"
)
_UNITS = (
    "% ‰ °C °F ° K "
    "kg g mg µg μg ug ng t lb lbs oz st km m cm mm µm μm nm mi ft in yd ha km² m² cm² mm² km2 m2 cm2 m³ cm³ m3 cm3 "
    "l L dl dL cl ml mL µl μl ul fl s sec ms min h hr hrs d kWh Wh MWh kW W MW V A Hz kHz MHz GHz kPa hPa Pa bar mbar "
    "mmHg kcal cal kJ J N dB kB MB GB TB km/h m/s mph kg/m² kg/m2 mg/dl mg/dL g/dl g/dL g/l g/L mmol/l mmol/L µmol/l "
    "μmol/L µmol/L mol/l IU IU/l IU/L U/l U/L mU/l mEq/l mEq/L bpm ppm ppb pp "
    "year years yr yrs month months week weeks day days hour hours minute minutes second seconds "
    "Jahr Jahre Jahren Monat Monate Woche Wochen Tag Tage Stunde Stunden Minuten Stück Stk. "
    "an ans mois semaine semaines jour jours heure heures años año meses mes semanas días día horas "
    "anni anno mesi mese settimane giorni giorno ore anos ano dias dia jaar maand maanden weken dagen uur "
    "lat lata rok miesiąc miesiące miesięcy dni dzień godzin"
)

BEFORE = frozenset(_CURRENCIES.split())
"""What may be written before a number: ``€ 12``. Words before numbers mostly name a class (``grade 5``)."""
AFTER = frozenset([*_CURRENCIES.split(), *_UNITS.split()])
"""What may be written after a number: ``12 kg``."""
GLUED = frozenset(unit for unit in AFTER if len(unit) > 1 or not unit.isalpha())
"""What may follow without a blank: ``12kg``, but not ``5m`` or ``5A``, which may be a code."""
