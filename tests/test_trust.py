"""What runs code of others, what never does, and what reaches a terminal."""

import ast
import io
import json
import subprocess
import sys
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

import theodolite as theodolite_package
from tests.command import theodolite
from tests.report.papers import TRAINING
from theodolite.cli.options import require_trust
from theodolite.core import TheodoliteError
from theodolite.runs import LiveProgress, RunFolder, RunSpec
from theodolite.surgery.result import Change, Log
from theodolite.survey import Alert, Course, Finding, optimizer_of, subject_of

SOURCES = Path(theodolite_package.__file__).parent
CODE = """
from pathlib import Path
Path({ran!r}).touch()
from torch import nn
Net = nn.Linear
def loss(model, batch): return model(batch[0]).square().mean()
"""
LINEAR = "torch.nn:Linear(4,2)"
FEW = ("--measures", "map", "--effort", "quick")


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Go to a folder of hostile files, which Python imports from; return their mark."""
    mark = tmp_path / "ran"
    for name in ("evil.py", "plain/torchvision/models.py", "timm/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CODE.format(ran=str(mark)))
    (tmp_path / "link.py").symlink_to("evil.py")
    monkeypatch.chdir(tmp_path)
    for folder in ("plain", ""):
        monkeypatch.syspath_prepend(folder)
    for name in {"evil", "torchvision", "torchvision.models", "timm"} & set(
        sys.modules
    ):
        monkeypatch.delitem(sys.modules, name)
    return mark


ASKED = [
    "evil.py:{name}",
    " evil.py:{name}",
    "\tevil.py:{name}",
    "\u3000evil.py:{name}",
    "./evil.py:{name}",
    "link.py:{name}",
    "evil:{name}",
    "evil.PY:{name}",
    "torchvision.models:{name}",
    "timm:{name}",
    "os:system",
    "torch:load",
    "torch.hub:load",
    "torch.nn:functional.torch.load",
    "torch.nn:Module.load_state_dict",
    "theodolite.survey:subject_of",
    "theodolite.__main__:main",
]


@pytest.mark.parametrize("spec", ASKED)
def test_code_of_others_is_refused_where_nobody_can_be_asked(ran, spec):
    model, loss = spec.format(name="Net"), spec.format(name="loss")
    for arguments in (
        ["survey", model],
        ["survey", LINEAR, "--loss", loss],
        ["compare", LINEAR, model],
    ):
        told = theodolite(*arguments, *FEW)
        assert (told.returncode, told.stdout) == (1, "")
        assert (
            "would run with all your rights: read it, then pass --trust" in told.stderr
        )
        assert told.stderr.count("\n") == 1
    with pytest.raises(TheodoliteError, match="pass --trust, or trust=True"):
        subject_of(model)
    assert not ran.exists()


@pytest.mark.parametrize(
    "spec",
    ["os:system('touch ran')", "torch.nn:functional.torch.os.system('touch ran')"],
)
def test_a_call_in_a_spec_is_refused(ran, spec):
    assert theodolite("survey", spec).returncode == 1
    assert theodolite("survey", "torch.nn:Linear(__import__('evil'))").returncode == 1
    assert not ran.exists()


@pytest.mark.parametrize("inside", ["4, 2)(3", "4, 2)#", "4, 2)\n#"])
def test_brackets_hold_arguments_alone(inside):
    with pytest.raises(TheodoliteError, match="are no plain values"):
        subject_of(f"torch.nn:Linear({inside})")
    with pytest.raises(TheodoliteError, match="are not NAME=VALUE"):
        optimizer_of(f"sgd:lr=0.1{inside[4:]}", nn.Linear(1, 1))


def test_an_attribute_that_raises_is_one_sentence():
    with pytest.raises(TheodoliteError, match=r"has no 'functional\.torch\.classes"):
        subject_of("torch.nn:functional.torch.classes.a.b", trust=True)


def test_code_of_others_runs_when_trusted(ran):
    told = theodolite("survey", " evil.py:Net(4, 2)", "--trust", *FEW)
    assert told.returncode == 0, told.stderr
    assert ran.exists()


@pytest.mark.parametrize(
    "loss", ["torch.nn:CrossEntropyLoss(label_smoothing=0.1)", "cross-entropy",
             "torch.nn.functional:cross_entropy"],
)  # fmt: skip
def test_layers_and_losses_of_torch_are_not_asked_about(loss):
    assert subject_of("torch.nn:Linear(6, 3)", loss=loss).model.in_features == 6


def test_python_m_neither_imports_nor_finds_plugins_in_the_working_directory(ran):
    info = Path("evil-1.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[theodolite.papers]\nx = evil:PAPER\n")
    Path("matplotlib.py").write_text(CODE.format(ran=str(ran)))
    done = subprocess.run(
        [sys.executable, "-m", "theodolite", "list"],
        capture_output=True, text=True, env={"PYTHONPATH": str(SOURCES.parent)},
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert not ran.exists()


HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\u2066\x7f\r\x00[/red]"


def acting(text):
    """Return the characters of a text that would act on a terminal."""
    return {one for one in text if not one.isprintable()} - {"\n"}


def spoilt(value, name=""):
    """Return a summary with escape sequences in all that is free text."""
    if isinstance(value, dict):
        return {key: spoilt(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [spoilt(one, name) for one in value]
    free = ("statement", "place", "title", "note", "what", "why", "claim")
    return value + HOSTILE if isinstance(value, str) and name in free else value


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_run_folder_cannot_act_on_a_terminal(tmp_path, how):
    summary = {key: one for key, one in TRAINING.items() if key != "config"}
    paper, study = summary["paper"]["name"], summary["study"]["name"]
    asked = RunSpec(paper=paper, study=study, scale="smoke", config={"n": 1})
    RunFolder.create(tmp_path, asked).write(
        "summary.json", json.dumps(spoilt(summary), ensure_ascii=False)
    )
    for command in (["show", f"{paper}/{study}"], ["list", "--paper", paper]):
        told = theodolite(*command, "--out", tmp_path, *how)
        assert told.returncode == 0, told.stderr
        assert r"\u001b[2J\u009b31m\u202eb\u2066\u007f" in told.stdout
        assert not acting(told.stdout)
        if how:  # the same text as was in the folder
            assert HOSTILE in "".join(texts(json.loads(told.stdout)))


def texts(value):
    """Yield all texts in what JSON holds."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize(
    "arguments",
    [["survey", HOSTILE], ["survey", f"{HOSTILE}.py:Net"], ["show", HOSTILE],
     ["survey", LINEAR, "--data", f"{HOSTILE}.npz"],
     ["run", f"{HOSTILE}.py"], ["run", "all", "--track", HOSTILE]],
)  # fmt: skip
def test_errors_cannot_act_on_a_terminal(arguments):
    told = theodolite(*[one.replace("\x00", "") for one in arguments])
    assert told.returncode
    assert not acting(told.stderr)


