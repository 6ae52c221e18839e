"""Charts of a survey about the whole network."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from theodolite.core import Rows
from theodolite.pages import (
    Bar,
    Chart,
    Series,
    capitalise,
    draw_bars,
    draw_chart,
    finite_points,
)

from .depth import Side
from .tables import error_of, value_of

_OPTIMIZERS = {
    "gd": "gradient descent",
    "momentum": "momentum",
    "adam": "Adam",
    "rmsprop": "RMSprop",
}
# This many modules are drawn, worst first; the table has the others.
_MOST_MODULES = 16


def network_charts(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Return every chart that the rows of these surveys allow, with its caption."""
    charts = []
    for title, quantity, caption, draw in _CHARTS:
        svg = draw(sides)
        if svg is None:
            continue
        samples = "; ".join(
            f"{side.word}{on}".strip()
            for side in sides
            if (on := side.samples(quantity))
        )
        caption += f" {capitalise(samples)}." if samples else ""
        charts.append({"title": title, "caption": caption, "svg": svg})
    return charts


def spectrum(
    rows: Sequence[Rows], sides: Sequence[Side], names: Sequence[str], label: str
) -> Markup | None:
    """Draw the singular values among these rows, by share, if there are any.

    Args:
        rows: Rows of each side.
        sides: The sides.
        names: Name of what each side's values describe.
        label: What the drawing shows.
    """
    mine = [one.where(quantity="singular_value") for one in rows]
    series = _series(mine, sides, names, "share")
    if series is None:
        return None
    return draw_chart(
        Chart(
            label=label,
            x="share of directions stretched by less",
            y="singular value",
            series=series,
            log_y=all(p[1] > 0 for one in series for p in one.points),
            levels=((1.0, ""),),
        )
    )


def _series(
    rows: Sequence[Rows], sides: Sequence[Side], names: Sequence[str], along: str
) -> tuple[Series, ...] | None:
    series = []
    for mine, side, name in zip(rows, sides, names, strict=True):
        points = finite_points((r.get(along), value_of(r), error_of(r)) for r in mine)
        if points:
            series.append(Series(name=name, points=points, side=side.key))
    return tuple(series) or None


def _of_network(
    sides: Sequence[Side], quantity: str, along: str
) -> tuple[Series, ...] | None:
    rows = [
        Rows(
            row
            for row in side.rows.where(quantity=quantity)
            if row.get("block") in (None, "whole")
        )
        for side in sides
    ]
    return _series(rows, sides, [side.word or quantity for side in sides], along)


def _density(sides: Sequence[Side]) -> Markup | None:
    series = _of_network(sides, "density", "node")
    if series is None:
        return None
    # Far below the peak there is only noise, which a logarithmic scale would magnify.
    top = max(p[1] for one in series for p in one.points)
    shown = tuple(
        replace(one, points=tuple(p for p in one.points if p[1] > 1e-7 * top))
        for one in series
    )
    return draw_chart(
        Chart(
            label="Density of Hessian eigenvalues, with its error as a band",
            x="curvature (eigenvalue of the loss Hessian)",
            y="density",
            series=shown,
            log_y=True,
            uprights=((0.0, "flat"),),
        )
    )


def _paths(sides: Sequence[Side]) -> Markup | None:
    series = tuple(one for side in sides if (one := _shares(side, len(sides) == 1)))
    if not series:
        return None
    depths = [
        (value, f"{side.word} effective depth".strip())
        for side in sides
        for row in side.rows.where(quantity="effective_depth")
        if (value := value_of(row)) is not None
    ]
    return draw_chart(
        Chart(
            label="Energy by path length",
            x="path length (branches taken)",
            y="share of energy",
            series=series,
            uprights=tuple(depths),
            from_zero=True,
        )
    )


def _shares(side: Side, alone: bool) -> Series | None:
    """Return the share of energy by length; the rows hold energies."""
    rows = [r for r in side.rows.where(quantity="path_energy") if value_of(r)]
    total = sum(float(row["value"]) for row in rows)
    if total <= 0:
        return None
    points = finite_points(
        (r.get("length"), float(r["value"]) / total, (error_of(r) or 0.0) / total)
        for r in rows
    )
    name, kind = side.word or "share of energy", "bars" if alone else "line"
    return Series(name=name, points=points, side=side.key, kind=kind)


