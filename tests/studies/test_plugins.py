"""Studies of others: a package, a single file, and what is wrong with either."""

import json
import os
import pty
import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from tests.command import theodolite
from theodolite.core import StudyError
from theodolite.studies import (
    StudyFile,
    catalogue,
    find,
    plan_study,
    plugin_problems,
    run_study,
    select,
    studies_in_file,
)
from theodolite.studies.known_studies import plugins

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your_study.md").read_text()
CODE = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
PROJECT = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1]
FULL = "he2015delving/signals"


# Several commands one after the other, for torch is loaded once a process.
SCRIPT = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from theodolite.cli import main
done = []
if __name__ == "__main__":  # workers import this file as well
    for command in json.loads(sys.argv[1]):
        out, err = io.StringIO(), io.StringIO()
        try:
            with redirect_stdout(out), redirect_stderr(err):
                main(command)
        except SystemExit as ended:
            done.append((ended.code, out.getvalue(), err.getvalue()))
    print(json.dumps(done))
"""


def run_there(environment, script, commands):
    """Run commands in a process that finds what is installed in a folder."""
    script.write_text(SCRIPT)
    path = os.pathsep.join([str(environment), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, script, json.dumps(commands)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def file(tmp_path):
    """The study of the page, as a file."""
    path = tmp_path / "signals.py"
    path.write_text(CODE)
    return path


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A folder into which the package of the page is installed, beside a broken one."""
    project = tmp_path_factory.mktemp("project")
    (project / "signals.py").write_text(CODE)
    (project / "pyproject.toml").write_text(PROJECT)
    target = tmp_path_factory.mktemp("environment")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    quick = ["--no-deps", "--no-build-isolation", "--no-compile", "--quiet"]
    done = subprocess.run(
        [*pip, *quick, "--target", target, project],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    broken = target / "broken-1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1")
    points = "[theodolite.papers]\ntorn = nowhere_to_be_found:PAPER\n"
    (broken / "entry_points.txt").write_text(points)
    return target


def test_a_package_is_listed_run_resumed_shown_and_reported(environment, tmp_path):
    out = ["--out", str(tmp_path / "out")]
    smoke = ["--scale", "smoke", "--json", *out]
    before, ran, again, shown, report = run_there(
        environment,
        tmp_path / "commands.py",
        [
            ["list", *out],
            ["run", "signals", "--jobs", "1", *smoke],
            ["run", "he2015delving", "--jobs", "0", *smoke],
            ["show", FULL, *out],
            ["report", *out],
        ],
    )
    assert before[0] == ran[0] == again[0] == shown[0] == report[0] == 0
    assert f"{FULL}\n  NOT RUN   size-is-kept" in before[1]
    assert "li2016demystifying/hessian_at_zero" in before[1]
    # The broken one is told in a sentence, and is in nobody's way.
    assert before[2].count("\n") == 1
    assert "'torn' of broken cannot be imported (ModuleNotFoundError" in before[2]
    assert [one["verdict"] for one in json.loads(ran[1])] == ["HOLDS"]
    launches = sorted((tmp_path / "out").glob("runs/*/*/*/launches/*.json"))
    assert sorted(json.loads(p.read_text())["n_computed"] for p in launches) == [0, 32]
    assert f"{FULL}: Section 2.2" in shown[1]
    assert "Delving deep" in (tmp_path / "out" / "report.html").read_text()


def test_a_file_runs_when_trusted_and_in_any_process(file, tmp_path):
    out = ("--out", tmp_path / "out")
    refused = theodolite("run", file, *out)
    assert refused.returncode == 1
    assert "pass --trust" in refused.stderr
    assert not (tmp_path / "out").exists()
    how = ("--trust", "--scale", "smoke", "--seeds", 4, "--jobs", 1)
    ran = theodolite("run", file, *how, *out, "--json")
    assert [one["claim"] for one in json.loads(ran.stdout)] == ["size-is-kept"]
    # Results are listed and shown without the file; figures are its own.
    listed = theodolite("list", "--paper", "he2015delving", *out)
    assert f"{FULL} (smoke)" in listed.stdout
    assert "not run" not in listed.stdout
    shown = theodolite("show", FULL, *out)
    assert f"{FULL}: Section 2.2" in shown.stdout
    alone = theodolite("show", FULL, "--redraw", *out)
    assert alone.returncode == 1
    assert "pass the file that it ran from" in alone.stderr
    assert theodolite("show", file, "--trust", "--redraw", *out).returncode == 0
    command = json.loads(theodolite("show", FULL, "--json", *out).stdout)["command"]
    assert command == f"theodolite run {file} --scale smoke --seeds 4"


