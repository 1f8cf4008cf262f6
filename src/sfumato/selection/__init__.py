"""Mechanisms that drop columns, and what a set of columns is worth to recipient and attacker."""

from sfumato.selection.tradeoff import evaluation_scores

__all__ = ["evaluation_scores"]
