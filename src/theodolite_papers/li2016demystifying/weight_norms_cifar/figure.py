"""Draw figure 2 from saved rows."""

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, group_means, measured

from ..shared.cifar_tables import along
from ..shared.figure import draw_depths
from .config import PRESETS

# The paper's schedule as fractions of training.
FALLS = (80 / 200, 121 / 200)


def table(both: PredictedAndMeasured) -> Rows:
    """Return means over networks by depth and epoch, and epochs of rate decay.

    Of several lengths of training the longest is drawn.
    """
    norms = along(both.measured)
    last = max(norms.column("epochs"), default=0)
    norms = group_means(norms.where(epochs=last), ("depth", "epoch"))
    falls = [{"quantity": "fall", "epoch": fall * last} for fall in FALLS]
    return norms + falls


compare = beside(("mean norm at the start, depth {depth}", measured("norm", epoch=0)))


def draw(table: Rows) -> "figures.Figure":
    """Draw mean norms against epochs, by depth."""
    figure, (panel,) = figures.new_figure(5.6, 3.6)
    norms = table.where(quantity="norm")
    draw_depths(panel, norms, "epoch", PRESETS["paper"].depths)
    for fall in table.where(quantity="fall"):
        figures.reference_line(panel, fall["epoch"], along="y")
    panel.locator_params(axis="x", integer=True)
    panel.set_xlabel("epoch")
    panel.set_ylabel(r"mean $\Vert W\Vert_F$")
    figures.legend(panel, outside=True)
    return figure
