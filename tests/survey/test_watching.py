"""A plain loop, watched."""

import copy
import json

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from theodolite.core import ConfigError, Rows, UnknownNameError
from theodolite.instruments import extreme_eigenvalues
from theodolite.survey import survey, watch
from theodolite.survey.watching.course import Course


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.layer = nn.BatchNorm1d(width), nn.Linear(width, width)

    def forward(self, x):
        return x + torch.relu(self.layer(self.norm(x)))


def network():
    torch.manual_seed(3)
    layers = [nn.Linear(4, 6), Block(6), nn.Dropout(0.2), Block(6), nn.Linear(6, 3)]
    return nn.Sequential(*layers).double()


def plain(*last):
    torch.manual_seed(3)
    layers = [nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(32, 3), *last).double()


def data():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    return x, torch.randint(0, 3, (20,), generator=generator)


class Run:
    """A loop as users write it; the model is kept as it was before each update."""

    def __init__(self, steps=5, watching=True, model=None, **settings):
        self.model = model or network()
        self.loss = settings.pop("by", F.cross_entropy)
        self.spoil = settings.pop("spoil", {})
        rate = {"lr": 0.1, "momentum": 0.9, **settings.pop("rate", {})}
        self.optim = torch.optim.SGD(self.model.parameters(), **rate)
        self.before, self.losses = [], []
        torch.manual_seed(5)
        if not watching:
            self.loop(steps)
            return
        with watch(self.model, self.optim, **settings) as self.w:
            self.loop(steps)

    def loop(self, steps):
        x, y = data()
        for step in range(steps):
            self.optim.zero_grad()
            loss = self.loss(self.model(x), y)
            loss.backward()
            self.losses.append(loss.item())
            self.before.append(copy.deepcopy(self.model.state_dict()))
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optim.step()
            if step in self.spoil:
                self.spoil[step](self.model)
            with torch.no_grad():
                self.model(x)  # somebody's validation
        self.before.append(copy.deepcopy(self.model.state_dict()))

    def alerts(self):
        return [(alert.step, alert.finding.rule) for alert in self.w.alerts]


@pytest.fixture(scope="module")
def run():
    return Run(every=2)


def values(run, quantity):
    rows = run.w.rows().where(quantity=quantity)
    return dict(zip(rows.column("step"), rows.values(), strict=True))


COMPARED = ("forward_rms", "branch_gain", "gradient_norm", "loss")


def test_numbers_are_those_of_a_survey_at_each_step(run):
    assert run.w.course().failures == {}
    assert list(values(run, "loss")) == [0, 2, 4]
    for step in (0, 2, 4):
        model = network()
        model.load_state_dict(run.before[step])
        whole = survey(
            model, data(), loss=nn.CrossEntropyLoss(), effort="quick", progress=False,
            measures=("map", "signal", "units", "norms"),
        )  # fmt: skip
        ours = run.w.rows().where(step=step)
        for row in whole.rows():
            if row["quantity"] in COMPARED:
                labels = {k: row[k] for k in ("quantity", "block") if k in row}
                assert ours.value(**labels) == pytest.approx(row["value"], rel=1e-10)
        exact = extreme_eigenvalues(
            model.eval(), data(), loss=nn.CrossEntropyLoss(), norm_mode="batch", k=1,
            ends="largest", tol=1e-8,
        ).eigenvalues[0]  # fmt: skip
        (top,) = ours.where(quantity="largest_eigenvalue")
        assert abs(top["value"] - exact) <= top["error"] + 1e-9
        assert top["error"] < 0.2 * exact
        assert values(run, "training_loss")[step] == pytest.approx(run.losses[step])


def test_the_training_is_the_same_bit_for_bit(run):
    other = Run(watching=False)
    for one, same in zip(run.before, other.before, strict=True):
        for name, value in one.items():
            assert torch.equal(value, same[name]), name
    assert not run.optim._optimizer_step_pre_hooks
    assert not run.model._forward_pre_hooks
    assert not run.model._forward_hooks
    assert run.model.training


def test_a_course_is_written_as_json(run, tmp_path):
    run.w.course().to_json(tmp_path / "course.json")
    kept = json.loads((tmp_path / "course.json").read_text())
    assert kept == run.w.course().to_dict()
    assert kept["steps"] == 5
    assert (
        kept["settings"] | {"lr": 0.1, "momentum": 0.9, "optimizer": "SGD"}
        == kept["settings"]
    )
    assert "gradient_norm" in str(run.w.course())


def shut(model):
    model[0].bias.data.fill_(-1e3)


def spoil(model):
    model[2].weight.data[0, 0] = float("nan")


def merge(model):
    model[2].weight.data.mul_(1e-6)


