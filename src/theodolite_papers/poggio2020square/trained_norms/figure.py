"""Draw figures 1 to 12 from saved rows."""

from typing import Any

import numpy as np

from theodolite import figures
from theodolite.core import (
    PredictedAndMeasured,
    Row,
    Rows,
    beside,
    group_means,
    measured,
)

KEYS = ("family", "condition", "start")


def _courses(both: PredictedAndMeasured, *quantities: str) -> Rows:
    """Return means over the kept trials, without settings that only have epoch 0."""
    means = Rows.joined(
        group_means(both.measured.where(quantity=name), (*KEYS, "epoch"))
        for name in quantities
    )
    moved = {tuple(row[k] for k in KEYS) for row in means if row["epoch"] > 0}
    return means.where(lambda row: tuple(row[k] for k in KEYS) in moved)


def _decayed(rows: Rows) -> Rows:
    """Return the rows with decay or, if none of them trained, those without."""
    kept = rows.where(condition="bn_wd")
    return kept if len(kept) else rows.where(condition="bn")


def losses(both: PredictedAndMeasured) -> Rows:
    """Return losses by epoch, of the settings that figures show."""
    rows = _courses(both, "train_loss_at", "test_loss_at")
    return rows.where(lambda row: row["condition"] != "bn_fast")


def norms(both: PredictedAndMeasured) -> Rows:
    """Return norms by epoch."""
    return _courses(both, "rho_at")


def zooms(both: PredictedAndMeasured) -> Rows:
    """Return norms and mean outputs with decay, by epoch."""
    return _decayed(_courses(both, "rho_at", "mean_abs_f_at"))


def ratios(both: PredictedAndMeasured) -> Rows:
    """Return ratios with decay, and where they should rest."""
    return _decayed(_courses(both, "ratio_at", "ratio_limit_at"))


def margins(both: PredictedAndMeasured) -> Rows:
    """Return sorted margins at the end, over their mean magnitude."""
    rows = group_means(both.measured.where(quantity="margin_level"), (*KEYS, "share"))
    scaled: list[Row] = []
    for row in rows:
        same = {k: row[k] for k in KEYS}
        size = float(np.abs(rows.where(**same).values()).mean())
        scaled.append({**row, "value": row["value"] / size})
    return Rows(scaled).where(lambda row: row["condition"] != "bn_fast")


def histograms(both: PredictedAndMeasured) -> Rows:
    """Return levels of the outputs' magnitudes by epoch."""
    return group_means(
        both.measured.where(quantity="abs_f_level"), (*KEYS, "epoch", "share")
    )


compare = beside(
    ("ρ at the start, {condition}, {start:g}", measured("rho_start")),
    (
        "Σyf/Σf² over ρ, {family}, from {start:g}",
        measured("ratio", condition="bn_wd"),
        measured("ratio_limit", condition="bn_wd"),
    ),
)


TITLES = {
    "bn_wd": "BN, decay (figs 1–5)",
    "bn_fast": "BN, no decay, rate 0.1",
    "bn": "BN, no decay (figs 6–9)",
    "plain": "neither (figs 10–12)",
    "bn_wd_slow": "BN, decay, rate 0.01",
    "plain_slow": "neither, rate 0.01",
}
STARTS = (0.1, 1.0, 3.0, 5.0, 8.0, 15.0, 30.0)
NAMES = [f"from {start:g}" for start in STARTS]
LEAVES = "leaves the panel"
FEW = 10  # epochs of the zooms
SHORT = {
    "dense": "dense",
    "convolutional": "conv.",
    "narrow_dense": "narrow",
    "narrow_convolutional": "narrow conv.",
    "medium_dense": "64 units",
    "medium_convolutional": "4 channels",
}


