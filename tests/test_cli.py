"""The command line as a person meets it: what it lists, shows and reports."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tests.command import in_a_process, theodolite
from tests.data.writers import random_images, random_labels, write_idx
from theodolite import __version__
from theodolite.cli import app
from theodolite.runs import RunFolder

# Studies that take a second or two; all of them run at SMOKE in tests/studies.
SOME = ("hessian_at_zero", "initial_condition")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Folder after some studies have run at SMOKE."""
    root = tmp_path_factory.mktemp("results")
    run = ("run", *SOME, "--scale", "smoke", "--jobs", 0)
    done = theodolite(*run, "--out", root, "--json")
    assert done.returncode == 0, done.stderr
    return root, json.loads(done.stdout), done.stderr


def commands_of(section):
    return re.findall(r"^  (\w+)  +[A-Z].*\.$", section, re.MULTILINE)


def test_help_is_light_and_grouped_by_what_people_want():
    code = (
        "import sys\n"
        "sys.argv = ['theodolite', '--help']\n"
        "from theodolite.cli import main\n"
        "try:\n    main()\nexcept SystemExit as e:\n    assert not e.code\n"
        "heavy = {'torch', 'numpy', 'scipy', 'matplotlib', 'rich', 'sklearn', 'ray'}\n"
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
    groups = re.split(r"^(\S.*):$", done.stdout, flags=re.MULTILINE)[3:]
    assert dict(zip(groups[::2], map(commands_of, groups[1::2]), strict=True)) == {
        "Fix a network": ["survey", "compare"],
        "Check a paper": ["list", "run", "show", "report"],
        "Data and files": ["repair", "data"],
    }
    assert "..." not in "".join(groups)  # sentences are whole, one line each
    assert min(spent) < 0.2


def test_version():
    assert in_a_process("--version").stdout.strip() == f"theodolite {__version__}"


def test_list_as_json_before_and_after_a_run(results, tmp_path):
    root, rows, _ = results
    fields = {"paper", "study", "claim", "place", "kind", "statement", "verdict",
              "as_corrected", "confirmed", "because", "deciding", "needed", "scale",
              "hangs_on_ours", "numbers", "rests_on", "alone", "depends_on_reading",
              "shortened", "departures", "grade", "died"}  # fmt: skip
    fresh = json.loads(theodolite("list", "--json", "--out", tmp_path).stdout)
    assert fresh
    for row in fresh:
        assert set(row) == fields
        assert row["verdict"] is None
        assert row["scale"] is None
        assert row["kind"] in ("claim", "erratum", "beyond")
    after = json.loads(theodolite("list", "--json", "--out", root).stdout)
    assert [r["claim"] for r in after] == [r["claim"] for r in fresh]
    verdicts = {(r["study"], r["claim"]): r["verdict"] for r in rows}
    assert len(verdicts) == len(rows)
    for row in after:
        assert row["verdict"] == verdicts.get((row["study"], row["claim"]))
        assert row["scale"] == ("smoke" if row["study"] in SOME else None)
        assert all(set(n) == {"value", "error"} for n in row["numbers"].values())


def test_json_of_a_run_says_what_decided(results):
    rows = {row["claim"]: row for row in results[1]}
    row = rows["xavier-explodes"]
    deciding = row["deciding"]
    assert deciding["low"] < deciding["value"] < deciding["high"]
    assert deciding["region"]["low"] == 0
    assert deciding["region"]["source"] == "paper"
    assert deciding["n"] >= 2
    assert row["confirmed"] is None
    assert not row["hangs_on_ours"]
    assert rows["two-shortcut-constant"]["hangs_on_ours"]
    erratum = rows["one-shortcut-explodes"]
    assert (erratum["verdict"], erratum["as_corrected"]) == ("FAILS", "HOLDS")
    assert erratum["confirmed"]


def test_the_table_of_a_run_tells_kinds_and_margins(results):
    root = results[0]
    run = ["run", "initial_condition", "--scale", "smoke", "--jobs", 0, "--out", root]
    lines = theodolite(*run).stdout.splitlines()
    (constant,) = [line for line in lines if "two-shortcut-constant" in line]
    assert constant.endswith("[our margin]")
    (erratum,) = [line for line in lines if "one-shortcut-explodes" in line]
    assert erratum.split()[0] == "FAILS"
    assert "erratum" in erratum
    assert "[loose, confirmed]" in erratum
    last_line = lines[-1]
    assert "a margin or choice of ours; 1 of 1 errata confirmed (1 of them" in last_line
    assert "loose); 1 wrong only as we read them; 1 beyond" in last_line


def test_quiet_when_not_a_terminal(results):
    assert results[2] == ""


def test_list_for_people(results):
    text = theodolite("list", "--paper", "li2016demystifying", "--out", results[0])
    assert "stationary-order" in text.stdout
    assert "errata confirmed" in text.stdout
    for line in text.stdout.splitlines():
        if "positions" in line or "hessian-vanishes" in line:
            assert line.strip().startswith("HOLDS")
        if "stationary-order" in line:
            assert line.strip().startswith("NOT RUN")


def test_statements_are_printed_on_request(results):
    root, _, _ = results
    some = ("list", "--paper", "macdonald2023skip", "--out", root)
    without, result = theodolite(*some), theodolite(*some, "--statements")
    said = "Of the printed numbers, the modified network's accuracy on ImageNet"
    assert said in " ".join(result.stdout.split())
    assert said not in " ".join(without.stdout.split())
    assert max(map(len, result.stdout.splitlines())) < 140


def test_show_and_redraw(results):
    text = theodolite("show", "initial_condition", "--out", results[0]).stdout
    assert "decades a layer, Xavier 0." in text
    assert "lies in the region > 0" in text
    assert "FAILS as printed: largest norm of a block far from the" in text
    assert "HOLDS as corrected: exponent of condition number (one-shortcut)" in text
    assert "the region [-0.3, 0.3] is ours: a factor of two" in text
    assert "the number's verdict turns at a margin of 0." in text
    shown = json.loads(
        theodolite(
            "show", "initial_condition", "--out", results[0], "--json", "--redraw"
        ).stdout
    )
    assert shown["claims"]
    assert all(os.path.getsize(path) > 0 for path in shown["figure_paths"])


def test_show_finds_results_by_the_beginning_of_a_name(results):
    shown = theodolite("show", "hessian_at", "--out", results[0]).stdout
    assert shown.startswith("li2016demystifying/hessian_at_zero: ")


def test_a_damaged_summary_is_one_sentence_with_its_field(results, tmp_path):
    (file,) = (results[0] / "runs").glob("*/initial_condition/*/summary.json")
    copy = tmp_path / file.relative_to(results[0])
    shutil.copytree(file.parent, copy.parent)
    summary = json.loads(file.read_text())
    del summary["claims"][2]["own"]["judged"]["p_holds"]
    copy.write_text(json.dumps(summary))
    tell_one(tmp_path, f"{copy} is not what was written")
    RunFolder.open(copy.parent).write("summary.json", json.dumps(summary))
    tell_one(tmp_path, f"{copy} is wrong at claims[2].own.judged: Object missing")
    healed = theodolite("repair", "--out", tmp_path)
    assert healed.returncode == 0, healed.stderr
    assert f"{copy.parent}: healed summary.json" in healed.stdout
    assert theodolite("show", "initial_condition", "--out", tmp_path).returncode == 0


def tell_one(root, words):
    """Name what is damaged and what heals it, in one sentence."""
    for command in (["show", "initial_condition"], ["report"]):
        done = theodolite(*command, "--out", root)
        assert done.returncode == 1
        assert words in done.stderr
        assert f"`theodolite repair --out {root}`" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_list_names_damage_and_shows_the_rest(results, tmp_path):
    shutil.copytree(results[0] / "runs", tmp_path / "runs")
    (file,) = (tmp_path / "runs").glob("*/initial_condition/*/run.json")
    file.write_bytes(b"\xff")
    done = theodolite("list", "--json", "--out", tmp_path)
    assert done.returncode == 0
    judged = {row["study"] for row in json.loads(done.stdout) if row["verdict"]}
    assert judged == {*SOME} - {"initial_condition"}
    assert f"{file} is not what was written: what is whole is shown" in done.stderr


def test_report(results):
    done = theodolite("report", "--out", results[0])
    assert done.returncode == 0, done.stderr
    front = results[0] / "report.html"
    assert done.stdout.splitlines()[-1] == front.absolute().as_uri()
    page = "".join(one.read_text() for one in results[0].glob("report-*.html"))
    for row in results[1]:
        assert row["claim"] in page


def test_errata_are_written_from_runs(results, tmp_path):
    page = tmp_path / "errata.md"
    done = theodolite("report", "--out", results[0], "--errata", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    for row in results[1]:
        assert (f"`{row['claim']}`" in text) == (row["kind"] == "erratum")
    assert (
        "- As printed FAILS: largest norm of a block far from the diagonal = 2.2"
        in text
    )


def test_data_lists_what_is_embedded():
    rows = json.loads(theodolite("data", "--json").stdout)
    rows_by_name = {row["name"]: row["found"] for row in rows}
    assert rows_by_name["digits"]
    assert rows_by_name["mnist5k"]
    assert not rows_by_name["cifar10"]


def test_a_wrong_dataset_fails_the_check(tmp_path, monkeypatch):
    write_idx(tmp_path / "mnist", random_images(4, 28, 28), random_labels(4))
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THEODOLITE_DATA", "")
    data = ["data", "--verify", "--data", str(tmp_path)]
    result = theodolite(*data)
    assert result.returncode == 1
    assert "mnist (wrong)" in result.stdout
    assert "has shape (60000, 28, 28), these files hold (4, 28, 28)" in result.stdout
    assert "Traceback" not in result.stderr

    def invoke(*arguments):
        os.environ["THEODOLITE_DATA"] = ""  # which --data sets
        return CliRunner().invoke(app, arguments)

    rows = invoke(*data, "--json")
    assert rows.exit_code == 1
    states = {row["name"]: row["checked"] for row in json.loads(rows.stdout)}
    assert states["mnist"] == "wrong"
    # Without the check nothing is known to be wrong, and right sets are not.
    assert invoke("data", "--data", str(tmp_path)).exit_code == 0
    assert invoke("data", "--verify").exit_code == 0
