"""Scripts that several pages run, and the name by which a page allows one."""

import base64
import hashlib
from importlib.resources import files
from typing import Literal


def page_script(name: Literal["theme", "copy"]) -> str:
    """Return the text of a script.

    Args:
        name: ``"theme"`` makes buttons of class ``theme`` switch between light and
            dark, ``"copy"`` gives boxes with ``data-copy`` a button that copies.
    """
    return files("theodolite.core.pages").joinpath(f"browser/{name}.js").read_text()


def script_hash(script: str) -> str:
    """Return the name by which a page's own policy allows a script and no other.

    Example:
        >>> script_hash("")
        'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='
    """
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
