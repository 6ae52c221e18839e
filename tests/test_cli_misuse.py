"""What the command says to what it cannot do: one sentence, and an exit code."""

import io
import sys

import pytest

from tests.command import in_a_process, theodolite
from theodolite.cli import commands as cli

ON_RAY = "run hessian_at_zero --scale smoke --executor ray".split()


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
        ([*ON_RAY, "--gpus", "-1", "--address", "127.0.0.1:9"], "gpus is -1"),
        (
            [*ON_RAY, "--address", "127.0.0.1:9"],
            "no Ray cluster answers at '127.0.0.1:9'",
        ),
        (["run", "all", "--track", "tensorbord:x"], "did you mean 'tensorboard'"),
        (["run", "all", "--track", "wandb"], "use wandb:PROJECT"),
        (
            ["survey", "torch.nn:Linear(4,2)", "--batches", "9" * 400],
            "made-up samples take",
        ),
        (
            ["survey", "torch.nn:Linear(4,2)", "--device", "privateuseone"],
            "cannot live on device",
        ),
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


@pytest.mark.parametrize("command", ["list", "repair", "report", "show", "run"])
def test_a_file_is_no_folder_of_results(command, tmp_path):
    name = ["hessian_at_zero"] if command in ("show", "run") else []
    (tmp_path / "file").touch()
    result = theodolite(command, *name, "--out", tmp_path / "file")
    assert result.returncode == 1
    assert "is a file and a folder of results was wanted" in result.stderr


def test_a_device_that_the_preset_wants_is_not_laid_at_ones_door(tmp_path):
    asked = ("run", "image_tables", "--out", tmp_path, "--scale", "paper")
    message = theodolite(*asked).stderr
    assert "image_tables at paper is set to run on device 'cuda'" in message
    assert "--device cpu" in message
    message = theodolite(*asked, "--device", "cuda").stderr
    assert "device 'cuda' was asked for" in message


@pytest.mark.parametrize("arguments", [["rnu"], ["run"], ["run", "all", "--sede", "1"]])
def test_misuse_of_the_command_says_how_to_use_it(arguments):
    done = theodolite(*arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("theodolite: ")
    assert "--help` says what there is" in done.stderr
    assert done.stderr.count("\n") == 1
    assert ("did you mean 'run'? `" in done.stderr) == (arguments == ["rnu"])
