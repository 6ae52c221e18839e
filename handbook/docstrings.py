"""Docstrings as mkdocstrings reads them: what they call an example is a doctest."""

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)


class Examples(Extension):
    """Give examples the heading that the reader of docstrings knows."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of whatever was found."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub("Examples:", obj.docstring.value)
