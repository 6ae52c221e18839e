"""Figure 1(f), counts against closed forms, and the approach to the limit."""

from dataclasses import replace
from itertools import cycle

from theodolite import figures
from theodolite.core import PredictedAndMeasured, Rows, beside, group_means, measured


def curves(both: PredictedAndMeasured) -> Rows:
    """Return figure 1(f): exponents by depth and scale, and those of plain networks."""
    return both.predicted.where(quantity="exponent") + both.predicted.where(
        quantity="plain_exponent"
    )


def counts(both: PredictedAndMeasured) -> Rows:
    """Return mean counts of all points with their closed forms, by dimension."""
    means = group_means(both.measured.where(quantity="total"), ("mixture", "width"))
    labels = [{"mixture": row["mixture"], "width": row["width"]} for row in means]
    closed = [
        {**at, "quantity": quantity, "value": both.predicted.value(quantity=name, **at)}
        for quantity, name in (("closed_form", "total"), ("asymptotic", "asymptotic"))
        for at in labels
    ]
    return means + Rows(closed)


def approach(both: PredictedAndMeasured) -> Rows:
    """Return the excess over Eq 31 by dimension, order and index."""
    return both.predicted.where(quantity="excess")


_COUNTED = "critical points of {}, {{mixture}}, dimension {{width}}"
compare = beside(
    (_COUNTED.format("all indices"), measured("total")),
    (_COUNTED.format("index {index}"), measured("count")),
)


KINDS = {
    "three": "order_three",
    "two-three": "orders_two_three",
    "two-four": "orders_two_four",
    "four": "plain",
    "beta-0.5": "weak_branch",
    "beta-1": "residual",
    "beta-4": "strong_branch",
}
COUNTED = ("three", "two-three", "two-four", "four", "beta-0.5", "beta-1", "beta-4")
LABELS = {
    "three": "order 3",
    "two-three": "orders 2 and 3",
    "two-four": "orders 2 and 4",
    "four": "plain, depth 4",
    "beta-0.5": "residual, $\\beta = 0.5$",
    "beta-1": "residual, $\\beta = 1$",
    "beta-4": "residual, $\\beta = 4$",
}

# One colour per order; indices differ by line style.
DASHES = ("solid", "dashed", "dashdot", "dotted")


def draw_curves(table: Rows) -> "figures.Figure":
    """Draw the exponent against the scale, one curve per depth."""
    figure, (panel,) = figures.new_figure(6.2, 4.0)
    depths = table.levels("depth")
    for depth in depths:
        style = figures.ordered_style(depth, depths)
        rows = table.where(quantity="exponent", depth=depth)
        figures.row_line(panel, rows, "beta", style=style, label=f"$p = {depth}$")
        plain = table.value(quantity="plain_exponent", depth=depth)
        ends = [min(rows.column("beta")), max(rows.column("beta"))]
        figures.curve(
            panel, ends, [plain] * 2, style=style, means="plain network of that depth"
        )
    figures.log_axis(panel, "x")
    panel.set(xlabel=r"scale of a branch, $\beta$", ylabel=r"exponent $\theta_k$")
    figures.legend(panel)
    return figure


def draw_counts(table: Rows) -> "figures.Figure":
    """Draw counts against dimension with both formulas."""
    figure, (panel,) = figures.new_figure(6.8, 4.2)
    mixtures = [name for name in COUNTED if name in table.levels("mixture")]
    for name in mixtures:
        style = figures.kind_style(KINDS[name])
        rows = table.where(quantity="total", mixture=name)
        figures.row_band(
            panel,
            rows,
            "width",
            style=style,
            label=LABELS[name],
            kind="bars",
            line=False,
        )
        closed = table.where(quantity="closed_form", mixture=name)
        figures.row_curve(panel, closed, "width", style=style, means="exact mean")
    low = table.where(quantity="asymptotic")
    panel.plot(
        low.column("width"),
        low.values(),
        "x",
        color=figures.MUTED,
        label="Eq 31 as a number",
    )
    figures.log_axis(panel, "y")
    panel.set_xticks(table.levels("width"))
    panel.set(xlabel=r"dimension $\Lambda$", ylabel="critical points")
    figures.legend(panel, outside=True)
    return figure


def draw_approach(table: Rows) -> "figures.Figure":
    """Draw the excess over Eq 31 against the dimension."""
    figure, (panel,) = figures.new_figure(6.2, 4.0)
    orders, indices = table.levels("order"), table.levels("index")
    for order in orders:
        for index, dashes in zip(indices, cycle(DASHES)):
            rows = table.where(order=order, index=index)
            style = figures.ordered_style(order, orders)
            style = replace(style, line=dashes)
            figures.row_line(
                panel, rows, "width", style=style, label=f"order {order}, index {index}"
            )
    figures.log_axis(panel, "x", base=2, ticks=table.levels("width"))
    figures.log_axis(panel, "y")
    panel.set_xlabel(r"dimension $\Lambda$")
    panel.set_ylabel(r"$\frac{1}{\Lambda}\log E\,Crt_k - \theta_k$")
    figures.legend(panel, outside=True)
    return figure
