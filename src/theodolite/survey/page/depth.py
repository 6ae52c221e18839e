"""Numbers of a survey along the depth: charts, a table of blocks, a figure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from theodolite.core import MeasurementError, Row, Rows
from theodolite.figures import draw_cross_section
from theodolite.pages import Chart, Series, draw_chart, finite_points, format_count

from ..records.outcomes import on_fewest
from ..records.words import word
from .tables import error_of, value_of, written_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..records.whole_survey import Survey

SPECTRUM = "singular_value"
_QUANTITIES = (
    "forward_rms",
    "backward_rms",
    "branch_gain",
    "block_largest_eigenvalue",
    "weight_rms",
)
# Quantiles of a block's singular values that are drawn.
_SHARES = (1.0, 0.5, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One survey of a page.

    Attributes:
        key: ``"a"``, or ``"b"`` for the second of two.
        word: Its name on the page; empty if it is the only side.
        survey: The survey.
        places: Place of each block along the depth, by name.
        rows: All its rows.
    """

    key: str
    word: str
    survey: "Survey"
    places: Mapping[str, int]
    rows: Rows

    def samples(self, quantity: str) -> str:
        """Return words for the samples behind a quantity, if they are not all."""
        return on_fewest(self.rows.where(quantity=quantity))

    def by_place(self, quantity: str, **labels: Any) -> dict[int, Row]:
        """Return the row of each block; of several, as of its layers, the largest."""
        rows: dict[int, Row] = {}
        for row in self.rows.where(quantity=quantity, **labels):
            place = place_of(row.get("block") or row.get("module"), self.places)
            value = value_of(row)
            if place is not None and value is not None:
                if place not in rows or value > rows[place]["value"]:
                    rows[place] = row
        return rows


def side_of(
    survey: "Survey",
    key: str = "a",
    word: str = "",
    places: Mapping[str, int] | None = None,
) -> Side:
    """Return a survey as a side of a page, by default with its blocks in order."""
    if places is None:
        places = {block.name: place for place, block in enumerate(survey.blocks)}
    return Side(key=key, word=word, survey=survey, places=places, rows=survey.rows())


def place_of(module: Any, places: Mapping[str, int]) -> int | None:
    """Return the place of the innermost block that a module belongs to.

    Example:
        >>> place_of("layer1.0.conv1", {"layer1": 0, "layer1.0": 1})
        1
    """
    parts = str(module).partition("#")[0].split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((places[name] for name in names if name in places), None)


def depth_charts(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Return a chart of each quantity that blocks have, with its caption."""
    charts = []
    for quantity in (SPECTRUM, *_QUANTITIES):
        series = [one for side in sides for one in _lines(side, quantity)]
        if not series:
            continue
        of = word(quantity)
        values = [p[1] for one in series for p in one.points]
        chart = Chart(
            label=f"{of.name} by depth",
            x="block, from the input to the output",
            y=of.name.lower(),
            series=tuple(series),
            log_y=min(values) >= 0 and max(values) > 0,
            levels=((1.0, ""),) if quantity in (SPECTRUM, "branch_gain") else (),
        )
        meaning = f"{of.meaning[:1].upper()}{of.meaning[1:]}" if of.meaning else of.name
        which = ": largest, median and smallest" if quantity == SPECTRUM else ""
        on = "".join(dict.fromkeys(side.samples(quantity) for side in sides))
        caption = f"{meaning}{which}{on}."
        charts.append({"title": of.name, "caption": caption, "svg": draw_chart(chart)})
    return charts


def _lines(side: Side, quantity: str) -> Iterable[Series]:
    several = quantity == SPECTRUM
    for share in _SHARES if several else (None,):
        labels = {"share": share} if several else {}
        rows = side.by_place(quantity, **labels)
        points = finite_points((p, value_of(r), error_of(r)) for p, r in rows.items())
        if points:
            name = f"{side.word} {word(quantity).name}".strip()
            quiet = several and share != 0.5
            yield Series(name=name, points=points, side=side.key, quiet=quiet)


def block_table(sides: Sequence[Side]) -> dict[str, Any]:
    """Return the blocks in order of depth, with their numbers on each side."""
    shown = [q for q in _QUANTITIES if any(side.by_place(q) for side in sides)]
    rows = {q: [side.by_place(q) for side in sides] for q in shown}
    blocks = {s.places[b.name]: b for s in sides for b in s.survey.blocks}
    lines = [
        {
            "place": place,
            "name": block.name,
            "facts": [
                block.kind,
                block.skip or "—",
                _counted(block.norms),
                _counted(block.activations),
                format_count(block.n_parameters),
            ],
            "numbers": [
                " → ".join(
                    written_value(own[place]) if place in own else "—"
                    for own in rows[q]
                )
                for q in shown
            ],
        }
        for place, block in sorted(blocks.items(), key=lambda item: item[0])
    ]
    return {"words": [word(q) for q in shown], "lines": lines}


def _counted(names: Iterable[str]) -> str:
    """Return names with how often each comes.

    Example:
        >>> _counted(["batch:pre", "batch:pre", "layer:post"])
        'batch (pre) × 2, layer (post)'
    """
    parts = (name.partition(":") for name in names)
    counts = Counter(f"{kind} ({at})" if at else kind for kind, _, at in parts)
    words = [name if n == 1 else f"{name} × {n}" for name, n in counts.items()]
    return ", ".join(words) or "—"


def cross_section(survey: "Survey") -> "Figure":
    """Draw a cross-section of the network by depth, with matplotlib.

    Raises:
        MeasurementError: Nothing was measured by depth.
    """
    side = side_of(survey)
    names = [block.name for block in survey.blocks]
    rows = [
        {**row, "block": names[place], "depth": place}
        for row in side.rows.where(quantity=SPECTRUM)
        if (place := side.places.get(row.get("block") or "")) is not None
    ]
    rows += [
        {**row, "block": names[place], "depth": place}
        for quantity in _QUANTITIES
        for place, row in sorted(side.by_place(quantity).items())
    ]
    if not rows:
        raise MeasurementError(
            f"the survey of {survey.title} holds no number by depth: survey with the "
            "measures map, signal or jacobian"
        )
    return draw_cross_section(Rows(rows), title=f"{survey.title}{on_fewest(rows)}")
