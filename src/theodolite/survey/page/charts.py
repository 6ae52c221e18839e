"""Charts of a survey: numbers by depth, trial steps, stable rates, dead units."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from theodolite.core import Row, Rows
from theodolite.pages import (
    Bar,
    Chart,
    Series,
    draw_bars,
    draw_chart,
    finite_points,
    sentence,
    spans_decades,
)

from ..records.outcomes import on_fewest
from ..records.whole_survey import Survey
from ..records.words import OPTIMIZERS, word
from .tables import error_of, value_of

# What blocks have, in the order in which the page shows it.
BY_DEPTH = ("forward_rms", "backward_rms", "branch_gain")
# This many modules are drawn, worst first; the table has the others.
_MOST_MODULES = 16


def charts_of(survey: Survey) -> dict[str, list[dict[str, Any]]]:
    """Return the charts by depth and those of the whole network, with captions."""
    rows, optimizer = survey.rows(), str(survey.settings.get("optimizer", ""))
    places = places_of(survey)
    by_depth = [_depth(rows, quantity, places) for quantity in BY_DEPTH]
    whole = [
        _captioned("Trial steps by learning rate", _trials(rows, optimizer), _TRIED),
        _captioned("Stable learning rate", _rates(rows), _STABLE),
        _captioned("Dead units", _dead(rows), _DEAD),
    ]
    return {
        "by_depth": [chart for chart in by_depth if chart],
        "pictures": [chart for chart in whole if chart],
    }


_TRIED = (
    "A few steps of your training, undone afterwards, at the rate in use, a tenth and "
    "ten times of it. Take a rate below the one at which the loss rises."
)
_STABLE = (
    "Below the dot a step along the steepest direction shrinks, above it grows. The "
    "bar is the error. The upright mark and the number after the slash are the rate "
    "in use."
)
_DEAD = "Units that no sample of the batch activates get no gradient. Worst first."


def places_of(survey: Survey) -> dict[str, int]:
    """Return the place of each block along the depth, by its name."""
    return {block.name: place for place, block in enumerate(survey.blocks)}


def place_of(module: Any, places: Mapping[str, int]) -> int | None:
    """Return the place of the innermost block that a module belongs to.

    Example:
        >>> place_of("layer1.0.conv1", {"layer1": 0, "layer1.0": 1})
        1
    """
    parts = str(module).partition("#")[0].split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((places[name] for name in names if name in places), None)


def by_place(rows: Rows, quantity: str, places: Mapping[str, int]) -> dict[int, Row]:
    """Return the row of each block that has a number."""
    return {
        places[row["block"]]: row
        for row in rows.where(quantity=quantity)
        if row.get("block") in places and value_of(row) is not None
    }


def _captioned(title: str, svg: Markup | None, caption: str) -> dict[str, Any] | None:
    return {"title": title, "caption": caption, "svg": svg} if svg else None


def _depth(
    rows: Rows, quantity: str, places: Mapping[str, int]
) -> dict[str, Any] | None:
    of, found = word(quantity), by_place(rows, quantity, places)
    points = finite_points((p, value_of(r), error_of(r)) for p, r in found.items())
    if not points:
        return None
    values = [value for _, value, _ in points]
    chart = Chart(
        label=f"{of.name} by depth",
        x="block, from the input to the output",
        y=of.name.lower(),
        series=(Series(name=of.name, points=points),),
        log_y=min(values) >= 0 and max(values) > 0,
        levels=((1.0, ""),) if quantity == "branch_gain" else (),
    )
    on = on_fewest(found.values())
    return _captioned(of.name, draw_chart(chart), sentence(f"{of.meaning}{on}"))


def _trials(rows: Rows, optimizer: str) -> Markup | None:
    """Draw the loss after the trial steps by rate."""
    trials = rows.where(quantity="trial_loss")
    steps = max((row["step"] for row in trials), default=0)
    after = [row for row in trials if row["step"] == steps]
    points = finite_points((r["rate"], value_of(r), error_of(r)) for r in after)
    before = [v for r in trials if r["step"] == 0 and (v := value_of(r)) is not None]
    if not before:
        return None
    used = "in use" if optimizer else "default of Adam"
    uprights = []
    for row in after:
        words = [used] if row["factor"] == 1 else []
        words += ["not finite"] if value_of(row) is None else []
        uprights += [(float(row["rate"]), ", ".join(words))] if words else []
    return draw_chart(
        Chart(
            label=f"Loss after {steps} trial steps by learning rate",
            x="learning rate",
            y=f"loss after {steps} steps",
            series=(Series(name=word("trial_loss").name, points=points),),
            log_x=True,
            log_y=spans_decades([*before, *(value for _, value, _ in points)]),
            levels=((before[0], "before"),),
            uprights=tuple(uprights),
        )
    )


def _rates(rows: Rows) -> Markup | None:
    used = {r["optimizer"]: value_of(r) for r in rows.where(quantity="rate_in_use")}
    bars = [
        Bar(
            name=OPTIMIZERS[row["optimizer"]],
            value=value,
            low=max(value - (error_of(row) or 0.0), value / 100),
            high=value + (error_of(row) or 0.0),
            mark=used.get(row["optimizer"]),
        )
        for row in rows.where(quantity="stable_rate")
        if (value := value_of(row) or 0.0) > 0
    ]
    label = "Stable learning rates with their errors"
    axes = {"label": label, "axis": "learning rate", "log": True}
    return draw_bars(bars, **axes) if bars else None


def _dead(rows: Rows) -> Markup | None:
    of = word("dead_share")
    shares = {
        str(row.get("module") or ""): of.factor * value
        for row in rows.where(quantity="dead_share")
        if (value := value_of(row)) is not None
    }
    if shares and not any(shares.values()):
        shares = {f"all {len(shares)} activations": 0.0}
    worst = sorted(shares, key=shares.__getitem__, reverse=True)[:_MOST_MODULES]
    bars = [Bar(name=name, value=shares[name], unit=of.unit) for name in worst]
    axis = f"units that no sample activates, {of.unit}"
    return draw_bars(bars, label="Dead units by module", axis=axis) if bars else None
