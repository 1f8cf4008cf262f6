"""A release against its original: whether cells, rows and counts follow from it as the manifest says."""
