"""Tables 1 to 5 of Gachanga, Kimwele, Nderu (2019), and ARX with a classification metric, beside ours."""
