"""Files of statistics packages (SPSS, Stata, SAS): read in a process of its own, written with their labels."""
