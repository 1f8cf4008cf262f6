"""l-diversity of a whole table: the level of its least diverse class, 0 without rows."""

from __future__ import annotations

from sfumato.measures.diversity import distinct_diversity, entropy_diversity, recursive_diversity


def distinct_diversity_level(counts):
    """Largest l for which a table is distinct l-diverse."""
    return least(distinct_diversity(counts))


def entropy_diversity_level(counts):
    """Largest l for which a table is entropy l-diverse."""
    return least(entropy_diversity(counts))


def recursive_diversity_level(counts, c):
    """Largest l for which a table is recursive (c, l)-diverse."""
    return least(recursive_diversity(counts, c))


def least(levels):
    return float(levels.min()) if levels.size else 0.0
