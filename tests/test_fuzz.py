"""Random commands, random harm to a run, random files: an answer or one sentence.

The command line runs in this process through its own entry point, on a paper whose one
study takes no time. Whatever is typed and whatever became of the files, it ends with
exit code 0, or with another one and a sentence; an exception fails the test.
"""

import contextlib
import io
import json
import os
import shutil
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.command import as_svg
from tests.studies import tiny
from theodolite import cli, figures, runs, studies
from theodolite.core import (
    Summary,
    TheodoliteError,
    from_lines,
    parse_summary,
)
from theodolite.pages import SharedSvg, inline_svg
from theodolite.runs.executors.ray.connection import checked_address
from theodolite.runs.folder.checked import write_checked

PLACE = ("tiny2020paper", "line")


def bounded(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,
            HealthCheck.too_slow,
        ],
    )


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Know one tiny paper only, and stand where nothing matters."""
    tiny.install(monkeypatch)
    inside = tmp_path / "in" / "side"  # so that ../.. is ours as well
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    monkeypatch.delenv("THEODOLITE_DATA", raising=False)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(figures, "save", as_svg(figures.save))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run that the examples copy."""
    root = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        tiny.install(patch)
        plan = studies.plan_study(studies.find("line"), scale="smoke")
        studies.run_study(plan, root=root, jobs=0, figure_formats=["svg"])
    return root