def test_at_a_terminal_one_is_asked(file, tmp_path):
    master, slave = pty.openpty()
    os.write(master, b"n\n")
    done = subprocess.run(
        [sys.executable, "-m", "theodolite", "list", "--paper", file],
        stdin=slave,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    os.close(master)
    os.close(slave)
    assert done.returncode == 1
    assert "with all your rights? [y/N]" in done.stderr
    assert "was not run" in done.stderr


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("def measure(config, cell):", "4 of 4 cells failed"),
        ("def predict(config):", "he2015delving/signals called"),
        ("def cells(config):", "he2015delving/signals called"),
    ],
)
def test_a_study_that_calls_exit_does_not_end_in_silence(
    file, tmp_path, where, words, code
):
    line = next(one for one in CODE.splitlines() if one.startswith(where))
    file.write_text(CODE.replace(line, f"{line}\n    raise SystemExit({code})"))
    how = ("--trust", "--scale", "smoke", "--seeds", 2, "--jobs", 0)
    result = theodolite("run", file, *how, "--out", tmp_path / "out")
    assert result.returncode != 0
    assert words in result.stderr
    assert f"sys.exit({code})" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_ran_resumes_and_one_that_was_edited_does_not(file, tmp_path):
    def computed():
        (entry,) = studies_in_file(StudyFile.read(file))
        plan = plan_study(entry, scale="smoke", n_seeds=2)
        svg = {"root": tmp_path / "out", "jobs": 0, "figure_formats": ["svg"]}
        return run_study(plan, **svg).execution.n_computed

    assert computed() == 4
    assert computed() == 0
    file.write_text(CODE.replace("DEPTH = 256, 10", "DEPTH = 256, 11"))
    assert computed() == 4


def test_a_lone_study_is_named_after_its_file(tmp_path):
    path = tmp_path / "my signals.py"
    path.write_text(re.sub(r"PAPER = .*\n", "", CODE))
    (entry,) = studies_in_file(StudyFile.read(path))
    assert entry.full_name == "my_signals/my_signals"
    assert entry.paper.authors == "my signals.py"
    assert entry.study.claims[0].name == "size-is-kept"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("STUDY = (", "SyntaxError"),
        ("raise SystemExit('no')", "SystemExit: no"),
        ("import nowhere_beside", "imports installed packages alone"),
        ("STUDY = 3", "is int in"),
        ("", "is nothing in"),
        ("PAPER = 3", "PAPER in .* is int"),
        (CODE.replace("he2015delving", "li2016demystifying"), "which is taken"),
        (CODE.replace("he2015delving", "../out"), "with the name '../out'"),
        (CODE.replace('("signals",)', '"signals"'), "studies is 'signals'"),
        (CODE.replace('"smoke": ', '"small": '), "no preset 'smoke'"),
        (CODE.replace('("signals",)', '("one", "two")'), "/one is nothing"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_study_is_one_sentence(text, words, tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(text)
    with pytest.raises(StudyError, match=words) as caught:
        _ = studies_in_file(StudyFile.read(path))[0].study
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    result = theodolite("run", tmp_path / "nothing.py", "--trust")
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "cannot be read" in result.stderr


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Pretend that packages with such papers are installed."""
    module = sys.modules[plugins.__module__]
    own = module._points()

    def install(**codes):
        points = []
        for name, text in codes.items():
            (tmp_path / f"{name}.py").write_text(text)
            points.append(EntryPoint(name, f"{name}:PAPER", module.GROUP))
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setattr(module, "_points", lambda: EntryPoints([*own, *points]))

    monkeypatch.syspath_prepend(str(tmp_path))
    yield install
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_names_that_clash_never_break_ours(installed):
    ours = [entry.full_name for entry in catalogue()]
    taken = CODE.replace("he2015delving", "poggio2020square")
    installed(
        guest_one=CODE,
        guest_two=CODE,
        guest_three=taken,
        guest_four=CODE.replace("he2015delving", "four").replace(
            '("signals",)', '("hessian_at_zero",)'
        ),
    )
    assert [e.full_name for e in catalogue()] == [*ours, FULL, "four/hessian_at_zero"]
    said = plugin_problems()
    assert len(said) == 2
    assert "'guest_two'" in said[0]
    assert "'poggio2020square', which is taken" in said[1]
    # A plain name means ours, a full one theirs.
    assert find("hessian_at_zero").paper.name == "li2016demystifying"
    assert select("hessian_at_zero") == [find("li2016demystifying/hessian_at_zero")]
    assert find("four/hessian_at_zero").study.title.startswith("Section 2.2")


def test_a_broken_study_is_left_out_of_all_but_not_of_its_name(installed, tmp_path):
    installed(guest_five=CODE.replace('("signals",)', '("torn", "away")'))
    out = ("--out", tmp_path / "out")
    listed = theodolite("list", *out)
    assert listed.returncode == 0
    assert listed.stderr.count("he2015delving/torn is nothing") == 1
    assert "initial_condition" in listed.stdout
    asked = theodolite("run", "he2015delving/torn", *out)
    assert asked.returncode == 1
    assert "define STUDY" in asked.stderr
