"""A study goes from cells to verdicts, figures and a summary, and resumes."""

import json
import re
from dataclasses import replace
from functools import cache

import pytest

from tests.runs.processes import python
from tests.studies import tiny
from theodolite.core import ConfigError, DataError, RunError, UnknownNameError
from theodolite.data import load, pack_dataset, unpack_dataset
from theodolite.studies import (
    catalogue,
    find,
    last_summary,
    plan_study,
    planning,
    redraw,
    run_study,
)
from theodolite.studies.planning import plan_again

ENTRIES = catalogue()
# Every sixth study is run twice, of each paper some, and all of them by `make slow`.
AGAIN = [
    entry if place % 6 == 0 else pytest.param(entry, marks=pytest.mark.slow)
    for place, entry in enumerate(ENTRIES)
]


# Fonts of PDF take half of the time; one study below is drawn in all formats.
SVG = {"figure_formats": ["svg"]}


@cache
def judged(root, entry):
    """Folder and summary of a study at SMOKE, which is judged when first asked for."""
    run_study(plan_study(entry, scale="smoke"), root=root, jobs=0, **SVG)
    return last_summary(root, entry)


def has_note(judged):
    """Return whether a judgement, or one of its pieces, says why it has no number."""
    return bool(judged.note) or any(map(has_note, judged.pieces))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.full_name)
def test_smoke_leaves_a_whole_summary(entry, smoke_root):
    folder, summary = judged(smoke_root, entry)
    assert [c.claim for c in summary.claims] == [c.name for c in entry.study.claims]
    for claim in summary.claims:
        assert claim.because
        assert claim.ruling.judged.leaves or has_note(claim.ruling.judged), claim.claim
    for figure in summary.figures:
        for name in figure.files:
            assert (folder.path / name).stat().st_size > 1000
    assert summary.cost.cpu_s > 0
    assert json.loads((folder.path / "run.json").read_text())["seeds"]


@pytest.mark.parametrize("entry", AGAIN, ids=lambda e: e.full_name)
def test_a_second_run_computes_nothing_and_changes_nothing(entry, smoke_root):
    """Figures too are drawn again from the rows that were saved, to the same bytes."""
    folder, before = judged(smoke_root, entry)
    files = {path: path.read_bytes() for path in folder.path.glob("figures/*")}
    for path in files:
        path.unlink()
    plan = plan_study(entry, scale="smoke")
    again = run_study(plan, root=smoke_root, jobs=0, **SVG)
    assert again.execution.n_computed == 0
    after = again.summary
    for name in ("claims", "comparison", "figures", "cost"):
        assert getattr(after, name) == getattr(before, name)
    assert {path: path.read_bytes() for path in files} == files
    assert set(folder.path.glob("figures/*")) == files.keys()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.full_name)
def test_a_folder_says_what_its_figures_are_drawn_with(entry, smoke_root):
    folder, _ = judged(smoke_root, entry)
    assert plan_again(entry, folder).config == plan_study(entry, scale="smoke").config


def test_figures_redraw_from_rows_to_the_same_bytes(tmp_path):
    entry = find("around_zero")
    done = run_study(plan_study(entry, scale="smoke"), root=tmp_path, jobs=0)
    folder, page = done.folder, done._repr_html_()
    drawn = len(list(folder.path.glob("figures/*.png")))
    assert page.count("data:image/png;base64,iVBOR") == drawn > 0
    assert page.count("<tr>") == len(done.summary.claims) + 1
    before = {path: path.read_bytes() for path in folder.path.glob("figures/*")}
    for path in before:
        path.unlink()
    redrawn = redraw(entry, folder)
    assert {path: path.read_bytes() for path in redrawn} == before


def test_a_worker_is_exact_without_loading_a_compiler():
    """Which takes seconds, in every process."""
    done = python(
        "import sys, torch\n"
        "from theodolite.studies import prepare_worker\n"
        "prepare_worker()\n"
        "assert torch.are_deterministic_algorithms_enabled()\n"
        "assert not torch.is_deterministic_algorithms_warn_only_enabled()\n"
        "assert torch.get_num_threads() == 1\n"
        "print('torch._dynamo' in sys.modules)"
    )
    assert done.stdout == "False\n", done.stderr


def test_a_pool_gives_the_same_rows_as_this_process(smoke_root, tmp_path):
    entry = find("around_zero")
    alone = judged(smoke_root, entry)[0]
    plan = plan_study(entry, scale="smoke")
    pooled = run_study(plan, root=tmp_path, jobs=1, **SVG).folder  # one process more
    assert pooled.rows() == alone.rows()


@pytest.fixture
def line(monkeypatch):
    """A study that takes no time, where any will do."""
    tiny.install(monkeypatch)
    return find("line")


def test_overrides_make_another_run(line, tmp_path):
    entry = line
    first = run_study(plan_study(entry, scale="smoke"), root=tmp_path, jobs=0, **SVG)
    plan = plan_study(entry, scale="smoke", n_seeds=4, settings={"slope": "-1"})
    second = run_study(plan, root=tmp_path, jobs=0, **SVG)
    assert first.folder.path != second.folder.path
    command = "--scale smoke --seeds 4 --set slope=-1.0"
    assert second.summary.command.endswith(command)
    assert plan_again(entry, second.folder).command == second.summary.command
    assert len(second.folder.spec.seeds) == 4
    assert second.folder.rows(plan.entry.study.cells(plan.config)).values()[0] == -1


