"""The same cells on a real Ray cluster of several nodes, some of which die.

Run by ``test_ray``, in a process of their own.
"""

import json
import os
import signal
from collections import Counter
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from tests.data.writers import random_images, random_labels, write_idx
from tests.runs import ray_nodes, ray_work
from tests.runs.processes import drive, python, ran, until
from tests.runs.ray_script import SCRIPT, VERSIONS, copied_package, names_by_page
from tests.runs.work import CELLS, Dying, Failing, Logged, spec, started
from tests.studies import test_plugins, tiny
from theodolite.core import RunError, ShortcutBlueprint
from theodolite.data import load
from theodolite.runs import RayCluster, RunFolder, execute
from theodolite.runs.executors.ray.connection import checked_address
from theodolite.runs.executors.task import Task
from theodolite.studies import (
    StudyFile,
    find,
    plan_study,
    prepare_worker,
    run_study,
    studies_in_file,
)
from theodolite.studies.planning import StudyWork
from theodolite.training import Every, Probe, train_grid

pytestmark = ray_nodes.MARKS
# What is drawn beside the rows that are compared.
SVG = {"figure_formats": ["svg"]}


@pytest.fixture(scope="module")
def nodes():
    with ray_nodes.two_nodes() as started_here:
        yield started_here


@pytest.fixture(scope="module")
def cluster(nodes):
    with RayCluster(nodes.address, initialise=ray_work.prepare) as executor:
        yield executor


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "out", spec(width=8))


def cell_files(folder):
    return list((folder.path / "cells").glob("*.jsonl"))


def test_a_study_equals_the_local_result_value_for_value(
    tmp_path, cluster, monkeypatch
):
    """By the code of the page, with this cluster and the smallest scale in it."""
    monkeypatch.chdir(tmp_path)
    swaps = {'"HOST:6379", ': "", '"quick"': '"smoke"'}
    swaps["pool=cluster"] = "pool=cluster, figure_formats=['svg']"
    space = names_by_page("scale_out.md", "plan_study", swaps)
    plan, there = space["plan"], space["done"]
    cells = plan.entry.study.cells(plan.config)
    here = run_study(plan, root=tmp_path / "here", jobs=0, **SVG)
    assert there.execution.n_computed == len(cell_files(there.folder)) == len(cells)
    assert len(cells) > 2
    assert there.folder.rows() == here.folder.rows()
    assert there.summary.claims == here.summary.claims
    assert there.folder.launches()[0]["jobs"] == 2


def test_a_study_in_a_file_travels_as_its_text(tmp_path, cluster):
    """The nodes could not find the file: it is gone before they are asked."""
    path = tmp_path / "signals.py"
    path.write_text(test_plugins.CODE)
    (entry,) = studies_in_file(StudyFile.read(path))
    path.unlink()
    plan = plan_study(entry, scale="smoke", n_seeds=2)
    guest = RayCluster(initialise=prepare_worker)
    there = run_study(plan, root=tmp_path / "there", pool=guest, **SVG)
    here = run_study(plan, root=tmp_path / "here", jobs=0, **SVG)
    assert there.execution.n_computed == 4
    assert there.folder.rows() == here.folder.rows()


def test_a_study_that_a_node_lacks_is_named(cluster, folder):
    work = StudyWork(replace(tiny.PAPER, package="far"), "away", {})
    with pytest.raises(RunError, match="away is not installed where this worker"):
        execute(folder, CELLS[:1], work, pool=cluster)


def test_a_grid_equals_the_local_one_value_for_value(cluster):
    x, y = np.random.default_rng(0).normal(size=(2, 40, 4))
    plans = {
        "linear": ShortcutBlueprint(width=4, depth=4),
        "relu": ShortcutBlueprint(width=4, depth=4, mid="relu"),
        "tanh": ShortcutBlueprint(width=4, depth=4, mid="tanh"),
    }
    axes = {"seed": [0, 1], "lr": [0.05, 0.1]}
    probes = [Probe("norm", ray_work.weight_norm, Every(10))]
    there = train_grid(plans, (x, y), axes, steps=20, probes=probes, pool=cluster)
    here = train_grid(plans, (x, y), axes, steps=20, probes=probes, jobs=0)
    assert there.rows == here.rows
    assert len(there.methods) == 3
    assert len(there.probed("norm")) == 12 * 3


def test_the_command_line_gives_the_local_result_too(tmp_path, nodes):
    arguments = ["normalised_layers", "--scale", "smoke", "--out", tmp_path, "--json"]
    ray = ["--executor", "ray", "--address", nodes.address]
    done = ran("-m", "theodolite", "run", *arguments, *ray)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    plan = plan_study(find("normalised_layers"), scale="smoke")
    here = run_study(plan, root=tmp_path / "here", jobs=0, **SVG)
    assert RunFolder.create(tmp_path, plan.spec).rows() == here.folder.rows()
    shown = [(c["claim"], c["verdict"]) for c in json.loads(done.stdout)]
    assert shown == [(c.claim, c.verdict) for c in here.summary.claims]


