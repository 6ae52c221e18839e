"""Figure 9 from saved rows."""

from typing import TYPE_CHECKING

import numpy as np

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.committed_run import COMMITTED
from theodolite.studies.li2016demystifying.cifar_judging import final_errors, longest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = ("1", "2", "3", "4")
TITLES = {COMMITTED: "CIFAR-10 (committed run)", "trained": "this run"}


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw the error against depth, a panel for each set of rows."""
    shown = [s for s in TITLES if len(measured.where(source=s))]
    figure, panels = figures.new_figure(
        7.2 if len(shown) > 1 else 5.6, 3.6, panels=(1, max(1, len(shown)))
    )
    for panel, source in zip(panels, shown, strict=False):
        errors = final_errors(longest(measured.where(source=source)))
        depths = sorted({depth for _, depth in errors})
        for place, name in enumerate(NAMES):
            mine = [d for d in depths if errors.get((int(name), d))]
            points = [np.array(list(errors[int(name), d].values())) for d in mine]
            # Side by side, so that bars of one depth do not hide one another.
            shift = 1.02 ** (place - 1.5)
            figures.band(
                panel,
                [d * shift for d in mine],
                [100 * p.mean() for p in points],
                [100 * p.std(ddof=1) if len(p) > 1 else 0.0 for p in points],
                style=figures.series_style(name, NAMES),
                label=f"shortcut {name}",
                kind="bars",
            )
        if depths:
            figures.log_axis(panel, "x", base=2, ticks=depths)
        panel.set_title(TITLES[source])
        panel.set_xlabel("depth (convolutions and classifier)")
        panel.set_ylabel("test error (%)")
    figures.legend(panels[-1], outside=True)
    return figure
