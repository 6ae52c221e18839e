"""Errors that a person can act on.

Each message is one sentence that says what came, what was wanted and what to try.
The command line prints it as it is and exits with a non-zero code.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TheodoliteError(Exception):
    """Base of every error that theodolite raises on purpose."""


class ConfigError(TheodoliteError, ValueError):
    """A setting, a blueprint or an argument is out of its range."""


class UnknownNameError(TheodoliteError, LookupError):
    """A name that is not registered; the message suggests the nearest one."""


class DataError(TheodoliteError):
    """A dataset is missing, truncated, corrupt or of the wrong shape."""


class MeasurementError(TheodoliteError):
    """A model or batch that an instrument cannot measure."""


class TeamError(TheodoliteError):
    """One of several processes that work together was lost, or failed."""


class SurgeryError(TheodoliteError):
    """A network that cannot be altered as asked."""


class RunError(TheodoliteError):
    """A run folder that cannot be written or read, or a cell that failed."""


class SubjectError(TheodoliteError):
    """A network, weights or inputs that a survey cannot be made of."""


class StudyError(TheodoliteError):
    """A study of others that cannot be loaded or used."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownNameError:
    """Build the error for an unregistered name, with the nearest right one.

    A name that begins as the wrong one does is nearer than any other.

    Example:
        >>> str(unknown_name("dataset", "mnits", ["digits", "mnist"]))
        "unknown dataset 'mnits': did you mean 'mnist'? known: digits, mnist"
    """
    names = sorted(known)
    begun = [one for one in names if name and one.startswith(str(name))]
    near = begun or get_close_matches(str(name), names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UnknownNameError(
        f"unknown {kind} {name!r}: {hint}known: {', '.join(names) or 'none'}"
    )
