import io

from tests.runs.work import CELLS, Failing, spec
from theodolite.cli.output import progress_bars
from theodolite.core import Cost
from theodolite.runs import LiveProgress, RunFolder, execute


class File(io.StringIO):
    """Text in memory with all that a text file has."""

    mode, name = "w", "file"


class Terminal(File):
    def isatty(self):
        return True


def test_a_terminal_gets_a_display_and_a_file_gets_none(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", Terminal())
    assert isinstance(progress_bars(), LiveProgress)
    monkeypatch.setenv("TERM", "dumb")
    with progress_bars() as progress:
        assert progress is None
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", File())
    with progress_bars() as progress:
        assert progress is None


def test_one_display_holds_several_studies(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    terminal = Terminal()
    with LiveProgress(terminal) as progress:
        for name in ("first [study]", "second"):
            folder = RunFolder.create(tmp_path / name[:3], spec(width=8))
            folder.save(CELLS[0], [], Cost())
            execute(
                folder, CELLS[:5], Failing("b"), jobs=0, progress=progress, label=name
            )
    drawn = terminal.getvalue()
    last = drawn[drawn.rindex("first [study]") :]
    assert "second" in last
    assert last.count("5/5") == 2
    assert "cells/s" in last


def test_a_display_without_a_context_closes_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    progress = LiveProgress(terminal)
    folder = RunFolder.create(tmp_path, spec(width=8))
    execute(folder, CELLS[:3], Failing("b"), jobs=0, progress=progress)
    assert not progress._bars.live.is_started
    assert "3/3" in terminal.getvalue()
