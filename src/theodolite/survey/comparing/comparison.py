"""The result of comparing two surveys."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from theodolite.core import Rows, printable, to_strict_json

from ..records.files import write_json
from ..records.finding import Finding
from ..records.whole_survey import Survey
from .differences import BlockPair, Difference

_COLUMNS, _FINDINGS, _DIFFERENCES = 100, 4, 12
_ARROWS = {"up": "↑", "down": "↓", "no": "="}


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Two surveys and their differences; prints as a compact table.

    Attributes:
        before: The first survey.
        after: The second.
        pairs: Their blocks, paired, in order of depth.
        differences: For every number that both measured alike, with interval.
        gone: Findings that only the first survey has.
        new: Findings that only the second survey has.
        kept: Findings that both have, as the second survey states them.
        caveats: Reasons why the comparison may mislead, one sentence each.
        not_compared: Numbers of unlike quantities: how they differ in samples, norm
            mode or convergence, then their names.
    """

    before: Survey
    after: Survey
    pairs: tuple[BlockPair, ...]
    differences: tuple[Difference, ...]
    gone: tuple[Finding, ...] = ()
    new: tuple[Finding, ...] = ()
    kept: tuple[Finding, ...] = ()
    caveats: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()

    def rows(self) -> Rows:
        """Return the differences as flat rows."""
        return Rows(one.row() for one in self.differences)

    def whole(self) -> tuple[Difference, ...]:
        """Return the differences of the network as a whole, those that changed first.

        Changes are sorted by their size relative to their interval, largest first.
        """
        mine = [
            one
            for one in self.differences
            if not set(one.labels) - {"rank", "optimizer"}
            # Ends of an interval, whose centre is listed anyway.
            and not one.quantity.endswith(("_low", "_high"))
        ]
        return tuple(sorted(mine, key=lambda one: (one.changed == "no", -_clear(one))))

    def to_dict(self) -> dict[str, Any]:
        """Return both surveys and all differences as strict JSON values."""
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "differences": to_strict_json(list(self.rows())),
            **self.outline(),
        }

    def outline(self) -> dict[str, Any]:
        """Return pairs of blocks, names of findings and caveats as JSON values."""
        return {
            "pairs": [
                {
                    "before": pair.before and pair.before.name,
                    "after": pair.after and pair.after.name,
                    "by": pair.by,
                }
                for pair in self.pairs
            ],
            "gone": [one.rule for one in self.gone],
            "new": [one.rule for one in self.new],
            "kept": [one.rule for one in self.kept],
            "caveats": list(self.caveats),
            "not_compared": list(self.not_compared),
        }

    def to_json(self, path: str | Path) -> None:
        """Write the comparison to a file."""
        write_json(path, self.to_dict())

    def to_html(self, path: str | Path) -> None:
        """Write the comparison as one self-contained page."""
        from ..page.writing import write_page

        write_page(self, path)

    def __str__(self) -> str:
        return printable(
            "\n".join(
                line if len(line) <= _COLUMNS else f"{line[: _COLUMNS - 1]}…"
                for line in _lines(self)
            )
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _clear(one: Difference) -> float:
    """Return the distance of a difference from zero, in half-widths of its interval."""
    half = (one.high - one.low) / 2
    size = max(abs(one.before), abs(one.after)) or 1.0
    # Exact numbers have no interval, so sort them by relative change.
    return abs(one.difference) / max(half, 1e-3 * size)


def _lines(comparison: Comparison) -> Iterator[str]:
    before, after = comparison.before, comparison.after
    paired = sum(pair.by != "alone" for pair in comparison.pairs)
    yield (
        f"{before.title} → {after.title}: {paired} of {len(comparison.pairs)} blocks "
        "in both"
    )
    for said in comparison.caveats:
        yield f"  CAUTION {said}"
    yield from _finding_lines(comparison.gone, "gone", ill="✓")
    yield from _finding_lines(comparison.new, "new", ill="✗", well="✓")
    yield from _finding_lines(comparison.kept, "kept")
    shown = comparison.whole()[:_DIFFERENCES]
    for one in shown:
        labels = "".join(f" {key}={value}" for key, value in one.labels.items())
        yield (
            f"  {_ARROWS[one.changed]} {one.quantity}{labels}  {one.before:.4g} → "
            f"{one.after:.4g}, difference {one.low:.3g} to {one.high:.3g}"
        )
    for said in comparison.not_compared:
        yield f"  not compared: {said}"
    if (more := len(comparison.differences) - len(shown)) > 0:
        yield f"  {more} more differences by block and module: see .rows()"


def _finding_lines(
    findings: tuple[Finding, ...], word: str, *, ill: str = "·", well: str = "·"
) -> Iterator[str]:
    """Yield one line per finding, marked as good or bad news."""
    marks = {"sick": ill, "warning": ill, "good": well}
    for each in findings[:_FINDINGS]:
        yield f"{marks.get(each.severity, '·')} {word}: {each.title}"
    if (more := len(findings) - _FINDINGS) > 0:
        yield f"  … and {more} more {word}, see .{word}"
