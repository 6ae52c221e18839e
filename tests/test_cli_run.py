"""`theodolite run`: studies that fail, that are tracked, and what they rest on."""

import json
import re

import pytest

from tests.command import theodolite


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
    # Without a terminal, people get a line when a study is done.
    lines = theodolite(*run[:-1], "--out", tmp_path).stderr.splitlines()
    for place, line in zip((1, 3), lines[:2], strict=True):
        name = rf"\[{place}/3\] li2016demystifying/{some[place - 1]}"
        end = r"done in \d+\.\d s \(1 hold, 0 fail, 0 undecided\)"
        assert re.fullmatch(f"theodolite: {name}: {end}", line), line
    assert lines[2:] == done.stderr.splitlines()


def test_a_run_is_tracked_where_asked(tmp_path):
    events = "tensorboard.backend.event_processing.event_accumulator"
    reader = pytest.importorskip(events)
    run = ["run", "around_zero", "--scale", "smoke", "--jobs", 0, "--json"]
    track = ["--track", f"tensorboard:{tmp_path / 'events'}"]
    done = theodolite(*run, *track, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    (place,) = (tmp_path / "events").glob("li2016demystifying/around_zero/*")
    events = reader.EventAccumulator(str(place)).Reload()
    assert any(tag.startswith("around_zero/") for tag in events.Tags()["scalars"])
    for row in json.loads(done.stdout):
        tag = f"around_zero/verdict/claim={row['claim']}"
        (text,) = events.Tensors(tag)[0].tensor_proto.string_val
        assert text.decode() == row["verdict"]


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
    said = [shown.count(f"this run, {one}") for one in ("UNDECIDED", "NOT RUN")]
    assert said == [3, 1], "what the run itself says"
