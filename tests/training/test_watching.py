import math
import time
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from tests.training.probe_cases import (
    assert_same_state,
    broken,
    data,
    moody,
    network,
    plain_run,
    probes,
    state,
    table,
    vandal,
    weight_norm,
)
from theodolite.core import ConfigError
from theodolite.instruments import HalfSquareLoss, extreme_eigenvalues
from theodolite.training.probes import watcher as watching
from theodolite.training.probes.callbacks import scalars
from theodolite.training.probes.probe import Probe, ProbeWarning
from theodolite.training.probes.schedules import AtLosses, AtSteps, Every
from theodolite.training.probes.watcher import Watcher


def own_loop(model, watcher=None, steps=6, look=True, **given):
    """A loop as users write it, and one look after the last update."""
    x, y = data()
    criterion = HalfSquareLoss()
    optim = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model.train()
    for step in range(steps + look):
        optim.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        if watcher is not None:
            settings = {"loss": loss, "batch": (x, y), "criterion": criterion}
            watcher.step(model, **{**settings, **given})
        if step < steps:
            optim.step()


class Notebook:
    """A tracker that writes down what it is told."""

    def __init__(self):
        self.told = []

    def start(self, spec):
        self.told.append(("start", spec["study"], spec["config"]["labels"]))

    def log(self, rows, step):
        self.told.append(("log", step, [dict(row) for row in rows]))

    def finish(self):
        self.told.append(("finish",))


class Torn(Notebook):
    def log(self, rows, step):
        self.told.append("asked")
        raise OSError("disk full")


def test_the_same_rows_as_the_plain_loop():
    chosen = probes((1.16, 1.12, 0.9))
    plain = plain_run(chosen)
    watcher = Watcher(chosen, max_share=1, labels={"run": "a"})
    own_loop(network(), watcher)
    watched = table(watcher.rows(), "theodolite/")
    assert watched == table(plain.probe_rows)
    assert {key[1] for key in watched} >= {"weights", "gradient/all", "low"}
    assert set(watcher.rows().column("run")) == {"a"}
    assert all(q.startswith("theodolite/") for q in watcher.rows().levels("quantity"))


def test_an_instrument_as_a_probe():
    def sharpness(at):
        return extreme_eigenvalues(
            at.model, at.data, loss=at.criterion, norm_mode="batch", k=2, ends="largest"
        )

    watcher = Watcher([Probe("sharp", sharpness, AtSteps([0, 3]))], max_share=1)
    own_loop(network(), watcher)
    assert not watcher.retired
    rows = watcher.rows().where(quantity="theodolite/sharp/eigenvalues")
    assert rows.column("step") == [0, 0, 3, 3]
    x, y = data()
    exact = extreme_eigenvalues(
        network(), (x, y), loss=HalfSquareLoss(), norm_mode="batch", k=2, ends="largest"
    )
    assert rows.values()[:2] == pytest.approx(exact.eigenvalues, rel=1e-6)


def test_training_is_the_same_bit_for_bit():
    ends = []
    for chosen in (None, [Probe("vandal", vandal, Every(2)), *probes()]):
        model = moody()
        torch.manual_seed(7)
        own_loop(model, chosen and Watcher(chosen, max_share=1))
        ends.append((state(model), torch.rand(3)))
    assert_same_state(ends[0][0], ends[1][0])
    assert torch.equal(ends[0][1], ends[1][1])


def test_gradients_and_modes_of_the_user_survive():
    model = moody()
    model[1].eval()
    x, y = data()
    HalfSquareLoss()(model(x), y).backward()
    own = [p.grad for p in model.parameters()]
    copies = [grad.clone() for grad in own]
    watcher = Watcher([Probe("vandal", vandal)])
    assert len(watcher.step(model, batch=(x, y))) == 1
    assert not model[1].training
    assert model.training
    for parameter, grad, copy in zip(model.parameters(), own, copies, strict=True):
        assert parameter.grad is grad
        assert torch.equal(grad, copy)


def test_a_broken_probe_is_reported_once_and_the_others_go_on():
    watcher = Watcher([Probe("broken", broken), *probes()], max_share=1)
    with pytest.warns(ProbeWarning, match="'broken' raised ZeroDivision") as caught:
        own_loop(network(), watcher)
    assert len(caught) == 1
    assert watcher.retired == {"broken": "ZeroDivisionError: no number at step 0"}
    weights = watcher.rows().where(quantity="theodolite/weights")
    assert weights.column("step") == [0, 2, 4, 6]


def test_a_failing_tracker_is_reported_once():
    torn, fine = Torn(), Notebook()
    watcher = Watcher(probes(), max_share=1, trackers=[torn, fine])
    with pytest.warns(ProbeWarning, match="Torn failed with OSError: disk") as caught:
        own_loop(network(), watcher)
    watcher.finish()
    assert len(caught) == 1
    assert watcher.retired == {"tracker 0, Torn": "OSError: disk full"}
    assert torn.told.count("asked") == 1
    assert [t[0] for t in fine.told].count("log") > 3


