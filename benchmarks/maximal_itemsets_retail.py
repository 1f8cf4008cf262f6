"""The 20 largest itemsets that 5 rows have in common, beside listing all maximal ones; here of retail."""

from __future__ import annotations

from benchmarks.maximal_itemsets import benchmark_of

BENCHMARK = benchmark_of("retail")
