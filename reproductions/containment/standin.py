"""A stand-in for the Entity data, which are not public: names in public bibliographies and the words of their titles.

Which words count as keywords is chosen: of a list of rules the one with which the paper's three methods keep numbers of
features nearest to the printed ones. ``python -m reproductions.containment.standin`` shows all rules and that choice.
"""

from __future__ import annotations

import re
import sys
import tarfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import log
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from reproductions.containment.data import LEVELS, DataSet
from reproductions.containment.methods import PAPER_METHODS
from reproductions.public_data import data_folder
from sfumato.table.binary import as_binary_matrix

N_NAMES, N_WORDS = 74, 552  # of each class, and features: as printed
COMPARED = ("HamDist", "DistCnt", "Maximal")
"""Methods whose numbers of kept features decide."""


@dataclass(frozen=True)
class Rule:
    """Which words are keywords.

    Parameters
    ----------
    titles : int
        In how many titles of a name a word must stand to be a keyword of that name.
    first_rank : int
        The features are 552 words in the order of how many names have them, from this rank on.
    stop_words : bool
        Whether common English words count.
    """

    titles: int
    first_rank: int
    stop_words: bool = True


EARLIER = Rule(1, 260)
"""The rule before there was a choice: it has the printed density, and the methods keep hardly a feature."""
CHOSEN = Rule(2, 1)
"""The rule that :func:`nearest` gives; a run of this module says so anew."""
RULES = (
    *(Rule(titles, rank, stop) for titles, rank, stop in product((1, 2, 3), (1, 11, 26, 101), (True, False))),
    EARLIER,
)


@dataclass(frozen=True)
class Name:
    """A name with the titles of its papers, and of how many persons they are."""

    name: str
    n_persons: int
    titles: Sequence[str]


def entity(rule: Rule = CHOSEN) -> DataSet:
    """Build the stand-in: 74 names of several persons and 74 of one, those with most papers, by their keywords."""
    several = _longest([name for name in _names() if name.n_persons > 1])
    single = _longest([name for name in _names() if name.n_persons == 1])
    keywords = [_keywords(name.titles, rule) for name in several + single]
    frequency = Counter(word for own in keywords for word in own)
    start = rule.first_rank - 1
    ranked = sorted(frequency, key=lambda word: (-frequency[word], word))[start : start + N_WORDS]
    dense = np.array([[word in own for word in ranked] for own in keywords], dtype=np.uint8)
    classes = np.array([1] * len(several) + [0] * len(single), dtype=np.int32)
    return DataSet("Entity stand-in", as_binary_matrix(dense), classes)


def kept_counts(data: DataSet) -> dict[str, list[int]]:
    """Count the features that each compared method keeps at each level."""
    return {name: [len(PAPER_METHODS[name](data.matrix, data.classes, k).columns) for k in LEVELS] for name in COMPARED}


def distance(kept: Mapping[str, Sequence[int]]) -> float:
    """Sum of |log((1 + ours) / (1 + printed))| over the nine counts."""
    printed = tomllib.loads((Path(__file__).parent / "paper.toml").read_text())["Entity stand-in"]
    return sum(
        abs(log((1 + ours) / (1 + theirs)))
        for name in COMPARED
        for ours, theirs in zip(kept[name], printed[name]["kept"], strict=True)
    )


def nearest(found: Mapping[Rule, Mapping[str, Sequence[int]]]) -> Rule:
    """Give the rule with the least distance; the first of equals."""
    return min(found, key=lambda rule: distance(found[rule]))


def report(rules: Sequence[Rule] = RULES) -> Iterator[str]:
    """Lines of a table of rules and what is kept under each."""
    yield f"| titles | first rank | stop words | density | {' | '.join(COMPARED)} | distance |"
    yield f"| {' | '.join(['---'] * (5 + len(COMPARED)))} |"
    found = {}
    for rule in rules:
        data = entity(rule)
        found[rule] = kept_counts(data)
        kept = " | ".join("/".join(map(str, found[rule][name])) for name in COMPARED)
        said = f"{rule.titles} | {rule.first_rank} | {'yes' if rule.stop_words else 'no'} | {data.density:.1%}"
        yield f"| {said} | {kept} | {distance(found[rule]):.2f} |"
    yield f"\nnearest: {nearest(found)}"


def _longest(names: Sequence[Name]) -> list[Name]:
    return sorted(names, key=lambda name: (-len(name.titles), name.name))[:N_NAMES]


@cache
def _names() -> tuple[Name, ...]:
    found: list[Name] = []
    with tarfile.open(data_folder() / "entity" / "raw-data.tar.gz") as archive:
        for member in archive.getmembers():
            file = archive.extractfile(member) if member.name.endswith(".xml") else None
            if file is not None:
                found.extend(_names_in(member.name, file.read().decode("utf-8", "replace")))
    return tuple(found)


def _names_in(name: str, text: str) -> Iterator[Name]:
    """Give the name of a file, if several persons have it, and each person in it as a name of one."""
    papers = [
        (entry.findtext("label", ""), entry.findtext("title", ""))
        for entry in ElementTree.fromstring(text.replace("&", "&amp;")).iter("publication")
    ]
    labels = sorted({label for label, _ in papers})
    if len(labels) > 1:
        yield Name(name, len(labels), [title for _, title in papers])
    for label in labels:
        yield Name(f"{name}#{label}", 1, [title for own, title in papers if own == label])


def _keywords(titles: Sequence[str], rule: Rule) -> set[str]:
    counted = Counter(word for title in titles for word in set(re.findall(r"[a-z][a-z-]{3,}", title.lower())))
    is_left_out = frozenset() if rule.stop_words else ENGLISH_STOP_WORDS
    return {word for word, n in counted.items() if n >= rule.titles and word not in is_left_out}


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
