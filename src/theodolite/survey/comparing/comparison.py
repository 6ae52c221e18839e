"""The result of comparing two surveys."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from theodolite.core import Row, Rows, printable, to_strict_json

from ..records.finding import Finding
from ..records.text import wrapped
from ..records.whole_survey import Survey, write_json
from .differences import Pair

_FINDINGS, _DIFFERENCES = 4, 12
_ARROWS = {"up": "↑", "down": "↓", "no": "="}
# Columns of a difference that are no labels.
_NUMBERS = frozenset(
    "measure quantity value error low high changed before before_error after "
    "after_error".split()
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Two surveys and their differences; prints as a compact table.

    Attributes:
        before: The first survey.
        after: The second.
        pairs: Their blocks, paired, in order of depth.
        differences: For every number that both measured alike, ``before``, ``after``,
            their difference as ``value``, its interval ``low`` to ``high`` at 95 %, and
            ``changed``: ``"up"`` or ``"down"`` if that excludes zero, else ``"no"``.
        gone: Findings that only the first survey has.
        new: Findings that only the second survey has.
        kept: Findings that both have, as the second survey states them.
        caveats: Reasons why the comparison may mislead, one sentence each.
        not_compared: Numbers of unlike quantities: how they differ in samples, norm
            mode or convergence, then their names.
    """

    before: Survey
    after: Survey
    pairs: tuple[Pair, ...]
    differences: Rows
    gone: tuple[Finding, ...] = ()
    new: tuple[Finding, ...] = ()
    kept: tuple[Finding, ...] = ()
    caveats: tuple[str, ...] = ()
    not_compared: tuple[str, ...] = ()

    def rows(self) -> Rows:
        """Return the differences."""
        return self.differences

    def to_dict(self) -> dict[str, Any]:
        """Return both surveys and all differences as strict JSON values."""
        return {
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "differences": to_strict_json(list(self.differences)),
            "pairs": [
                {"before": one and one.name, "after": other and other.name}
                for one, other in self.pairs
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

    def __str__(self) -> str:
        lines = [part for line in _lines(self) for part in wrapped(line, 4)]
        return printable("\n".join(lines))

    def __repr__(self) -> str:
        changed = sum(row["changed"] != "no" for row in self.differences)
        return printable(
            f"<Comparison of {self.before.title} and {self.after.title}: {changed} of "
            f"{len(self.differences)} numbers changed; print it>"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _lines(comparison: Comparison) -> Iterator[str]:
    before, after = comparison.before, comparison.after
    paired = sum(None not in pair for pair in comparison.pairs)
    yield (
        f"{before.title} → {after.title}: {paired} of {len(comparison.pairs)} blocks "
        "in both"
    )
    for said in comparison.caveats:
        yield f"  CAUTION {said}"
    yield from _finding_lines(comparison.gone, "gone", ill="✓")
    yield from _finding_lines(comparison.new, "new", ill="✗", well="✓")
    yield from _finding_lines(comparison.kept, "kept")
    whole = _whole(comparison.differences)[:_DIFFERENCES]
    for row in whole:
        labels = "".join(f" {key}={row[key]}" for key in row if key not in _NUMBERS)
        yield (
            f"  {_ARROWS[row['changed']]} {row['quantity']}{labels}  "
            f"{row['before']:.4g} → {row['after']:.4g}, difference {row['low']:.3g} to "
            f"{row['high']:.3g}"
        )
    for said in comparison.not_compared:
        yield f"  not compared: {said}"
    if (more := len(comparison.differences) - len(whole)) > 0:
        yield f"  {more} more differences by block and module: see .rows()"


def _whole(differences: Rows) -> list[Row]:
    """Return those of the network as a whole, changed ones first, clearest first."""
    labels = _NUMBERS | {"rank", "optimizer"}
    mine = [row for row in differences if not set(row) - labels]
    return sorted(mine, key=lambda row: (row["changed"] == "no", -_clear(row)))


def _clear(row: Row) -> float:
    """Return the distance of a difference from zero, in half-widths of its interval."""
    size = max(abs(row["before"]), abs(row["after"])) or 1.0
    # Exact numbers have no interval, so sort them by relative change.
    return abs(row["value"]) / max(row["error"], 1e-3 * size)


def _finding_lines(
    findings: tuple[Finding, ...], word: str, *, ill: str = "·", well: str = "·"
) -> Iterator[str]:
    """Yield one line per finding, marked as good or bad news."""
    marks = {"sick": ill, "warning": ill, "good": well}
    for each in findings[:_FINDINGS]:
        yield f"{marks.get(each.severity, '·')} {word}: {each.title}"
    if (more := len(findings) - _FINDINGS) > 0:
        yield f"  … and {more} more {word}, see .{word}"
