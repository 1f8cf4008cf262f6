"""The audit's own reading of released cells, labels and values, and its own counting."""
