"""What a notebook shows of readings, rows and grids: small tables in HTML."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

# Cells keep the notebook's own colours, in the light and in the dark.
_NOTE = "opacity: 0.7; font-size: 90%"


def page_of(
    headline: str,
    header: Sequence[str],
    body: Iterable[Sequence[Any]],
    note: str = "",
) -> str:
    """Return a headline, a table and a note as HTML.

    Example:
        >>> print(page_of("One < two", ["a"], [["b"]]))
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
