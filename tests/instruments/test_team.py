"""The same numbers from several processes as from one; a rank that is lost."""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.testing import assert_close

from tests.instruments import lost_ranks, ranks
from tests.instruments.ranks import launch
from theodolite.core import ConfigError, DistributedError, MeasurementError
from theodolite.instruments import Team, share_of
from theodolite.instruments.distributed import heartbeat
from theodolite.instruments.distributed.processes import CollectiveCalls

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fork
SIZE = 3
# What takes 4 s at most where a core is free, beside other work; torch waits half an
# hour.
SECONDS = 200
PAGE = Path(__file__).parents[2] / "docs" / "scale_out.md"


@pytest.fixture(scope="module")
def alone():
    """What one process measures; first, so that ranks find all modules imported."""
    ranks.import_all()
    return ranks.measured()


@pytest.fixture(scope="module")
def together(tmp_path_factory, alone):
    place = tmp_path_factory.mktemp("ranks")
    assert launch(ranks.work, place, size=SIZE) == [0] * SIZE, os.listdir(place)
    return [torch.load(place / f"found-{rank}") for rank in range(SIZE)]


def test_ranks_measure_what_one_process_does(together, alone):
    for found, _, _ in together:
        assert found.keys() - {"sum"} == alone.keys()
        for name, wanted in alone.items():
            assert_close(
                found[name], wanted, rtol=1e-10, atol=1e-11, msg=lambda m, n=name: n + m
            )


def test_all_ranks_have_the_same_bits(together):
    first = together[0][0]
    for found, _, _ in together[1:]:
        assert all(torch.equal(found[name], first[name]) for name in first)


def test_what_ranks_must_not_do_is_said_and_the_team_works_on(together):
    for found, said, _ in together:
        assert "3 ranks multiply different vectors" in said["vectors"]
        assert "models of 3 ranks have different weights" in said["weights"]
        assert "ranks have different weights or modes" in said["as_is"]
        assert "2 batches came for 3 ranks" in said["batches"]
        assert "no sample counts in the loss" in said["nothing"]
        for name in ("params", "modes", "reductions", "kinds", "dtypes"):
            assert "3 ranks ask for different things" in said[name], name
        assert "pass the same on every rank" in said["bases"]
        assert found["sum"].item() == 6.0


def test_a_rank_that_fails_is_named_on_the_others_within_seconds(together):
    for rank, (_, said, seconds) in enumerate(together):
        why = "the loss is nan"
        if rank == 1:
            assert said["one fails"].startswith(f"MeasurementError: {why}")
        else:
            assert said["one fails"].startswith(
                f"DistributedError: rank 1 failed: {why}"
            )
            assert said["and later"] == said["one fails"]
        assert seconds < SECONDS


def test_a_killed_rank_is_named_on_the_others_within_seconds(tmp_path):
    ended = launch(lost_ranks.lose, tmp_path, ranks.KILLED, size=SIZE)
    assert ended == [0, 0, -ranks.KILLED]
    for rank in range(SIZE - 1):
        seconds, said = (tmp_path / f"said-{rank}").read_text().split(" ", 1)
        assert said.startswith("rank 2 of 3 was lost: start all ranks again")
        assert float(seconds) < SECONDS


def test_wrong_teams_are_said_in_a_sentence():
    for wrong in ("x", 3, False, []):
        with pytest.raises(ConfigError, match="pass a Team, True for all processes"):
            Team(wrong)
    with pytest.raises(ConfigError, match="does not belong to the group"):
        Team(dist.GroupMember.NON_GROUP_MEMBER)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_that_is_killed_before_anything_is_shared(tmp_path, rank):
    """The first holds the store: the others cannot even ask who it was."""
    place = free_port(), rank
    ended = launch(lost_ranks.leave_at_once, tmp_path, *place, size=SIZE)
    assert ended == [-ranks.KILLED if r == rank else 0 for r in range(SIZE)]
    for other in set(range(SIZE)) - {rank}:
        seconds, said = (tmp_path / f"left-{other}").read_text().split(" ", 1)
        silent = "no longer answers|does not answer"
        assert re.search("rank 2 of 3 was lost" if rank else silent, said), said
        assert float(seconds) < SECONDS


def free_port():
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return found.getsockname()[1]


def test_a_host_that_stops_answering_keeps_nobody(tmp_path):
    ended = launch(lost_ranks.stop_the_host, tmp_path, free_port(), size=2)
    assert ended == [-ranks.KILLED, 0]
    said, seconds = torch.load(tmp_path / "stopped-1")
    assert said.startswith("DistributedError: what 2 ranks share no longer answers")
    assert seconds < SECONDS


def test_a_host_that_ends_is_named(tmp_path):
    ended = launch(lost_ranks.end_the_host, tmp_path, free_port(), size=3)
    assert ended == [0] * 3
    for rank in (1, 2):
        said = torch.load(tmp_path / f"ended-{rank}")
        assert said.startswith(
            "DistributedError: rank 0 ended, where others still wait"
        )


