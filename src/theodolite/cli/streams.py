"""Output of the command line, to streams that may be closed, full or not Unicode.

In all cases a command ends with its exit code, and after a failure with one sentence
if a stream can still be written to.
"""

import os
import sys
import warnings
from contextlib import suppress
from io import TextIOWrapper
from typing import NoReturn

import typer


def open_streams() -> None:
    """Make the standard streams safe to write to, before any other file is opened.

    A closed stream becomes the null device: otherwise the next opened file would get
    its file descriptor, and receive the output. Characters that an encoding lacks are
    written as escapes.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            with suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # which takes the lowest free number
    sys.stdout = sys.stdout or _null()
    sys.stderr = sys.stderr or _null()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.formatwarning = _warning_line


def escape_logs() -> None:
    """Remove terminal escape sequences from the logs of libraries."""
    import logging

    class SafeRecord(logging.LogRecord):
        def getMessage(self) -> str:
            return _safe(super().getMessage())

    logging.setLogRecordFactory(SafeRecord)


def speaks_unicode() -> bool:
    """Return whether standard output can encode every character."""
    encoding = getattr(sys.stdout, "encoding", None) or ""
    return encoding.lower().replace("-", "").replace("_", "").startswith("utf")


def _coloured() -> bool:
    """Return whether to print in colour; see https://no-color.org."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_text(text: str, *, mark: str = "", colour: str | None = None) -> None:
    """Print to standard output; control characters are escaped.

    Args:
        text: Lines of any origin.
        mark: Prefix of the text.
        colour: Colour of the mark, if the terminal shows colours.
    """
    mark = _safe(mark)
    if colour and _coloured():
        word = mark.lstrip()
        mark = mark.removesuffix(word) + typer.style(word, fg=colour)
    typer.echo(mark + _safe(text))


def print_error(sentence: str) -> None:
    """Print one line to standard error."""
    line = _line(sentence)
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def _line(sentence: str) -> str:
    return _safe(" ".join(f"theodolite: {sentence}".split()))


def _warning_line(message: Warning | str, category: type[Warning], *_: object) -> str:
    """Return a warning of a library as it is printed."""
    return _line(f"{category.__name__}: {message}") + "\n"


def _safe(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text  # the most of them, which need nothing loaded
    from theodolite.core import printable

    return printable(text)


def flush_and_exit(code: int) -> NoReturn:
    """Flush the output and exit; print a sentence if the output cannot be written."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the pipe has closed it
        _abandon(sys.stdout)
        code = 141
    except (OSError, ValueError) as error:
        _abandon(sys.stdout)
        why = getattr(error, "strerror", None) or error
        print_error(f"the output could not be written ({why}): write it elsewhere")
        code = code or 1
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _abandon(sys.stderr)
    sys.exit(code)


def abandon_output() -> None:
    """Redirect standard output to the null device after it has failed."""
    _abandon(sys.stdout)


def _null() -> TextIOWrapper:
    return open(os.devnull, "w", encoding="utf-8")


def _abandon(stream: object) -> None:
    """Redirect a stream to the null device, so that Python exits without an error."""
    with suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())  # pyright: ignore[reportAttributeAccessIssue]
        os.close(null)
