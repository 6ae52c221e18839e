"""Description of a paper and of its studies: one figure, table or theorem each.

The text of a paper's chapter states no result. Results come from verdicts, so that the
story changes with the numbers.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from theodolite.core import (
    Alive,
    Claim,
    ConfigError,
    PredictedAndMeasured,
    Row,
    Rows,
    to_json_values,
    to_strict_json,
    unknown_name,
)

from .committed import CommittedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = ("smoke", "quick", "paper")
# Ten thousand times the number in any preset; all cells are listed before the run.
_MOST_SEEDS = 100_000
# Words in names of settings that say how large a run is.
_SIZES = {"seeds", "epochs", "steps", "depth", "depths", "samples", "images"}


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
        alive: Which runs count, for all claims without a rule of their own.
        words: What quantities are called in the reasons of verdicts, where their own
            names do not say it.
        paper_size: The paper's own numbers by setting, where they are not those of the
            preset ``paper``: ``{"epochs": 200}``; None for a setting without a size in
            the paper, or for all, as where it proves and runs nothing.
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
    alive: Alive | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    paper_size: Mapping[str, float | None] | None = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.alive is not None or self.words:
            claims = (
                replace(c, alive=c.alive or self.alive, words=c.words or self.words)
                for c in self.claims
            )
            object.__setattr__(self, "claims", tuple(claims))
        unknown = (self.paper_size or {}).keys() - set(
            _names(self.presets.get("paper"))
        )
        if unknown:
            raise ConfigError(
                f"paper_size names {sorted(unknown)}, which are no settings of the "
                "study: name fields of its config"
            )

    def smaller(self, config: Mapping[str, Any]) -> dict[str, str]:
        """Return what is smaller in a config than in the paper, in words, by setting.

        Numbers of seeds, epochs, steps, layers and images count, the largest of
        several, and what else ``paper_size`` names.

        Args:
            config: The settings that produced the rows, as plain values.
        """
        if "paper" not in self.presets or self.paper_size is None:
            return {}
        paper = {**self.presets["paper"].to_dict(), **self.paper_size}
        words = {}
        for setting, value in config.items():
            counts = setting in self.paper_size or _SIZES & {*setting.split("_")}
            ours, theirs = _size(value), _size(paper.get(setting))
            if counts and ours is not None and theirs is not None and ours < theirs:
                what = setting.removeprefix("n_").replace("_", " ")
                words[setting] = f"{what} {ours:g} of {theirs:g}"
        return words

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


@dataclass(frozen=True)
class Finding:
    """A claim whose verdict a chapter reports.

    Attributes:
        claim: ``study/claim``.
        numbers: Prefixes of the names of numbers to print; the first two by default.
    """

    claim: str
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chapter:
    """A step of the paper's argument.

    Attributes:
        title: Its topic, in one line.
        text: The paper's statement and our question; ``$…$`` is mathematics.
        findings: Claims that answer it, in the order of the argument.
    """

    title: str
    text: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Explorer:
    """An interactive part of the report.

    Attributes:
        name: Name by which the report knows it; its script comes with the report,
            never with a run.
        studies: Studies of the paper whose exhibits it shows.
    """

    name: str
    studies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """A paper and the modules of its package that are studies, in its order.

    Attributes:
        name: Name of its package, and of its folder of results.
        title: Its title.
        authors: Their surnames.
        year: Year of its first version.
        studies: Names of the studies.
        explorer: The interactive part of the report on it, where there is one.
        package: Module that its studies are imported from; by default the one that
            the paper's entry point names.
        url: Where to read it.
    """

    name: str
    title: str
    authors: str
    year: int
    studies: tuple[str, ...]
    explorer: Explorer | None = None
    package: str = ""
    url: str = ""

    @property
    def story(self) -> tuple[Chapter, ...]:
        """The chapters of the package's module ``story``; none without one."""
        home = import_module(self.package)
        if not hasattr(home, "__path__"):
            return getattr(home, "STORY", ())
        name = f"{self.package}.story"
        return import_module(name).STORY if find_spec(name) else ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that reports print."""
        fields = to_strict_json(self)
        del fields["package"]
        return {**fields, "story": to_strict_json(self.story)}


# Where the parts of a study are: the module, and the name in it.
_PARTS = {
    "presets": ("config", "PRESETS"),
    "cells": ("config", "cells"),
    "claims": ("claims", "CLAIMS"),
    "words": ("claims", "WORDS"),
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


def _names(config: Any) -> list[str]:
    return [item.name for item in fields(config)] if config is not None else []


def _size(value: Any) -> float | None:
    """Return the size of a setting: a whole number, or the largest of several."""
    if isinstance(value, list | tuple):
        sizes = [_size(item) for item in value]
        known = [size for size in sizes if size is not None]
        return max(known) if known and len(known) == len(sizes) else None
    counts = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if counts else None


def _tuples(value: Any) -> Any:
    """Turn JSON lists back into the tuples that frozen configs hold."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
