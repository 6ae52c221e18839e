"""A plain loop, watched."""

import io
import json

import pytest
import torch
from torch import nn

from theodolite.core import ConfigError, Rows, UnknownNameError
from theodolite.instruments import extreme_eigenvalues
from theodolite.paths import path_ensemble
from theodolite.survey import watch
from theodolite.survey.watching.course import Course
from theodolite.survey.watching.telling import Telling, lines_of, sparkline
from theodolite.training import ProbeWarning


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


def data():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    return x, torch.randint(0, 3, (20,), generator=generator)


class Run:
    """A loop as users write it; the model is kept as it was before each update."""

    def __init__(self, steps=5, watching=True, criterion=None, model=None, **settings):
        self.model = model or network()
        self.optim = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.criterion = criterion or nn.CrossEntropyLoss()
        self.before, self.grads, self.losses = [], [], []
        torch.manual_seed(5)
        if not watching:
            self.loop(steps)
            return
        with watch(self.model, self.optim, **{"live": False, **settings}) as self.w:
            self.loop(steps)

    def loop(self, steps):
        x, y = data()
        for _ in range(steps):
            self.optim.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.losses.append(loss.item())
            self.keep()
            self.optim.step()
            with torch.no_grad():
                self.model(x)  # somebody's validation
        self.keep()

    def keep(self):
        state = {k: v.clone() for k, v in self.model.state_dict().items()}
        self.before.append(state)
        self.grads.append([p.grad.clone() for p in self.model.parameters()])


def at_step(run, step):
    model = network()
    model.load_state_dict(run.before[step])
    return model.eval()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    loss = nn.CrossEntropyLoss()
    page = tmp_path_factory.mktemp("watched") / "page.html"
    made = Run(criterion=loss, loss=loss, every=2, html=page)
    made.page = page
    return made


def values(run, quantity):
    rows = run.w.rows().where(quantity=quantity)
    return dict(zip(rows.column("step"), rows.values(), strict=True))


def test_numbers_of_a_part_of_the_samples_say_so(run):
    assert "on 4 of 20 samples" in run.page.read_text()
    lines = str(run.w.course()).splitlines()
    (depth,) = (line for line in lines if "effective_depth" in line)
    assert depth.endswith("on 4 of 20 samples")
    assert "effective_depth on 4 of 20 samples" in lines_of(run.w.rows())
    loss, (x, y) = nn.CrossEntropyLoss(), data()
    split = [(x[:8], y[:8]), (x[8:], y[8:])]
    other = Run(1, criterion=loss, loss=loss, batches=split, quantities=("loss",))
    (row,) = other.w.rows().where(step=0)
    assert (row["n_samples"], row["of_samples"]) == (8, 20)


def test_a_rate_over_no_curvature_is_not_resolved():
    model = nn.Linear(4, 3).double()
    run = Run(1, model=model, criterion=Linear(), loss=Linear(), batches=data())
    assert not run.w.rows().where(quantity="rate_over_stable")
    assert "not resolved" in run.w.course().failures["rate_over_stable"]


class Linear(nn.Module):
    """A loss without curvature."""

    def forward(self, scores, targets):
        return scores.mean() + 0 * targets.sum()


def test_numbers_are_those_of_the_instruments_at_each_step(run):
    assert run.w.course().failures == {}
    x, y = data()
    sharp = values(run, "sharpness")
    assert list(sharp) == [0, 2, 4]
    for step, row in sharp.items():
        exact = extreme_eigenvalues(
            at_step(run, step), (x, y), loss=nn.CrossEntropyLoss(), norm_mode="batch",
            k=1, ends="largest", tol=1e-8,
        ).eigenvalues[0]  # fmt: skip
        assert row == pytest.approx(exact, rel=0.02)
        ratio = values(run, "rate_over_stable")[step]
        assert ratio == pytest.approx(0.1 * row / 3.8, rel=1e-12)
        paths = path_ensemble(at_step(run, step), x[:4], norm_mode="batch")
        depth = values(run, "effective_depth")[step]
        assert depth == pytest.approx(paths.effective_depth[0], rel=1e-9)


def test_gradients_weights_and_losses_are_those_of_the_loop(run):
    for step in (0, 2, 4):
        gradient = torch.cat([g.flatten() for g in run.grads[step]]).norm()
        assert values(run, "gradient_norm")[step] == pytest.approx(float(gradient))
        assert values(run, "loss")[step] == pytest.approx(run.losses[step])
        owned = [run.before[step][n] for n, _ in network().named_parameters()]
        weights = torch.cat([w.flatten() for w in owned]).norm()
        assert values(run, "weight_norm")[step] == pytest.approx(float(weights))
    assert set(values(run, "rate").values()) == {0.1}


