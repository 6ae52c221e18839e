"""Errors that a person can act on.

Each message is one sentence that says what came, what was wanted and what to try.
The command line prints it as it is and exits with a non-zero code.
"""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

# Control characters (C0, C1), format characters (with bidirectional overrides),
# surrogates, and line separators that terminals show in different ways.
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
# Joiners, without which Persian and some emoji are spelt wrongly.
_SAFE = "\n\t\u200c\u200d"
# Of more known names than this, a message lists only the most similar.
_MANY = 40


def printable(text: str) -> str:
    r"""Return text without control characters or bidirectional overrides.

    Such characters are written as JSON escapes, so that a JSON text keeps its meaning.
    Tabs and line feeds stay.

    Example:
        >>> printable("a\x1b[2Jb\u202ec — 学")
        'a\\u001b[2Jb\\u202ec — 学'
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        one
        if one in _SAFE or unicodedata.category(one) not in _UNSAFE
        else _escape(one)
        for one in text
    )


def _escape(one: str) -> str:
    units = one.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in pairs)


class TheodoliteError(Exception):
    """Base of every error that theodolite raises on purpose."""

    def __str__(self) -> str:
        return printable(super().__str__())  # many messages contain names from outside


class ConfigError(TheodoliteError, ValueError):
    """A setting, a blueprint or an argument is out of its range."""


class UnknownNameError(TheodoliteError, LookupError):
    """A name that is not registered; the message suggests the nearest one."""


class DataError(TheodoliteError):
    """A dataset is missing, truncated, corrupt or of the wrong shape."""


class MeasurementError(TheodoliteError):
    """A model or batch that an instrument cannot measure."""


class DistributedError(TheodoliteError):
    """One of the processes of a distributed measurement was lost, or failed."""


class SurgeryError(TheodoliteError):
    """A network that cannot be changed in the requested way."""


class RunError(TheodoliteError):
    """A run folder that cannot be written or read, or a cell that failed."""


class SummaryError(RunError):
    """A summary that does not fit its schema; ``problem`` says what is wrong."""

    def __init__(self, source: str, problem: str) -> None:
        self.source, self.problem = source, problem
        super().__init__(f"{source} {problem}: write it again with `theodolite repair`")

    def __reduce__(self) -> tuple[type["SummaryError"], tuple[str, str]]:
        return type(self), (self.source, self.problem)


class SubjectError(TheodoliteError):
    """A network, weights or inputs that cannot be surveyed."""


class StudyError(TheodoliteError):
    """A study from another package or file cannot be loaded or used."""


class ArgumentError(
    ConfigError,
    UnknownNameError,
    DataError,
    MeasurementError,
    SurgeryError,
    RunError,
    SubjectError,
    StudyError,
):
    """An argument is not of its annotated type; caught as its package's errors are."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """Return the error for an unknown name, with the most similar known one.

    A known name with the same beginning counts as the most similar. Of more than 40
    names only the five most similar are listed.

    Example:
        >>> str(unknown_name("dataset", "mnits", ["digits", "mnist"]))
        "unknown dataset 'mnits': did you mean 'mnist'? known: digits, mnist"
    """
    names = sorted(known)
    text = str(name)
    begun = [one for one in names if text and one.startswith(text)]
    near = begun or get_close_matches(text, names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    known = ", ".join(names) or "none"
    if len(names) > _MANY:
        similar = dict.fromkeys(begun + get_close_matches(text, names, n=5, cutoff=0.0))
        known = f"{len(names)} names, most similar: {', '.join(list(similar)[:5])}"
    return UnknownNameError(f"unknown {kind} {name!r}: {hint}known: {known}")


def not_trusted(code: str) -> ConfigError:
    """Return the error for code that the user has not allowed to run.

    Example:
        >>> str(not_trusted("the file net.py"))[:51]
        'the file net.py would run with all your rights: rea'
    """
    return ConfigError(
        f"{code} would run with all your rights: read it, then pass --trust, or "
        "trust=True from Python"
    )


# Errors that code of other people may raise when it is run.
FOREIGN = (TheodoliteError, RuntimeError, ValueError, TypeError, AttributeError)
FOREIGN += (LookupError, ArithmeticError, AssertionError, MemoryError)


def error_text(error: BaseException) -> str:
    """Return an error in one line, with its kind if it is one of foreign code."""
    if type(error).__name__ == "OutOfMemoryError":  # of torch
        return "the device has no memory left: pass smaller batches, or fewer"
    lines = str(error).strip().splitlines()
    line = lines[0].rstrip(". ") if lines else "no message"
    ours = isinstance(error, TheodoliteError)
    return line if ours else f"{type(error).__name__}: {line}"
