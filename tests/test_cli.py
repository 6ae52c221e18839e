"""The command line as a person meets it: answers, errors and exit codes."""

import json
import os
import resource
import subprocess
import sys

import pytest

from theodolite import __version__


def theodolite(*arguments, **environment):
    """Run the command in a process of its own."""
    clean = {k: v for k, v in os.environ.items() if k != "THEODOLITE_DATA"}
    return subprocess.run(
        [sys.executable, "-m", "theodolite", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**clean, **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Folder after `theodolite run all --scale smoke`."""
    root = tmp_path_factory.mktemp("results")
    done = theodolite("run", "all", "--scale", "smoke", "--out", root, "--json")
    assert done.returncode == 0, done.stderr
    return root, json.loads(done.stdout), done.stderr


def test_help_is_light():
    code = (
        "import sys\n"
        "sys.argv = ['theodolite', '--help']\n"
        "from theodolite.cli import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code\n"
        "heavy = {'torch', 'numpy', 'scipy', 'matplotlib', 'rich', 'sklearn'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime - before.ru_utime)
        assert done.returncode == 0, done.stderr
    for command in ("list", "run", "show", "report", "data"):
        assert command in done.stdout
    assert min(spent) < 0.2


def test_version():
    assert theodolite("--version").stdout.strip() == f"theodolite {__version__}"


def test_list_as_json_before_and_after_a_run(results, tmp_path):
    root, rows, _ = results
    fields = {"paper", "study", "claim", "place", "kind", "statement", "verdict",
              "scale", "numbers"}  # fmt: skip
    fresh = json.loads(theodolite("list", "--json", "--out", tmp_path).stdout)
    assert fresh
    for row in fresh:
        assert set(row) == fields
        assert row["verdict"] is None
        assert row["scale"] is None
        assert row["kind"] in ("claim", "erratum")
    after = json.loads(theodolite("list", "--json", "--out", root).stdout)
    assert [r["claim"] for r in after] == [r["claim"] for r in fresh]
    verdicts = {(r["study"], r["claim"]): r["verdict"] for r in rows}
    for row in after:
        assert row["verdict"] == verdicts[row["study"], row["claim"]]
        assert row["scale"] == "smoke"
        assert all(set(n) == {"value", "error"} for n in row["numbers"].values())


def test_quiet_when_not_a_terminal(results):
    assert results[2] == ""


def test_list_for_people(results):
    text = theodolite("list", "--paper", "li2016demystifying", "--out", results[0])
    assert "stationary-order" in text.stdout
    assert "not run" not in text.stdout
    assert "errata confirmed" in text.stdout


def test_show_and_redraw(results):
    text = theodolite("show", "hessian_at_zero", "--out", results[0]).stdout
    assert "deviation of any eigenvalue" in text
    shown = json.loads(
        theodolite(
            "show", "hessian_at_zero", "--out", results[0], "--json", "--redraw"
        ).stdout
    )
    assert shown["claims"]
    assert all(os.path.getsize(path) > 0 for path in shown["figure_paths"])


def test_report(results):
    done = theodolite("report", "--out", results[0])
    assert done.returncode == 0, done.stderr
    page = (results[0] / "report.html").read_text()
    for row in results[1]:
        assert row["claim"] in page


def test_data_lists_what_is_embedded():
    rows = json.loads(theodolite("data", "--json").stdout)
    found = {row["name"]: row["found"] for row in rows}
    assert found["digits"]
    assert found["mnist5k"]
    assert not found["cifar10"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "inital_condition"], "did you mean 'initial_condition'"),
        (["run", "all", "--scale", "quik"], "did you mean 'quick'"),
        (["list", "--paper", "li2016"], "did you mean 'li2016demystifying'"),
        (["run", "all", "--scale", "smoke", "--seeds", "0"], "n_seeds is 0"),
        (["run", "all", "--scale", "smoke", "--jobs", "-2"], "-2"),
        (["run", "all", "--scale", "smoke", "--device", "tpu9"], "is not there"),
        (["run", "all", "--data", "/nowhere"], "not a folder"),
        (["run", "initial_condition", "--scale", "paper"], "THEODOLITE_DATA"),
        (["show", "hessian_at_zero", "--out", "/nowhere"], "run `theodolite run"),
        (["show", "hessian_at_zer"], "did you mean"),
        (["report", "--out", "/nowhere"], "no finished runs"),
        (["run", "all", "--scale", "smoke", "--out", "/proc/none"], "cannot create"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_sentence(arguments, words, tmp_path):
    if "--out" not in arguments and arguments[0] == "run":
        arguments = [*arguments, "--out", tmp_path]
    done = theodolite(*arguments)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_study_that_fails_leaves_the_others_verdicts(tmp_path):
    """A file where the first study wants its folder: the others still finish."""
    spot = tmp_path / "runs" / "li2016demystifying" / "hessian_at_zero"
    spot.parent.mkdir(parents=True)
    spot.write_text("in the way")
    done = theodolite(
        "run", "li2016demystifying", "--scale", "smoke", "--out", tmp_path, "--json"
    )
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    studies = {row["study"] for row in json.loads(done.stdout)}
    assert studies == {"around_zero", "initial_condition"}


@pytest.mark.parametrize("arguments", [["rnu"], ["run"], ["run", "all", "--sede", "1"]])
def test_misuse_of_the_command_says_how_to_use_it(arguments):
    done = theodolite(*arguments)
    assert done.returncode == 2
    assert "Error" in done.stderr
    assert "Traceback" not in done.stderr
