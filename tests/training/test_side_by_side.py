"""On the CPU networks are trained by several threads, each as if it were alone."""

import queue
import threading
import time
from concurrent.futures import CancelledError
from contextvars import ContextVar

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from tests.training.test_convolutional import network, plain_loop, some_images
from theodolite.instruments import preserve, trace
from theodolite.training import Recipe, train_many
from theodolite.training.images.gates import Gate

RECIPE = Recipe(epochs=2, batch_size=12, rate=0.05, milestones=(0.5,))


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class Watched(nn.Module):
    """A network that notes every pass, and may do more within."""

    def __init__(self, within=lambda: None):
        super().__init__()
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        self.passes, self.within = [], within

    def forward(self, x):
        self.passes.append((threading.current_thread(), torch.get_num_threads()))
        self.within()
        return self.inner(x)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 4))

    def forward(self, x):
        return self.inner(x)


def test_steps_of_two_networks_overlap_each_on_one_thread():
    """Each waits within a step for the other: in turns they would never meet."""
    door, models, met = threading.Barrier(2, timeout=250), [], set()

    def meet():
        if not all(len(model.passes) > 2 for model in models):
            time.sleep(0.01)
        else:
            met.add(threading.current_thread())
            door.wait()
            raise ArithmeticError("met")

    models += [Watched(meet), Watched(meet)]
    recipe = Recipe(epochs=50_000, batch_size=12, rate=0.05, test_every=50_000)
    done = train_many(models, some_images(), recipe=recipe, seeds=[0, 1])
    assert [run.error for run in done] == ["ArithmeticError: met"] * 2
    assert len(met) == 2
    assert {threads for model in models for _, threads in model.passes} == {1}
    assert torch.get_num_threads() == 2


def test_each_is_trained_as_a_plain_loop_trains_it():
    images, jobs = some_images(), [(0, 1), (1, 2), (2, 4)]
    models = [network(seed, n) for seed, n in jobs]
    done = train_many(models, images, recipe=RECIPE, seeds=[s for s, _ in jobs])
    torch.set_num_threads(1)
    for (seed, n), run in zip(jobs, done, strict=True):
        wanted = plain_loop(network(seed, n), images, RECIPE, seed)
        for reading, (loss, error) in zip(run.history[1:], wanted, strict=True):
            assert reading["train_loss"] == pytest.approx(loss, rel=1e-9)
            assert reading["test_error"] == error


def test_what_a_network_draws_does_not_depend_on_its_company():
    images, state = some_images(), torch.get_rng_state()
    losses = {}
    for at_once in (1, 3):
        models = [Noisy() for _ in range(3)]
        torch.set_rng_state(state)
        done = train_many(
            models, images, recipe=RECIPE, seeds=[0, 1, 2], at_once=at_once
        )
        assert torch.equal(torch.get_rng_state(), state)
        losses[at_once] = [run.history[-1]["train_loss"] for run in done]
    assert losses[1] == losses[3]
    assert len(set(losses[1])) == 3


class Late(nn.Module):
    """A network that does something of its own from its sixth pass on."""

    def __init__(self, seed, change):
        super().__init__()
        torch.manual_seed(seed)
        self.inner = nn.Sequential(nn.Flatten(), nn.Linear(64, 4))
        self.passes, self.change = 0, change

    def forward(self, x):
        self.passes += 1
        return self.inner(self.change(x) if self.passes > 5 else x)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: nn.functional.dropout(x, 0.5),
        lambda x: x + torch.randn_like(x),
    ],
    ids=["dropout", "randn_like"],
)
def test_a_network_that_begins_to_draw_late_is_repeated(change):
    recipe, losses = Recipe(epochs=6, batch_size=12, rate=0.05, test_every=99), []
    for at_once in (1, 3, 3):
        models = [Late(seed, change) for seed in range(4)]
        torch.manual_seed(7)
        state = torch.get_rng_state()
        done = train_many(
            models, some_images(), recipe=recipe, seeds=range(4), at_once=at_once
        )
        assert [run.status for run in done] == ["finished"] * 4
        assert torch.equal(torch.get_rng_state(), state)
        losses.append([run.history[-1]["train_loss"] for run in done])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[1] == losses[2]


def test_numbers_that_move_unseen_fail_the_run_beside_others_only():
    def seeded(x):
        torch.manual_seed(3)
        return x

    status = {}
    for at_once in (1, 2):
        models = [Late(0, seeded), Late(1, seeded)]
        torch.manual_seed(7)
        done = train_many(
            models, some_images(), recipe=Recipe(epochs=4, batch_size=12, rate=0.05),
            seeds=[0, 1], at_once=at_once,
        )  # fmt: skip
        status[at_once] = {run.status for run in done}
    assert status[1] == {"finished"}
    assert "failed" in status[2]
    assert "at_once=1" in "".join(run.error for run in done)


def test_an_augmentation_is_not_made_while_the_calling_thread_probes():
    probing, overlaps = threading.Event(), []

    def augment(images, generator):
        time.sleep(0.01)
        overlaps.append(probing.is_set())
        return images

    def probe(model):
        probing.set()
        time.sleep(0.03)
        probing.clear()
        return {}

    models = [Watched(), Watched(), Watched()]
    train_many(models, some_images(), recipe=Recipe(epochs=6, batch_size=12, rate=0.05),
               seeds=[0, 1, 2], augment=augment, probe=probe)  # fmt: skip
    assert len(overlaps) == 18
    assert not any(overlaps)


