"""Charts of a survey that are of the whole network."""

from collections.abc import Callable, Sequence
from typing import Any

from markupsafe import Markup

from theodolite.core import Row, Rows
from theodolite.survey.page.chart import Chart, Series, draw, finite_points
from theodolite.survey.page.columns import Side, error_of, value_of
from theodolite.survey.page.intervals import Bar, draw_bars

_OPTIMISERS = {
    "gd": "gradient descent",
    "momentum": "momentum",
    "adam": "Adam",
    "rmsprop": "RMSprop",
}
# So many modules are drawn, worst first; the table has the others.
_MOST_MODULES = 16


def pictures_of(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Return every chart that the rows of these surveys allow, with its caption."""
    found = []
    for title, caption, make in _PICTURES:
        drawn = make(sides)
        if drawn is not None:
            found.append({"title": title, "caption": caption, "svg": drawn})
    return found


def _series(
    sides: Sequence[Side], quantity: str, along: str, **look: Any
) -> tuple[Series, ...]:
    found = []
    for side in sides:
        rows = [r for r in side.rows.where(quantity=quantity) if _whole(r)]
        points = finite_points([(r.get(along), value_of(r), error_of(r)) for r in rows])
        if points:
            name = side.word or quantity
            found.append(Series(name=name, points=points, side=side.key, **look))
    return tuple(found)


def _whole(row: Row) -> bool:
    return row.get("block") in (None, "whole")


def _density(sides: Sequence[Side]) -> Markup | None:
    series = _series(sides, "density", "node")
    if not series:
        return None
    # Far below the peak there is noise, which a logarithm would show at length.
    top = max(p[1] for one in series for p in one.points)
    shown = tuple(
        Series(
            name=one.name,
            side=one.side,
            points=tuple(p for p in one.points if p[1] > 1e-7 * top),
        )
        for one in series
    )
    return draw(
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
    return draw(
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
    """Return the share of energy by length, of which rows tell energies."""
    rows = [r for r in side.rows.where(quantity="path_energy") if value_of(r)]
    total = sum(float(row["value"]) for row in rows)
    points = finite_points(
        [
            (r.get("length"), float(r["value"]) / total, (error_of(r) or 0.0) / total)
            for r in rows
        ]
        if total > 0
        else []
    )
    if not points:
        return None
    name, kind = side.word or "share of energy", "bars" if alone else "line"
    return Series(name=name, points=points, side=side.key, kind=kind)


def _whole_spectrum(sides: Sequence[Side]) -> Markup | None:
    found = []
    for side in sides:
        rows = side.rows.where(quantity="singular_value", block="whole")
        points = finite_points(
            [(r.get("share"), value_of(r), error_of(r)) for r in rows]
        )
        if points:
            name = side.word or "end to end"
            found.append(Series(name=name, points=points, side=side.key))
    if not found:
        return None
    return draw(
        Chart(
            label="Singular values of the whole network's Jacobian",
            x="share of directions stretched by less",
            y="singular value",
            series=tuple(found),
            log_y=all(p[1] > 0 for one in found for p in one.points),
            levels=((1.0, ""),),
        )
    )


def _rates(sides: Sequence[Side]) -> Markup | None:
    names = dict.fromkeys(
        row.get("optimiser")
        for side in sides
        for row in side.rows.where(quantity="stable_rate")
    )
    bars = [bar for name in names for side in sides if (bar := _rate(side, name))]
    if not bars:
        return None
    in_use = _number(sides[-1].rows.where(quantity="rate_in_use"))
    return draw_bars(
        bars,
        label="Stable learning rates with their intervals",
        axis="learning rate",
        log=True,
        rule=None if in_use is None else (in_use, "in use"),
    )


def _rate(side: Side, optimiser: Any) -> Bar | None:
    value, low, high = (
        _number(side.rows.where(quantity=f"stable_rate{end}", optimiser=optimiser))
        for end in ("", "_low", "_high")
    )
    if value is None or value <= 0:
        return None
    return Bar(
        name=f"{_OPTIMISERS.get(str(optimiser), str(optimiser))} {side.word}".strip(),
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
        Bar(
            name=f"{name} {side.word}".strip(),
            value=mine[name],
            low=0.0,
            high=mine[name],
            side=side.key,
        )
        for name in names[: _MOST_MODULES // len(sides)]
        for side, mine in zip(sides, shares, strict=True)
        if name in mine
    ]
    if not bars:
        return None
    axis = "share of units that no sample activates"
    return draw_bars(bars, label="Dead units by module", axis=axis, filled=True)


def _margins(sides: Sequence[Side]) -> Markup | None:
    series = _series(sides, "margin", "share")
    if not series:
        return None
    return draw(
        Chart(
            label="Margins of the samples by share",
            x="share of samples with less",
            y="margin",
            series=series,
            levels=((0.0, "misclassified below"),),
        )
    )


def _number(rows: Rows) -> float | None:
    return value_of(rows[0]) if len(rows) else None


_PICTURES: tuple[tuple[str, str, Callable[[Sequence[Side]], Markup | None]], ...] = (
    (
        "Density of curvatures",
        "How many directions of the weights bend by how much. Mass left of zero bends "
        "down; what stands far to the right limits the learning rate.",
        _density,
    ),
    (
        "Path ensemble",
        "A residual network is a sum over paths; this is how much of the output those "
        "carry that take so many branches.",
        _paths,
    ),
    (
        "Stable learning rates",
        "Below the mark a step on the steepest direction shrinks; above it, it grows. "
        "The bar is the interval.",
        _rates,
    ),
    (
        "End-to-end Jacobian",
        "How the whole network stretches small changes of its input.",
        _whole_spectrum,
    ),
    (
        "Dead units",
        "Units that no sample of the batch activates get no gradient.",
        _dead,
    ),
    (
        "Margins",
        "By how much the right class leads; below zero the sample is misclassified.",
        _margins,
    ),
)
