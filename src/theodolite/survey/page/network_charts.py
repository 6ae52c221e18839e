"""Charts of a survey about the whole network."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup

from theodolite.core import Row
from theodolite.pages import (
    Bar,
    Chart,
    Series,
    capitalise,
    draw_bars,
    draw_chart,
    finite_points,
    spans_decades,
)

from ..records.words import OPTIMIZERS, word
from .depth import SPECTRUM, Side
from .tables import error_of, value_of

# This many modules are drawn, worst first; the table has the others.
_MOST_MODULES = 16


def network_charts(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Return every chart that the rows of these surveys allow, with its caption."""
    charts = []
    for title, quantity, caption, draw in _CHARTS:
        if (svg := draw(sides)) is None:
            continue
        said = [f"{s.word}{on}".strip() for s in sides if (on := s.samples(quantity))]
        caption += f" {capitalise('; '.join(said))}." if said else ""
        charts.append({"title": title, "caption": caption, "svg": svg})
    return charts


def _series(
    sides: Sequence[Side], quantity: str, along: str, **labels: Any
) -> tuple[Series, ...]:
    """Return the numbers of the whole network along a label, one line per side."""
    series = []
    for side in sides:
        points = finite_points(
            (row.get(along), value_of(row), error_of(row))
            for row in side.rows.where(quantity=quantity, **labels)
            if row.get("block") in (None, "whole")
        )
        name = side.word or word(quantity).name
        series += [Series(name=name, points=points, side=side.key)] if points else []
    return tuple(series)


def _drawn(series: Sequence[Series], label: str, **axes: Any) -> Markup | None:
    if not series:
        return None
    return draw_chart(Chart(label=label, series=tuple(series), **axes))


def _first(side: Side, quantity: str, **labels: Any) -> float | None:
    rows = side.rows.where(quantity=quantity, **labels)
    return value_of(rows[0]) if len(rows) else None


def _trials(sides: Sequence[Side]) -> Markup | None:
    rows = [row for side in sides for row in side.rows.where(quantity="trial_loss")]
    steps = max((row["step"] for row in rows), default=0)
    series = _series(sides, "trial_loss", "rate", step=steps)
    levels = dict.fromkeys(value_of(row) for row in rows if row["step"] == 0)
    losses = [*levels, *(p[1] for one in series for p in one.points)]
    given = all(side.survey.settings.get("optimizer") for side in sides)
    used = "in use" if given else "default of Adam"
    uprights = [_special(row, used) for row in rows if row["step"] == steps]
    return _drawn(
        series,
        f"Loss after {steps} trial steps by learning rate",
        x="learning rate",
        y=f"loss after {steps} steps",
        log_x=True,
        log_y=spans_decades(losses),
        levels=tuple((level, "before") for level in levels if level is not None),
        uprights=tuple(dict.fromkeys(filter(None, uprights))),
    )


def _special(row: Row, used: str) -> tuple[float, str] | None:
    """Return a rate that the chart marks, with its name."""
    if value_of(row) is None:
        return float(row["rate"]), "not finite"
    return (float(row["rate"]), used) if row["factor"] == 1 else None


def _rates(sides: Sequence[Side]) -> Markup | None:
    bars = [
        Bar(
            name=f"{name} {side.word}".strip(),
            value=value,
            low=max(value - (error_of(row) or 0.0), value / 100),
            high=value + (error_of(row) or 0.0),
            side=side.key,
            mark=_first(side, "rate_in_use", optimizer=kind),
        )
        for kind, name in OPTIMIZERS.items()
        for side in sides
        for row in side.rows.where(quantity="stable_rate", optimizer=kind)
        if (value := value_of(row) or 0.0) > 0
    ]
    label = "Stable learning rates with their errors"
    return (
        draw_bars(bars, label=label, axis="learning rate", log=True) if bars else None
    )


