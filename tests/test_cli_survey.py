"""`theodolite survey` and `theodolite compare` as a person meets them."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from tests.command import theodolite
from theodolite.cli import app
from theodolite.cli.commands import _run as run_command
from theodolite.cli.survey import _why_not_writable

ROOT = Path(__file__).parents[1]
LINEAR = "torch.nn:Linear(784,10)"
FEW = ("--measures", "map,signal", "--effort", "thorough")
MAP = ("--measures", "map", "--effort", "thorough")
OTHER = ("--ignore", "dead-units,signal-vanishes")
NET = """
from torch import nn
def make(n=3):
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, n))
def loss(model, batch):
    return model(batch[0]).square().mean()
def stopped():
    raise KeyboardInterrupt
def bare():
    return nn.ReLU()
def sick():
    model = make()
    nn.init.constant_(model[0].weight, float("nan"))
    return model
class Leaving(nn.Linear):
    def forward(self, x):
        raise SystemExit(0)
def refuses(model, batch):
    raise ValueError("no such label")
"""


@pytest.fixture
def net(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    return "net.py"


@pytest.mark.parametrize("command", [["survey"], ["compare", "net.py:make"]])
def test_an_interrupt_before_anything_is_measured_is_one_sentence(net, command, capsys):
    assert run_command([*command, f"{net}:stopped", "--trust"]) == 130
    result = capsys.readouterr()
    assert not result.out
    assert result.err.splitlines() == [
        "theodolite: stopped before there was anything to show: run the command again"
    ]


def test_a_survey_is_printed_and_written(net, tmp_path):
    files = ("--json", "found.json", "--html", "found.html")
    spec = (f"{net}:make(5)", "--trust", "--loss", f"{net}:loss")
    result = theodolite("survey", *spec, *FEW, *files, "--optimizer", "sgd:lr=0.5")
    assert result.returncode == 0, result.stderr
    assert "net.py:make(5): 85 parameters" in result.stdout
    assert "MADE-UP inputs" in result.stdout
    assert result.stderr.splitlines() == [
        "theodolite: wrote found.json",
        "theodolite: wrote found.html",
    ]
    saved = json.loads((tmp_path / "found.json").read_text())
    assert saved["inputs"].startswith("made up: Gaussian 4 (Linear '0')")
    assert saved["settings"]["loss"] == "loss"
    assert saved["settings"]["optimizer"] == "SGD"
    assert (tmp_path / "found.html").read_text().startswith("<!")
    # A survey that was kept is compared with a network that is surveyed now.
    result = theodolite("compare", "found.json", "net.py:make", "--trust", *FEW)
    assert result.returncode == 0, result.stderr
    assert "net.py:make(5) → net.py:make" in result.stdout


def test_json_goes_to_standard_output_where_asked(net):
    result = theodolite("survey", f"{net}:make", "--trust", *FEW, "--json", "-")
    assert json.loads(result.stdout)["n_parameters"] == 67


def test_a_file_asks_at_a_terminal_and_is_refused_without_one(net, tmp_path):
    refused = theodolite("survey", f"{net}:make", *FEW)
    assert refused.returncode == 1
    assert "pass --trust" in refused.stderr
    assert refused.stderr.count("\n") == 1
    master, slave = pty.openpty()
    os.write(master, b"n\n")
    done = subprocess.run(
        [sys.executable, "-m", "theodolite", "compare", LINEAR, f"{net}:make"],
        stdin=slave,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    os.close(master)
    os.close(slave)
    assert done.returncode == 1
    assert "with all your rights? [y/N]" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnet18"], "'resnet18' is not understood: pass package.module"),
        ([LINEAR, "--shape", "3,x"], "is no shape"),
        ([LINEAR, "--shape", "5"], "takes none of 1 kinds"),
        ([LINEAR, "--html", "nowhere/x.html"], "its folder is not there"),
        ([LINEAR, "--json", "."], "it is a folder"),
        ([LINEAR, "--data", "mnits"], "unknown dataset 'mnits'"),
        ([LINEAR, "--data", "nowhere/x.npz"], "cannot be read"),
        ([LINEAR, "--data", "nowhere/"], "no folder of images"),
        ([LINEAR, "--data", "mnist5k", "--shape", "784"], "leave one of them out"),
        ([LINEAR, "--loss", "mes"], "did you mean 'mse'"),
        ([LINEAR, "--loss", "torch.nn:Linaer"], "did you mean 'Linear'"),
        ([LINEAR, "--weights", "nowhere.pt"], "nowhere.pt cannot be loaded"),
        ([LINEAR, "--optimizer", "sgd:0.1"], "NAME=VALUE"),
        ([LINEAR, "--norm-mode", "train"], "norm mode 'train'"),
        ([LINEAR, "--measures", "sharpnes"], "unknown measure 'sharpnes'"),
        ([LINEAR, "--effort", "soon"], "effort is 'soon'"),
        ([LINEAR, "--device", "nowhere"], "cannot live on device 'nowhere'"),
        ([LINEAR, "--batch-size", "0"], "batch size is 0"),
        ([LINEAR, "--batches", "0"], "number of batches is 0"),
        ([LINEAR, "--batch-size", "9" * 14], "GiB are free: make smaller batches"),
        ([LINEAR, "--batches", "9" * 11], "GiB are free: make smaller batches"),
        ([LINEAR, "--seed", "9" * 20], "from 0 to below 2**62"),
        ([LINEAR, "--measures", ","], "--measures ',' names none"),
        ([LINEAR, "--ignore", "dead-unit"], "'dead-unit': did you mean 'dead-units'?"),
        ([LINEAR, "--fail-on", "warn"], "did you mean 'warning'? known: note, sick"),
        ([LINEAR, "--optimizer", ""], "unknown optimizer ''"),
        ([LINEAR, "--html", "same", "--json", "same"], "both name same"),
        ([LINEAR, "--data", "text.npz"], "text.npz are no archive of arrays"),
        ([LINEAR, "--data", "array.npz"], "array.npz are no archive of arrays"),
    ],
)
def test_bad_input_is_one_sentence(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.npz").write_text("no archive")
    with Path("array.npz").open("wb") as stream:
        np.save(stream, np.ones((4, 4)))
    result = theodolite("survey", *arguments)
    assert result.returncode == 1
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.startswith("theodolite: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX systems")
def test_a_folder_of_others_is_refused_before_time_is_spent(capsys):
    user = os.geteuid()
    try:
        if user == 0:  # who may write everywhere
            os.seteuid(65534)
        assert run_command(["survey", LINEAR, "--html", "/usr/page.html"]) == 1
        # Devices are written through, whoever has their folder.
        assert not _why_not_writable(Path("/dev/null"))
    finally:
        os.seteuid(user)
    result = capsys.readouterr().err
    assert "since its folder may not be written to: pass the path" in result


def test_of_links_that_folder_counts_to_which_they_lead(tmp_path):
    link = tmp_path / "page.html"
    link.symlink_to(tmp_path / "nowhere" / "page.html")
    assert _why_not_writable(link) == "its folder is not there"
    (tmp_path / "nowhere").mkdir()
    assert not _why_not_writable(link)
    assert not _why_not_writable(Path("/dev/stdout"))


def test_a_broken_saved_survey_is_one_sentence(tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text("{}")
    result = theodolite("compare", path, LINEAR)
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["survey", "net.py:bare"], "of net.py:bare: the loss depends on no parameter"),
        (["survey", "net.py:make", "--loss", "net.py:refuses"], "no such label"),
        (["compare", "net.py:make", "net.py:bare"], "of net.py:bare: the loss depends"),
    ],
)
def test_a_survey_without_a_number_says_why_and_fails(net, arguments, words):
    result = theodolite(*arguments, "--trust", "--shape", "4", *FEW)
    assert result.returncode == 1
    assert result.stderr.startswith("theodolite: nothing was measured of net.py:")
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_model_that_calls_exit_does_not_end_in_silence(net):
    result = theodolite("survey", f"{net}:Leaving(4, 2)", "--trust", *MAP)
    assert (result.returncode, result.stdout) == (1, "")
    assert "code that the command ran called sys.exit(0)" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_map_alone_is_no_empty_survey(net):
    result = theodolite("survey", f"{net}:bare", "--trust", "--shape", "4", *MAP)
    assert result.returncode == 0, result.stderr


def test_weights_of_nan_are_found_on_made_up_inputs(net):
    result = theodolite("survey", f"{net}:sick", "--trust", *FEW)
    assert result.returncode == 0, result.stderr
    assert "Numbers are NaN or infinite" in result.stdout


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ((), 0),
        (("--fail-on", "warning"), 3),
        (("--fail-on", "sick"), 3),
        (("--fail-on", "warning", "--ignore", "not-finite"), 0),
        (("--fail-on", "warning", "--ignore", "not-finite", *OTHER), 0),
        (("--fail-on", "warning", *OTHER), 3),
        (("--fail-on", "bad"), 1),
        (("--ignore", "not-finit"), 1),
    ],
)
def test_findings_set_the_exit_status_if_wanted(net, options, status):
    assert run_command(["survey", f"{net}:sick", "--trust", *FEW, *options]) == status


def test_what_is_ignored_is_said(net, capsys):
    command = ["survey", f"{net}:sick", "--trust", *FEW, "--ignore", "not-finite"]
    assert run_command(command) == 0
    assert (
        "nothing wrong found; ignored: not-finite; checked" in capsys.readouterr().out
    )


def test_everything_is_printed_on_demand(net, capsys):
    command = ["survey", f"{net}:sick", "--trust", *FEW]
    told = []
    for option in ((), ("--full",)):
        assert run_command([*command, *option]) == 0
        told.append(capsys.readouterr().out)
    assert "[not-finite]" in told[0]
    assert "source:" not in told[0]
    assert "source:" in told[1]


def test_a_time_limit_ends_with_the_status_of_timeout(net, capsys):
    command = ["survey", f"{net}:make", "--trust", "--time-limit", "0.000001s"]
    assert run_command(command) == 124
    captured = capsys.readouterr()
    assert "INCOMPLETE" in captured.out
    assert "the time limit was reached" in captured.err


@pytest.mark.parametrize("command", ["survey", "compare"])
def test_what_is_not_asked_for_has_a_default(command):
    given = {p.name: p.default for p in get_command(app).commands[command].params}
    wanted = {
        "effort": "normal",
        "time_limit": None,
        "norm_mode": "as_is",
        "batches": 4,
        "seed": 0,
    }
    assert wanted.items() <= given.items()
    assert given.get("tries", True)
    assert not given["trust"]
