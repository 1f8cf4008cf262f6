"""Tables of public standards: countries and their regions, chapters and blocks of ICD-10."""
