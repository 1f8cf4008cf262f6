"""Commands on a release that is there: check it, attack it, describe it, follow it with new rows."""
