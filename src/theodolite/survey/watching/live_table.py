"""A tracker that keeps all rows, draws them in a terminal, and writes a page."""

import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any

from theodolite.core import Row, printable

from ..records.outcomes import on_samples, samples_of
from .course import SHOWN, which

_BARS = "▁▂▃▄▅▆▇█"
# With names and numbers, a line has 80 characters.
_WIDTH = 28


class LiveTable:
    """Keeps and draws the rows of a :class:`~theodolite.training.Watcher`.

    Args:
        live: Whether to draw in a terminal; elsewhere nothing is drawn.
        end: Called once when the training is over.
        stream: Where to draw; standard error by default.
    """

    def __init__(
        self,
        *,
        live: bool,
        end: Callable[[], None],
        stream: IO[str] | None = None,
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self.last = -1
        self._end = end
        self._stream = stream or sys.stderr
        self._wanted = live and is_terminal(self._stream)
        self._display: Any = None

    def start(self, spec: Mapping[str, Any]) -> None:
        """Open the display; the first rows follow."""
        del spec
        if self._wanted and self._display is None:
            self._attempt(self._open)

    def log(self, rows: Iterable[Row], step: int) -> None:
        """Keep the rows of a step, and draw all so far."""
        for row in rows:
            # A probe puts its own name before the quantity of each row.
            quantity = str(row["quantity"]).rpartition("/")[2]
            self.rows.append({**row, "quantity": quantity})
        self.last = max(self.last, step)
        if self._display is not None:
            self._attempt(self._draw)

    def finish(self) -> None:
        """Close the display and say that the training is over."""
        if self._display is not None:
            self._attempt(self._display.stop)
        self._display = None
        self._end()

    def _open(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._display = Live(
            console=Console(file=self._stream),
            auto_refresh=False,
            # Output redirected to a file still goes there.
            redirect_stdout=is_terminal(sys.stdout),
        )
        self._display.start()

    def _draw(self) -> None:
        shown = [row for row in self.rows if row["quantity"] in SHOWN]
        self._display.update(drawn(shown, self.last), refresh=True)

    def _attempt(self, action: Callable[[], None]) -> None:
        """Draw; if the terminal fails, the rows are kept."""
        try:
            action()
        except Exception as error:
            self._wanted, self._display = False, None
            logging.getLogger("theodolite").warning(
                "the terminal cannot be drawn on (%s): watching goes on unseen; pass "
                "live=False",
                error,
            )


def is_terminal(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal that can draw."""
    return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"


def drawn(rows: Iterable[Row], step: int) -> Any:
    """Return a table with one line per quantity: its value now, and its history."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"step {step}", title_justify="left", expand=False)
    table.add_column("quantity", no_wrap=True)
    table.add_column("now", justify="right", no_wrap=True)
    table.add_column("so far", no_wrap=True)
    for name, values in lines_of(rows).items():
        now, error = values[-1]
        text = f"{now:.4g}" + (f" ± {error:.2g}" if error else "")
        table.add_row(
            Text(printable(name)), text, sparkline([value for value, _ in values])
        )
    return table


def lines_of(rows: Iterable[Row]) -> dict[str, list[tuple[float, float | None]]]:
    """Return the numbers of each quantity by step; the largest if there are several.

    Example:
        >>> rows = [{"quantity": "gain", "block": b, "step": 0, "value": v, "error": 0}
        ...         for b, v in (("a", 1.0), ("b", 3.0))]
        >>> lines_of(rows)
        {'gain (largest of 2)': [(3.0, 0)]}
    """
    lines: dict[str, dict[int, tuple[float, float | None]]] = {}
    members: dict[str, set[str]] = {}
    samples: dict[str, str] = {}
    for row in rows:
        value = row.get("value")
        quantity, step = str(row["quantity"]), int(row["step"])
        if not isinstance(value, int | float) or not math.isfinite(value):
            continue
        members.setdefault(quantity, set()).add(which(row))
        samples[quantity] = on_samples(samples_of(row))
        mine = lines.setdefault(quantity, {})
        if step not in mine or value > mine[step][0]:
            mine[step] = (float(value), row.get("error"))
    return {
        q + _among(members[q]) + samples[q]: [mine[step] for step in sorted(mine)]
        for q, mine in lines.items()
    }


def _among(members: set[str]) -> str:
    return "" if len(members) == 1 else f" (largest of {len(members)})"


def sparkline(values: list[float]) -> str:
    """Return the last numbers as one line of block characters.

    If positive numbers span more than a decade, the scale is logarithmic.

    Example:
        >>> sparkline([0.0, 1.0, 2.0, 7.0]), sparkline([3.0, 3.0])
        ('▁▂▃█', '▄▄')
    """
    shown = values[-_WIDTH:]
    if min(shown) > 0 and max(shown) > 10 * min(shown):
        shown = [math.log(value) for value in shown]
    low, high = min(shown), max(shown)
    if high == low:
        return _BARS[3] * len(shown)
    top = len(_BARS) - 1
    return "".join(_BARS[round(top * (v - low) / (high - low))] for v in shown)
