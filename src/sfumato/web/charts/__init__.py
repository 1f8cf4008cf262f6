"""Charts of the page as Vega-Lite specifications: plain dicts with their data inside, drawn by ``static/charts.js``.

Colours are CSS variables, so that one specification serves light and dark. ``usermeta.table`` names the columns of the
table that stands beside a chart for those who do not see it.
"""

from sfumato.web.charts.frontier import frontier_spec
from sfumato.web.charts.roc import roc_spec

__all__ = ["frontier_spec", "roc_spec"]
