"""Feature selection under k-anonymity by containment [kAC17]_: greedy, maximal, exact and optimal selectors."""
