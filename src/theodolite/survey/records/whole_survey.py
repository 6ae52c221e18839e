"""A survey: what was measured on a network, what it means, what to do."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from theodolite.anatomy import Block
from theodolite.core import (
    ConfigError,
    Cost,
    Row,
    Rows,
    SchemaError,
    parse_record,
    printable,
    read_record,
    record_values,
    unknown_name,
)
from theodolite.runs import write_text

from .finding import Advice, Finding
from .outcomes import Measured
from .text import full_text, short_text

FORMAT = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Survey:
    """The result of a survey; prints as a compact table.

    Attributes:
        title: Name of the model.
        n_parameters: Number of its parameters.
        blocks: Its map, in order of depth.
        measured: Outcome of each measure, in the order in which they ran.
        findings: What the numbers mean, worst first.
        advice: What to change, most promising first.
        faster: Optional changes of a training without a warning that lowered its loss
            faster in trials; they repair nothing.
        unsupported: Layers that an instrument cannot handle, one sentence each.
        inputs: Where the inputs came from; ``"made up: …"`` if they are random.
        effort: Gradients of the first batch that it might compute.
        cost: Cost of all measures.
        seed: Seed of all random numbers.
        norm_mode: Statistics that normalisation layers used.
        norm_layers: Under ``as_is``, the names of norm layers that were in ``train``
            mode and of those in ``eval`` mode.
        settings: Loss, batch sizes, settings of the optimiser, versions.
    """

    title: str
    n_parameters: int
    blocks: tuple[Block, ...]
    measured: tuple[Measured, ...]
    findings: tuple[Finding, ...] = ()
    advice: tuple[Advice, ...] = ()
    faster: tuple[Advice, ...] = ()
    unsupported: tuple[str, ...] = ()
    inputs: str = ""
    effort: float = 0.0
    cost: Cost = field(default_factory=Cost)
    seed: int = 0
    norm_mode: str = "batch"
    norm_layers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def rows(self) -> Rows:
        """Return all rows of all measures."""
        return Rows.joined(each.rows for each in self.measured)

    def find(self, quantity: str, **labels: Any) -> Rows:
        """Return the rows of a quantity with these labels; there may be none."""
        return self.rows().where(quantity=quantity, **labels)

    def number(self, quantity: str, **labels: Any) -> Row | None:
        """Return the only row of a quantity, or None if there is not exactly one."""
        rows = self.find(quantity, **labels)
        return rows[0] if len(rows) == 1 else None

    def outcome(self, measure: str) -> Measured:
        """Return the outcome of a measure.

        Raises:
            UnknownNameError: The survey has no measure of this name.
        """
        for each in self.measured:
            if each.measure == measure:
                return each
        raise unknown_name("measure", measure, [m.measure for m in self.measured])

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Measures that did not run, or not to their end, because it was aborted."""
        aborted = ("interrupted", "out of time")
        return tuple(each.measure for each in self.measured if each.status in aborted)

    @property
    def why_empty(self) -> str:
        """Why no measure except the map has rows; empty if one has."""
        others = [each for each in self.measured if each.measure != "map"]
        if any(len(each.rows) for each in others):
            return ""
        return next((each.reason for each in others if each.reason), "")

    def to_dict(self) -> dict[str, Any]:
        """Return the survey as strict JSON values."""
        return {"format": FORMAT, **record_values(self)}

    @classmethod
    def from_dict(cls, content: Any) -> "Survey":
        """Read what :meth:`to_dict` wrote.

        Raises:
            ConfigError: The values are not a survey, or of another version.
        """
        try:
            return read_record(cls, content, number=FORMAT)
        except SchemaError as wrong:
            raise ConfigError(
                f"the survey {wrong}: give what to_json of this version wrote"
            ) from None

    def to_json(self, path: str | Path) -> None:
        """Write the survey to a file."""
        write_json(path, self.to_dict())

    @classmethod
    def from_json(cls, path: str | Path) -> "Survey":
        """Read a file that :meth:`to_json` wrote.

        Raises:
            ConfigError: The file cannot be read, or holds something else.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
            return parse_record(cls, text, number=FORMAT)
        except SchemaError as wrong:
            problem = str(wrong)
        except OSError as wrong:
            raise ConfigError(
                f"{path} cannot be read ({wrong.strerror}): check the path"
            ) from None
        except ValueError as wrong:
            problem = f"cannot be read as a survey ({wrong})"
        raise ConfigError(
            f"{path} {problem}: give a file that to_json of this version wrote"
        )

    def to_html(self, path: str | Path) -> None:
        """Write the survey as one self-contained page."""
        from ..page.survey_page import write_page

        write_page(self, path)

    def __repr__(self) -> str:
        counts = Counter(each.severity for each in self.findings)
        told = [f"{n} {severity}" for severity, n in counts.items()] or ["no finding"]
        told += ["incomplete"] if self.incomplete else []
        return printable(f"<Survey of {self.title}: {', '.join(told)}; print it>")

    def __str__(self) -> str:
        return self.text()

    def text(self, *, full: bool = False) -> str:
        """Return the survey as text.

        Args:
            full: Whether to give all that it found, instead of one screen: what each
                finding means, the code of the advice, why measures are missing.
        """
        return printable(full_text(self) if full else short_text(self))

    def print(self, *, full: bool = False) -> None:
        """Print the survey; see :meth:`text`."""
        print(self.text(full=full))

    def _repr_html_(self) -> str:
        """Return the page in a frame, and the text for notebooks that allow none."""
        from ..page.survey_page import survey_page

        page, text = escape(survey_page(self)), escape(self.text(full=True))
        return (
            f'<iframe title="Survey" style="width: 100%; height: 40em; border: 0" '
            f'srcdoc="{page}"></iframe><details><summary>The survey as text</summary>'
            f'<pre style="white-space: pre-wrap">{text}</pre></details>'
        )


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write plain values as JSON, atomically; see :func:`runs.write_text`."""
    write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")