def test_workers_have_one_thread_and_are_prepared_once(tmp_path, cluster, folder):
    execute(folder, CELLS, ray_work.Circumstances(tmp_path / "met"), pool=cluster)
    rows = folder.rows()
    for name in ("prepared", "initialised", "omp", "blas"):
        assert set(rows.where(quantity=name).values()) == {1}, name
    pids = set(rows.where(quantity="pid").values())
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_a_node_lost_in_mid_run_costs_nothing(tmp_path, nodes, cluster, folder):
    doomed = nodes.add_node(**ray_nodes.NODE)
    log = tmp_path / "log"

    def at_work():
        return any(b["node"] == doomed.node_id for b in ray_work.begun(log))

    with ray_nodes.lost_once(nodes, doomed, at_work):
        work = ray_work.OnNode(log, 0.1, slow_node=doomed.node_id)
        done = execute(folder, CELLS, work, pool=cluster)
    assert (done.n_computed, done.n_elsewhere, done.n_failed) == (30, 0, 0)
    assert len(cell_files(folder)) == 30
    assert len(ray_work.begun(log)) > 30, "the node was not at work when it died"
    assert folder.launches()[0]["n_computed"] == 30
    assert not list((folder.path / "locks").iterdir())
    alone = RunFolder.create(tmp_path / "alone", spec(width=8))
    execute(alone, CELLS, ray_work.OnNode(tmp_path / "other", 0), jobs=0)
    assert folder.rows() == alone.rows()


def test_a_killed_driver_resumes_and_redoes_nothing(tmp_path, nodes, folder):
    root, log = tmp_path / "out", tmp_path / "log"
    process = drive(root, log, nodes.address, last=8)
    until(lambda: len(cell_files(folder)) >= 4)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = folder.pending(CELLS)
    assert 22 <= len(left) <= 26
    n_started = len(started(log))
    out, err = drive(root, log, nodes.address).communicate(timeout=400)
    counts = [str(30 - len(left)), str(len(left)), "0"]
    assert out.split() == ["ready", *counts], err
    again = Counter(started(log)[n_started:])
    # A worker of the dead driver may begin one more cell before it is ended.
    assert not again.keys() - {(c["kind"], c["trial"]) for c in left}
    assert not folder.pending(CELLS)
    assert len(cell_files(folder)) == 30
    assert folder.launches()[0]["outcome"] is None


def test_a_cell_that_another_driver_is_at_is_left_alone(cluster, folder):
    with folder.lock(CELLS[1]) as mine:
        assert mine
        reports = list(cluster.run(Task(folder, Failing("none")), CELLS[:3]))
    states = {cell["trial"]: str(report.state) for cell, report in reports}
    assert states == {0: "computed", 1: "busy", 2: "computed"}
    again = dict(
        (cell["trial"], str(report.state))
        for cell, report in cluster.run(Task(folder, Failing("none")), CELLS[:3])
    )
    assert again == {0: "found", 1: "computed", 2: "found"}


@pytest.mark.slow
def test_two_drivers_share_a_folder(tmp_path, nodes, cluster, folder):
    root, log = tmp_path / "out", tmp_path / "log"
    other = drive(root, log, nodes.address, longest_s=0.2)
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    mine = execute(folder, CELLS, Logged(log, 0.2), pool=cluster)
    out, err = other.communicate(timeout=400)
    before, computed, elsewhere = map(int, out.split())
    assert before + computed + elsewhere == 30, err
    assert mine.n_computed + computed == 30
    assert computed > 0
    assert sorted(started(log)) == sorted((c["kind"], c["trial"]) for c in CELLS)


def test_a_worker_that_dies_once_is_forgiven_and_twice_is_not(
    tmp_path, cluster, folder
):
    once = Dying(tmp_path / "once", always=False)
    assert execute(folder, CELLS[:6], once, pool=cluster).n_computed == 6
    assert (tmp_path / "once").read_text() == "killed\n"
    cells = CELLS[10:16]
    with pytest.raises(RunError) as caught:
        execute(folder, cells, Dying(tmp_path / "twice", always=True), pool=cluster)
    assert "1 of 6 cells failed" in str(caught.value)
    assert "its worker process died 2 times" in str(caught.value)
    assert folder.pending(cells) == [CELLS[13]]
    assert (tmp_path / "twice").read_text() == "killed\n" * 2


def test_a_cell_that_raises_does_not_stop_the_others(cluster, folder):
    with pytest.raises(RunError, match=r"10 of 30 .*ValueError: kind b is not"):
        execute(folder, CELLS, Failing("b"), pool=cluster)
    assert len(cell_files(folder)) == 20


