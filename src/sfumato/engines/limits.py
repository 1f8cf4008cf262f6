"""What cannot be done with rows that are not in memory: one table, from which messages and the docs are made.

``python -m tests.limits_of_rows`` writes it into ``docs/known-limitations.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sfumato.errors import InvalidParameterError

BLOCKS, CLUSTER = "out of core", "on a cluster"
"""Where rows are."""


@dataclass(frozen=True)
class Limit:
    """One thing that is refused.

    Parameters
    ----------
    what : str
        What is refused, as the docs begin the sentence.
    where : tuple of str
        Where rows are.
    allowed : str
        What is allowed instead, after "must be".
    hint : str
        What to do.
    remedy : tuple of str
        The same as fields, which a front turns into its own words.
    """

    what: str
    where: tuple[str, ...]
    allowed: str
    hint: str = ""
    remedy: tuple[str, ...] = ()

    def refusal(self, name: str, got: str) -> InvalidParameterError:
        """Refuse what was given under a name."""
        return InvalidParameterError(name, got, allowed=self.allowed, hint=self.hint, remedy=self.remedy)

    def sentence(self) -> str:
        """Say it for the docs."""
        return f"**{self.what}** ({', '.join(self.where)}): must be {self.allowed}."


DIFFERENTIAL_PRIVACY: Final = Limit(
    "Differential privacy",
    (BLOCKS, CLUSTER),
    "one that is not differentially private, or a table that is read into memory (set no limit)",
    "nothing may be found out about a column by reading it, which counting does",
    ("mechanism",),
)
STANDARD_INPUT: Final = Limit(
    "Standard input",
    (BLOCKS, CLUSTER),
    "a CSV, Parquet, JSON lines, SPSS (.sav, .zsav), Stata or SAS file that can be read several times",
)
FORMATS_IN_BLOCKS: Final = Limit(
    "Workbooks, SPSS portable files, ARFF and libsvm",
    (BLOCKS,),
    STANDARD_INPUT.allowed,
    "convert the file to Parquet (or an SPSS portable file to .sav), or read it into memory (set no limit)",
    ("memory",),
)
FORMATS_ON_A_CLUSTER: Final = Limit(
    "Files other than Parquet",
    (CLUSTER,),
    "a Parquet file, or a folder of Parquet files, that driver and workers see under the same path",
    "convert the file to Parquet",
)
INCOMPLETE_ROWS: Final = Limit(
    "Leaving out incomplete rows",
    (BLOCKS, CLUSTER),
    "off for a table that is not held in memory",
    "remove incomplete rows from the file first, or read it into memory (set no limit)",
    ("memory",),
)
POPULATION_OF_A_PROFILE: Final = Limit(
    "A population in the risk profile of a table",
    (BLOCKS, CLUSTER),
    "left out for rows that are not in memory",
)

LIMITS: Final = (
    DIFFERENTIAL_PRIVACY,
    STANDARD_INPUT,
    FORMATS_IN_BLOCKS,
    FORMATS_ON_A_CLUSTER,
    INCOMPLETE_ROWS,
    POPULATION_OF_A_PROFILE,
)
