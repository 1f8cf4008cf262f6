"""Past one machine: counts, releases and audits on a Spark cluster, with the search on the driver over cells."""
