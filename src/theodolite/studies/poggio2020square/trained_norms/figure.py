"""Figures 1 to 12 from rows of points."""

from typing import TYPE_CHECKING, Any

from theodolite import figures
from theodolite.core import Rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {
    "bn_wd": "BN, decay (figs 1–5)",
    "bn_fast": "BN, no decay, rate 0.1",
    "bn": "BN, no decay (figs 6–9)",
    "plain": "neither (figs 10–12)",
}
STARTS = ("0.1", "1", "5", "15", "30")
FEW = 10  # epochs of the zooms
SHORT = {
    "dense": "dense",
    "convolutional": "conv.",
    "narrow_dense": "narrow",
    "narrow_convolutional": "narrow conv.",
}


def _grid(table: Rows, height: float = 2.7) -> tuple["Figure", dict[Any, Any]]:
    """Return panels by family and condition, of those that there are."""
    keys = [
        (family, condition)
        for family in SHORT
        for condition in TITLES
        if len(table.where(family=family, condition=condition))
    ]
    columns = min(4, len(keys))
    lines = -(-len(keys) // columns)
    figure, panels = figures.new_figure(
        2.9 * max(2, columns), height * lines + 0.4, panels=(lines, columns)
    )
    for spare in panels[len(keys) :]:
        spare.remove()
    found = dict(zip(keys, panels[: len(keys)], strict=True))
    for (family, condition), panel in found.items():
        panel.set_title(f"{SHORT[family]}, {TITLES[condition]}", fontsize=8)
        panel.set_xlabel("epoch")
    return figure, found


def _lines(
    panel: Any, table: Rows, *, named: bool = True, dashed: bool = False
) -> None:
    for start in table.levels("start"):
        rows = table.where(start=start)
        style = figures.series_style(f"{start:g}", list(STARTS))
        label = f"from {start:g}" if named else None
        if dashed:
            figures.curve(panel, rows.column("epoch"), rows.values(), style=style)
            continue
        panel.plot(
            rows.column("epoch"),
            rows.values(),
            color=style.colour,
            linestyle=style.line,
            linewidth=1.4,
            label=label,
        )


def _epochs(panel: Any) -> None:
    panel.set_xscale("symlog", linthresh=1)
    panel.set_xlim(left=0)


def _upto(panel: Any, top: float) -> None:
    """Use a logarithmic axis that what blew up may leave."""
    figures.log_axis(panel, "y")
    panel.set_ylim(top=min(top, panel.get_ylim()[1]))


def draw_losses(table: Rows) -> "Figure":
    """Draw the losses of figures 1, 6 and 10; dashed on samples held out."""
    figure, panels = _grid(table)
    for (family, condition), panel in panels.items():
        rows = table.where(family=family, condition=condition)
        _lines(panel, rows.where(quantity="train_loss_at"))
        _lines(panel, rows.where(quantity="test_loss_at"), named=False, dashed=True)
        _epochs(panel)
        _upto(panel, 1e4)
        figures.legend(panel)
    for panel in list(panels.values())[:1]:
        panel.set_ylabel("square loss")
    return figure


def draw_norms(table: Rows) -> "Figure":
    r"""Draw $\rho$ of figures 2, 7 and 11."""
    figure, panels = _grid(table)
    for (family, condition), panel in panels.items():
        _lines(panel, table.where(family=family, condition=condition))
        _epochs(panel)
        _upto(panel, 1e10)
        figures.legend(panel)
    for panel in list(panels.values())[:1]:
        panel.set_ylabel(r"$\rho$")
    return figure


def draw_zooms(table: Rows) -> "Figure":
    r"""Draw figures 2 and 3: the first epochs of $\rho$, and mean $|f_n|$ with zoom."""
    families, last = table.levels("family"), max(table.column("epoch"))
    kinds: tuple[tuple[str, str, int], ...] = (
        ("rho_at", r"$\rho$", FEW),
        ("mean_abs_f_at", "mean $|f_n|$", last),
        ("mean_abs_f_at", "mean $|f_n|$", FEW),
    )
    figure, panels = figures.new_figure(
        8.8, 2.6 * len(families), panels=(len(families), len(kinds))
    )
    keys = [(family, kind) for family in families for kind in kinds]
    for (family, (quantity, name, cut)), panel in zip(keys, panels, strict=True):
        rows = table.where(family=family, quantity=quantity)
        _lines(panel, rows.where(lambda row, cut=cut: row["epoch"] <= cut))
        panel.set_title(f"{SHORT[family]}, {name}", fontsize=8)
        panel.set_xlabel("epoch")
        panel.set_xlim(0, cut)
        figures.log_axis(panel, "y")
        if cut > FEW:
            _epochs(panel)
    figures.legend(panels[0])
    return figure


def draw_ratios(table: Rows) -> "Figure":
    r"""Draw figure 4; dashed: $1 + \lambda/\sum f_n^2$ at the same weights."""
    families = table.levels("family")
    figure, panels = figures.new_figure(
        4.3 * len(families), 3.4, panels=(1, len(families))
    )
    for family, panel in zip(families, panels, strict=True):
        rows = table.where(family=family)
        _lines(panel, rows.where(quantity="ratio_at"))
        _lines(panel, rows.where(quantity="ratio_limit_at"), named=False, dashed=True)
        figures.rule(panel, 1.0)
        _epochs(panel)
        panel.set_ylim(0.0, 2.5)
        panel.set_title(SHORT[family])
        panel.set_xlabel("epoch")
        panel.set_ylabel(r"$(\sum y_n f_n / \sum f_n^2)\,/\,\rho$")
        figures.legend(panel)
    return figure


def draw_margins(table: Rows) -> "Figure":
    """Draw figures 5, 8 and 12: margins of all samples, sorted, over their mean."""
    figure, panels = _grid(table)
    for (family, condition), panel in panels.items():
        here = table.where(family=family, condition=condition)
        for start in here.levels("start"):
            rows = here.where(start=start)
            figures.band(
                panel,
                rows.column("share"),
                rows.values(),
                rows.values("spread"),
                style=figures.series_style(f"{start:g}", list(STARTS)),
                label=f"from {start:g}",
            )
        figures.rule(panel, 1.0)
        panel.set_xlabel("share of samples")
        figures.legend(panel)
    for panel in list(panels.values())[:1]:
        panel.set_ylabel("margin over its mean")
    return figure


def draw_histograms(table: Rows) -> "Figure":
    r"""Draw figure 9: levels of $|f_n|$ over time."""
    kinds = [(f, s) for f in table.levels("family") for s in table.levels("start")]
    figure, panels = figures.new_figure(
        2.7 * max(2, len(kinds)), 3.0, panels=(1, len(kinds))
    )
    for (family, start), panel in zip(kinds, panels, strict=True):
        rows = table.where(family=family, start=start)
        style = figures.series_style(f"{start:g}", list(STARTS))
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
        panel.plot(epochs, levels[0.5].values(), color=style.colour, linewidth=1.6)
        _epochs(panel)
        figures.log_axis(panel, "y")
        panel.set_title(f"{SHORT[family]}, from {start:g}")
        panel.set_xlabel("epoch")
    panels[0].set_ylabel("$|f_n|$")
    return figure
