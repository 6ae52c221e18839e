"""Advice is tried on copies, pair by pair, and said not to help where it does not."""

import copy
import dataclasses
import math

import pytest
import torch
from torch import nn

from tests.known_failures.cases import Case
from tests.known_failures.samples import clouds
from tests.survey.cases import done, row
from theodolite.core import ConfigError
from theodolite.survey import (
    Advice,
    Block,
    Finding,
    Survey,
    advise,
    apply_advice,
    refit,
    try_advice,
)
from theodolite.survey.advice import prescribing
from theodolite.survey.advice.applying import copied
from theodolite.survey.advice.trials import withheld


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)
    )


def patient(rate=1e-5, **settings):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, **settings)
    return Case(model=model, batches=clouds(32), optimizer=optimizer)


def finding(rule, **settings):
    return Finding(
        rule=rule,
        severity="sick",
        title=rule,
        says=".",
        quantity="x",
        value=1.0,
        error=0.0,
        threshold=0.0,
        above=True,
        **settings,
    )


def survey(rate, ratio, **settings):
    rows = [
        row("rates", "rate_in_use", rate, 0.0),
        row("rates", "rate_over_stable", ratio, 0.0),
    ]
    return Survey(
        title="x",
        n_parameters=1,
        blocks=(),
        measured=(done("rates", rows),),
        settings=settings,
    )


def written(code, title="by hand"):
    """Return advice as if it had been written by a remedy of ours."""
    prescribing._WRITTEN.add(code)
    return Advice(rule="x", title=title, code=code, kind="rate")


def rate(value):
    return written(
        f"for group in optimizer.param_groups:\n    group['lr'] = {value}\n",
        f"rate {value}",
    )


def state_of(subject):
    return copy.deepcopy(
        (
            subject.model.state_dict(),
            subject.optimizer.state_dict(),
            torch.get_rng_state(),
        )
    )


def test_what_helps_is_first_and_what_changes_nothing_is_withheld():
    subject = patient()
    before = state_of(subject)
    modes = [module.training for module in subject.model.modules()]
    tried = try_advice((rate(1e-5), rate(2e-5), rate(0.3)), subject, steps=8)
    assert [advice.title for advice in tried] == [
        "rate 0.3",
        "rate 2e-05",
        "rate 1e-05",
    ]
    assert [advice.trial.helped for advice in tried] == ["yes", "no", "no"]
    assert [withheld(advice) for advice in tried] == [False, False, True]
    assert "has that already" in tried[-1].trial.said
    assert "no difference" in tried[1].trial.said
    best = tried[0].trial
    assert best.low <= best.difference <= best.high < 0
    assert (best.n_seeds, best.steps) == (3, 8)
    after = state_of(subject)
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    assert modes == [module.training for module in subject.model.modules()]
    assert all(p.grad is None for p in subject.model.parameters())


def test_divergence_is_harm_and_a_loss_at_the_ceiling():
    (tried,) = try_advice((rate(1e6),), patient(0.1), seeds=2, steps=6)
    assert tried.trial.helped == "harm"
    assert withheld(tried)
    assert tried.trial.difference > 1
    assert "did harm" in tried.trial.said
    assert math.isfinite(tried.trial.difference)


def test_code_of_others_is_not_run():
    foreign = Advice(rule="x", title="mine", code="model = None", kind="rate")
    with pytest.raises(ConfigError, match="was not written in this process"):
        try_advice((foreign,), patient())


def test_advice_that_cannot_be_applied_is_said_so():
    code = "from theodolite import surgery\nsurgery.remove_skips(model, inputs)\n"
    (tried,) = try_advice((written(code),), patient(), seeds=2, steps=1)
    assert tried.trial.n_seeds == 0
    assert withheld(tried)
    assert "no residual addition" in tried.trial.said


def test_trials_keep_to_their_effort():
    advice = (rate(0.2), rate(0.3), rate(0.4))
    tried = try_advice(advice, patient(0.1), seeds=2, steps=1000, effort=160)
    assert [(t.trial.n_seeds, t.trial.steps) for t in tried] == [(2, 20)] * 3
    least = try_advice(advice, patient(0.1), seeds=2, effort=1)
    assert [t.trial and t.trial.steps for t in least].count(10) == 1
    assert [t.trial for t in least].count(None) == 2


def test_one_seed_has_no_interval():
    with pytest.raises(ConfigError, match="wanted are at least 2"):
        try_advice((rate(0.1),), patient(), seeds=1)


def test_batches_of_another_size_are_drawn():
    seen = []
    subject = patient(0.1)
    subject.model.register_forward_hook(lambda m, a, out: seen.append(len(out)))
    try_advice((written("batch_size = 5\n"),), subject, seeds=2, steps=3)
    assert seen.count(5) > 2 * 3  # 2 seeds of 3 steps, and judged batches


@pytest.mark.parametrize(("bend", "gain"), [("tanh", "tanh"), ("relu", "relu")])
def test_weights_are_drawn_for_the_activations_there_are(bend, gain):
    block = Block(index=0, name="0", kind="plain", activations=(bend,), n_parameters=1)
    reached = done("signal", [row("signal", "gradient_rms", 1.0, 0.0, module="0")])
    result = dataclasses.replace(survey(1.0, 1.0), blocks=(block,), measured=(reached,))
    codes = [one.code for one in advise(result, [finding("signal-vanishes")])]
    assert any(f'nonlinearity="{gain}"' in code for code in codes)


def test_names_of_modules_cannot_become_code():
    name = "x']; raise SystemExit; ['"
    (advice,) = advise(
        survey(1.0, 1.0), [finding("frozen-norm-follows-batches", where=(name,))]
    )
    with pytest.raises(AttributeError):
        apply_advice(advice, copied(network(), None), None)


def test_a_refitted_optimizer_keeps_groups_and_moments():
    model = network()
    groups = [
        {"params": model[0].parameters(), "lr": 0.5},
        {"params": model[3].parameters(), "lr": 0.25},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.1)
    model(torch.randn(6, 16)).sum().backward()
    optimizer.step()
    calls = []
    optimizer.register_step_post_hook(lambda *given: calls.append(given))
    other = copy.deepcopy(model)
    moved = refit(optimizer, model, other)
    assert [group["lr"] for group in moved.param_groups] == [0.5, 0.25]
    for old, new in zip(model[0].parameters(), other[0].parameters(), strict=True):
        torch.testing.assert_close(
            moved.state[new]["exp_avg"], optimizer.state[old]["exp_avg"], rtol=0, atol=0
        )
        assert moved.state[new]["exp_avg"] is not optimizer.state[old]["exp_avg"]
    assert all(p not in moved.state for p in other[1].parameters())
    before = copy.deepcopy(model.state_dict())
    other(torch.randn(6, 16)).sum().backward()
    moved.step()
    assert not calls
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    assert not torch.equal(other[0].weight, model[0].weight)


def test_a_network_that_cannot_be_trained_counts_with_the_loss_it_starts_from():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    of_one = Case(model=model, batches=clouds(1, n_batches=64), optimizer=optimizer)
    advice = written("batch_size = 32")
    (tried,) = try_advice([advice], of_one, seeds=2, steps=20)
    assert tried.trial.helped == "yes"
    assert "as it is the network cannot be trained" in tried.trial.said
