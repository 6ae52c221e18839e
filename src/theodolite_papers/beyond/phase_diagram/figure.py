"""Draw the phase diagram from one row per tile."""

from collections import Counter
from typing import Any

import numpy as np

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Row, Rows, compared_row, group_means

from .config import DIVERGES, NAMES, STUCK, TRAINS

LABELS = ("family", "kind", "depth", "scale", "trial", "lr")
FORETOLD = ("foretold", "by_sharpness", "all_train")


def scored(both: PredictedAndMeasured) -> PredictedAndMeasured:
    """Return both sides with one row per run and score: 0, 1 or -1.

    ``foretold``, ``by_sharpness``, ``all_train``: whether the run ended as predicted.
    ``trained``: whether it trained. ``missed``: 1 for a divergence that was not
    predicted, -1 for another wrong prediction, else 0.
    """
    ends = {_key(row): row["value"] for row in both.measured.where(quantity="phase")}
    rows: list[dict] = []
    for row in both.measured:
        if row["quantity"] not in (*FORETOLD, "phase"):
            continue
        end = ends[_key(row)]
        right = {**row, "value": float(row["value"] == end)}
        if row["quantity"] == "phase":
            rows.append({**row, "quantity": "trained", "value": float(end == TRAINS)})
            continue
        rows.append(right)
        if row["quantity"] == "foretold":
            kind = 1.0 if end == DIVERGES else -1.0
            missed = 0.0 if right["value"] else kind
            rows.append({**row, "quantity": "missed", "value": missed})
    return PredictedAndMeasured(both.predicted, Rows.of_plain(rows))


def _key(row: Row) -> tuple:
    return tuple(row[name] for name in LABELS)


def table(both: PredictedAndMeasured) -> Rows:
    """Return how most runs of each tile ended, and whether that was predicted."""
    tiles: dict[tuple, dict[str, Counter]] = {}
    for row in both.measured:
        if row["quantity"] in ("phase", "foretold"):
            tile = tuple(row[k] for k in LABELS if k != "trial")
            counts = tiles.setdefault(tile, {"phase": Counter(), "foretold": Counter()})
            counts[row["quantity"]][row["value"]] += 1
    labels = [k for k in LABELS if k != "trial"]
    return Rows(
        {
            **dict(zip(labels, tile, strict=True)),
            "quantity": "tile",
            "value": _most(counts["phase"]),
            "foretold": _most(counts["foretold"]),
            "wrong": _most(counts["phase"]) != _most(counts["foretold"]),
            "decade": _decade(tile[-1]),
        }
        for tile, counts in tiles.items()
    )


def _most(counts: Counter) -> int:
    return min(counts, key=lambda phase: (-counts[phase], phase))


def _decade(rate: float) -> int | None:
    """Return the exponent if a rate is a whole power of ten, else None."""
    power = float(np.log10(rate))
    return round(power) if abs(power - round(power)) < 1e-6 else None


def compare(both: PredictedAndMeasured) -> list[Row]:
    """Return the share of runs in each phase, predicted beside measured."""
    rows: list[Row] = []
    for family in both.measured.levels("family"):
        for phase in (TRAINS, STUCK, DIVERGES):
            shares = []
            for name in ("foretold", "phase"):
                runs = both.measured.where(quantity=name, family=family)
                hits = Rows({**r, "value": float(r["value"] == phase)} for r in runs)
                by_seed = group_means(hits, ("trial",))
                shares += group_means(by_seed, ("quantity",))
            label = f"share of {family} runs that end so: {NAMES[phase]}"
            rows.append(compared_row(label, shares[0]["value"], shares[1]))
    return rows


# Not the colours of the kinds; light, middle and dark in a grey print.
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


def draw(table: Rows) -> "figures.Figure":
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
    _legend(figure)
    return figure


def _tiles(panel: "figures.Axes", tiles: Rows) -> None:
    from matplotlib.colors import ListedColormap

    rates, scales = tiles.levels("lr"), tiles.levels("scale")
    phases = [
        [tiles.only(scale=scale, lr=rate)["value"] for rate in rates]
        for scale in scales
    ]
    colours = ListedColormap([COLOURS[phase] for phase in sorted(COLOURS)])
    # One pixel per tile, in files of every format.
    look: dict[str, Any] = {
        "aspect": "auto",
        "origin": "lower",
        "interpolation": "none",
    }
    panel.imshow(phases, cmap=colours, vmin=0, vmax=2, **look)
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


def _legend(figure: "figures.Figure") -> None:
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
