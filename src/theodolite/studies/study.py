"""Description of a study: one figure, table or theorem of one paper."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from theodolite.core import (
    Claim,
    ConfigError,
    PredictedAndMeasured,
    Row,
    Rows,
    to_json_values,
    unknown_name,
)

from .committed import CommittedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = ("smoke", "quick", "paper")
# Ten thousand times the number in any preset; all cells are listed before the run.
_MOST_SEEDS = 100_000


@dataclass(frozen=True, kw_only=True)
class StudyConfig:
    """Settings that every study has; its own config extends them.

    Attributes:
        n_seeds: Networks or datasets per point, trials ``seed`` to ``seed+n_seeds-1``.
        seed: First seed.
        device: Device of the networks.
        committed: Whether the rows of a committed long run are judged and drawn too.
    """

    n_seeds: int = 1
    seed: int = 0
    device: str = "cpu"
    committed: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.n_seeds <= _MOST_SEEDS:
            raise ConfigError(
                f"n_seeds is {self.n_seeds}: pass a number from 1 to {_MOST_SEEDS:,}"
            )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the trials."""
        return tuple(range(self.seed, self.seed + self.n_seeds))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON values."""
        return to_json_values(asdict(self))


@dataclass(frozen=True)
class Drawing:
    """A figure of a study with the caption under it.

    Attributes:
        name: Name of its files.
        caption: What it shows; the runner adds which run is drawn.
        table: Computes the rows that are drawn: means, spreads, bands.
        draw: Draws them, and computes nothing.
    """

    name: str
    caption: str
    table: Callable[[PredictedAndMeasured], Rows]
    draw: Callable[[Rows], "Figure"]


@dataclass(frozen=True)
class Exhibit:
    """Rows of a study that the explorer of its paper shows in the report.

    Attributes:
        name: Name by which the explorer finds them.
        table: Chooses or computes the rows: flat, few, each with its error.
    """

    name: str
    table: Callable[[PredictedAndMeasured], Rows]


@dataclass(frozen=True)
class Committed:
    """A long run whose rows are part of the package, judged next to new ones.

    Attributes:
        run: The run.
        labels: Columns that distinguish the rows of one cell.
        on: Its data, where they differ from those of runs below the paper scale.
    """

    run: CommittedRun
    labels: tuple[str, ...]
    on: str = ""


@dataclass(frozen=True, kw_only=True)
class Study:
    """One executable figure, table or theorem.

    Attributes:
        title: Its subject, in one line.
        summary: The claim in our words; ``$…$`` is mathematics.
        presets: Config by scale.
        cells: Independent pieces of work of a config, as flat labels.
        predict: Theory only; no rows by default.
        measure: Networks and instruments, one cell at a time; no theory.
        combine: Theory and measurement together, one cell at a time, such as closed
            forms at measured weights; its rows join the measured ones.
        compare: Predicted beside measured numbers: rows with ``label``,
            ``predicted``, ``measured`` and ``error``.
        drawings: Figures made from saved rows.
        exhibits: Rows for the explorer of the paper.
        claims: Claims to judge.
        datasets: Named datasets that a config needs, loaded before anything is run.
        splits: Parts of the datasets that it reads.
        departures: Where the study departs from the paper, and why.
        revision: Raised when a change of code changes saved values.
        committed: A long run at the paper scale that comes with the package.
    """

    title: str
    summary: str
    presets: Mapping[str, Any]
    cells: Callable[[Any], list[dict[str, Any]]]
    measure: Callable[[Any, Mapping[str, Any]], Rows]
    claims: tuple[Claim, ...]
    predict: Callable[[Any], Rows] = lambda config: Rows()
    compare: Callable[[PredictedAndMeasured], list[Row]] = lambda both: []
    combine: Callable[[Any, Mapping[str, Any]], Rows] | None = None
    drawings: tuple[Drawing, ...] = ()
    exhibits: tuple[Exhibit, ...] = ()
    datasets: Callable[[Any], tuple[str, ...]] = lambda config: ()
    splits: tuple[str, ...] = ("train",)
    departures: tuple[str, ...] = field(default=())
    revision: int = 1
    committed: Committed | None = None

    def of_cell(self, config: Any, cell: Mapping[str, Any]) -> Rows:
        """Return all rows of a cell: measured and combined."""
        rows = self.measure(config, cell)
        return rows if self.combine is None else rows + self.combine(config, cell)

    def config(self, scale: str, **overrides: Any) -> Any:
        """Return the preset of a scale with the overrides that are not None."""
        if scale not in self.presets:
            raise unknown_name("scale", scale, self.presets)
        changes = {name: v for name, v in overrides.items() if v is not None}
        return replace(self.presets[scale], **changes)

    def config_from(self, saved: Mapping[str, Any]) -> Any:
        """Rebuild a config from the plain values of a run folder."""
        kind = type(self.presets["smoke"])
        known = {item.name for item in fields(kind)}
        return kind(**{k: _tuples(v) for k, v in saved.items() if k in known})


# Where the parts of a study are: the module, and the name in it.
_PARTS = {
    "presets": ("config", "PRESETS"),
    "cells": ("config", "cells"),
    "claims": ("claims", "CLAIMS"),
    "compare": ("figure", "compare"),
    "predict": ("predict", "predict"),
    "measure": ("measure", "measure"),
    "combine": ("combine", "combine"),
}


def gather_study(package: str, **words: Any) -> Study:
    """Return the study whose parts are the modules of a package.

    They are ``config`` with ``PRESETS`` and ``cells``, ``claims`` with ``CLAIMS``,
    ``figure`` with ``compare``, and ``predict``, ``measure`` and ``combine`` with a
    function of the same name. Missing parts must be passed, or keep their default.
    Title and summary are the first two paragraphs of the package's docstring.

    Args:
        package: Name of the package: ``__name__`` in its ``__init__``.
        words: Everything else that a study has, such as ``departures``.
    """
    text = cleandoc(sys.modules[package].__doc__ or package).split("\n\n")
    title, summary = (" ".join(part.split()) for part in (*text, "")[:2])
    words = {"title": title.removesuffix("."), "summary": summary, **words}
    for part, (module, name) in _PARTS.items():
        if part not in words and find_spec(f"{package}.{module}"):
            names = vars(import_module(f"{package}.{module}"))
            words |= {part: names[name]} if name in names else {}
    return Study(**words)


def _tuples(value: Any) -> Any:
    """Turn JSON lists back into the tuples that frozen configs hold."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
