"""Draw second moments divided by their closed forms."""

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    group_means,
    measured,
)

# Names of the averaged quantities.
MOMENTS = {
    "variance": "variance of the energy over $\\Lambda$",
    "covariance": "covariance at overlap ½ over $\\Lambda$",
    "slope_square": "$v'$, variance of the gradient",
    "bend_square": "$v''$, $\\Lambda$ times that of the Hessian",
    "radial_square": "$v' + v''$, along the radius",
}


def table(both: PredictedAndMeasured) -> Rows:
    """Return means over trials, over the closed forms of definition 3 and Eq 28."""
    rows: list[Row] = []
    for quantity in MOMENTS:
        for name in (quantity, f"printed_{quantity}"):
            means = group_means(
                both.measured.where(quantity=name), ("mixture", "width")
            )
            for row in means:
                labels = {"mixture": row["mixture"], "width": row["width"]}
                closed = both.predicted.value(quantity=quantity, **labels)
                scaled = {key: row[key] / closed for key in ("value", "error")}
                printed = name != quantity
                rows.append({**row, **scaled, "quantity": quantity, "printed": printed})
    return Rows(rows)


compare = beside(
    *(
        (f"{moment}, {{mixture}}, dimension {{width}}", measured(quantity))
        for quantity, moment in MOMENTS.items()
    )
)


LABELS = {
    "variance": "energy",
    "covariance": "pairs of energies",
    "slope_square": "gradient, $v'$",
    "bend_square": "Hessian, $v''$",
    "radial_square": "radial, $v'+v''$",
}
KINDS = {
    "three": "order_three",
    "two-three": "orders_two_three",
    "two-four": "orders_two_four",
}
NAMES = {
    "three": "order 3",
    "two-three": "orders 2 and 3",
    "two-four": "orders 2 and 4",
}
APART = 0.16


def draw(table: Rows) -> "figures.Figure":
    """Draw every second moment over its closed form, one series per mixture."""
    figure, (panel,) = figures.new_figure(6.6, 4.0)
    mixtures = [name for name in KINDS if name in table.levels("mixture")]
    width = max(table.levels("width"))
    places = {name: place for place, name in enumerate(LABELS)}
    for shift, mixture in enumerate(mixtures, start=-1):
        style = figures.kind_style(KINDS[mixture])
        for printed in (False, True):
            rows = table.where(mixture=mixture, width=width, printed=printed)
            figures.band(
                panel,
                [places[row["quantity"]] + APART * shift for row in rows],
                rows.values(),
                rows.values("error"),
                style=style,
                label=None if printed else NAMES[mixture],
                bound=[printed] * len(rows),
                means="hollow: as printed",
                kind="bars",
                line=False,
            )
    figures.reference_line(panel, 1.0, label="closed form")
    panel.set_xticks(list(places.values()), list(LABELS.values()))
    panel.set_ylabel("measured over closed form")
    figures.legend(panel)
    return figure
