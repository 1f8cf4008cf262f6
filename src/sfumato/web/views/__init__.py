"""Views of the page, one module for each step; none loads a heavy library."""
