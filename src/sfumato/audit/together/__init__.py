"""Several releases of the same people, judged together: ``levels`` defines, ``appearances`` finds who is where."""