def test_branch_gains_are_those_by_hand(run):
    x, _ = data()
    rows = run.w.rows().where(quantity="branch_gain", step=2)
    assert rows.column("block") == ["1", "3"]
    model = at_step(run, 2)
    for block in (model[1], model[3]):
        block.norm.train()
    with torch.no_grad():
        h = model[0](x)
        for name, value in zip(("1", "3"), rows.values(), strict=True):
            branch = model[int(name)](h) - h
            by_hand = branch.square().mean().sqrt() / h.square().mean().sqrt()
            assert value == pytest.approx(float(by_hand), rel=1e-10)
            h = h + branch


def test_the_training_is_the_same_bit_for_bit(run):
    plain = Run(watching=False)
    for one, other in zip(run.before, plain.before, strict=True):
        for name, value in one.items():
            assert torch.equal(value, other[name]), name
    assert not run.optim._optimizer_step_pre_hooks
    for module in (run.model, run.criterion):
        assert not module._forward_pre_hooks
        assert not module._forward_hooks
    assert run.model.training


def test_a_page_and_json_at_the_end(run, tmp_path):
    shown = run.page.read_text()
    assert "Sharpness" in shown
    assert "edge of stability" in shown
    run.w.course().to_json(tmp_path / "course.json")
    kept = json.loads((tmp_path / "course.json").read_text())
    assert kept == run.w.course().to_dict()
    assert kept["steps"] == 5
    assert {"norm_mode", "seed", "seconds"} <= set(kept["rows"][0])
    assert "sharpness" in str(run.w.course())


def test_settings_are_those_of_the_first_group():
    model = nn.Linear(2, 2)
    groups = [{"params": [model.weight], "lr": 0.5}, {"params": [model.bias]}]
    with watch(model, torch.optim.SGD(groups, lr=0.1), live=False) as watched:
        pass
    settings = watched.course().settings
    assert (settings["optimizer"], settings["lr"]) == ("SGD", 0.5)


def test_without_a_loss_the_rest_is_measured_in_silence():
    course = Run(steps=1, every=1).w.course()
    assert set(course.rows().levels("quantity")) == {
        "branch_gain", "effective_depth", "gradient_norm", "rate", "weight_norm",
    }  # fmt: skip
    assert set(course.failures) == {"loss", "sharpness"}
    assert "pass loss=" in course.failures["sharpness"]
    # Gradients of the last update are old when the loop is over.
    assert course.rows().where(quantity="gradient_norm").column("step") == [0]


def test_what_was_asked_for_and_cannot_be_had_is_reported_once():
    with pytest.warns(ProbeWarning, match="no loss is known: pass loss=") as caught:
        run = Run(steps=3, every=1, quantities=("sharpness", "weight_norm"))
    assert len(caught) == 1
    assert len(values(run, "weight_norm")) == 4
    assert "no loss is known" in run.w.course().failures["sharpness"]


def test_given_batches_are_measured_at_every_step():
    x, y = data()
    run = Run(
        steps=2, every=1, loss=nn.functional.cross_entropy, batches=(x[:10], y[:10]),
        quantities=("loss", "dead_share", "forward_rms"),
    )  # fmt: skip
    losses = values(run, "loss")
    assert list(losses) == [0, 1, 2]
    assert run.w.course().failures == {}
    model = at_step(run, 2).train()
    model[2].eval()  # no dropout, and the statistics of the batch
    with torch.no_grad():
        wanted = nn.functional.cross_entropy(model(x[:10]), y[:10])
    assert losses[2] == pytest.approx(float(wanted), rel=1e-12)
    dead = run.w.rows().where(quantity="dead_share", step=0)
    assert len(dead) == 2


def test_a_page_that_cannot_be_written_ends_no_training(tmp_path):
    (tmp_path / "file").write_text("")
    page = tmp_path / "file" / "page.html"
    with pytest.warns(ProbeWarning, match="pass another destination"):
        run = Run(steps=1, every=1, quantities=("weight_norm",), html=page)
    assert len(values(run, "weight_norm")) == 2


