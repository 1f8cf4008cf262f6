"""Tables to start with: a synthetic demo and a paper's small table."""
