"""What the paper prints: subsets under its abbreviations, and the weights by which it chooses them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TREE, BAYES = "C4.5", "naive Bayes"
PAPER: dict[str, Any] = tomllib.loads((Path(__file__).parent / "paper.toml").read_text())

Names = frozenset[str]
Weights = tuple[float, float, float]


def readings(data: str, subset: str) -> list[Names]:
    """Column names of a printed subset, in every reading of its abbreviations."""
    meant = PAPER["columns"][data.partition(",")[0]]
    found: list[Names] = [frozenset()]
    for short in subset.split():
        meanings = meant[short].split(" | ")
        found = [names | {meaning} for meaning in meanings for names in found]
    return found


def printed_choices(data: str, learner: str) -> list[tuple[Weights, str]]:
    """Weights with the subset that the paper chooses by them."""
    return [(tuple(choice["weights"]), choice["subset"]) for choice in _choices(data, learner)]


def printed_scores(data: str, learner: str) -> dict[Weights, float]:
    """E(S) of the chosen subset, where the paper prints it."""
    return {tuple(choice["weights"]): choice["score"] for choice in _choices(data, learner) if "score" in choice}


def _choices(data: str, learner: str) -> list[dict[str, Any]]:
    wanted = (data.partition(",")[0], learner)
    return [
        choice for case in PAPER["chosen"] if (case["data"], case["learner"]) == wanted for choice in case["choices"]
    ]


def abbreviated(data: str, names: Iterable[str]) -> str:
    """Say a subset in the paper's abbreviations where it has any, in their order."""
    short = {
        meaning: key if " | " not in meanings else f"{key} ({meaning})"
        for key, meanings in PAPER["columns"][data.partition(",")[0]].items()
        for meaning in meanings.split(" | ")
    }
    order = list(short)
    ranked = sorted(names, key=lambda name: (order.index(name) if name in short else len(order), name))
    return " ".join(short.get(name, name) for name in ranked)