def _grid(table: Rows, height: float = 2.7) -> tuple["figures.Figure", dict[Any, Any]]:
    """Return a figure and its panels, one per family and condition in the table."""
    keys = [
        (family, condition)
        for family in SHORT
        for condition in TITLES
        if len(table.where(family=family, condition=condition))
    ]
    columns = max(1, min(2, len(keys)))
    lines = max(1, -(-len(keys) // columns))
    figure, panels = figures.new_figure(
        7.0, height * lines + 0.6, panels=(lines, columns), share_y=True
    )
    for spare in panels[len(keys) :]:
        spare.remove()
    by_key = dict(zip(keys, panels[: len(keys)], strict=True))
    for (family, condition), panel in by_key.items():
        panel.set(title=f"{SHORT[family]}, {TITLES[condition]}", xlabel="epoch")
    return figure, by_key


def _style(start: float) -> "figures.SeriesStyle":
    return figures.ordered_style(start, sorted({*STARTS, start}))


def _lines(panel: Any, table: Rows, *, dashed: str | None = None) -> None:
    """Draw one line per start; ``dashed`` says what dashed lines mean."""
    for start in table.levels("start"):
        rows = table.where(start=start)
        epochs, values, style = rows.column("epoch"), rows.values(), _style(start)
        if dashed:
            figures.curve(panel, epochs, values, style=style, means=dashed)
        else:
            label = f"from {start:g}"
            figures.band(panel, epochs, values, style=style, label=label)


def _finish(
    figure: "figures.Figure", panels: dict[Any, Any], label: str, top: float
) -> None:
    """Use logarithmic axes, mark curves that leave at the top, and add the legend."""
    for panel in panels.values():
        figures.count_axis(panel)
        figures.log_axis(panel, "y")
    for panel in panels.values():
        figures.limit_y(panel, top=top, means=LEAVES)
    _outer(panels, label)
    figures.shared_legend(figure, order=NAMES)


def _outer(panels: dict[Any, Any], label: str) -> None:
    """Name the vertical axis that the panels of a row share."""
    for panel in panels.values():
        if panel.get_subplotspec().is_first_col():
            panel.set_ylabel(label)


def draw_losses(table: Rows) -> "figures.Figure":
    """Draw the losses of figures 1, 6 and 10; dashed on samples held out."""
    figure, panels = _grid(table)
    for (family, condition), panel in panels.items():
        rows = table.where(family=family, condition=condition)
        _lines(panel, rows.where(quantity="train_loss_at"))
        _lines(panel, rows.where(quantity="test_loss_at"), dashed="held out")
    _finish(figure, panels, "square loss", 1e4)
    return figure


def draw_norms(table: Rows) -> "figures.Figure":
    r"""Draw $\rho$ of figures 2, 7 and 11."""
    figure, panels = _grid(table)
    for (family, condition), panel in panels.items():
        _lines(panel, table.where(family=family, condition=condition))
    _finish(figure, panels, r"norm $\rho$", 1e10)
    return figure


def draw_zooms(table: Rows) -> "figures.Figure":
    r"""Draw figures 2 and 3: the first epochs of $\rho$, and mean $|f_n|$ with zoom."""
    families, last = table.levels("family"), max(table.column("epoch"))
    kinds: tuple[tuple[str, str, int], ...] = (
        ("rho_at", r"$\rho$", FEW),
        ("mean_abs_f_at", "mean $|f_n|$", last),
        ("mean_abs_f_at", "mean $|f_n|$", FEW),
    )
    figure, panels = figures.new_figure(
        7.0, 2.8 * len(families) + 0.4, panels=(len(families), len(kinds))
    )
    keys = [(family, kind) for family in families for kind in kinds]
    for (family, (quantity, name, cut)), panel in zip(keys, panels, strict=True):
        rows = table.where(family=family, quantity=quantity)
        _lines(panel, rows.where(lambda row, cut=cut: row["epoch"] <= cut))
        panel.set(title=f"{SHORT[family]}, {name}", xlabel="epoch")
        panel.set_xlim(0, cut)
        panel.locator_params(axis="x", integer=True, nbins=5)
        figures.log_axis(panel, "y")
        if cut > FEW:
            figures.count_axis(panel)
    figures.shared_legend(figure, order=NAMES)
    return figure


def draw_ratios(table: Rows) -> "figures.Figure":
    r"""Draw figure 4; dashed: $1 + \lambda/\sum f_n^2$ at the same weights."""
    families = table.levels("family")
    lines = max(1, -(-len(families) // 2))
    figure, panels = figures.new_figure(
        7.0 if len(families) > 1 else 5.4,
        3.4 * lines + 0.4,
        panels=(lines, 2 if len(families) > 1 else 1),
    )
    for spare in panels[len(families) :]:
        spare.remove()
    for family, panel in zip(families, panels, strict=False):
        rows = table.where(family=family)
        _lines(panel, rows.where(quantity="ratio_at"))
        limit = r"$1 + \lambda/\sum f_n^2$"
        _lines(panel, rows.where(quantity="ratio_limit_at"), dashed=limit)
        figures.reference_line(panel, 1.0)
        figures.count_axis(panel)
        figures.limit_y(panel, bottom=0.0, top=2.5, means=LEAVES)
        panel.set_title(SHORT[family])
        panel.set_xlabel("epoch")
        panel.set_ylabel(r"$(\sum y_n f_n / \sum f_n^2)\,/\,\rho$")
    figures.shared_legend(figure, order=NAMES)
    return figure


def draw_margins(table: Rows) -> "figures.Figure":
    """Draw figures 5, 8 and 12: margins of all samples, sorted, over their mean."""
    figure, panels = _grid(table)
    for (family, condition), panel in panels.items():
        here = table.where(family=family, condition=condition)
        for start in here.levels("start"):
            rows = here.where(start=start)
            figures.row_band(
                panel,
                rows,
                "share",
                error="spread",
                style=_style(start),
                label=f"from {start:g}",
            )
        figures.reference_line(panel, 1.0)
        panel.set_xlabel("share of samples")
    _outer(panels, "margin over its mean")
    figures.shared_legend(figure, order=NAMES)
    return figure


def draw_histograms(table: Rows) -> "figures.Figure":
    r"""Draw figure 9: levels of $|f_n|$ over time."""
    kinds = sorted({(row["family"], row["start"]) for row in table})
    columns = max(1, min(2, len(kinds)))
    lines = max(1, -(-len(kinds) // columns))
    figure, panels = figures.new_figure(
        7.0, 2.7 * lines, panels=(lines, columns), share_y=True
    )
    for spare in panels[len(kinds) :]:
        spare.remove()
    for (family, start), panel in zip(kinds, panels, strict=False):
        rows = table.where(family=family, start=start)
        style = _style(start)
        levels = {s: rows.where(share=s) for s in rows.levels("share")}
        epochs = levels[0.5].column("epoch")
        for low, high in ((0.05, 0.95), (0.25, 0.75)):
            panel.fill_between(
                epochs,
                levels[low].values(),
                levels[high].values(),
                color=style.colour,
                alpha=0.22,
                linewidth=0,
            )
        figures.line(panel, epochs, levels[0.5].values(), style=style)
        figures.count_axis(panel)
        figures.log_axis(panel, "y")
        panel.set(title=f"{SHORT[family]}, from {start:g}", xlabel="epoch")
    _outer(dict(zip(kinds, panels, strict=False)), "$|f_n|$")
    return figure