def _dead(sides: Sequence[Side]) -> Markup | None:
    of = word("dead_share")
    shares = [
        {
            str(row.get("module") or ""): of.factor * value
            for row in side.rows.where(quantity="dead_share")
            if (value := value_of(row)) is not None
        }
        for side in sides
    ]
    worst = {
        name: max(m.get(name, 0.0) for m in shares) for own in shares for name in own
    }
    if worst and not any(worst.values()):
        shares = [{f"all {len(own)} activations": 0.0} for own in shares]
        worst = dict.fromkeys((name for own in shares for name in own), 0.0)
    bars = [
        Bar(
            name=f"{name} {side.word}".strip(),
            value=mine[name],
            side=side.key,
            unit=of.unit,
        )
        for name in sorted(worst, key=worst.__getitem__, reverse=True)[:_MOST_MODULES]
        for side, mine in zip(sides, shares, strict=True)
        if name in mine
    ]
    axis = f"units that no sample activates, {of.unit}"
    return draw_bars(bars, label="Dead units by module", axis=axis) if bars else None


def _density(sides: Sequence[Side]) -> Markup | None:
    series = _series(sides, "density", "node")
    # Far below the peak there is only noise, which a logarithmic scale would magnify.
    top = max((p[1] for one in series for p in one.points), default=0.0)
    return _drawn(
        [
            replace(one, points=tuple(p for p in one.points if p[1] > 1e-7 * top))
            for one in series
        ],
        "Density of Hessian eigenvalues, with its error as a band",
        x="curvature (eigenvalue of the loss Hessian)",
        y="density",
        log_y=True,
        uprights=((0.0, "flat"),),
    )


def _paths(sides: Sequence[Side]) -> Markup | None:
    series = []
    for one in _series(sides, "path_energy", "length"):
        share = 100 / (sum(p[1] for p in one.points) or 1.0)
        points = tuple((x, share * v, share * (e or 0.0)) for x, v, e in one.points)
        kind = "bars" if len(sides) == 1 else "line"
        series.append(replace(one, points=points, kind=kind))
    depths = [
        (_first(s, "effective_depth"), f"{s.word} effective depth") for s in sides
    ]
    return _drawn(
        series,
        "Energy by path length",
        x="path length (branches taken)",
        y="share of energy, %",
        uprights=tuple((at, name.strip()) for at, name in depths if at is not None),
        from_zero=True,
    )


def _whole_spectrum(sides: Sequence[Side]) -> Markup | None:
    series = _series(sides, SPECTRUM, "share", block="whole")
    return _drawn(
        series,
        "Singular values of the whole network's Jacobian",
        x="share of directions stretched by less",
        y="singular value",
        log_y=all(p[1] > 0 for one in series for p in one.points),
        levels=((1.0, ""),),
    )


# Title, quantity, caption, and what draws it.
_CHARTS: tuple[tuple[str, str, str, Callable[[Sequence[Side]], Markup | None]], ...] = (
    (
        "Trial steps by learning rate",
        "trial_loss",
        "A few steps of your training, undone afterwards, at the rate in use, a tenth "
        "and ten times of it. Take a rate below the one at which the loss rises.",
        _trials,
    ),
    (
        "Stable learning rates",
        "stable_rate",
        "Below the dot a step along the steepest direction shrinks, above it grows. "
        "The bar is the error. The upright mark and the number after the slash are "
        "the rate in use.",
        _rates,
    ),
    (
        "Dead units",
        "dead_share",
        "Units that no sample of the batch activates get no gradient. Worst first.",
        _dead,
    ),
    (
        "Density of curvatures",
        "density",
        "How many directions of the weights bend by how much. Mass left of zero bends "
        "down; what lies far to the right limits the learning rate.",
        _density,
    ),
    (
        "Path ensemble",
        "path_energy",
        "A residual network is a sum over paths. This is how much of the output comes "
        "from paths through so many branches.",
        _paths,
    ),
    (
        "End-to-end Jacobian",
        SPECTRUM,
        "By how much the whole network stretches small changes of its input.",
        _whole_spectrum,
    ),
)