def _whole_spectrum(sides: Sequence[Side]) -> Markup | None:
    rows = [side.rows.where(block="whole") for side in sides]
    names = [side.word or "end to end" for side in sides]
    label = "Singular values of the whole network's Jacobian"
    return spectrum(rows, sides, names, label)


def _rates(sides: Sequence[Side]) -> Markup | None:
    names = dict.fromkeys(
        row.get("optimizer")
        for side in sides
        for row in side.rows.where(quantity="stable_rate")
    )
    bars = [bar for name in names for side in sides if (bar := _rate(side, name))]
    in_use = _first(sides[-1].rows.where(quantity="rate_in_use"))
    if not bars:
        return None
    return draw_bars(
        bars,
        label="Stable learning rates with their intervals",
        axis="learning rate",
        log=True,
        rule=None if in_use is None else (in_use, "in use"),
    )


def _rate(side: Side, optimizer: Any) -> Bar | None:
    value, low, high = (
        _first(side.rows.where(quantity=f"stable_rate{end}", optimizer=optimizer))
        for end in ("", "_low", "_high")
    )
    if value is None or value <= 0:
        return None
    return Bar(
        name=f"{_OPTIMIZERS.get(str(optimizer), str(optimizer))} {side.word}".strip(),
        value=value,
        low=value if low is None else low,
        high=value if high is None else high,
        side=side.key,
    )


def _dead(sides: Sequence[Side]) -> Markup | None:
    shares = [
        {
            str(row.get("module") or row.get("block") or ""): value
            for row in side.rows.where(quantity="dead_share")
            if (value := value_of(row)) is not None
        }
        for side in sides
    ]
    worst = {
        name: max(mine.get(name, 0.0) for mine in shares)
        for mine in shares
        for name in mine
    }
    names = sorted((n for n in worst if worst[n] > 0), key=lambda n: -worst[n])
    bars = [
        Bar(name=f"{name} {side.word}".strip(), value=mine[name], side=side.key)
        for name in names[: _MOST_MODULES // len(sides)]
        for side, mine in zip(sides, shares, strict=True)
        if name in mine
    ]
    axis = "share of units that no sample activates"
    if not bars:
        return None
    return draw_bars(bars, label="Dead units by module", axis=axis)


def _margins(sides: Sequence[Side]) -> Markup | None:
    series = _of_network(sides, "margin", "share")
    if series is None:
        return None
    return draw_chart(
        Chart(
            label="Margins of the samples by share",
            x="share of samples with less",
            y="margin",
            series=series,
            levels=((0.0, "misclassified below"),),
        )
    )


def _first(rows: Rows) -> float | None:
    return value_of(rows[0]) if len(rows) else None


# Title, quantity, caption, and what draws it.
_CHARTS: tuple[tuple[str, str, str, Callable[[Sequence[Side]], Markup | None]], ...] = (
    (
        "Density of curvatures",
        "density",
        "How many directions of the weights bend by how much. Mass left of zero bends "
        "down; what stands far to the right limits the learning rate.",
        _density,
    ),
    (
        "Path ensemble",
        "path_energy",
        "A residual network is a sum over paths; this is how much of the output those "
        "carry that take so many branches.",
        _paths,
    ),
    (
        "Stable learning rates",
        "stable_rate",
        "Below the mark a step on the steepest direction shrinks; above it, it grows. "
        "The bar is the interval.",
        _rates,
    ),
    (
        "End-to-end Jacobian",
        "singular_value",
        "How the whole network stretches small changes of its input.",
        _whole_spectrum,
    ),
    (
        "Dead units",
        "dead_share",
        "Units that no sample of the batch activates get no gradient.",
        _dead,
    ),
    (
        "Margins",
        "margin",
        "By how much the right class leads; below zero the sample is misclassified.",
        _margins,
    ),
)
