"""A report on a release: plain data first (:mod:`summarize`), then one HTML file (:mod:`render`)."""