def test_an_error_of_the_loop_comes_through_and_hooks_go():
    model = network()
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    w = watch(model, optim, every=1, quantities=("weight_norm",), live=False)

    def loop():
        with w:
            model(data()[0]).sum().backward()
            optim.step()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    assert w.rows().column("step") == [0]
    assert not model._forward_pre_hooks
    assert not optim._optimizer_step_pre_hooks


class Named(nn.Module):
    """A model of two inputs that returns its loss, as transformers do."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.block = nn.Linear(4, 6).double(), Block(6).double()

    def forward(self, x, labels=None, *, scale=1.0):
        out = self.block(self.stem(x)) * scale
        return {"logits": out, "loss": (out.sum(1) - labels).square().mean()}


def test_a_model_with_named_inputs_and_a_loss_of_its_own():
    model = Named()
    optim = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = data()
    with watch(model, optim, every=1, live=False) as w:
        for _ in range(2):
            optim.zero_grad()
            model(x, y.double(), scale=0.5)["loss"].backward()
            optim.step()
    assert {"loss", "branch_gain"} <= set(w.rows().levels("quantity"))
    assert len(w.rows().where(quantity="loss")) == 2


def test_a_compiled_model_is_measured_by_its_own():
    run = Run(
        steps=2, every=2, model=torch.compile(network(), backend="eager"),
        quantities=("branch_gain",),
    )  # fmt: skip
    assert run.w.course().title == "Sequential"
    assert run.w.rows().column("block") == ["1", "3", "1", "3"]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("kind", "drawn"), [(Terminal, True), (io.StringIO, False)])
def test_a_terminal_is_drawn_on_and_a_file_is_not(kind, drawn, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream, ended = kind(), []
    telling = Telling(live=True, end=lambda: ended.append(1), stream=stream)
    telling.start({})
    for step in range(3):
        row = {"quantity": "loss/loss", "value": 3.0 - step, "error": 0.5, "step": step}
        telling.log([row], step)
    telling.finish()
    assert ended == [1]
    told = stream.getvalue()
    assert ("step 2" in told) == drawn
    assert (sparkline([3.0, 2.0, 1.0]) in told) == drawn
    assert ("1 ± 0.5" in told) == drawn
    assert bool(told) == drawn
    assert [row["quantity"] for row in telling.rows] == ["loss"] * 3


class Gone(Terminal):
    def write(self, text):
        raise OSError("the terminal is gone")


def test_a_terminal_that_goes_away_costs_no_rows(monkeypatch, caplog):
    monkeypatch.setenv("TERM", "xterm")
    ended = []
    telling = Telling(live=True, end=lambda: ended.append(1), stream=Gone())
    telling.start({})
    for step in range(2):
        telling.log([{"quantity": "q/q", "value": 1.0, "step": step}], step)
    telling.finish()
    assert len(telling.rows) == 2
    assert ended == [1]
    assert [record.getMessage() for record in caplog.records] == [
        "the terminal cannot be drawn on (the terminal is gone): watching goes on "
        "unseen; pass live=False"
    ]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"every": 0}, "every is 0"),
        ({"every": True}, "every is True"),
        ({"optimizer": 3}, "optimizer is 3"),
        ({"quantities": ()}, "name at least one"),
        ({"quantities": ("loss", "loss")}, "each once"),
    ],
)
def test_misuse_is_refused_before_the_training(change, says):
    model = network()
    settings = {"optimizer": torch.optim.SGD(model.parameters(), lr=0.1), **change}
    with pytest.raises(ConfigError, match=says):
        watch(model, **settings)


def test_an_unknown_quantity_is_named_with_its_nearest():
    model = network()
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(UnknownNameError, match="did you mean 'sharpness'"):
        watch(model, optim, quantities=("sharpnes",))


def test_a_course_prints_its_ends_within_a_terminal():
    rows = [
        {"quantity": quantity, "step": step, "value": value + step, **label}
        for step in (0, 7)
        for quantity, value, label in (
            ("gain", 2.0, {"block": "a"}),
            ("gain", 0.5, {"block": "b"}),
            ("loss", 1 / 3, {}),
        )
    ]
    course = Course(
        title="Net", every=7, steps=8, measured=Rows(rows),
        failures={"tangent": "x" * 99, "y": "z" * 82},
    )  # fmt: skip
    assert str(course).split("\n")[1:] == [
        "  gain (largest of 2)  2 → 9",
        "  loss  0.3333 → 7.333",
        f"  NOT MEASURED tangent: {'x' * 75}…",
        f"  NOT MEASURED y: {'z' * 82}",
    ]
