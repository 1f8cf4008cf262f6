"""Tables to start with: a synthetic demo, the papers' small tables, and loaders for public data sets."""
