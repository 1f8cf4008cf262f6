"""Make the pictures of page.md: the real page in Chromium, on the demo table.

::

    python docs/guide/make_images.py
"""
