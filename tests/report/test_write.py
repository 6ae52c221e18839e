"""From run folders to the file."""

import json
import os
import subprocess
import sys
import threading

import pytest

from tests.report.conftest import write_run
from tests.report.papers import INITIAL, STUDIES, TRAINING
from theodolite.core import RunError, TheodoliteError
from theodolite.report import write_report
from theodolite.report.finished_runs import judged_runs


def test_importing_the_room_imports_nothing_heavy():
    code = (
        "import sys, theodolite.report; "
        "assert not {'matplotlib', 'jinja2', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_writing_a_report_needs_no_torch(root, tmp_path):
    code = (
        "import sys; from theodolite.report import write_report; "
        "write_report(sys.argv[1], sys.argv[2]); "
        "assert not {'torch', 'matplotlib.pyplot'} & set(sys.modules)"
    )
    target = tmp_path / "report.html"
    subprocess.run([sys.executable, "-c", code, str(root), str(target)], check=True)
    assert target.stat().st_size > 10_000


def test_every_study_is_collected(root):
    runs = judged_runs(root)
    assert {one.summary.full_name for one in runs} == {
        f"{one['paper']['name']}/{one['study']['name']}" for one in STUDIES
    }
    years = [one.summary.paper.year for one in runs]
    assert years == sorted(years)
    for one in runs:
        assert all(set(f.files) & set(one.svg) for f in one.summary.figures)
    (initial,) = [o for o in runs if o.summary.study.name == "initial_condition"]
    assert initial.info["config"] == INITIAL["config"]


def test_the_pages_are_written_whole_beside_nothing_else(root, tmp_path):
    target = tmp_path / "deep" / "page.html"
    assert write_report(root, target) == target
    assert target.read_text(encoding="utf-8").rstrip().endswith("</html>")
    names = {one.name for one in target.parent.iterdir()}
    assert names == {"page.html", "page-li2016demystifying.html"}
    assert target.stat().st_mode & 0o444 == 0o444 & ~_umask()
    before = target.read_bytes()
    assert write_report(root, target).read_bytes() == before


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_default_destination(tmp_path, drawn):
    write_run(tmp_path, TRAINING, drawn)
    assert write_report(str(tmp_path)) == tmp_path / "report.html"


def paper_page(front):
    """The page of the one paper beside a front page."""
    return front.with_name("report-li2016demystifying.html").read_text()


@pytest.mark.parametrize("made", [False, True])
def test_no_finished_runs(tmp_path, drawn, made):
    if made:
        folder = write_run(tmp_path, INITIAL, drawn)
        (folder.path / "summary.json").unlink()
    with pytest.raises(TheodoliteError) as caught:
        write_report(tmp_path)
    assert str(caught.value) == (
        f"no finished runs in {tmp_path}: run `theodolite run all --out {tmp_path}` "
        "first"
    )
    assert not (tmp_path / "report.html").exists()


def test_the_run_judged_last_wins(tmp_path, drawn):
    for stamp, width in (("2026-05-01", 20), ("2026-04-01", 30)):
        write_run(
            tmp_path, {**TRAINING, "judged": f"{stamp}T00:00:00Z"}, drawn, w=width
        )
    (run,) = judged_runs(tmp_path)
    assert run.summary.judged.startswith("2026-05-01")
    assert run.info["config"]["w"] == 20


def without(key):
    return json.dumps({name: one for name, one in TRAINING.items() if name != key})


def with_claim(**changes):
    first = {**TRAINING["claims"][0], **changes}
    return json.dumps({**TRAINING, "claims": [first]})


OWN = TRAINING["claims"][0]["own"]
LEAF = OWN["judged"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[]", "holds a list, wanted an object"),
        ("null", "holds a NoneType, wanted an object"),
        (without("format"), "has no format number, wanted format 1"),
        (without("claims"), "is wrong at top level: Object missing required field"),
        (
            json.dumps({**TRAINING, "claims": [{"claim": "a"}]}),
            "is wrong at claims[0]: Object",
        ),
        (json.dumps({**TRAINING, "judged": 3}), "is wrong at judged: Expected `str`"),
        (with_claim(verdict="X"), "is wrong at claims[0].verdict: Invalid"),
        (with_claim(own=None), "is wrong at claims[0]: Expected the ruling own"),
        (
            with_claim(own={**OWN, "judged": {}}),
            "is wrong at claims[0].own.judged: Obj",
        ),
        (
            with_claim(own={**OWN, "judged": {**LEAF, "region": {"source": 1}}}),
            "is wrong at claims[0].own.judged.region.source: Expected `str`, got `int`",
        ),
        (
            with_claim(own={**OWN, "judged": {**LEAF, "pieces": [LEAF]}}),
            "is wrong at claims[0].own.judged: Expected a piece from 0 to 0 as decider",
        ),
        (
            json.dumps({**TRAINING, "figures": [{"name": "a"}]}),
            "is wrong at figures[0]: Object missing required field `caption`",
        ),
        (
            json.dumps({**TRAINING, "comparison": [{"label": "a", "predicted": 1}]}),
            "is wrong at comparison[0]: Object missing required field `measured`",
        ),
        # As summaries were before verdicts were numbers with intervals.
        (
            with_claim(rests_on="", own=None, because="so", numbers={}),
            "is wrong at claims[0].rests_on: Invalid enum value ''",
        ),
    ],
)
def test_a_corrupt_summary_is_named_in_one_sentence(tmp_path, drawn, text, field):
    folder = write_run(tmp_path, TRAINING, drawn)
    folder.write("summary.json", text)
    with pytest.raises(RunError) as caught:
        write_report(tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{folder.path / 'summary.json'} {field}")
    assert f"`theodolite repair --out {tmp_path}`" in message
    assert "\n" not in message


def test_an_old_summary_stands_back_where_a_newer_one_is(tmp_path, drawn):
    old = write_run(tmp_path, TRAINING, drawn, w=1)
    old.write("summary.json", with_claim(own=None))
    newer = {**TRAINING, "judged": "2027-01-01T00:00:00Z"}
    write_run(tmp_path, newer, drawn, w=2)
    (run,) = judged_runs(tmp_path)
    assert run.summary.judged.startswith("2027")


@pytest.mark.parametrize("harm", ["text", "file"])
def test_a_corrupt_figure_is_named_and_left_out(tmp_path, drawn, harm):
    write_run(tmp_path, INITIAL, drawn)
    folder = write_run(tmp_path, TRAINING, drawn)
    if harm == "text":
        folder.write("figures/spectrum.svg", "<svg")
    else:
        (folder.path / "figures" / "spectrum.svg").write_bytes(b"<svg>\xff</svg>")
    damages = []
    page = paper_page(write_report(tmp_path, damaged=damages.append))
    (damage,) = damages
    assert (damage.folder, damage.name) == (folder.path, "figures/spectrum.svg")
    assert page.count('class="drawing"') == 1


def test_one_damaged_run_leaves_the_others(tmp_path, drawn):
    write_run(tmp_path, INITIAL, drawn)
    folder = write_run(tmp_path, TRAINING, drawn)
    other = write_run(tmp_path, TRAINING, drawn, w=3)
    (folder.path / "summary.json").write_text("{")
    (other.path / "run.json").write_bytes(b"\xff")
    damages = []
    page = paper_page(write_report(tmp_path, damaged=damages.append))
    assert INITIAL["study"]["title"] in page
    assert TRAINING["study"]["title"] not in page
    assert {damage.name for damage in damages} == {"summary.json", "run.json"}


def test_what_a_killed_writer_left_is_swept(root, tmp_path):
    target = tmp_path / "report.html"
    code = (
        "import os, sys; from pathlib import Path; "
        "os.replace = lambda *paths: os._exit(9); "
        "from theodolite.report import write_report; "
        "write_report(sys.argv[1], sys.argv[2])"
    )
    arguments = [sys.executable, "-c", code, str(root), str(target)]
    assert subprocess.run(arguments, check=False).returncode == 9
    (left,) = tmp_path.iterdir()
    assert left.name != "report.html"
    write_report(root, target)
    names = {one.name for one in tmp_path.iterdir()}
    assert names == {"report.html", "report-li2016demystifying.html"}


def test_pipes_are_written_through_and_links_stay(root, tmp_path):
    (tmp_path / "other").mkdir()
    whole = write_report(root, tmp_path / "other" / "pipe").read_bytes()
    pipe, file = (tmp_path / name for name in ("pipe", "file"))
    link = tmp_path / "other" / "pipe"
    link.unlink()
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write_report(root, pipe)
    reader.join(timeout=250)
    assert received == [whole]
    assert pipe.is_fifo()
    link.symlink_to(file)
    write_report(root, link)
    assert link.is_symlink()
    assert file.read_bytes() == whole


def test_a_destination_that_cannot_be_written(root, tmp_path):
    with pytest.raises(RunError, match=r"cannot write .*another destination"):
        write_report(root, tmp_path)
    assert list(tmp_path.iterdir()) == []