def test_notes_that_the_store_did_not_take_hide_none_that_it_did():
    store = torch.distributed.HashStore()
    first, second = (heartbeat.Heartbeat(store, rank, 2) for rank in range(2))
    first.stop()
    first._thread.join()
    first._answered = first.waits_since = -1e9  # as if the store were gone for long
    first.leave("no answer")
    second.give_up("out of luck")
    second.stop()
    first.turn, first._answered = second.turn, time.monotonic()
    first._read_notes()
    assert first.trouble() == "rank 1 failed: out of luck"


def test_a_call_that_fails_while_all_are_there_says_why(monkeypatch):
    monkeypatch.setattr(heartbeat, "_SILENCE_S", 0.0)
    alone = heartbeat.Heartbeat(torch.distributed.HashStore(), 0, 1)

    def begin():
        raise RuntimeError("shapes differ. This may be so.\nat some line")

    with pytest.raises(
        DistributedError, match=r"together failed \(shapes differ\): see"
    ):
        CollectiveCalls(alone).run(begin)
    alone.stop()


@pytest.mark.parametrize("broken", [None, "rank 1 of 2 was lost"])
def test_no_thread_is_left_beating_when_a_process_ends(broken):
    ending = heartbeat.Heartbeat(torch.distributed.HashStore(), 0, 2)
    ending.broken = broken
    ending.end("ended", stay=False)
    assert not ending._thread.is_alive()


def test_of_an_error_others_are_told_once():
    alone = heartbeat.Heartbeat(torch.distributed.HashStore(), 0, 1)
    calls = CollectiveCalls(alone)
    with (
        pytest.raises(ValueError, match="once"),
        calls.reporting_errors(),
        calls.reporting_errors(),
    ):
        raise ValueError("once")
    assert alone.turn == 1
    alone.stop()


@pytest.mark.parametrize("how", ["raises", "returns", "lives on", "catches"])
def test_a_rank_that_comes_no_more_is_missed_within_seconds(tmp_path, how):
    ended = launch(lost_ranks.stay_away, tmp_path, how, size=2)
    assert ended == [0, int(how == "raises")]
    said, seconds = torch.load(tmp_path / "away")
    why = {
        "returns": "ended, where others still wait for it: start all ranks again",
        "catches": "failed: out of luck",
    }.get(how, "failed: ValueError: out of luck")
    assert said.startswith(f"DistributedError: rank 1 {why}")
    assert seconds < SECONDS


@pytest.mark.slow
def test_a_rank_that_fails_in_code_of_its_own_is_named_though_it_lives_on():
    """It has the store, too, and nobody said that others are to be told."""
    meeting = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(free_port())}
    given = os.environ | meeting | {"OMP_NUM_THREADS": "1", "WORLD_SIZE": "2"}
    failing, waiting = [
        subprocess.Popen(
            [sys.executable, "-c", lost_ranks.FAILING],
            env=given | {"RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        _, said = waiting.communicate(timeout=250)
        assert "DistributedError: rank 0 failed: ValueError: out of luck" in said
        assert failing.poll() is None, "what is tested is a process that lives on"
    finally:
        failing.kill()
        waiting.kill()
        assert "ValueError: out of luck" in failing.communicate()[1]


def script():
    """Return the script of the page, and the same for one process."""
    page = PAGE.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (code,) = [block for block in blocks if "init_process_group" in block]
    lines = [line for line in code.splitlines() if "dist" not in line]
    return code, "\n".join(lines).replace("Team(True)", "Team()")


def test_the_script_of_the_page_runs_by_the_command_of_the_page(tmp_path):
    code, alone = script()
    (tmp_path / "measure.py").write_text(code)
    (command,) = re.findall(r"^torchrun .*$", PAGE.read_text(), re.MULTILINE)
    there = Path(sys.executable).parent
    done = subprocess.run(
        [there / "torchrun", *command.split()[1:]],
        cwd=tmp_path,
        # What torchrun takes for --master-port where nothing is given.
        env=os.environ | {"OMP_NUM_THREADS": "1", "PET_MASTER_PORT": str(free_port())},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    exec(compile(alone, PAGE.name, "exec"), space := {})
    (told,) = re.findall(r"eigenvalues +1: ([0-9.]+)", done.stdout)
    assert float(told) == pytest.approx(space["top"].eigenvalues[0], rel=1e-4)


def test_alone_a_team_changes_nothing():
    tensor, alone = torch.arange(3.0), Team()
    assert alone.sum(tensor) is alone.sum_(tensor) is alone.broadcast(tensor) is tensor
    assert alone.concatenate(tensor) is tensor
    assert alone.largest(2) == 2.0
    assert alone.alike(-7)
    with pytest.raises(ConfigError, match="belongs to none: call torch"):
        Team(True)


def test_a_share_of_one_batch_is_cut_and_a_loader_is_refused():
    batch = torch.zeros(4, 2), torch.zeros(4)
    assert [len(part) for part in share_of(batch, None)] == [4, 4]
    with pytest.raises(MeasurementError, match="Subset"):
        share_of(iter([batch]), None)
    with pytest.raises(MeasurementError, match="share no first axis"):
        share_of((torch.zeros(4), torch.zeros(3)), None)
