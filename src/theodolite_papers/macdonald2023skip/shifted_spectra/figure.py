"""Draw figures 1 and 2 from saved rows."""

from itertools import pairwise

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    by_network,
    estimate,
    group_means,
    measured,
)


def linear_table(both: PredictedAndMeasured) -> Rows:
    """Return shares with and without the identity, and their limits."""
    means = group_means(
        both.measured.where(quantity="matrix_share"), ("shift", "share")
    )
    law = both.predicted.where(quantity="matrix_share")
    return means + [{**row, "quantity": "limit"} for row in law]


def network_table(both: PredictedAndMeasured) -> Rows:
    """Return shares of both spectra and losses by step, means over trials."""
    rows = both.measured.where(part="figure")
    shares = group_means(rows.where(quantity="share"), ("metric", "kind", "share"))
    losses = group_means(rows.where(quantity="loss"), ("kind", "step"), log=True)
    return shares + losses


def start_table(both: PredictedAndMeasured) -> Rows:
    """Return the effect of each addition from each start, paired over trials.

    Shifts are decimal logarithms of the ratio of means, speeds the fall of the mean
    logarithm of the loss.
    """
    rows = both.measured.where(part="start")
    starts = sorted({(row["init"], row["gain"]) for row in rows})
    steps = max(rows.levels("over"), default=0)
    table: list[Row] = []
    for place, (init, gain) in enumerate(starts):
        here = rows.where(init=init, gain=gain)
        readings = {
            "blocks": (here.where(quantity="mean", metric="blocks"), True, 1),
            "composite": (here.where(quantity="mean", metric="composite"), True, 1),
            "speed": (here.where(quantity="log_loss", over=steps), False, -1),
        }
        for name, (read, log, sign) in readings.items():
            for low, high in pairwise(KINDS):
                pair = [by_network(read.where(kind=k), log=log) for k in (high, low)]
                values = list(pair[0].minus(pair[1]).values.values())
                average = estimate(values) if len(values) > 1 else None
                table.append(
                    {
                        "quantity": name,
                        "addition": high,
                        "start": f"{init} × {gain:g}" if gain != 1 else init,
                        "place": place,
                        "value": sign * average.mean if average else None,
                        "spread": average.stderr if average else 0.0,
                        "error": average.stderr if average else None,
                    }
                )
    return Rows(table)


compare = beside(
    ("tenth {share} of A + {shift:g} I", measured("matrix_share")),
    ("low end of A + {shift:g} I", measured("low_end")),
    ("high end of A + {shift:g} I", measured("high_end")),
)

LABELS = {"chain": "Chain", "res": "Res", "average": "ResAvg"}
KINDS = {"chain": "chain", "res": "residual", "average": "average"}
MATRICES = {"0": "$A$", "1": "$I + A$"}
MATRIX_KINDS = {"0": "original", "1": "added_identity"}
CHANGES = {
    "blocks": "factor on the mean singular value\nof the two blocks",
    "composite": "factor on the mean singular value\nto the scores",
    "speed": "loss without the addition\nover that with it",
}


def draw_linear(table: Rows) -> "figures.Figure":
    """Draw shares of both spectra, and the laws of the limit."""
    figure, (panel,) = figures.new_figure(5.4, 3.8)
    for name, label in MATRICES.items():
        style = figures.kind_style(MATRIX_KINDS[name])
        rows = table.where(quantity="matrix_share", shift=float(name))
        law = table.where(quantity="limit", shift=float(name))
        figures.row_band(
            panel, rows, "share", error="spread", style=style, label=label, line=False
        )
        figures.row_curve(panel, law, "share", style=style, means="limit law")
    panel.set_xlabel("tenth of the singular values, the least first")
    panel.set_ylabel("mean singular value")
    panel.set_ylim(bottom=0)
    figures.legend(panel)
    return figure


def draw_networks(table: Rows) -> "figures.Figure":
    """Draw both spectra and the losses of the three networks."""
    figure, panels = figures.new_figure(7.0, 3.6, panels=(1, 3))
    composite, blocks, losses = panels
    for kind, label in LABELS.items():
        style = figures.kind_style(KINDS[kind])
        for panel, metric in ((composite, "composite"), (blocks, "blocks")):
            rows = table.where(quantity="share", metric=metric, kind=kind)
            figures.row_band(
                panel, rows, "share", error="spread", style=style, label=label
            )
        rows = table.where(quantity="loss", kind=kind)
        figures.row_band(losses, rows, "step", error="spread", style=style, label=label)
    for panel, name in ((composite, "to the scores"), (blocks, "of the two blocks")):
        panel.set_xlabel("tenth of the\nsingular values")
        panel.set_ylabel(f"mean singular value\n{name}")
    figures.log_axis(blocks, "y")
    figures.power_axis(losses, "y")
    losses.set_xlabel("step")
    losses.set_ylabel("loss")
    figures.shared_legend(figure)
    return figure


def draw_starts(table: Rows) -> "figures.Figure":
    """Draw the effect of each addition from each start."""
    figure, panels = figures.new_figure(7.0, 4.4, panels=(1, 3))
    names = [kind for kind in LABELS if kind in table.levels("addition")]
    for panel, (quantity, label) in zip(panels, CHANGES.items(), strict=True):
        for kind in names:
            rows = table.where(quantity=quantity, addition=kind)
            name = f"adding what makes {LABELS[kind]}"
            look = {"style": KINDS[kind], "label": name, "line": False}
            figures.row_band(panel, rows, "place", error="spread", kind="bars", **look)
        figures.reference_line(panel, 0.0)
        starts = {row["place"]: row["start"] for row in table}
        panel.set_xticks(list(starts), list(starts.values()), rotation=60, ha="right")
        figures.power_axis(panel, "y")
        panel.set_ylabel(label)
    figures.shared_legend(figure)
    return figure
