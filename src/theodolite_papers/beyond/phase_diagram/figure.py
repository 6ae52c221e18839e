"""The phase diagram from rows of tiles."""

from typing import TYPE_CHECKING, Any

from theodolite import figures
from theodolite.core import Rows

from .config import DIVERGES, NAMES, STUCK, TRAINS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Apart from the colours of all kinds, and light, middle and dark where print is grey.
COLOURS = {STUCK: "#D5D8DC", TRAINS: "#3A9E8C", DIVERGES: "#4A3B57"}
_KINDS = {
    "plain": "no shortcut",
    "one_shortcut": "1-shortcut",
    "two_shortcut": "2-shortcut",
    "three_shortcut": "3-shortcut",
}
_FAMILIES = {"linear": "linear", "relu": "ReLU"}
_DOT: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markeredgewidth": 0.6,
    "markersize": 4.2,
}


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
    colours = ListedColormap([COLOURS[phase] for phase in sorted(COLOURS)])
    # One pixel a tile, in files of every kind.
    look: dict[str, Any] = {
        "aspect": "auto",
        "origin": "lower",
        "interpolation": "none",
    }
    panel.imshow(found, cmap=colours, vmin=0, vmax=2, **look)
    for phase, colour in COLOURS.items():
        wrong = tiles.where(wrong=True, foretold=phase)
        panel.plot(
            [rates.index(rate) for rate in wrong.column("lr")],
            [scales.index(scale) for scale in wrong.column("scale")],
            markeredgecolor=figures.BACKGROUND,
            **_DOT,
            color=colour,
            label="_decoration",
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

    phases = (TRAINS, STUCK, DIVERGES)
    handles: list = [Patch(color=COLOURS[p], label=NAMES[p]) for p in phases]
    handles += [
        Line2D(
            [],
            [],
            markeredgecolor=figures.BACKGROUND,
            **_DOT,
            color=COLOURS[p],
            label=f"was foretold: {NAMES[p]}",
        )
        for p in phases
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
