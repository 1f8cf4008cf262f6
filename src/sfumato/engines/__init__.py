"""Where rows live when they are not in memory: out of core (read in blocks) and on a Spark cluster."""