def test_settings_of_several_values_have_commas_between():
    given = {"image_depths": "8,14", "tasks": "", "precision": "tf32", "epochs": "3"}
    plan = plan_study(find("depth_along_training"), scale="smoke", settings=given)
    config = plan.config
    assert (config.image_depths, config.tasks) == ((8, 14), ())
    assert (config.precision, config.epochs) == ("tf32", 3)
    chosen = "--set tasks= --set image_depths=8,14 --set epochs=3 --set precision=tf32"
    assert plan.command.endswith(chosen)


def test_a_study_in_this_process_leaves_the_settings_of_torch(line, tmp_path):
    import torch

    def settings():
        coarse = torch.backends.cudnn.allow_tf32
        return torch.get_num_threads(), torch.get_deterministic_debug_mode(), coarse

    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        before = settings()
        plan = plan_study(line, scale="smoke")
        run_study(plan, root=tmp_path, jobs=0, **SVG)
        assert settings() == before
    finally:
        torch.set_num_threads(threads)


def test_data_are_part_of_what_a_run_is():
    config = plan_study(find("initial_condition"), scale="smoke").spec.config
    assert list(config["data"]) == ["digits"]
    assert len(config["data"]["digits"]) == 64


@pytest.mark.parametrize("device", ["abacus", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(ConfigError, match="not there"):
        plan_study(find("hessian_at_zero"), scale="smoke", device=device)


def test_bad_settings_are_refused():
    entry = find("hessian_at_zero")
    with pytest.raises(UnknownNameError, match="did you mean 'quick'"):
        plan_study(entry, scale="quik")
    with pytest.raises(ConfigError, match="n_seeds is 0"):
        plan_study(entry, scale="smoke", n_seeds=0)
    with pytest.raises(UnknownNameError, match="did you mean 'width'"):
        plan_study(entry, scale="smoke", settings={"widht": "4"})
    with pytest.raises(ConfigError, match=r"width was set to 'wide' \(.*a value like"):
        plan_study(entry, scale="smoke", settings={"width": "wide"})


def test_damaged_files_are_said_or_made_again(line, tmp_path):
    entry = line
    plan = plan_study(entry, scale="smoke")
    first = run_study(plan, root=tmp_path, jobs=0, **SVG)
    assert last_summary(tmp_path, entry)[1] == first.summary
    whole = first.summary.to_dict()
    damaged = {
        "{": "is not JSON",
        "[]": "holds a list",
        '{"claims": []}': "has no format number, wanted format 1",
        json.dumps({**whole, "claims": [{}]}): "is wrong at claims[0]: Object",
        json.dumps(
            {**whole, "paper": 1}
        ): "is wrong at paper: Expected `object`, got `int`",
        json.dumps(
            {**whole, "study": {"name": "line"}}
        ): "is wrong at study: Object missing required field `title`",
    }
    for text, words in damaged.items():
        first.folder.write("summary.json", text)
        with pytest.raises(RunError, match=re.escape(f"summary.json {words}")):
            last_summary(tmp_path, entry)
    first.folder.write("predicted.jsonl", '{"quantity": "relu_sl')
    again = run_study(plan, root=tmp_path, jobs=0, **SVG)
    assert again.execution.n_computed == 0
    assert again.summary.claims == first.summary.claims


def test_the_last_run_is_the_one_judged_last(line, tmp_path):
    entry = line
    old = run_study(plan_study(entry, scale="smoke"), root=tmp_path, jobs=0, **SVG)
    plan = plan_study(entry, scale="smoke", n_seeds=4)
    new = run_study(plan, root=tmp_path, jobs=0, **SVG)
    (old.folder.path / "summary.json").touch()
    assert last_summary(tmp_path, entry)[0].path == new.folder.path


def test_every_part_of_the_data_counts_and_travels(monkeypatch):
    """Networks that are tested need samples for that as well, wherever they train."""
    plan = plan_study(find("shortcut_depth_cifar"), scale="smoke")
    sums = plan.spec.config["data"]
    assert list(sums) == ["digits", "digits/test"]
    carried = replace(plan.work, checksums=sums)
    parcels, arrived = carried.pack(), []
    monkeypatch.setattr(planning, "_found_here", lambda part, checksum: False)
    monkeypatch.setattr(planning.data, "register_dataset", arrived.append)
    carried.unpack(parcels.__getitem__)
    assert [(one.name, one.split) for one in arrived] == [
        ("digits", "train"),
        ("digits", "test"),
    ]
    assert [one.checksum for one in arrived] == list(sums.values())


def test_changed_data_are_refused():
    parcel = pack_dataset(load("digits"))
    assert unpack_dataset(parcel).checksum == load("digits").checksum
    pixels = parcel["inputs"].copy()
    pixels[0, 0, 0] += 1
    with pytest.raises(DataError, match="it was changed on its way"):
        unpack_dataset({**parcel, "inputs": pixels})
    with pytest.raises(DataError, match="wanted 0123"):
        unpack_dataset(parcel, "0123")
    assert planning.StudyWork(tiny.PAPER, "y", {}).pack() == {}
