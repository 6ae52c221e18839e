"""Budgets, interrupts and failures: a report always comes, the model as found."""

import re
import time

import pytest
import torch
from torch import nn

import theodolite
from tests.survey.nets import data, functional, normed
from theodolite.core import (
    ConfigError,
    MeasurementError,
    UnknownNameError,
    safe_point,
)
from theodolite.instruments import opened
from theodolite.survey import survey
from theodolite.survey.measures.contract import Allowance, OutOfTimeError, deadline
from theodolite.survey.measures.mapping import MapMeasure
from theodolite.survey.planning.budget import seconds_of
from theodolite.survey.planning.opening import opened_site
from theodolite.survey.planning.running import grace_of, run_measures
from theodolite.survey.planning.telling import Progress

LOSS = nn.CrossEntropyLoss()
CHEAP = ("map", "signal", "units", "norms")


def state_of(model):
    """Return all that must come back: values, modes, flags, gradients, hooks."""
    modules = list(model.modules())
    return (
        {k: v.clone() for k, v in model.state_dict().items()},
        [m.training for m in modules],
        [p.requires_grad for p in model.parameters()],
        [None if p.grad is None else p.grad.clone() for p in model.parameters()],
        [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in modules],
        torch.get_rng_state(),
    )


def assert_as_found(model, before):
    now = state_of(model)
    for key, value in before[0].items():
        assert torch.equal(now[0][key], value), key
    assert now[1:3] == before[1:3]
    assert [g is None for g in now[3]] == [g is None for g in before[3]]
    assert now[4] == before[4]
    assert torch.equal(now[5], before[5])


def test_a_survey_leaves_the_model_bit_for_bit():
    model = normed().float()
    model.blocks[0].eval()
    model.head.bias.requires_grad_(False)
    x, y = data()
    LOSS(model(x.float()), y).backward()
    before = state_of(model)
    result = theodolite.survey(model, (x.float(), y), loss=LOSS, budget=1000)
    assert_as_found(model, before)
    assert {m.status for m in result.measured} <= {"done", "refused"}


def test_the_same_seed_gives_the_same_rows():
    settings = {
        "loss": LOSS,
        "budget": 1000,
        "measures": ["map", "signal", "curvature"],
    }
    first, second = (survey(normed(), data(), **settings) for _ in range(2))
    assert first.rows() == second.rows()


class Interrupted(nn.Module):
    """Raises in its nth forward, as Ctrl-C may."""

    def __init__(self, inner, after, error):
        super().__init__()
        self.inner, self.left, self.error = inner, after, error

    def forward(self, x):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return self.inner(x)


def test_an_interrupt_reports_what_is_done():
    model = Interrupted(normed(), 9, KeyboardInterrupt())
    before = state_of(model)
    result = survey(model, data(), loss=LOSS, budget=1000, progress=False)
    assert_as_found(model, before)
    assert model.left == 9
    statuses = {m.measure: m.status for m in result.measured}
    assert statuses["map"] == statuses["signal"] == "done"
    assert statuses["density"] == "interrupted"
    assert result.find("forward_rms")
    assert "interrupted" in str(result)


@pytest.mark.parametrize("loss", [LOSS, None])
def test_an_interrupt_before_the_first_measure_gives_a_survey_of_nothing(loss):
    model = Interrupted(normed(), 0, KeyboardInterrupt())
    before = state_of(model)
    result = survey(model, data(1), loss=loss, measures=CHEAP, progress=False)
    assert_as_found(model, before)
    assert [m.measure for m in result.measured] == list(CHEAP)
    assert {m.status for m in result.measured} == {"interrupted"}
    assert result.n_parameters == sum(p.numel() for p in model.parameters())
    assert "interrupted" in str(result)


def test_time_counts_from_when_the_survey_was_asked_for():
    started = time.perf_counter() - 9.0
    given = {"loss": LOSS, "norm_mode": "batch", "budget_s": 10.0, "started": started}
    with opened_site(normed(), data(), **given) as site:
        assert site.left_s <= 1.0
        allowance = Allowance(0.5)
        assert grace_of(site, allowance) <= 0.2 * 0.5
        site.started -= 5.0
        assert grace_of(site, allowance) == 0.0


def test_a_measure_is_promised_no_more_than_is_left_after_its_forecast():
    class Slow(MapMeasure):
        name, essential, weight = "slow", False, 1.0

        def forecast(self, site):
            site.started -= 9.5  # as if timing had taken so long
            return 2.0

    given = {"loss": LOSS, "norm_mode": "batch", "budget_s": 10.0}
    with opened_site(normed(), data(), **given) as site:
        (outcome,) = run_measures(site, [Slow()], Progress(wanted=False))
    assert outcome.status == "skipped"


def test_what_a_model_raises_is_a_failure_of_one_measure_in_a_sentence():
    model = Interrupted(normed(), 9, RuntimeError("no such thing\nmore"))
    before = state_of(model)
    result = survey(model, data(), loss=LOSS, budget=1000, progress=False)
    assert_as_found(model, before)
    failed = [m for m in result.measured if m.status == "failed"]
    assert failed
    assert all(m.reason == "RuntimeError: no such thing" for m in failed)
    assert result.outcome("signal").status == "done"


