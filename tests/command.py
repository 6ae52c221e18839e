"""The command `theodolite`, in a process of its own or in this one."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from theodolite import figures
from theodolite.cli import main


def as_svg(save):
    """Return ``figures.save`` for SVG alone, where PNG and PDF would be made as well.

    Three formats take three times as long, and tests of figures save them all.
    """

    def saved(figure, stem, formats=("svg",)):
        return save(figure, stem, [one for one in formats if one == "svg"] or formats)

    return saved


def in_a_process(*arguments, **environment):
    """Run the command in a process of its own."""
    clean = {k: v for k, v in os.environ.items() if k != "THEODOLITE_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "theodolite", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**clean, **environment},
        check=False,
    )


def theodolite(*arguments):
    """Run the command through its entry point, in this process, which has torch."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("THEODOLITE_DATA", raising=False)
        patch.setenv("MPLBACKEND", "agg")  # both of which the command may set
        patch.setattr(figures, "save", as_svg(figures.save))
        with redirect_stdout(out), redirect_stderr(err):
            with pytest.raises(SystemExit) as ended:
                main([*map(str, arguments)])
    code = ended.value.code
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
