r"""The page's table of mean numbers of minima, and how it is made.

``python -m tests.report.minima_table`` writes it from theory. By Kac and Rice the mean
number of minima is $2\sqrt2\,x^{\Lambda/2}(1+x)^{-1/2}\,E\,e^{-u\lambda^2/4}$, with
$u = (x-1)/(x+1)$ and λ the smallest eigenvalue of a GOE matrix; the logarithm of the
mean is smooth in u, so that eleven values at Chebyshev's nodes give it to $10^{-6}$.
"""

import json
import math
from pathlib import Path

import numpy as np

from theodolite import report
from theodolite.core import SpinGlassBlueprint
from theodolite.theory import mean_critical_points

FILE = Path(report.__file__).parent / "templates/explorers/path_ensemble/minima.js"
DIMENSIONS = (4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 57, 68, 80, 96,
              115, 140, 170, 200)  # fmt: skip
# Depth 2000 has x = 1999, the largest of the page.
GREATEST = 2000
NODES = (1 - np.cos(np.pi * np.arange(11) / 10)) / 2 * (GREATEST - 2) / GREATEST


def glass(dimension, ratio):
    """A spin glass whose mixture has this ratio $x = v''/v'$."""
    top = GREATEST
    share = 2 * (ratio - 1) / (2 * (ratio - 1) + top * (top - 1 - ratio))
    mixture = {order: s for order, s in ((2, 1 - share), (top, share)) if s > 0}
    return SpinGlassBlueprint(width=dimension, mixture=mixture)


def log_mean(dimension, node):
    """Logarithm of the mean over matrices, at a node."""
    x = (1 + node) / (1 - node)
    count = mean_critical_points(glass(dimension, x), index=0)
    rest = 1.5 * math.log(2) + dimension / 2 * math.log(x) - math.log1p(x) / 2
    return count.log - rest


def column(dimension):
    """The values of one dimension, as the file has them."""
    return [0.0, *(float(f"{log_mean(dimension, u):.10g}") for u in NODES[1:])]


def text():
    """The content of the file."""
    lines = [f"    {n}: {json.dumps(column(n))},\n" for n in DIMENSIONS]
    return (
        '"use strict";\n'
        "// ln E exp(-u λ²/4) for the smallest eigenvalue λ of a GOE matrix, by its\n"
        "// size, at nodes of u = (x-1)/(x+1). By mean_critical_points of theory, and\n"
        "// written by tests/report/minima_table.py.\n"
        "theodolite.paths.minimaTable = {\n"
        f"  last: {NODES[-1]},\n  values: {{\n{''.join(lines)}  }},\n}};\n"
    )


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