def test_few_cells_are_in_flight_however_many_there_are(tmp_path, cluster):
    folder = RunFolder.create(tmp_path, spec(width=9))
    cells = [{"trial": trial} for trial in range(40)]
    watch = ray_work.CountedLocks(folder)
    done = execute(folder, cells, ray_work.one_row, pool=cluster, progress=watch)
    assert done.n_computed == 40
    assert 1 <= max(watch.counts) <= 2 * cluster.jobs


def test_what_is_abandoned_can_be_taken_up(tmp_path, cluster, folder):
    task = Task(folder, Logged(tmp_path / "log", 0.2))
    with closing(cluster.run(task, CELLS)) as reports:
        for _ in range(3):
            next(reports)
        with pytest.raises(RunError, match="at work already"):
            next(cluster.run(task, CELLS))
        assert list((folder.path / "locks").iterdir())
    assert not list((folder.path / "locks").iterdir())
    done = execute(folder, CELLS[:8], Logged(tmp_path / "log", 0), pool=cluster)
    assert done.n_done_before + done.n_computed == 8


def test_what_is_packed_reaches_every_worker(tmp_path, cluster, folder):
    work = ray_work.Shared(1_000_000, tmp_path / "met")
    execute(folder, CELLS, work, pool=cluster)
    rows = folder.rows()
    assert set(rows.where(quantity="sum").values()) == {999_999 * 500_000.0}
    assert set(rows.where(quantity="shared").values()) == {1.0}
    assert len(set(rows.where(quantity="pid").values())) == 2


def test_workers_that_cannot_get_ready_say_why(cluster, folder):
    with pytest.raises(RunError, match=r"cannot work \(OSError: no such disk\)"):
        execute(folder, CELLS, ray_work.Stumbling(), pool=cluster)
    assert not list((folder.path / "locks").iterdir())


def test_data_is_broadcast_to_nodes_that_lack_it(tmp_path, cluster, monkeypatch):
    """The nodes were started without THEODOLITE_DATA; only the driver has files."""
    images, labels = random_images(60, 28, 28), random_labels(60)
    write_idx(tmp_path / "data/mnist", images, labels)
    monkeypatch.setenv("THEODOLITE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("THEODOLITE_CACHE", str(tmp_path / "cache"))
    checksum = load("mnist", verify=False).checksum
    work = ray_work.DataSum("mnist", checksum)
    folder = RunFolder.create(tmp_path, spec(width=8))
    execute(folder, CELLS[:4], work, pool=cluster)
    assert set(folder.rows().values()) == {float(images.sum())}
    lost = RunFolder.create(tmp_path, spec(width=9))
    with pytest.raises(RunError, match="THEODOLITE_DATA"):
        execute(lost, CELLS[:2], ray_work.total_of_cifar, pool=cluster)


def test_parts_of_gpus_are_asked_for(nodes, cluster, folder):
    with pytest.raises(RunError, match=r"no node .* 1 CPUs and 2 GPUs"):
        RayCluster(gpus=2).__enter__()
    quarter = RayCluster(gpus=0.25, cpus=0.25)
    until(lambda: ray_nodes.jobs(quarter) == 4)
    execute(folder, CELLS[:4], ray_work.visible, pool=quarter)
    rows = folder.rows()
    assert set(rows.column("node")) == {nodes.with_gpu.node_id}
    assert set(rows.column("seen")) == {"0"}


def test_code_that_nodes_do_not_have_travels(tmp_path, nodes, monkeypatch):
    """The driver's package differs from the one installed on the nodes."""
    copy = copied_package(tmp_path / "copy", "0.0.0+travelled")
    monkeypatch.setenv("PYTHONPATH", str(copy))
    done = python(VERSIONS, tmp_path, nodes.address)
    assert done.stdout == "{'0.0.0+travelled'}\n", done.stderr
    assert done.stderr == ""


def test_a_probe_of_a_script_goes_to_ray(nodes, tmp_path):
    """Defined there, it travels by value, with the packages that it names."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = ran(script, nodes.client_address)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "2"


def test_auto_is_the_cluster_that_runs_here(nodes, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", nodes.address)
    assert checked_address("auto") == nodes.address
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(RunError, match=r"answers at '127\.0\.0\.1:9'"):
        checked_address("auto")


def test_a_second_cluster_in_one_process_is_refused(nodes, cluster):
    with pytest.raises(RunError, match="connected to a Ray cluster already"):
        RayCluster(nodes.address).__enter__()


def test_a_task_is_wanted(cluster):
    with pytest.raises(RunError, match="pass a Task"):
        next(cluster.run(ray_work.one_row, CELLS))