def test_what_does_not_fit_is_skipped_with_what_it_would_take():
    result = survey(normed(), data(), loss=LOSS, budget=0.02, progress=False)
    skipped = [m for m in result.measured if m.status == "skipped"]
    assert {"density", "curvature"} <= {m.measure for m in skipped}
    assert {result.outcome(name).status for name in CHEAP} == {"done"}
    for each in skipped:
        assert re.search(r"would take about .* give a budget of", each.reason)
        assert each.forecast_s > 0


def test_what_overdraws_its_allowance_is_stopped_at_safe_points_only():
    allowance, layer = Allowance(-1.0), nn.Linear(1, 1)
    with deadline(allowance, grace=0.5):
        with torch.no_grad():  # whose end is a function of torch too
            layer(torch.zeros(1))
        with pytest.raises(OutOfTimeError), opened(layer, careful=True):
            layer(torch.zeros(1))
        with pytest.raises(OutOfTimeError):
            safe_point()
    assert torch.is_grad_enabled()
    with deadline(allowance, grace=2.0), opened(layer, careful=True):
        layer(torch.zeros(1))
    with pytest.raises(OutOfTimeError):
        allowance.check()


def test_batch_norms_of_one_sample_are_one_loud_finding_and_the_rest_is_measured():
    model, (x, y) = normed(), data(1)
    before = state_of(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    measures = (*CHEAP, "optimizer", "rates")
    result = survey(
        model, (x, y), loss=LOSS, optimizer=optimizer, measures=measures, progress=False
    )
    assert_as_found(model, before)
    assert {m.status for m in result.measured} == {"done"}
    (loud,) = [f for f in result.findings if f.severity == "sick"]
    assert loud.rule == "batch-norm-of-one"
    assert loud.where == ("blocks.0.norm", "blocks.1.norm")
    assert "drop_last" in loud.says
    assert result.norm_mode == "eval"
    assert {row["norm_mode"] for row in result.rows()} == {"eval"}
    assert any("instead of as_is mode" in said for said in result.unsupported)
    assert "rate-fits" not in {f.rule for f in result.findings}


def test_without_a_map_measures_say_that_there_is_none():
    model = nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False), nn.ReLU())
    x, y = data(1)
    result = survey(model.double(), (x, y), loss=LOSS, measures=CHEAP, progress=False)
    assert "no map could be made, for" in result.outcome("units").reason


def test_a_part_of_the_batch_is_said():
    x, y = data(64)
    result = survey(normed(), (x, y), loss=LOSS, measures=["signal"], budget=1e-4)
    assert result.number("loss")["n_samples"] < 64


class Random(nn.Module):
    """Computes otherwise in each pass, by a count that is no part of the model."""

    calls = 0

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 5), nn.Linear(5, 3)

    def forward(self, x):
        type(self).calls += 1
        for _ in range(self.calls):
            x = x + 0.0 * x
        return self.second(torch.relu(self.first(x)))


def test_a_model_that_computes_otherwise_each_time_is_said_to():
    model = Random().double()
    result = survey(model, data(), loss=LOSS, measures=CHEAP, progress=False)
    assert any("does not compute alike twice" in said for said in result.unsupported)
    assert result.number("loss") is not None


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"budget": "soon"}, ConfigError, "budget is 'soon', wanted a time above 0"),
        ({"budget": -1}, ConfigError, "budget is -1"),
        ({"measures": ["maps"]}, UnknownNameError, "did you mean 'map'"),
        ({"norm_mode": "train"}, UnknownNameError, "unknown norm mode 'train'"),
        ({"optimizer": "sgd"}, ConfigError, "optimizer is 'sgd'"),
    ],
)
def test_wrong_arguments_are_one_sentence(settings, kind, said):
    with pytest.raises(kind, match=re.escape(said)):
        survey(functional(), data(), **{"loss": LOSS, **settings})


def test_what_is_no_module_is_refused():
    with pytest.raises(MeasurementError, match=r"model is .*: pass Module"):
        survey(lambda x: x, data(), loss=LOSS)


def test_budgets_are_read_as_people_write_them():
    assert [seconds_of(b) for b in ("1min", "1.5 h", "20", 3)] == [60, 5400, 20, 3]


def test_progress_is_silent_where_there_is_no_terminal(capfd):
    survey(functional(), data(), loss=LOSS, measures=CHEAP, progress=True)
    out, err = capfd.readouterr()
    assert not out
    assert not err


def test_progress_says_what_runs_and_what_is_next():
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    line = Progress(wanted=True, stream=stream)
    with line.open():
        line.tell("map", ["signal", "units"], left_s=59.0)
    assert "map, next signal and 1 more; 59 s of the budget left" in stream.getvalue()


def test_dropout_is_off_and_comes_back():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 3)).double()
    result = survey(model, data(), loss=LOSS, measures=["signal"], progress=False)
    assert model[1].training
    model.eval()
    x, y = data()
    loss = float(LOSS(model(x), y).detach())
    assert result.number("loss")["value"] == pytest.approx(loss)