def test_nothing_steps_while_the_calling_thread_probes():
    probing, overlaps, seen = threading.Event(), [], []
    models = [Watched(lambda: overlaps.append(probing.is_set())) for _ in range(2)]

    def probe(model):
        probing.set()
        seen.append((threading.current_thread(), torch.get_num_threads()))
        time.sleep(0.02)
        probing.clear()
        return {"one": 1.0}

    train_many(models, some_images(), recipe=RECIPE, seeds=[0, 1], probe=probe)
    assert not any(overlaps)
    assert seen == [(threading.main_thread(), 2)] * 6


def test_an_interrupted_report_ends_all_threads():
    def report(place, numbers):
        if numbers["epoch"] == 1:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        train_many([network(0), network(1)], some_images(), recipe=RECIPE,
                   seeds=[0, 1], report=report)  # fmt: skip
    assert threading.active_count() == before
    assert torch.get_num_threads() == 2


def test_a_network_that_cannot_be_built_is_retired_and_others_go_on():
    def broken():
        raise ValueError("no such network")

    done = train_many([broken, network(1)], some_images(), recipe=RECIPE, seeds=[0, 1])
    assert [run.status for run in done] == ["failed", "finished"]
    assert done[0].error == "ValueError: no such network"


def test_a_call_that_was_taken_when_an_interrupt_came_is_let_go():
    gate, told = Gate(), []

    class Interrupted(queue.SimpleQueue):
        def get(self, block=True, timeout=None):
            super().get(block, timeout)
            raise KeyboardInterrupt

    def work():
        with pytest.raises(CancelledError):
            gate.call(lambda: None)
        told.append("let go")

    gate._calls = Interrupted()
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    with pytest.raises(KeyboardInterrupt):
        gate.serve(1)
    gate.abandon()
    worker.join(250)
    assert told == ["let go"]


def test_where_a_second_thread_cannot_be_had_the_first_ends(monkeypatch):
    before, starts = set(threading.enumerate()), []
    start, asked, call = threading.Thread.start, threading.Event(), Gate.call

    def ask(gate, action):
        asked.set()
        call(gate, action)

    def refuse(thread):
        starts.append(thread)
        if len(starts) == 3:  # the caller, the first, the second
            asked.wait(250)  # until the first calls for its report
            raise RuntimeError("can't start new thread")
        thread.daemon = True
        start(thread)

    def train():
        with pytest.raises(RuntimeError, match="start new thread"):
            train_many([network(0), network(1)], some_images(), recipe=RECIPE,
                       seeds=[0, 1], report=lambda *_: None)  # fmt: skip

    caller = threading.Thread(target=train, daemon=True)
    monkeypatch.setattr(Gate, "call", ask)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    caller.start()
    caller.join(250)
    assert len(starts) == 3
    assert not caller.is_alive()
    assert set(threading.enumerate()) == before


class Counting(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "setting",
    [
        lambda: torch.autocast("cpu", torch.float16),
        lambda: torch.device("cpu"),
        Counting,
        lambda: FlopCounterMode(display=False),
        lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    ],
    ids=["autocast", "device", "function mode", "dispatch mode", "saved tensors"],
)
def test_what_torch_holds_for_one_thread_holds_in_training(setting):
    models = [Watched(), Watched()]
    with setting():
        done = train_many(models, some_images(), recipe=RECIPE, seeds=[0, 1])
    assert [run.status for run in done] == ["finished"] * 2
    seen = {thread for model in models for thread, _ in model.passes}
    assert seen == {threading.main_thread()}


def test_networks_see_the_context_variables_of_the_caller():
    variable, seen = ContextVar[str]("variable"), []
    models = [Watched(lambda: seen.append(variable.get("nothing"))) for _ in range(2)]
    variable.set("of the caller")
    train_many(models, some_images(), recipe=RECIPE, seeds=[0, 1])
    assert set(seen) == {"of the caller"}
    assert threading.main_thread() not in {thread for thread, _ in models[0].passes}


def test_a_measurement_in_another_thread_waits_and_disturbs_no_training():
    images, traces, stop = some_images(), [], threading.Event()
    layer, x = nn.Linear(3, 2), torch.ones(4, 3)
    recipe = Recipe(epochs=20, batch_size=12, rate=0.05)

    def built():  # which measures too, on behalf of the thread that trains
        with preserve(layer):
            return Noisy()

    def measure():
        while not stop.is_set():
            given = {"loss": nn.MSELoss(), "norm_mode": "eval", "max_matvecs": 6}
            traces.append(trace(layer, (x, x[:, :2]), **given).trace)

    def trained():
        done = train_many([built, built], images, recipe=recipe, seeds=[0, 1])
        return [
            (run.error, [{**epoch, "seconds": 0} for epoch in run.history])
            for run in done
        ]

    alone = trained()
    other = threading.Thread(target=measure)
    other.start()
    try:
        together = trained()
    finally:
        stop.set()
        other.join(60)
    assert together == alone
    assert len(set(traces)) == 1
