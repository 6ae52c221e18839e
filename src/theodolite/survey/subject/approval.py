"""Decide whether the code that a SPEC names may run, before any of it is loaded.

Names of losses run only code of theodolite. Other SPECs name a callable, which always
needs approval, unless it is a module or a function of ``torch.nn`` itself.
"""

from collections.abc import Callable

from torch import nn

from theodolite.core import not_trusted

from .imported import attribute, module_of, read_source
from .specs import ApprovedSpec, Spec, parse_spec


def approve(
    text: str, *, trust: bool = False, ask: Callable[[str], None] | None = None
) -> ApprovedSpec:
    """Return a parsed SPEC whose code may run.

    Args:
        text: The SPEC of a model or of a loss.
        trust: Whether foreign code may run.
        ask: Called with what would run if ``trust`` is not given; raises to refuse.

    Returns:
        The approved SPEC, which :func:`subject_of` takes in place of a text.

    Raises:
        ConfigError: The SPEC cannot be parsed, or names foreign code that was not
            approved.

    Example:
        >>> approve("torch.nn:Linear(4, 3)").spec.args
        (4, 3)
        >>> approve("os:system('ls')")
        Traceback (most recent call last):
        theodolite.core.errors.ConfigError: os:system('ls') would run with all your \
rights: read it, then pass --trust, or trust=True from Python
    """
    spec = parse_spec(text)
    source = read_source(spec.place) if spec.kind == "file" else b""
    code = "" if trust else _code_of_others(spec)
    if code and ask is None:
        raise not_trusted(code)
    if code and ask is not None:
        ask(code)
    return ApprovedSpec(spec, source)


def _code_of_others(spec: Spec) -> str:
    """Return words for the foreign code that a SPEC would run; empty if none."""
    if spec.kind == "file":
        return f"the Python file {spec.place}"
    return spec.text if spec.kind == "module" and not _is_known(spec) else ""


def _is_known(spec: Spec) -> bool:
    """Return whether a SPEC names a module of torch.nn, or a function of losses."""
    if spec.place not in ("torch.nn", "torch.nn.functional") or "." in spec.name:
        return False
    value = attribute(module_of(spec), spec.name, spec.place)
    home = getattr(value, "__module__", None) or ""
    if isinstance(value, type):
        return issubclass(value, nn.Module) and home.startswith("torch.nn.modules.")
    return callable(value) and home == "torch.nn.functional"