def test_a_question_shows_the_name_that_it_asks_about(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with pytest.raises(TheodoliteError, match="was not run") as caught:
        require_trust("the Python file safe\u202eyp.live.py\x1b[8m", trust=False)
    told = capsys.readouterr()
    asked = told.out + told.err
    assert r"safe\u202eyp.live.py\u001b[8m with all your rights?" in asked
    assert not acting(asked + str(caught.value))


def test_warnings_of_libraries_cannot_act_on_a_terminal():
    program = "import warnings, theodolite.cli.output as s; s.open_streams()"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; warnings.warn({HOSTILE!r})"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.startswith(r"theodolite: UserWarning: a\u001b]0;title")
    assert done.stderr.count("\n") == 1
    assert not acting(done.stderr)


def test_progress_cannot_act_on_a_terminal():
    stream = io.StringIO()
    bar = LiveProgress(stream)
    bar.start(1, 0, HOSTILE)
    bar.finish()
    assert stream.getvalue().count("title") == 1
    assert "\x1b]" not in stream.getvalue()
    assert "\x9b" not in stream.getvalue()


def test_names_in_results_cannot_act_on_a_terminal():
    found = theodolite_package.survey(
        nn.Sequential(OrderedDict({HOSTILE.replace(".", ""): nn.Linear(4, 3)})),
        measures=["map"],
        progress=False,
    )
    hostile = replace(found, title=HOSTILE)
    compared = theodolite_package.compare(hostile, hostile)
    change = Change(module=HOSTILE, what="a", before="b", after="c")
    finding = Finding(
        rule="a", severity="note", title=HOSTILE, says="b", quantity="c", above=True,
        where=(HOSTILE,),
    )  # fmt: skip
    course = Course(title=HOSTILE, every=1, steps=1)
    for each in (hostile, compared, course):
        assert not acting(str(each) + repr(each))
    for each in (Log(operation="a", changes=(change,)), Alert(step=1, finding=finding)):
        assert not acting(str(each))
    assert not acting(str(TheodoliteError(HOSTILE)))


def test_the_command_line_prints_in_one_place_alone():
    calls = set()
    for path in SOURCES.glob("cli/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if name in ("print", "typer.echo", "typer.secho", "sys.stdout.write"):
                calls.add((path.name, ast.unparse(node.args[0])))
    assert {call for call in calls if call[0] != "output.py"} == {
        ("options.py", "context.get_help()")
    }
