"""Figure 2 from saved rows."""

from typing import TYPE_CHECKING

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.committed_run import COMMITTED
from theodolite.studies.li2016demystifying.cifar_judging import longest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {COMMITTED: "CIFAR-10 (committed run)", "trained": "this run"}
# The paper's schedule as fractions of training.
FALLS = (80 / 200, 121 / 200)


def draw(predicted: Rows, measured: Rows) -> "Figure":
    """Draw mean norms against epochs, a panel for each set of rows."""
    shown = [s for s in TITLES if len(measured.where(source=s))]
    figure, panels = figures.new_figure(
        7.4 if len(shown) > 1 else 5.0, 3.8, panels=(1, max(1, len(shown)))
    )
    for panel, source in zip(panels, shown, strict=False):
        rows = longest(measured.where(source=source))
        norms = rows.where(quantity="norm", shortcut=2, status="finished")
        names = [str(depth) for depth in norms.levels("depth")]
        for name in names:
            mine = norms.where(depth=int(name))
            epochs = mine.levels("epoch")
            points = [mine.where(epoch=epoch).values() for epoch in epochs]
            figures.band(
                panel,
                epochs,
                [p.mean() for p in points],
                [p.std(ddof=1) if len(p) > 1 else 0.0 for p in points],
                style=figures.series_style(name, names),
                label=f"depth {name}",
            )
        last = max(norms.column("epoch"), default=0)
        for fall in FALLS:
            figures.rule(panel, fall * last, along="y")
        panel.set_title(TITLES[source])
        panel.locator_params(axis="x", integer=True)
        panel.set_xlabel("epoch")
        panel.set_ylabel(r"mean $\Vert W\Vert_F$")
    # Outside where one does for all: inside it lies on a line where the rate falls.
    legends = [panel.get_legend_handles_labels()[1] for panel in panels[: len(shown)]]
    alike = all(labels == legends[0] for labels in legends)
    for panel in panels[len(shown) - 1 : len(shown)] if alike else panels[: len(shown)]:
        figures.legend(panel, outside=alike)
    return figure