def outcome(arguments):
    """Give a command, check how it ends, and return its exit code and output."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    environment = dict(os.environ)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            cli.main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
    os.environ.clear()
    os.environ.update(environment)  # which --data changes
    told = err.buffer.getvalue().decode()
    lines = told.splitlines()
    if code:
        assert len(lines) == 1, told
        assert lines[0].startswith("theodolite: "), told
    else:
        assert len(lines) <= 1, told
    return code, out.buffer.getvalue().decode()


# No command line can hold "\0".
ODD = ["", " ", "-", "--", "λ", "\udcff", "a\nb", "x" * 5000, "../..", "%s{0}"]
NUMBERS = ["0", "-1", "1", "2", "nan", "inf", "1e400", "9" * 30, "١", "0x1", *ODD]
ADDRESSES = ["127.0.0.1:9", "::", "[::1", "a:²", "a:0", "a:99999", "ray://", "ray://:1",
             "x" * 300 + ":1", "a..b:1", "\x00:1", *ODD]  # fmt: skip
OPTIONS = {
    "--out": ["results", "results/runs", "a file", "/proc/none", *ODD],
    "--to": ["page.html", "a file", "/proc/none", *ODD],
    "--errata": ["page.md", *ODD],
    "--data": ["results", "a file", *ODD],
    "--paper": ["tiny2020paper", "tiny", *ODD],
    "--scale": ["smoke", "quick", "smok", *ODD],
    "--seeds": ["100001", "3", *NUMBERS],
    "--jobs": ["0", "0.5", "-2", "-" + "9" * 30, *ODD],
    "--device": ["cpu", "cuda:99", "meta", "hpu", "privateuseone", "mkldnn", *ODD],
    "--executor": ["pool", "rey", *ODD],
    "--address": ADDRESSES,
    "--gpus": NUMBERS,
    "--track": ["tensorbord:x", "wandb", "wandb:", ":", *ODD],
    "--json": None,
    "--redraw": None,
    "--version": None,
    "--no-such": ["x"],
}
COMMANDS = {
    "list": ["--paper", "--out", "--json"],
    "show": ["--out", "--json", "--redraw"],
    "report": ["--out", "--to", "--errata", "--json"],
    "repair": ["--out", "--json"],
    "data": ["--data", "--json"],
    "run": ["--out", "--scale", "--seeds", "--device", "--executor", "--address",
            "--gpus", "--track", "--data", "--json"],
}  # fmt: skip
NAMES = ["line", "tiny2020paper", "tiny2020paper/line", "all", "lien", *ODD]


@st.composite
def commands(draw):
    """A command as a hurried, mistaken or malicious person types it."""
    command = draw(st.sampled_from(list(COMMANDS)))
    arguments = [command]
    if command in ("show", "run") and draw(st.integers(0, 9)):
        arguments.append(draw(st.sampled_from(NAMES)))
    known = COMMANDS[command]
    for option in draw(st.lists(st.sampled_from(known), max_size=3, unique=True)):
        arguments.append(option)
        if OPTIONS[option] is not None:
            arguments.append(draw(st.sampled_from(OPTIONS[option])))
    if not draw(st.integers(0, 15)):
        arguments.append(draw(st.sampled_from([*OPTIONS, *ODD])))
    if command == "run":  # in this process, and quick
        arguments += ["--jobs", draw(st.sampled_from(["0"] * 9 + OPTIONS["--jobs"]))]
        if "--scale" not in arguments:
            arguments += ["--scale", "smoke"]
    return arguments


@bounded(80)
@given(arguments=commands())
@example(arguments=["run", "line", "--seeds", "9" * 30])
@example(arguments=["run", "line", "--device", "privateuseone"])
@example(arguments=["list", "--out", "x" * 5000])
@example(arguments=["run", "line", "--data", "x" * 5000])
@example(arguments=["report", "--to", "\x00"])
def test_any_command_is_answered_or_refused_in_a_sentence(arguments, made):
    if not os.path.exists("results"):
        shutil.copytree(made, "results")
        with open("a file", "w") as file:
            file.write("in the way")
    outcome(arguments)


@bounded(60)
@given(address=st.one_of(st.sampled_from(ADDRESSES), st.text(max_size=20)))
def test_any_address_is_reached_or_refused_in_a_sentence(address):
    if address == "auto":  # what runs on this machine is another matter
        return
    with contextlib.suppress(TheodoliteError):
        checked_address(address.replace("auto", "otto"))


HARM = ["empty", "cut", "flip", "noise", "other", "gone", "folder", "nested", "loop"]


def harm(path, kind, place, other):
    """Do something to a file that no program of ours does."""
    content = path.read_bytes() if path.is_file() else b""
    path.unlink()
    if kind == "gone":
        return
    if kind == "folder":
        path.mkdir()
        (path / "inside").touch()
        return
    if kind == "loop":
        path.symlink_to(path)
        return
    at = int(place * len(content))
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[:at],
            "flip": content[:at]
            + bytes([content[at] ^ 4] if content else [])
            + content[at + 1 :],
            "noise": b"\xff\x00\xfe" * 40,
            "other": other.read_bytes() if other.is_file() else b"{}",
            "nested": b"[" * 60_000,
        }[kind]
    )


@bounded(20)
@given(data=st.data())
def test_harm_to_a_run_is_named_and_healed(data, made, tmp_path_factory):
    root = tmp_path_factory.mktemp("harmed")
    shutil.copytree(made, root, dirs_exist_ok=True)
    (folder,) = root.glob("runs/*/*/*")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for _ in range(data.draw(st.integers(1, 2), label="times")):
        index = data.draw(st.integers(0, len(files) - 1), label="file")
        kind = data.draw(st.sampled_from(HARM), label="harm")
        place = data.draw(st.floats(0, 0.999), label="place")
        if files[index].is_file():
            harm(files[index], kind, place, files[index - 1])
    whole = parse_summary(
        next(made.glob("runs/*/*/*/summary.json")).read_text(), source="made"
    )
    command = data.draw(
        st.sampled_from(
            [["list"], ["show", "line"], ["show", "line", "--redraw"], ["report"],
             ["repair"], ["list", "--json"], ["repair", "--json"]]
        ),
        label="command",
    )  # fmt: skip
    outcome([*command, "--out", root])
    run = ["run", "line", "--scale", "smoke", "--jobs", "0", "--out", root]
    code, _ = outcome(run)
    assert code == 0, "a run heals whatever it was"
    found = runs.results_in(root).last(*PLACE)
    assert found is not None
    assert found[1].claims == whole.claims
    assert found[0].rows() == runs.results_in(made).folders[0].rows()
    shutil.rmtree(root)


STRANGE = [None, True, -1, 10**400, 1e308, "", "x" * 3000, "\ud800", "$\\frac{", "<b>",
           [], {}, [[]], {"a": {}}, float("nan")]  # fmt: skip


def nodes(value, way=()):
    """Yield the way to every node of a JSON value."""
    yield way
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, item in items:
        yield from nodes(item, (*way, key))


def changed(value, way, new):
    """Return a JSON value with another one at a place; ``...`` takes the place out."""
    if not way:
        return None if new is ... else new
    value = json.loads(json.dumps(value))
    inner = value
    for key in way[:-1]:
        inner = inner[key]
    if new is ...:
        del inner[way[-1]]
    else:
        inner[way[-1]] = new
    return value


@bounded(30)
@given(data=st.data())
def test_fields_of_other_types_are_named(data, made, tmp_path_factory):
    """Their digests are right: whoever wrote the files meant them so."""
    root = tmp_path_factory.mktemp("strange")
    shutil.copytree(made, root, dirs_exist_ok=True)
    (folder,) = root.glob("runs/*/*/*")
    name = data.draw(st.sampled_from(["summary.json", "run.json"]), label="file")
    content = json.loads((folder / name).read_text())
    way = data.draw(st.sampled_from(sorted(nodes(content), key=repr)), label="way")
    new = data.draw(st.sampled_from([..., *STRANGE]), label="value")
    text = json.dumps(changed(content, way, new))
    write_checked(folder, name, text.encode())
    for command in (["list"], ["show", "line"], ["report", "--to", root / "page.html"]):
        outcome([*command, "--out", root])
    outcome(["repair", "--out", root])
    shutil.rmtree(root)


JSON = st.recursive(
    st.sampled_from(STRANGE), lambda inner: st.lists(inner, max_size=3), max_leaves=6
)


@bounded(100)
@given(text=st.one_of(st.text(max_size=60), JSON.map(json.dumps)))
@example(text="[" * 100_000)
@example(text="<svg>" * 100_000)
@example(text="<svg width='1.2.3'/>")
@example(text='{"a":' * 100_000)
def test_texts_of_all_kinds_are_read_or_refused_in_a_sentence(text):
    readers = {
        from_lines: (),
        lambda one: parse_summary(one, source="there"): Summary,
        lambda one: inline_svg(one, shared=SharedSvg(), label="l"): str,
        studies.find: studies.Entry,
        runs.tracker_for: (),
    }
    for read, kind in readers.items():
        try:
            found = read(text)
        except TheodoliteError:
            continue
        assert not kind or isinstance(found, kind)


assert sys.getrecursionlimit() < 60_000, "else nesting shows nothing"
