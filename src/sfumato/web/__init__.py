"""Local web page: everything a data steward does, in a browser. It holds no algorithm."""
