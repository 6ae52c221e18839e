"""The readme of a package index: README.md without what would not be found there.

An index shows no file of the source tree. Pictures of it are left out, and links to it
keep their words.
"""

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # for the tests, which need no builder
    MetadataHookInterface = object

_PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?://)[^)]*\)\n+", flags=re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)[^)]*\)")


def for_index(text: str) -> str:
    """Return a readme whose links all lead somewhere.

    Example:
        >>> for_index("see [docs](docs/a.md), [torch](https://pytorch.org)")
        'see docs, [torch](https://pytorch.org)'
    """
    return _LINK.sub(r"\1", _PICTURE.sub("", text))


class CustomMetadataHook(MetadataHookInterface):  # type: ignore[misc]
    """Gives the project its readme."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme that an index shows."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_index(text),
        }
