"""Draw the growth curves of RESULTS.md for the guide.

::

    python -m benchmarks.curves     # after python -m benchmarks.run growth_rows growth_columns
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.run import RESULTS

IMAGES = Path(__file__).parents[1] / "docs" / "guide" / "images"
CELL = re.compile(r"(?:[\d.e+-]+ / )(?P<seconds>[\d.e+-]+) s, (?P<peak>\d+) MB")
Curves = dict[str, list[tuple[int, float, float]]]


def curves_of(section: str) -> tuple[str, Curves]:
    """Read what grows in a section of the results, and CPU seconds and megabytes of each curve's points."""
    text = RESULTS.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    what, *heads = rows[0]
    found: Curves = {}
    for name, *cells in rows[2:]:
        points = [(head, CELL.match(cell)) for head, cell in zip(heads, cells, strict=True)]
        known = [(head.replace(",", ""), match) for head, match in points if match]
        found[name] = [(int(head), float(match["seconds"]), float(match["peak"])) for head, match in known]
    return what, {name: points for name, points in found.items() if len(points) > 1}


def draw(section: str, path: Path) -> None:
    """Write a picture of CPU time and peak memory against size, both logarithmic."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "sfumato", "svg.fonttype": "none", "font.size": 9})
    what, curves = curves_of(section)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    colors = plt.get_cmap("tab20").colors
    for number, (name, points) in enumerate(sorted(curves.items())):
        sizes, seconds, peaks = zip(*points, strict=True)
        style = {"color": colors[number % 20], "marker": "osv^D"[number % 5], "markersize": 4, "label": name}
        left.plot(sizes, seconds, **style)
        right.plot(sizes, peaks, **style)
    for axes, said in ((left, "CPU seconds"), (right, "peak memory, MB")):
        axes.set(xscale="log", yscale="log", xlabel=what, ylabel=said)
        axes.grid(alpha=0.3)
    figure.legend(*left.get_legend_handles_labels(), loc="outside right upper", frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None})


def main() -> None:
    """Draw growth over rows and over columns."""
    for section in ("growth_rows", "growth_columns"):
        draw(section, IMAGES / f"{section}.svg")


if __name__ == "__main__":
    main()