def blow_up(model):
    for parameter in model.parameters():
        parameter.data.mul_(30)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"spoil": {6: shut}}, (10, "dead-units")),
        ({"spoil": {6: spoil}}, (7, "not-finite-in-training")),
        ({"spoil": {9: merge}}, (10, "signals-collapse")),
        ({"spoil": {17: blow_up}}, (20, "gradient-jumps")),
        ({"rate": {"lr": 0.0, "momentum": 0}}, (5, "nothing-moves")),
        ({"by": F.nll_loss, "last": nn.Softmax(1)}, (0, "loss-below-zero")),
        ({"by": lambda out, y: (out * 0).sum()}, (0, "every-gradient-zero")),
        ({"rate": {"lr": 300.0, "momentum": 0}}, (5, "rate-too-large")),
    ],
)
def test_an_alert_comes_at_the_step_where_it_happens(settings, wanted, caplog):
    settings = dict(settings)
    last = [settings.pop("last")] if "last" in settings else []
    heard = []
    run = Run(22, model=plain(*last), every=5, on_alert=heard.append, **settings)
    assert wanted in run.alerts()
    assert tuple(heard) == run.w.alerts == run.w.course().alerts
    rules = [rule for _, rule in run.alerts()]
    assert len(set(rules)) == len(rules)  # once while it lasts
    assert str(run.w.alerts[0]) in caplog.messages
    assert f"ALERT step {wanted[0]}: " in str(run.w.course())


def test_ignored_rules_raise_no_alert():
    ignored = ("loss-below-zero", "loss-grows")
    run = Run(7, model=plain(nn.Softmax(1)), by=F.nll_loss, every=3, ignore=ignored)
    assert not run.alerts()


@pytest.mark.parametrize("make", [network, plain])
def test_a_sound_training_raises_no_alert(make):
    assert not Run(30, model=make(), every=5).alerts()


def test_what_a_network_starts_with_is_alerted_only_if_it_does_not_learn():
    def half_shut():
        model = plain()
        model[0].bias.data[:20] = -1e3
        return model

    learning = Run(40, model=half_shut(), every=10)
    assert learning.losses[-1] < 0.8 * learning.losses[0]
    assert not learning.alerts()
    still = Run(30, model=half_shut(), every=10, rate={"lr": 1e-9})
    assert still.alerts() == [(20, "dead-units")]


def test_a_loss_with_parts_that_were_not_seen_is_said_not_to_be():
    before = plain()(data()[0])
    run = Run(
        1, model=plain(), by=lambda out, y: (out - before.detach() + before).sum()
    )
    assert "pass batches= and loss=" in run.w.course().failures["survey"]


def test_given_batches_are_measured_at_every_step():
    x, y = data()
    run = Run(
        steps=2, every=1, loss=F.cross_entropy, batches=(x[:10], y[:10]),
        measures=("signal",),
    )  # fmt: skip
    losses = values(run, "loss")
    assert list(losses) == [0, 1, 2]
    model = network()
    model.load_state_dict(run.before[2])
    model[2].eval()  # no dropout, and the statistics of the batch
    with torch.no_grad():
        wanted = F.cross_entropy(model(x[:10]), y[:10])
    assert losses[2] == pytest.approx(float(wanted), rel=1e-12)


def test_an_error_of_the_loop_comes_through_and_hooks_go():
    model = network()
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    w = watch(model, optim, every=1, measures=("signal",))

    def loop():
        with w:
            model(data()[0]).sum().backward()
            optim.step()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    assert w.rows().where(quantity="loss").column("step") == [0]
    assert not model._forward_pre_hooks
    assert not optim._optimizer_step_pre_hooks


def test_a_compiled_model_is_measured_by_its_own():
    compiled = torch.compile(network(), backend="eager")
    run = Run(steps=2, every=2, model=compiled, measures=("map",))
    assert run.w.course().title == "Sequential"
    gains = run.w.rows().where(quantity="branch_gain")
    assert gains.column("block") == ["1", "3", "1", "3"]


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"every": 0}, ConfigError, "every is 0"),
        ({"every": True}, ConfigError, "every is True"),
        ({"optimizer": 3}, ConfigError, "optimizer is 3"),
        ({"measures": ("signl",)}, UnknownNameError, "did you mean 'signal'"),
        ({"ignore": ("dead-unit",)}, UnknownNameError, "did you mean 'dead-units'"),
    ],
)
def test_misuse_is_refused_before_the_training(change, error, says):
    model = network()
    settings = {"optimizer": torch.optim.SGD(model.parameters(), lr=0.1), **change}
    with pytest.raises(error, match=says):
        watch(model, **settings)


def test_a_course_prints_its_ends_within_a_terminal():
    rows = [
        {"quantity": quantity, "step": step, "value": value and value + step, **label}
        for step in (0, 7)
        for quantity, value, label in (
            ("branch_gain", 2.0, {"block": "a", "n_samples": 4, "of_samples": 20}),
            ("branch_gain", 0.5, {"block": "b", "n_samples": 4, "of_samples": 20}),
            ("loss", 1 / 3, {}),
            ("gradient_norm", None, {"nonfinite": "nan"}),
            ("trace", 1.0, {}),
        )
    ]
    course = Course(
        title="Net", every=7, steps=8, measured=Rows(rows),
        failures={"curvature": " ".join("x" * 35)},
    )  # fmt: skip
    assert str(course).split("\n")[1:] == [
        "  loss  0.3333 → 7.333",
        "  gradient_norm  not finite → not finite",
        "  branch_gain (largest of 2)  2 → 9 on 4 of 20 samples",
        "  1 more quantities: see .rows()",
        f"  NOT MEASURED curvature: {'x ' * 26}x",
        "    " + "x " * 7 + "x",
    ]
