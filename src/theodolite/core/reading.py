"""Results of instruments: values with their errors and metadata."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np

from .display import draw_figure, html_table, join_lines, lines_of, picture_html
from .errors import TheodoliteError
from .rows import Rows, optional, to_json_values
from .saved_reading import load, save
from .status import Cost, NormMode, Status, norm_counts

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray
    from matplotlib.figure import Figure

_COLUMNS = {"quantity", "value", "error"}


@dataclass(frozen=True, init=False)
class Dims:
    """Marks a field of a reading as a quantity, in ``Annotated[type, Dims(…)]``.

    Args:
        dims: Names of its dimensions; empty for a single number.
        error: Field that holds its error; by default its name with ``_error``, where
            there is such a quantity.
    """

    dims: tuple[str, ...]
    error: str | None

    def __init__(self, *dims: str, error: str | None = None) -> None:
        object.__setattr__(self, "dims", dims)
        object.__setattr__(self, "error", error)


Scalar = Annotated[float, Dims()]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading:
    """Base of all readings: frozen, labelled, with an error and a status.

    A subclass marks its quantities by :class:`Dims`. The class attributes ``dims``
    (dimension names by quantity) and ``error_of`` (error field by quantity) follow
    from the marks. It may override :meth:`coordinates` to label its dimensions.

    Attributes:
        status: Whether to trust the values.
        norm_mode: Statistics that normalisation layers used.
        norm_layers: Under ``as_is``, the names of norm layers that were in ``train``
            mode and of those in ``eval`` mode; empty where there are none, and under
            other modes, which set all alike.
        seed: Seed of all random numbers, None if nothing was random.
        cost: What the reading cost.
        method: Short name of the algorithm.
    """

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    error_of: ClassVar[Mapping[str, str]] = {}

    status: Status
    norm_mode: NormMode
    norm_layers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seed: int | None = None
    cost: Cost = field(default_factory=Cost)
    method: str = ""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Keep the base's repr, and list the quantities."""
        super().__init_subclass__(**settings)
        hints = inspect.get_annotations(cls)
        marks = {
            name: mark
            for name, hint in hints.items()
            for mark in getattr(hint, "__metadata__", ())
            if isinstance(mark, Dims)
        }
        if marks:
            errors = {name: one.error or f"{name}_error" for name, one in marks.items()}
            cls.dims = {name: mark.dims for name, mark in marks.items()}
            cls.error_of = {k: error for k, error in errors.items() if error in marks}
        # The repr of a dataclass would print every number.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Reading.__repr__

    def coordinates(self) -> dict[str, list[Any]]:
        """Return the labels along each dimension; counts from 0 by default."""
        labels: dict[str, list[Any]] = {}
        for _, dim, size in self._axes():
            labels.setdefault(dim, list(range(size)))
        return self._checked(labels)

    def rows(self, **labels: Any) -> Rows:
        """Return the reading as flat rows; given labels override its own."""
        errors = set(self.error_of.values())
        coordinates = self._checked(self.coordinates())
        circumstances = self._circumstances()
        melted: list[dict[str, Any]] = []
        for name, dims in self.dims.items():
            if name in errors:
                continue
            value = np.asarray(getattr(self, name))
            error = self._error(name, value.shape)
            for index in np.ndindex(value.shape):
                place = {
                    dim: coordinates[dim][i] for dim, i in zip(dims, index, strict=True)
                }
                melted.append(
                    {
                        "quantity": name,
                        **place,
                        "value": to_json_values(value[index]),
                        "error": None
                        if error is None
                        else to_json_values(error[index]),
                        **circumstances,
                        **place,  # a dimension may be the seed
                        **labels,
                    }
                )
        return Rows(melted)

    def to_dict(self) -> dict[str, Any]:
        """Return every field as plain JSON values."""
        content = {f.name: getattr(self, f.name) for f in fields(self)}
        return to_json_values({**content, "cost": self.cost.to_dict()})

    def __repr__(self) -> str:
        """Return a summary that fits on a screen; ``to_dict`` holds everything."""
        return join_lines(self.summary_lines())

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        """Return the summary as an HTML table, and the plot, for notebooks."""
        first, *lines = self.summary_lines()
        cut = [line.strip().partition("  ") for line in lines]
        rows = [(name, text.strip()) for name, gap, text in cut if gap]
        notes = [name for name, gap, _ in cut if not gap]
        return html_table(first, (), rows, "; ".join(notes)) + picture_html(self)

    @property
    def status_message(self) -> str:
        """What the status means, and what to try."""
        return self.status.advice

    def summary_lines(self) -> list[str]:
        """Return what ``print`` shows, line by line."""
        return lines_of(self)

    def plot(self, **settings: Any) -> "Figure":
        """Return a figure of the reading.

        Args:
            **settings: Arguments of ``figures.draw_reading``, such as ``title``.

        Returns:
            A figure of matplotlib: a notebook shows it, ``savefig`` writes it.
        """
        return draw_figure("draw_reading", self, **settings)

    def save(self, path: str | Path) -> None:
        """Write the reading to a file of arrays with a JSON header."""
        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the reading of a file that :meth:`save` wrote, if it is of this kind.

        Nothing in the file is executed; unknown content raises an error.
        """
        return load(path, cls)

    def check(self) -> None:
        """Check that values fit their dims, and errors their values."""
        self._checked(self.coordinates())
        for name in self.error_of:
            self._error(name, np.shape(getattr(self, name)))

    def to_pandas(self, **labels: Any) -> "pandas.DataFrame":
        """Return the rows as a data frame (extra ``theodolite[tables]``)."""
        return self.rows(**labels).to_pandas()

    def to_polars(self, **labels: Any) -> "polars.DataFrame":
        """Return the rows as a data frame of Polars (extra ``theodolite[tables]``)."""
        return self.rows(**labels).to_polars()

    def to_xarray(self) -> "xarray.Dataset":
        """Return a labelled dataset (extra ``theodolite[tables]``)."""
        library = optional("xarray")
        variables = {
            name: (dims, np.asarray(getattr(self, name)))
            for name, dims in self.dims.items()
        }
        attributes = {
            key: value
            for key, value in self._circumstances().items()
            if value is not None
        }
        coordinates = self._checked(self.coordinates())
        return library.Dataset(variables, coords=coordinates, attrs=attributes)

    def _axes(self) -> Iterator[tuple[str, str, int]]:
        for name, dims in self.dims.items():
            shape = np.shape(getattr(self, name))
            if len({*dims} - _COLUMNS) != len(dims) or len(dims) != len(shape):
                raise TheodoliteError(
                    f"{type(self).__name__}.{name} has shape {shape} and dims {dims}: "
                    "give every axis a dim of its own, not named quantity, value or "
                    "error"
                )
            for dim, size in zip(dims, shape, strict=True):
                yield name, dim, size

    def _checked(self, coordinates: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for name, dim, size in self._axes():
            if (wanted := len(coordinates.get(dim, ()))) != size:
                raise TheodoliteError(
                    f"{type(self).__name__}.{name} has {size} entries along {dim!r}, "
                    f"wanted {wanted}: give it its own dim"
                )
        return coordinates

    def _error(self, name: str, shape: tuple[int, ...]) -> np.ndarray | None:
        if name not in self.error_of:
            return None
        error = np.asarray(getattr(self, self.error_of[name]))
        try:
            return np.broadcast_to(error, shape)
        except ValueError:
            raise TheodoliteError(
                f"{type(self).__name__}.{self.error_of[name]} has shape {error.shape}, "
                f"wanted that of {name}, {shape}: give every value its error"
            ) from None

    def _circumstances(self) -> dict[str, Any]:
        counts = norm_counts(self.norm_layers)
        return {
            "status": str(self.status),
            "norm_mode": str(self.norm_mode),
            **({"norm_layers": counts} if counts else {}),
            "seed": self.seed,
            "method": self.method,
            "cpu_s": self.cost.cpu_s,
            "passes": self.cost.passes,
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledReading(Reading):
    """Base of readings that may be estimates from random vectors.

    A subclass names its precision in ``precision_of``, and in ``improved_by`` the
    settings that improve it.

    Attributes:
        precision: Error that was reached, in the unit of ``tol``; 0 where nothing
            was sampled.
        tol: Requested precision, or None.
    """

    precision_of: ClassVar[str] = "error"
    improved_by: ClassVar[str] = "max_matvecs"

    precision: float = 0.0
    tol: float | None = None

    @property
    def status_message(self) -> str:
        """The precision that was reached, and whether it is the requested one."""
        reached = f"{self.precision_of} {self.precision:.3g}"
        if self.status is Status.SAMPLED:
            return f"{reached}, no tol asked for"
        if self.status is Status.IMPRECISE:
            return f"{reached}, tol {self.tol:.3g}: raise {self.improved_by}"
        if self.status is Status.CONVERGED and self.tol is not None:
            return f"{reached}, within tol {self.tol:.3g}"
        return self.status.advice
