"""Several parties with the same columns choose features together; their rows stay where they are."""
