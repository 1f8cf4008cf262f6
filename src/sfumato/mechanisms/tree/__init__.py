"""Error-risk pruned trees with uniform or tiered generalization [ERP19]_; ``mechanism`` is the entry."""
