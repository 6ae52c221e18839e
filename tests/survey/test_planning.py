"""Efforts, interrupts and failures: a report always comes, the model as found."""

import inspect
import io
import math
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
    Rows,
    UnknownNameError,
    safe_point,
)
from theodolite.instruments import extreme_eigenvalues, opened
from theodolite.survey import Measured, survey
from theodolite.survey.measures.contract import OutOfTimeError, deadline
from theodolite.survey.planning.effort import gradients_of, seconds_of
from theodolite.survey.planning.running import MEASURES, Progress

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
    result = theodolite.survey(model, (x.float(), y), loss=LOSS, effort="thorough")
    assert_as_found(model, before)
    assert {m.status for m in result.measured} <= {"done", "refused"}


def test_the_same_seed_gives_the_same_rows():
    settings = {
        "loss": LOSS,
        "effort": "thorough",
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
    model = Interrupted(normed(), 1, KeyboardInterrupt())
    before = state_of(model)
    measures = [each.name for each in MEASURES if each.name != "checks"]
    given = {"effort": "thorough", "measures": measures, "progress": False}
    result = survey(model, data(), loss=LOSS, **given)
    assert_as_found(model, before)
    assert model.left == 1
    statuses = {m.measure: m.status for m in result.measured}
    assert statuses["map"] == statuses["signal"] == "done"
    assert statuses["rates"] == "interrupted"
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


def test_what_a_model_raises_is_a_failure_of_one_measure_in_a_sentence():
    model = Interrupted(normed(), 1, RuntimeError("no such thing\nmore"))
    before = state_of(model)
    result = survey(model, data(), loss=LOSS, effort="thorough", progress=False)
    assert_as_found(model, before)
    failed = [m for m in result.measured if m.status == "failed"]
    assert failed
    assert all(m.reason == "RuntimeError: no such thing" for m in failed)
    assert result.outcome("signal").status == "done"


class Slow(nn.Module):
    """Waits in every forward pass, longer each time."""

    def __init__(self, inner, seconds):
        super().__init__()
        self.inner, self.seconds, self.calls = inner, seconds, 0

    def forward(self, x):
        self.calls += 1
        time.sleep(self.seconds * (self.calls % 3))
        return self.inner(x)


@pytest.mark.parametrize("shut", [False, True])
def test_a_slow_machine_gives_the_same_rows_and_findings(shut):
    def result(seconds):
        torch.manual_seed(0)
        layers = nn.Linear(3, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3)
        if shut:  # so that repairs and advice are tried
            nn.init.constant_(layers[1].bias, -50.0)
        model = Slow(nn.Sequential(*layers), seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01 if shut else 0.3)
        x, y = data(64)
        return survey(
            model, (x.float(), y), loss=LOSS, optimizer=optimizer, effort="quick"
        )

    idle, busy = result(0.0), result(0.01 if shut else 0.05)
    assert busy.cost.wall_s > busy.cost.cpu_s + 1
    assert idle.rows() == busy.rows()
    assert idle.findings == busy.findings
    assert idle.advice == busy.advice
    assert any(each.trial for each in busy.advice) == shut
    assert [m.reason for m in idle.measured] == [m.reason for m in busy.measured]


def test_a_number_does_not_depend_on_which_measures_run():
    given = {"loss": LOSS, "effort": "normal"}
    whole = survey(normed(), data(), **given)
    for name in ("rates", "curvature"):
        alone = survey(normed(), data(), measures=[name], **given)
        rows = [r for r in alone.outcome(name).rows if "gradient" not in r["quantity"]]
        assert rows == [
            r for r in whole.outcome(name).rows if "gradient" not in r["quantity"]
        ]
        assert rows


def test_what_takes_more_effort_is_skipped_and_says_how_much():
    result = survey(normed(), data(), loss=LOSS, effort=1, progress=False)
    skipped = [m for m in result.measured if m.status == "skipped"]
    assert {"rates", "curvature"} == {m.measure for m in skipped}
    assert {result.outcome(name).status for name in CHEAP} == {"done"}
    for each in skipped:
        effort = re.search(r"or more: give effort=(\d+)$", each.reason)[1]
        enough = survey(
            normed(), data(), loss=LOSS, measures=[each.measure], effort=effort
        )
        assert enough.outcome(each.measure).status in ("done", "refused")


def test_numbers_of_the_batch_are_of_the_whole_batch_at_every_effort():
    model, (x, y) = normed(), data(64)
    result = survey(model, (x, y), loss=LOSS, effort="quick", norm_mode="batch")
    loss = float(LOSS(model(x), y).detach())
    assert result.number("loss")["value"] == pytest.approx(loss)
    exact = extreme_eigenvalues(model, (x, y), loss=LOSS, norm_mode="batch")
    top = result.number("largest_eigenvalue")
    assert top["n_samples"] == top["of_samples"] == 64
    assert abs(top["value"] - exact.eigenvalues[0]) <= top["error"]


def test_an_eigenvalue_that_is_not_resolved_says_which_effort_to_try():
    torch.manual_seed(0)
    hidden = [part for _ in range(4) for part in (nn.Linear(16, 16), nn.ReLU())]
    model = nn.Sequential(nn.Linear(8, 16), *hidden, nn.Linear(16, 4))
    batch = torch.randn(32, 8), torch.arange(32) % 4
    few = survey(model, batch, loss=LOSS, effort=48, measures=["curvature"])
    row = few.number("largest_eigenvalue")
    assert (row["value"], row["nonfinite"]) == (None, "not resolved")
    assert f"not resolved, try effort={row['needs_effort']}" in str(few)
    more = survey(model, batch, loss=LOSS, effort=row["needs_effort"])
    row = more.number("largest_eigenvalue")
    assert row["value"] > row["error"]
    assert more.number("stable_rate", optimizer="gd")["value"] > 0


@pytest.mark.parametrize("error", [1e300, math.inf, math.nan])
def test_an_error_without_bound_leaves_the_number_unresolved(error):
    rows = [{"quantity": "stable_rate", "value": 2.0, "error": error}]
    (row,) = Measured(measure="rates", status="done", rows=Rows(rows)).rows
    assert (row["value"], row["nonfinite"]) == (None, "not resolved")


def test_findings_of_ignored_rules_are_left_out():
    model = normed()
    given = {"loss": LOSS, "measures": CHEAP}
    rules = [f.rule for f in survey(model, data(1), **given).findings]
    assert "batch-norm-of-one" in rules
    fewer = survey(model, data(1), ignore=["batch-norm-of-one"], **given)
    assert [f.rule for f in fewer.findings] == [r for r in rules if "of-one" not in r]
    with pytest.raises(UnknownNameError, match="did you mean 'batch-norm-of-one'"):
        survey(model, data(1), ignore=["batch-norm-of-on"], **given)


def test_the_package_has_the_signature_of_its_function():
    assert "effort" in inspect.signature(theodolite.survey).parameters
    assert theodolite.survey.__doc__.startswith("Say what is wrong with a network")


def test_a_time_limit_aborts_and_the_survey_says_incomplete():
    model = Slow(normed(), 0.1)
    before = state_of(model)
    result = survey(model, data(), loss=LOSS, time_limit=0.5, progress=False)
    assert_as_found(model, before)
    assert result.incomplete
    assert "rates" in result.incomplete
    for name in result.incomplete:
        assert result.outcome(name).status == "out of time"
        assert not len(result.outcome(name).rows)
    assert f"INCOMPLETE, aborted: no result of {result.incomplete[0]}" in str(result)


def test_a_time_limit_stops_at_safe_points_only():
    layer = nn.Linear(1, 1)
    with deadline(time.perf_counter() - 1.0):
        with torch.no_grad():  # whose end is a function of torch too
            layer(torch.zeros(1))
        with pytest.raises(OutOfTimeError), opened(layer, careful=True):
            layer(torch.zeros(1))
        with pytest.raises(OutOfTimeError):
            safe_point()
    assert torch.is_grad_enabled()
    with deadline(math.inf), opened(layer, careful=True):
        layer(torch.zeros(1))


def test_batch_norms_of_one_sample_are_one_loud_finding_and_the_rest_is_measured():
    model, (x, y) = normed(), data(1)
    before = state_of(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    measures = (*CHEAP, "rates")
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
    assert any("does not compute the same twice" in said for said in result.unsupported)
    assert result.number("loss") is not None


@pytest.mark.parametrize(
    ("settings", "kind", "said"),
    [
        ({"effort": "soon"}, ConfigError, "effort is 'soon', wanted how much to"),
        ({"effort": -1}, ConfigError, "effort is -1"),
        ({"effort": "1min"}, ConfigError, "effort is '1min'"),
        ({"time_limit": "soon"}, ConfigError, "time_limit is 'soon', wanted a time"),
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


def test_efforts_and_limits_are_read_as_people_write_them():
    assert [seconds_of(b) for b in ("1min", "1.5 h", "20", 3)] == [60, 5400, 20, 3]
    assert [gradients_of(e) for e in ("thorough", "20", 3)] == [2000, 20, 3]


def test_progress_is_silent_where_there_is_no_terminal(capfd):
    survey(functional(), data(), loss=LOSS, measures=CHEAP, progress=True)
    out, err = capfd.readouterr()
    assert not out
    assert not err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_time_that_is_told_counts_the_checks(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    survey(functional(), data(), loss=LOSS, measures=["checks", "curvature"])
    # One for all, 60 of the checks, and 24 % of 400.
    assert ": 157 gradients of " in stream.getvalue()
    assert " for repairs" in stream.getvalue()


def test_progress_says_what_runs_and_what_is_next():
    stream = Terminal()
    line = Progress(wanted=True, stream=stream)
    with line.open():
        line.announce(100, 0.5)
        line.tell("map", ["signal", "units"])
    assert "about 50 s: 100 gradients of 0.5 s each" in stream.getvalue()
    assert "map, next signal and 1 more" in stream.getvalue()


def test_dropout_is_off_and_comes_back():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 3)).double()
    result = survey(model, data(), loss=LOSS, measures=["signal"], progress=False)
    assert model[1].training
    model.eval()
    x, y = data()
    loss = float(LOSS(model(x), y).detach())
    assert result.number("loss")["value"] == pytest.approx(loss)
