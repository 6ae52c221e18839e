"""Show readings and rows on a screen, in a notebook or as a figure.

A screen has 24 lines of 80 columns. Core imports no other package: drawing functions
are found by name when the user plots, and matplotlib is imported only then.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import escape
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import printable
from .status import norm_counts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_figure(how: str, what: Any, **settings: Any) -> "Figure":
    """Return the figure that a function of ``theodolite.figures`` draws.

    A notebook shows it as it is, without ``%matplotlib inline``.
    """
    figure = getattr(import_module("theodolite.figures"), how)(what, **settings)
    figure._repr_png_ = partial(png_of, figure)
    return figure


def png_of(figure: "Figure") -> bytes:
    """Return a figure as the bytes of a PNG file for a screen."""
    target = BytesIO()
    figure.savefig(target, format="png", dpi=100)
    return target.getvalue()


def picture_html(result: Any) -> str:
    """Return the plot of a result as HTML, empty if it cannot be drawn.

    Notebooks show HTML in place of a PNG where they have both, so it is part of that.
    """
    try:
        return png_html(png_of(result.plot()), type(result).__name__)
    except Exception:  # such as a reading without numbers; the table still tells
        return ""


def png_html(content: bytes, name: str) -> str:
    """Return the bytes of a PNG file as HTML that needs no file."""
    text = b64encode(content).decode()
    return (
        f'<img alt="{escape(name)}" style="max-width: 100%" '
        f'src="data:image/png;base64,{text}" />'
    )


# Cells keep the notebook's own colours, in the light and in the dark.
_NOTE = "opacity: 0.7; font-size: 90%"


def html_table(
    headline: str, header: Sequence[str], body: Iterable[Sequence[Any]], note: str = ""
) -> str:
    """Return a headline, a table and a note as HTML.

    Example:
        >>> print(html_table("One < two", ["a"], [["b"]]))
        <div><b>One &lt; two</b><table><thead><tr><th>a</th></tr></thead><tbody><tr>\
<td>b</td></tr></tbody></table></div>
    """
    rows = "".join(_row("td", cells) for cells in body)
    head = f"<thead>{_row('th', header)}</thead>" if header else ""
    table = f"<table>{head}<tbody>{rows}</tbody></table>" if rows else ""
    foot = f'<div style="{_NOTE}">{escape(note)}</div>' if note else ""
    return f"<div><b>{escape(headline)}</b>{table}{foot}</div>"


def _row(tag: str, cells: Sequence[Any]) -> str:
    inner = "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


if TYPE_CHECKING:
    from .reading import Reading

LINES, COLUMNS = 24, 80
# Number of leading values of a list that are shown.
_FRONT = 4


def join_lines(lines: Sequence[str]) -> str:
    """Return lines as text that fits on a screen, with a note on what is left out.

    Example:
        >>> join_lines(["a", "b" * 100]) == "a" + chr(10) + "b" * 79 + "…"
        True
    """
    kept = list(lines)
    if len(kept) > LINES:
        left = len(kept) - (LINES - 1)
        kept = [*kept[: LINES - 1], f"  … {left} lines more"]
    return printable("\n".join(_cut(line) for line in kept))


def lines_of(reading: "Reading") -> list[str]:
    """Return the summary of a reading: its status, each quantity, its metadata."""
    return [headline(reading), *_quantities(reading), metadata_line(reading)]


def headline(reading: "Reading") -> str:
    """Return the kind, the status and the meaning of the status."""
    return f"{type(reading).__name__}, {reading.status}: {reading.status_message}"


def metadata_line(reading: "Reading") -> str:
    """Return one line: the method, the norm mode and the cost."""
    cost = reading.cost
    counts = norm_counts(reading.norm_layers)
    parts = [f"norm mode {reading.norm_mode}" + (f" ({counts})" if counts else "")]
    parts += [] if reading.seed is None else [f"seed {reading.seed}"]
    parts += [f"{cost.passes} passes", f"{cost.wall_s:.3g} s", reading.method]
    return "  " + ", ".join(part for part in parts if part)


def quantity_line(reading: "Reading", name: str) -> str:
    """Return one quantity with its error."""
    value = np.asarray(getattr(reading, name))
    held = reading.error_of.get(name)
    error = None if held is None else np.asarray(getattr(reading, held))
    if value.ndim == 0:
        return _number(value) + ("" if error is None else f" ± {_number(error)}")
    size = " × ".join(str(length) for length in value.shape)
    if not value.size:
        return f"{size}, none"
    text = f"{size}: {_front(value)}"
    if value.size > _FRONT:
        text += f", {_number(np.min(value))} to {_number(np.max(value))}"
    if error is not None and error.size:
        text += f", ± {_number(np.max(error))} at most"
    return text


def _quantities(reading: "Reading") -> Iterator[str]:
    errors = set(reading.error_of.values())
    names = [name for name in reading.dims if name not in errors]
    width = max(map(len, names), default=0)
    for name in names:
        yield f"  {name:<{width}}  {quantity_line(reading, name)}"


def _front(value: np.ndarray) -> str:
    flat = value.reshape(-1)
    front = " ".join(_number(entry) for entry in flat[:_FRONT])
    return front + (" …" if flat.size > _FRONT else "")


def _number(value: object) -> str:
    entry = np.asarray(value)
    if entry.dtype.kind in "biu":
        return f"{entry.item():,}" if entry.dtype.kind != "b" else str(entry.item())
    return f"{float(entry):.6g}" if entry.dtype.kind == "f" else str(entry.item())


def _cut(line: str) -> str:
    return line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…"