def test_trackers_are_started_told_and_finished():
    book = Notebook()
    watcher = Watcher(
        [Probe("w", weight_norm, Every(3))], max_share=1, trackers=[book],
        labels={"run": 1},
    )  # fmt: skip
    with watcher:
        own_loop(network(), watcher)
    assert [t[:2] for t in book.told] == [
        ("start", "theodolite"), ("log", 0), ("log", 3), ("log", 6), ("finish",),
    ]  # fmt: skip
    assert book.told[0][2] == {"run": 1}
    (row,) = book.told[1][2]
    assert row["quantity"] == "w"
    assert "loss" not in row, "a label that changes would change the name each step"
    assert watcher.rows().levels("quantity") == ["theodolite/w"]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"loss": "low"}, "loss"),
        ({"loss": torch.ones(3)}, "loss"),
        ({"loss": lambda model, batch: 1 / 0}, "loss"),
        ({"batch": lambda: 1 / 0}, "batch"),
        ({"step": "third"}, "watcher"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_used_is_reported_once(given, what):
    watcher = Watcher([Probe("w", weight_norm)], max_share=1)
    with pytest.warns(ProbeWarning, match=f"{what} failed with") as caught:
        own_loop(network(), watcher, steps=3, **given)
    assert len(caught) == 1
    assert list(watcher.retired) == [what]
    rows = watcher.rows()
    assert len(rows) == (0 if what == "watcher" else 4)
    assert all(map(math.isnan, rows.values("loss"))) or what == "batch"


def test_something_that_is_no_model_ends_no_training():
    watcher = Watcher([Probe("w", weight_norm)])
    with pytest.warns(ProbeWarning, match="'w' raised ArgumentError"):
        assert len(watcher.step("not a model")) == 0
    assert list(watcher.retired) == ["w"]


def test_a_loss_of_nan_crosses_no_level():
    model = network()
    chosen = [Probe("low", weight_norm, AtLosses([1e9])), Probe("w", weight_norm)]
    watcher = Watcher(chosen, max_share=1)
    watcher.step(model, loss=math.nan)
    assert watcher.rows().column("quantity") == ["theodolite/w"]
    watcher.step(model, loss=torch.tensor(5.0))
    assert watcher.rows().where(quantity="theodolite/low").column("step") == [1]
    assert not watcher.retired


def test_a_loss_is_computed_only_when_needed_and_leaves_no_trace():
    model, calls = moody(), []
    before = state(model)

    def loss(model, batch):
        calls.append(torch.is_grad_enabled())
        return model(batch[0]).square().mean()

    chosen = [Probe("w", weight_norm, Every(3)), Probe("v", weight_norm, Every(3))]
    watcher = Watcher(chosen, max_share=1)
    for _ in range(7):
        watcher.step(model, loss=loss, batch=data)
    assert calls == [False, False, False]
    assert_same_state(before, state(model))
    assert len(watcher.rows()) == 6


def test_a_slow_probe_is_skipped_and_counted_and_the_fast_ones_are_not(monkeypatch):
    clock = [1.0]
    told = SimpleNamespace(perf_counter=lambda: clock[0])
    monkeypatch.setattr(watching, "time", told)

    def slow(at):
        clock[0] += 0.05
        return 1.0

    chosen = [Probe("slow", slow), Probe("low", slow, AtLosses([1e9, -1]))]
    watcher = Watcher([*chosen, Probe("quick", lambda at: 1.0)], max_share=0.9)
    model = nn.Linear(1, 1)

    def run():
        for _ in range(20):
            watcher.step(model, loss=0.5)
            clock[0] += 0.005

    with pytest.warns(ProbeWarning, match="'slow' has used more than") as caught:
        run()
    # A third of 90 % each: of about 0.3 s a probe of 0.05 s gets some 2 or 3 turns.
    taken = len(watcher.rows().where(quantity="theodolite/slow"))
    assert taken == 2
    assert watcher.skipped == {"slow": 20 - taken, "low": 0, "quick": 0}
    assert len(watcher.rows().where(quantity="theodolite/quick")) == 20
    assert len(watcher.rows().where(quantity="theodolite/low")) == 1
    assert len(caught) == 1


@pytest.mark.parametrize("share", [{}, {"max_share": None}, {"max_share": 1}])
def test_what_was_asked_for_is_measured(share):
    watcher = Watcher([Probe("slow", lambda at: time.sleep(0.01) or 1.0)], **share)
    for _ in range(5):
        watcher.step(nn.Linear(1, 1))
    assert len(watcher.rows()) == 5
    assert watcher.skipped == {"slow": 0}


def test_steps_are_counted_or_given():
    watcher = Watcher([Probe("w", weight_norm, Every(10))], max_share=1)
    model = network()
    for step in (5, 10, 15, 20):
        watcher.step(model, step=step)
    assert watcher.rows().column("step") == [10, 20]


def test_levels_are_not_mixed_up_in_names():
    rows = [
        {"quantity": "p/top", "rank": rank, "value": float(rank), "loss": 0.1}
        for rank in (0, 1)
    ] + [{"quantity": "q", "value": 3.0, "rank": 0}, {"quantity": "r", "value": None}]
    assert scalars(rows) == {
        "theodolite/p/top/rank=0": 0.0,
        "theodolite/p/top/rank=1": 1.0,
        "theodolite/q": 3.0,
    }


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"max_share": 0}, "max_share is 0"),
        ({"max_share": 1.5}, "max_share is 1.5"),
        ({"max_share": "all"}, "max_share is 'all'"),
    ],
)
def test_misuse_is_refused_before_the_training(settings, says):
    with pytest.raises(ConfigError, match=says):
        Watcher(probes(), **settings)
    with pytest.raises(ConfigError, match="share a name"):
        Watcher([*probes(), *probes()])
