"""The phase diagram from rows of tiles."""

from typing import TYPE_CHECKING, Any

from theodolite import figures
from theodolite.core import Rows
from theodolite.studies.li2016demystifying.phase_diagram.config_phases import (
    DIVERGES,
    NAMES,
    STUCK,
    TRAINS,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {STUCK: "#C9CDD2", TRAINS: "#009E73", DIVERGES: "#D55E00"}
_KINDS = {
    "plain": "no shortcut",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
    "three_shortcut": "3-shortcut",
}
_FAMILIES = {"linear": "linear", "relu": "ReLU"}
_CROSS: dict[str, Any] = {"linestyle": "none", "marker": "x", "color": "black"}


def draw(table: Rows) -> "Figure":
    """Draw a panel for each family, depth and shortcut length."""
    columns = [(f, d) for f in table.levels("family") for d in table.levels("depth")]
    figure, panels = figures.new_figure(
        1.5 + 1.45 * len(columns), 6.6, panels=(len(_KINDS), len(columns))
    )
    places = [(kind, place) for kind in _KINDS for place in columns]
    for panel, (kind, (family, depth)) in zip(panels, places, strict=True):
        _tiles(panel, table.where(family=family, kind=kind, depth=depth))
        top, bottom = kind == "plain", kind == "three_shortcut"
        first = (family, depth) == columns[0]
        panel.tick_params(labelbottom=bottom, labelleft=first, length=2)
        if top:
            panel.set_title(f"{_FAMILIES[family]}, depth {depth}")
        if first:
            panel.set_ylabel(f"{_KINDS[kind]}\ninitial scale")
        if bottom:
            panel.set_xlabel("learning rate")
    _key(figure)
    return figure


def _tiles(panel: "Axes", tiles: Rows) -> None:
    from matplotlib.colors import ListedColormap

    rates, scales = tiles.levels("lr"), tiles.levels("scale")
    found = [
        [tiles.only(scale=scale, lr=rate)["value"] for rate in rates]
        for scale in scales
    ]
    colours = ListedColormap([_COLOURS[phase] for phase in sorted(_COLOURS)])
    panel.imshow(found, cmap=colours, vmin=0, vmax=2, aspect="auto", origin="lower")
    wrong = tiles.where(wrong=True)
    panel.plot(
        [rates.index(rate) for rate in wrong.column("lr")],
        [scales.index(scale) for scale in wrong.column("scale")],
        **_CROSS,
        markersize=3.2,
        markeredgewidth=0.8,
    )
    powers = {row["lr"]: row["decade"] for row in tiles if row["decade"] is not None}
    panel.set_xticks(
        [rates.index(rate) for rate in powers],
        [f"$10^{{{power}}}$" for power in powers.values()],
    )
    panel.set_yticks(range(len(scales)), [f"{scale:g}" for scale in scales])
    panel.grid(False)


def _key(figure: "Figure") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list = [
        Patch(color=_COLOURS[phase], label=NAMES[phase])
        for phase in (TRAINS, STUCK, DIVERGES)
    ]
    handles.append(Line2D([], [], **_CROSS, markersize=4, label="foretold otherwise"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
