"""Long tasks of the page in processes of their own: started, watched, cancelled; :mod:`.jobs` is what the views use."""
