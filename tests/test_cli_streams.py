"""The command line on closed, full and old streams, and stopped in mid-run."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import theodolite
from tests.runs.processes import until
from tests.studies import tiny

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses /dev and ptys")

ROOT = Path(__file__).parents[1]
COMMAND = f"{sys.executable} -m theodolite"
# The tiny paper in place of all others, through the real entry point.
TINY = """
import sys, time
import pytest
from tests.studies import tiny
from theodolite.cli import main
pace = float(sys.argv.pop(1))
slow = tiny.measure
def measure(config, cell):
    time.sleep(pace * cell["trial"])
    return slow(config, cell)
object.__setattr__(tiny.STUDY, "measure", measure)
tiny.install(pytest.MonkeyPatch())
main()
"""


def environment(**more):
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    return {**os.environ, "PYTHONPATH": path, **more}


def shell(line, **more):
    done = subprocess.run(
        ["bash", "-c", line],
        env=environment(**more),
        capture_output=True,
        timeout=250,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    assert b"Exception ignored" not in done.stderr, done.stderr
    return done


def test_a_reader_that_has_closed_the_pipe_is_no_error():
    # Closed before the command writes: `| head -1` may close after the last line.
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND.split(), "list"],
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=250,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("redirection", "code"),
    [
        (">&-", 0),
        ("2>&-", 0),
        ("<&- >&- 2>&-", 0),
        (">/dev/full", 1),
        ("2>/dev/full", 0),
        (">/dev/full 2>&1", 1),
    ],
)
def test_streams_that_are_closed_or_full(redirection, code):
    done = shell(f"{COMMAND} --version {redirection}")
    assert done.returncode == code
    if redirection == ">/dev/full":
        assert done.stderr.decode().strip() == (
            "theodolite: cannot use the output (No space left on device): try another "
            "place"
        )


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&- 2>&-"])
def test_an_error_that_nobody_hears_is_one_all_the_same(redirection):
    done = shell(f"{COMMAND} show nothing {redirection}")
    assert done.returncode == 1
    assert done.stdout == b"", "and it is not said where the output goes"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder whose name no old encoding can write, with a finished run."""
    root = tmp_path_factory.mktemp("λ")
    with pytest.MonkeyPatch.context() as patch:
        tiny.install(patch)
        run = theodolite("run", "line", "--scale", "smoke", "--jobs", 0, "--out", root)
    assert run.returncode == 0, run.stderr
    return root


def tiny_command(results, *arguments, **more):
    return subprocess.run(
        [sys.executable, "-c", TINY, "0", *arguments, "--out", str(results)],
        env=environment(**more),
        capture_output=True,
        check=False,
        timeout=250,
    )


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_streams_of_old_encodings(results, encoding):
    shown = tiny_command(results, "show", "line", PYTHONIOENCODING=encoding)
    assert shown.returncode == 0, shown.stderr
    # Typer takes ASCII for a mistake of the shell, and writes UTF-8 instead.
    assert (rb"\u03bb" if encoding == "latin-1" else "λ".encode()) in shown.stdout
    if encoding == "latin-1":
        old = {"PYTHONIOENCODING": encoding}
        result = tiny_command(results, "show", "line", "--json", **old)
        assert json.loads(result.stdout)["folder"].startswith(str(results))


def test_a_shell_that_asks_for_windows_that_are_not_there(results):
    again = tiny_command(results, "show", "line", "--redraw", MPLBACKEND="nonsense")
    assert again.returncode == 0, again.stderr
    assert again.stderr == b""


def on_a_terminal(results, **more):
    """Return what a terminal is sent."""
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", TINY, "0", "list", "--out", str(results)],
        env=environment(**more),
        stdout=child,
        stderr=subprocess.DEVNULL,
    )
    os.close(child)
    sent = b""
    while True:
        try:
            sent += (part := os.read(parent, 4096))
        except OSError:  # the other end is closed
            break
        if not part:
            break
    os.close(parent)
    assert process.wait() == 0
    return sent


def test_colour_only_where_it_is_welcome(results):
    assert b"\x1b[32mHOLDS" in on_a_terminal(results, TERM="xterm", NO_COLOR="")
    assert b"\x1b" not in on_a_terminal(results, TERM="xterm", NO_COLOR="1")
    assert b"\x1b" not in on_a_terminal(results, TERM="dumb", NO_COLOR="")


def heed_interrupts():
    """Shells switch interrupts off for what they start in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_stopping_says_what_is_kept(tmp_path):
    arguments = ["300", "run", "line", "--scale", "smoke", "--jobs", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", TINY, *arguments, "--out", str(tmp_path)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )
    try:
        until(lambda: list(tmp_path.glob("runs/*/*/*/cells/*.jsonl")))
        process.send_signal(signal.SIGINT)
        result = process.communicate(timeout=250)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert result[1].strip() == (
        f"theodolite: stopped; 1 of 3 cells are kept in {tmp_path}, and the same "
        "command goes on from there"
    )
