"""The result of a grid of training runs: every point labelled by its axes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from theodolite.core import (
    ConfigError,
    Cost,
    Rows,
    TheodoliteError,
    draw_figure,
    html_table,
    join_lines,
    picture_html,
    to_json_values,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray
    from matplotlib.figure import Figure

# Values of an axis that are shown.
_VALUES = 6


@dataclass(frozen=True, eq=False)
class Grid:
    """Labelled results of a grid.

    Attributes:
        axes: Name to values, in the order of the arrays' dimensions.
        rows: Everything that was saved: ``final_loss`` of every point with its status,
            ``loss`` along recorded steps, and the probes' rows.
        steps: Requested number of updates.
        cost: What the points cost.
        folder: Where the rows are, None if they were not kept.
        notes: What a person should know, in sentences.
    """

    axes: Mapping[str, tuple[Any, ...]]
    rows: Rows
    steps: int
    cost: Cost
    folder: Path | None = None
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        """Return what fits on a screen; ``rows`` hold everything."""
        first, entries, note = self._summary()
        width = max(len(name) for name, _ in entries)
        lines = [f"  {name:<{width}}  {said}" for name, said in entries]
        return join_lines([first, *lines, f"  {note}"])

    def _repr_html_(self) -> str:
        first, entries, note = self._summary()
        return html_table(first, (), entries, note) + picture_html(self)

    def _summary(self) -> tuple[str, list[tuple[str, str]], str]:
        """Return a headline, named lines, and a line with the cost."""
        size = " × ".join(str(length) for length in self.shape)
        lost = int(np.isfinite(self.diverged_at).sum())
        ended = self.final_loss[np.isfinite(self.final_loss)]
        entries = [(name, _listed(values)) for name, values in self.axes.items()]
        if ended.size:
            entries.append(("final_loss", f"{ended.min():.4g} to {ended.max():.4g}"))
        entries += [("note", note) for note in self.notes]
        where = "" if self.folder is None else f", in {self.folder}"
        return (
            f"Grid of {size} points, {self.steps:,} steps, {lost} diverged",
            entries,
            f"{', '.join(self.methods)}, {self.cost.cpu_s:.3g} s of processor{where}",
        )

    def plot(self, **settings: Any) -> "Figure":
        """Draw the final loss over two axes, or along one; diverged points marked.

        Args:
            **settings: Of ``figures.draw_grid``: ``x`` and ``y`` name the axes.
        """
        return draw_figure("draw_grid", self, **settings)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return all rows as a data frame (extra ``theodolite[tables]``)."""
        return self.rows.to_pandas()

    def to_polars(self) -> "polars.DataFrame":
        """Return all rows as a data frame of Polars (``theodolite[tables]``)."""
        return self.rows.to_polars()

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(len(values) for values in self.axes.values())

    @cached_property
    def final_loss(self) -> np.ndarray:
        """Final losses, an axis of the array per axis of the grid; NaN if diverged."""
        return self._array("value")

    @cached_property
    def final_loss_error(self) -> np.ndarray:
        """Rounding error of each final loss as evaluated."""
        return self._array("error")

    @cached_property
    def diverged_at(self) -> np.ndarray:
        """Step at which each point was retired; NaN for those that went to the end."""
        return self._array("diverged_at")

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """The strategies that trained the points."""
        return tuple(
            sorted({row["method"] for row in self.rows.where(quantity="final_loss")})
        )

    def losses(self, **labels: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return recorded steps and losses of one point.

        Args:
            **labels: Its place along the axes, as many as it takes to name one point.
        """
        rows = self.rows.where(quantity="loss", **labels)
        points = {tuple(row[name] for name in self.axes) for row in rows}
        if len(points) != 1:
            raise TheodoliteError(
                f"{len(points)} points with recorded losses carry {labels}, wanted "
                "one: name more axes, or train with record=LogSpaced(10)"
            )
        return rows.values("step").astype(int), rows.values()

    def probed(self, quantity: str, **labels: Any) -> Rows:
        """Return the rows of one quantity of a probe."""
        return self.rows.where(quantity=quantity, **labels)

    def to_xarray(self) -> "xarray.Dataset":
        """Return the results as labelled arrays (extra ``theodolite[tables]``)."""
        try:
            import xarray
        except ImportError as error:
            raise TheodoliteError(
                "xarray is not installed, and this conversion needs it: "
                "pip install 'theodolite[tables]'"
            ) from error
        names = ("final_loss", "final_loss_error", "diverged_at")
        arrays = {name: (tuple(self.axes), getattr(self, name)) for name in names}
        coordinates = {name: list(values) for name, values in self.axes.items()}
        return xarray.Dataset(arrays, coords=coordinates, attrs={"steps": self.steps})

    def _array(self, column: str) -> np.ndarray:
        """Return a column of the rows of final losses, one entry per point."""
        array = np.full(self.shape, np.nan)
        place = {
            name: {value: i for i, value in enumerate(to_json_values(list(values)))}
            for name, values in self.axes.items()
        }
        for row in self.rows.where(quantity="final_loss"):
            index = tuple(place[name][row[name]] for name in self.axes)
            value = row[column]
            array[index] = np.nan if value is None else value
        return array

    def axis(self, name: str) -> int:
        """Return the number of an axis in the arrays."""
        if name not in self.axes:
            raise ConfigError(
                f"the grid has no axis {name!r}: it has {', '.join(self.axes)}"
            )
        return list(self.axes).index(name)


def _listed(values: tuple[Any, ...]) -> str:
    front = ", ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
    if len(values) <= _VALUES:
        return front
    front = ", ".join(front.split(", ")[: _VALUES - 1])
    return f"{len(values)} values: {front}, … {values[-1]}"
