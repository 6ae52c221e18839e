"""Energy by path length, of networks and by Eq 16."""

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    group_means,
    measured,
)


def table(both: PredictedAndMeasured) -> Rows:
    """Return shares by length of the deepest networks, predicted and measured."""
    shares = both.measured.where(quantity="share")
    deepest = max(shares.levels("depth"))
    rows: list[Row] = []
    for scale in shares.levels("scale"):
        mine = shares.where(scale=scale, depth=deepest)
        for row in group_means(mine, by=("length",)):
            rows.append({**row, "scale": scale, "road": "measured"})
        law = both.predicted.where(quantity="share", scale=scale, depth=deepest)
        rows += [{**row, "road": "law"} for row in law]
    return Rows(rows)


def single_paths(both: PredictedAndMeasured) -> Rows:
    """Return the energy of every path of the shallow network."""
    energies = both.measured.where(quantity="path_energy")
    return Rows({**row, "quantity": "energy"} for row in energies)


compare = beside(
    *(
        (f"{name}, {{scale}}, depth {{depth}}", measured(name, part="output"))
        for name in ("length", "variance")
    )
)


GROUP = ("scale", "width", "depth", "part")
WEIGHTS = {
    "unit": "weights 1/√n",
    "he": "weights √(2/n)",
    "shared": "n weights 1/√n, shared",
}


def exhibit(both: PredictedAndMeasured) -> Rows:
    """Return shares of the output's energy, and means of output and gradient."""
    rows, table = both.measured, []
    for point in group_means(rows.where(quantity="share"), (*GROUP, "length")):
        labels = {"quantity": "share", "length": point["length"] - 1}
        table.append(_row(point, labels, point["value"]))
    for point in group_means(rows.where(quantity="length", part="gradient"), GROUP):
        table.append(_row(point, {"quantity": "effective_depth"}, point["value"] - 1))
    for point in group_means(rows.where(quantity="beta"), GROUP):
        table.append(_row(point, {"quantity": "beta"}, point["value"]))
    return Rows(table)


def _row(point: Row, labels: Row, value: float) -> Row:
    weights = WEIGHTS.get(point["scale"], point["scale"])
    name = f"random, width {point['width']}, depth {point['depth']}, {weights}"
    return {
        **labels,
        "network": name,
        "part": point["part"],
        "blocks": point["depth"] - 1,
        "value": value,
        "error": point["error"],
    }


KINDS = {"unit": "residual", "he": "strong_branch"}
LABELS = {"unit": r"$C = 1/\sqrt{n}$", "he": r"$C = \sqrt{2/n}$"}


def draw(table: Rows) -> "figures.Figure":
    """Draw shares by length: networks as points, Eq 16 dashed."""
    figure, (panel,) = figures.new_figure(6.6, 3.6)
    for scale in LABELS:
        style = figures.kind_style(KINDS[scale])
        mine = table.where(road="measured", scale=scale)
        law = table.where(road="law", scale=scale)
        figures.row_band(
            panel,
            mine,
            "length",
            error="spread",
            style=style,
            label=LABELS[scale],
            kind="bars",
            line=False,
        )
        figures.row_curve(
            panel, law, "length", style=style, means=r"Eq 16, $\beta = \rho\sqrt{n}\,C$"
        )
    panel.set(xlabel="path length $r$ (layers taken)", ylabel="share of energy")
    panel.set_ylim(bottom=0)
    figures.legend(panel)
    return figure


def draw_paths(table: Rows) -> "figures.Figure":
    """Draw the unravelled view: every path, as wide as its share of energy."""
    return figures.draw_unravelled(table)
