"""A network cut open along its depth: strips of singular values, numbers by block."""

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize

from theodolite.core import ConfigError, Rows
from theodolite.figures.axes import log_axis
from theodolite.figures.marks import band, rule
from theodolite.figures.series import series_style
from theodolite.figures.style import PALETTE, house_style, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRIPS = "singular_value"
# What is drawn below the strips, each in a panel of its own, where there are rows.
PANELS = {
    "branch_gain": "branch gain",
    "forward_rms": "forward signal",
    "backward_rms": "backward signal",
    "block_largest_eigenvalue": "curvature",
    "weight_rms": "weight norm",
}
_COLOURS = LinearSegmentedColormap.from_list(
    "stretch", (PALETTE["blue"], "#F4F2EE", PALETTE["vermilion"])
)
# So many names of blocks fit below a figure of 8 inches.
_MOST_NAMES = 40


@house_style()
def draw_cross_section(rows: Rows, *, title: str | None = None) -> "Figure":
    """Draw what each block does, from the input on the left to the output.

    Args:
        rows: Rows with ``depth`` and ``block``: quantiles ``singular_value`` by
            ``share``, and one row a block of ``branch_gain``, ``forward_rms``,
            ``backward_rms``, ``block_largest_eigenvalue`` or ``weight_rms``.
        title: Above the panels.

    Returns:
        A strip of colours a block (blue shrinks, red stretches), and a panel a
        quantity with its errors.
    """
    placed = rows.where(lambda row: row.get("depth") is not None)
    strips = placed.where(quantity=STRIPS)
    shown = [name for name in PANELS if len(placed.where(quantity=name))]
    n = len(shown) + bool(len(strips))
    if n == 0:
        raise ConfigError(
            f"the rows hold none of {STRIPS}, {', '.join(PANELS)} by depth: measure "
            "the map, signal or jacobian first"
        )
    tall = 1.1 * len(shown) + (2.0 if len(strips) else 0.0) + 0.6
    figure, panels = new_figure(8.0, tall, panels=(n, 1), share_x=True)
    if len(strips):
        _strips(panels[0], strips)
    for panel, name in zip(panels[bool(len(strips)) :], shown, strict=True):
        _numbers(panel, placed.where(quantity=name), name)
    _names(panels[-1], placed)
    if title:
        panels[0].set_title(title)
    return figure


def _strips(panel: Axes, rows: Rows) -> None:
    depths, shares = rows.levels("depth"), rows.levels("share")
    grid = np.full((len(shares), int(max(depths)) + 1), np.nan)
    for row in rows:
        if row["value"] is not None:
            with np.errstate(divide="ignore"):
                log = np.log10(row["value"])
            grid[shares.index(row["share"]), int(row["depth"])] = max(log, -12.0)
    reach = min(4.0, max(0.5, float(np.nanmax(np.abs(grid)))))
    edges = np.arange(grid.shape[1] + 1) - 0.5
    drawn = panel.pcolormesh(
        edges,
        np.linspace(0, 1, len(shares) + 1),
        grid,
        cmap=_COLOURS,
        norm=Normalize(-reach, reach),
        rasterized=True,
    )
    panel.set_ylabel("share")
    panel.grid(False)
    panel.figure.colorbar(
        drawn, ax=panel, label=r"$\log_{10}$ singular value", pad=0.01
    )


def _numbers(panel: Axes, rows: Rows, name: str) -> None:
    style = series_style(name, tuple(PANELS))
    errors = np.nan_to_num(rows.values("error"))
    values = rows.values()
    band(
        panel, rows.column("depth"), values, errors, style=style, label=PANELS[name],
        kind="bars", line=name.endswith("_rms"),
    )  # fmt: skip
    if np.nanmin(values) > 0:
        log_axis(panel, "y")
    if name == "branch_gain":
        rule(panel, 1.0)
    panel.set_ylabel(PANELS[name])


def _names(panel: Axes, rows: Rows) -> None:
    found = {row["depth"]: str(row.get("block", row["depth"])) for row in rows}
    every = -(-len(found) // _MOST_NAMES)
    ticks = [depth for depth in sorted(found) if depth % every == 0]
    panel.set_xticks(ticks)
    panel.set_xticklabels(
        [found[depth] for depth in ticks], rotation=45, ha="right", fontsize=7
    )
    panel.set_xlabel("block, by depth")
