"""Numbers that travel in the page, to be downloaded from it."""

import base64
import gzip
import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from markupsafe import Markup

from theodolite.core import Row

# Longer data travels packed: a page of two deep networks stays below 3 MB.
_LONG = 400_000


def embedded(content: Any) -> tuple[Markup, bool]:
    r"""Return what may stand inside a script element, and whether it is packed.

    Packed data is JSON, compressed by gzip and written in base 64.

    Args:
        content: Strict JSON values, as ``to_dict`` gives.

    Example:
        >>> embedded({"title": "</script>"})
        (Markup('{"title":"\\u003c/script\\u003e"}'), False)
    """
    text = json.dumps(
        content, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    if len(text) > _LONG:
        packed = gzip.compress(text.encode(), compresslevel=6, mtime=0)
        return Markup(base64.b64encode(packed).decode()), True
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text), False


def as_tables(rows: Iterable[Row]) -> list[dict[str, list[Any]]]:
    """Return rows as tables, one for each stretch of rows with the same columns.

    That is far shorter than one object a row, and loses nothing.

    Example:
        >>> as_tables([{"a": 1}, {"a": 3}, {"b": 5}])
        [{'columns': ['a'], 'lines': [[1], [3]]}, {'columns': ['b'], 'lines': [[5]]}]
    """
    return [
        {"columns": list(columns), "lines": [list(row.values()) for row in stretch]}
        for columns, stretch in groupby(map(dict, rows), key=tuple)
    ]
