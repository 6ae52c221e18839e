"""The command line as a person meets it: answers, errors and exit codes."""

import io
import json
import os
import resource
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest
from typer.testing import CliRunner

from tests.data.writers import random_images, random_labels, write_idx
from theodolite import __version__, cli
from theodolite.cli import app, main
from theodolite.runs import RunFolder


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
        with redirect_stdout(out), redirect_stderr(err):
            with pytest.raises(SystemExit) as ended:
                main([*map(str, arguments)])
    code = ended.value.code
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


# Studies that take a second or two; all of them run at SMOKE in tests/studies.
SOME = ("vanishing_partials", "hessian_at_zero", "initial_condition")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Folder after some studies have run at SMOKE."""
    root = tmp_path_factory.mktemp("results")
    run = ("run", *SOME, "--scale", "smoke", "--jobs", 1)
    done = in_a_process(*run, "--out", root, "--json")
    assert done.returncode == 0, done.stderr
    return root, json.loads(done.stdout), done.stderr


def test_help_is_light():
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
    for command in ("list", "run", "show", "report", "repair", "data"):
        assert command in done.stdout
    assert min(spent) < 0.2


def test_version():
    assert in_a_process("--version").stdout.strip() == f"theodolite {__version__}"


def test_list_as_json_before_and_after_a_run(results, tmp_path):
    root, rows, _ = results
    fields = {"paper", "study", "claim", "place", "kind", "statement", "verdict",
              "as_corrected", "confirmed", "because", "deciding", "needed", "scale",
              "hangs_on_ours", "numbers", "rests_on", "alone"}  # fmt: skip
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
    assert erratum.endswith("[confirmed]")
    told = lines[-1]
    assert "by a margin or choice of ours); 2 of 2 errata confirmed; 1 beyond" in told


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
            assert line.strip().startswith("not run")


def test_statements_are_printed_on_request(results):
    root, _, _ = results
    some = ("list", "--paper", "macdonald2023skip", "--out", root)
    without, told = theodolite(*some), theodolite(*some, "--statements")
    said = "Of the printed numbers, the modified network's accuracy on ImageNet"
    assert said in " ".join(told.stdout.split())
    assert said not in " ".join(without.stdout.split())
    assert max(map(len, told.stdout.splitlines())) < 140


@pytest.mark.parametrize("command", ["list", "repair", "report", "show", "run"])
def test_a_file_is_no_folder_of_results(command, tmp_path):
    name = ["hessian_at_zero"] if command in ("show", "run") else []
    (tmp_path / "file").touch()
    told = theodolite(command, *name, "--out", tmp_path / "file")
    assert told.returncode == 1
    assert "is a file and a folder of results was wanted" in told.stderr


def test_a_device_that_the_preset_wants_is_not_laid_at_ones_door(tmp_path):
    asked = ("run", "image_tables", "--out", tmp_path, "--scale", "paper")
    told = theodolite(*asked).stderr
    assert "image_tables at paper is set to run on device 'cuda'" in told
    assert "--device cpu" in told
    told = theodolite(*asked, "--device", "cuda").stderr
    assert "device 'cuda' was asked for" in told


def test_show_and_redraw(results):
    text = theodolite("show", "initial_condition", "--out", results[0]).stdout
    assert "decades a layer, Xavier 0." in text
    assert "lies in the region > 0" in text
    assert "FAILS as printed: largest block norm" in text
    assert "HOLDS as corrected: exponent of ratio (one-shortcut)" in text
    assert "the region [-0.3, 0.3] is ours: a factor of two" in text
    assert "the number's verdict turns at a margin of 0." in text
    shown = json.loads(
        theodolite(
            "show", "initial_condition", "--out", results[0], "--json", "--redraw"
        ).stdout
    )
    assert shown["claims"]
    assert all(os.path.getsize(path) > 0 for path in shown["figure_paths"])


def test_a_damaged_summary_is_one_sentence_with_its_field(results, tmp_path):
    (file,) = (results[0] / "runs").glob("*/initial_condition/*/summary.json")
    copy = tmp_path / file.relative_to(results[0])
    shutil.copytree(file.parent, copy.parent)
    summary = json.loads(file.read_text())
    del summary["claims"][2]["own"]["judged"]["p_holds"]
    copy.write_text(json.dumps(summary))
    tell_one(tmp_path, f"{copy} is not what was written")
    RunFolder.open(copy.parent).write("summary.json", json.dumps(summary))
    tell_one(tmp_path, f"{copy} lacks claims[2].own.judged.p_holds")
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
    page = (results[0] / "report.html").read_text()
    for row in results[1]:
        assert row["claim"] in page


def test_errata_are_written_from_runs(results, tmp_path):
    page = tmp_path / "errata.md"
    done = theodolite("report", "--out", results[0], "--errata", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    for row in results[1]:
        assert (f"`{row['claim']}`" in text) == (row["kind"] == "erratum")
    assert "- As printed FAILS: largest block norm = 2.2" in text


def test_data_lists_what_is_embedded():
    rows = json.loads(theodolite("data", "--json").stdout)
    found = {row["name"]: row["found"] for row in rows}
    assert found["digits"]
    assert found["mnist5k"]
    assert not found["cifar10"]


def test_a_wrong_dataset_fails_the_check(tmp_path, monkeypatch):
    write_idx(tmp_path / "mnist", random_images(4, 28, 28), random_labels(4))
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("THEODOLITE_DATA", "")
    data = ["data", "--verify", "--data", str(tmp_path)]
    told = theodolite(*data)
    assert told.returncode == 1
    assert "mnist (wrong)" in told.stdout
    assert "has shape (60000, 28, 28), these files hold (4, 28, 28)" in told.stdout
    assert "Traceback" not in told.stderr

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
        (["repair", "--out", "/nowhere"], "which is not there: pass --out"),
        (["report", "--to", "a.html", "--errata", "b.md"], "pass one of them"),
        (["run", "all", "--scale", "smoke", "--out", "/proc/none"], "cannot create"),
        (["run", "all", "--executor", "rey"], "did you mean 'ray'"),
        (["run", "all", "--address", "auto"], "add --executor ray"),
        (["run", "all", "--gpus", "0.5"], "add --executor ray"),
        (["run", "all", "--executor", "ray", "--jobs", "0"], "leave out --jobs"),
        (
            [
                "run",
                "hessian_at_zero",
                "--scale",
                "smoke",
                "--executor",
                "ray",
                "--gpus",
                "-1",
                "--address",
                "127.0.0.1:9",
            ],
            "gpus is -1",
        ),
        (
            [
                "run",
                "hessian_at_zero",
                "--scale",
                "smoke",
                "--executor",
                "ray",
                "--address",
                "127.0.0.1:9",
            ],
            "no Ray cluster answers at '127.0.0.1:9'",
        ),
        (["run", "all", "--cell", "depth=4"], "--cell chooses cells of one study"),
        (["run", "hessian_at_zero", "--cell", "depth"], "is not LABEL=VALUE"),
        (
            ["run", "final_losses_linear", "--scale", "smoke", "--cell", "depth=7"],
            "its cells have network xavier, orthogonal, one_shortcut, two_shortcut, ",
        ),
        (["run", "all", "--track", "tensorbord:x"], "did you mean 'tensorboard'"),
        (["run", "all", "--track", "wandb"], "use wandb:PROJECT"),
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


def test_an_error_of_the_process_is_one_sentence_and_a_code():
    done = in_a_process("run", "inital_condition")
    assert done.returncode == 1
    assert "did you mean 'initial_condition'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_the_end_of_a_file_is_no_stop(monkeypatch, capsys):
    def ends(*, verify):
        raise EOFError("the stream does not end")

    monkeypatch.setattr("theodolite.data.available", ends)
    with pytest.raises(EOFError, match="the stream does not end"):
        cli._run(["data"])
    assert "finished work is kept" not in capsys.readouterr().err


def test_the_end_of_the_answers_at_a_prompt_stops(tmp_path, monkeypatch, capsys):
    (tmp_path / "net.py").write_text("")
    typed = io.StringIO()
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    assert cli._run(["survey", f"{tmp_path / 'net.py'}:make"]) == 130
    assert "stopped; finished work is kept" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "code"), [(True, 0), (None, 0), ("x", 0), (3, 3)])
def test_codes_are_whole_numbers_and_nothing_else_is(given, code, monkeypatch):
    monkeypatch.setattr(cli, "app", lambda *arguments, **options: given)
    assert cli._run([]) == code


def test_a_study_that_fails_leaves_the_others_verdicts(tmp_path):
    """A file where the second study wants its folder: the others still finish."""
    some = ("vanishing_partials", "hessian_at_zero", "around_zero")
    spot = tmp_path / "runs" / "li2016demystifying" / "hessian_at_zero"
    spot.parent.mkdir(parents=True)
    spot.write_text("in the way")
    run = ["run", *some, "--scale", "smoke", "--jobs", 0, "--json"]
    done = theodolite(*run, "--out", tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    studies = {row["study"] for row in json.loads(done.stdout)}
    assert studies == {*some} - {"hessian_at_zero"}


def test_a_run_is_tracked_where_asked(tmp_path):
    events = "tensorboard.backend.event_processing.event_accumulator"
    reader = pytest.importorskip(events)
    run = ["run", "around_zero", "--scale", "smoke", "--jobs", 0, "--json"]
    track = ["--track", f"tensorboard:{tmp_path / 'events'}"]
    done = theodolite(*run, *track, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (place,) = (tmp_path / "events").glob("li2016demystifying/around_zero/*")
    found = reader.EventAccumulator(str(place)).Reload()
    assert any(tag.startswith("around_zero/") for tag in found.Tags()["scalars"])
    for row in json.loads(done.stdout):
        tag = f"around_zero/verdict/claim={row['claim']}"
        (text,) = found.Tensors(tag)[0].tensor_proto.string_val
        assert text.decode() == row["verdict"]


CELL = ["--cell", "network=xavier", "--cell", "depth=6"]


def test_chosen_cells_count_towards_the_full_run(tmp_path):
    run = ["run", "final_losses_linear", "--scale", "smoke", "--jobs", 0]
    run += ["--out", tmp_path, "--json"]
    first = json.loads(theodolite(*run, *CELL).stdout)
    assert first["cells"] == [{"network": "xavier", "depth": 6}]
    assert first["computed"] == 1
    assert {(row["network"], row["depth"]) for row in first["rows"]} == {("xavier", 6)}
    # The committed rows were made with other settings: nothing to set beside.
    assert first["largest_relative_difference"] is None
    assert not any("committed" in row for row in first["rows"])
    (folder,) = (tmp_path / "runs").glob("*/final_losses_linear/*")
    assert str(folder) == first["folder"]
    (file,) = (folder / "cells").iterdir()
    before = file.stat().st_mtime_ns
    assert theodolite(*run).returncode == 0
    assert len(list((folder / "cells").iterdir())) > 1
    assert file.stat().st_mtime_ns == before
    again = json.loads(theodolite(*run, *CELL).stdout)
    assert again["computed"] == 0
    assert again["rows"] == first["rows"]


def test_verdicts_that_rest_on_committed_runs_are_marked(tmp_path):
    run = ["run", "shortcut_depth_cifar", "--scale", "quick", "--seeds", 1]
    done = theodolite(*run, "--jobs", 0, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    marked = [line for line in done.stdout.splitlines() if "[committed]" in line]
    assert len(marked) == 4
    assert "; 4 verdicts rest on committed runs" in done.stdout
    listed = json.loads(theodolite("list", "--out", tmp_path, "--json").stdout)
    resting = [row for row in listed if row["rests_on"] == "committed"]
    assert len(resting) == 4
    assert all(row["deciding"] for row in resting)
    shown = theodolite("show", "shortcut_depth_cifar", "--out", tmp_path).stdout
    assert shown.count("this run, UNDECIDED") == 4, "what the run itself says"


def test_a_label_may_have_several_values(tmp_path):
    run = ["run", "final_losses_linear", "--scale", "smoke", "--jobs", 0]
    done = theodolite(*run, *CELL, "--cell", "depth=12.0", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split()[0] == "quantity"
    assert any(line.startswith("log10_rate") for line in lines)
    assert "2 cells (0 known before)" in done.stdout
    assert "no committed rows" in done.stdout


@pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("THEODOLITE_DATA", ""), "mnist")),
    reason="THEODOLITE_DATA names no folder with mnist in it",
)
def test_a_cell_of_the_committed_run_is_reproduced(tmp_path):
    run = ["run", "final_losses_linear", "--scale", "paper", "--jobs", 0]
    cell = ["--cell", "network=two_shortcut", "--cell", "depth=4"]
    data = ["--data", os.environ["THEODOLITE_DATA"]]
    done = theodolite(*run, *cell, *data, "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(row["committed"] is not None for row in found["rows"])
    # Committed values have six digits, and excesses near rounding fewer true ones.
    assert found["largest_relative_difference"] < 1e-3
    text = theodolite(*run, *cell, *data, "--out", tmp_path).stdout
    assert "1 cell (1 known before)" in text
    assert "have a committed value; the largest relative difference is" in text


@pytest.mark.parametrize("arguments", [["rnu"], ["run"], ["run", "all", "--sede", "1"]])
def test_misuse_of_the_command_says_how_to_use_it(arguments):
    done = theodolite(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("theodolite: ")
    assert "--help` says what there is" in done.stderr
    assert done.stderr.count("\n") == 1
