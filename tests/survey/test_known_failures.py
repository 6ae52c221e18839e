"""Every finding fires on its sick network and is silent on the healthy twin."""

import copy
from functools import cache

import pytest
import torch

from tests.known_failures.cases import Case
from tests.known_failures.evaluation import READ, examined, visit_pair, visit_standard
from tests.known_failures.pairs import PAIRS
from tests.known_failures.seeds import redrawn
from tests.known_failures.sound_networks import STANDARDS
from theodolite.instruments import preserve_process, reseed
from theodolite.survey import RULES, advise, apply_advice
from theodolite.survey.advice.applying import copied
from theodolite.survey.advice.samples import Pool
from theodolite.survey.checks.first_aid import ORDER
from theodolite.survey.findings.rulebook import find

BY_NAME = {pair.name: pair for pair in PAIRS}
# What no lines of code can heal: labels that say nothing.
INCURABLE = set()


@cache
def visits(name):
    return visit_pair(BY_NAME[name])


@pytest.mark.parametrize("name", BY_NAME)
def test_rules_fire_on_the_sick_and_are_silent_on_the_twin(name):
    sick, healthy = visits(name)
    assert not sick.misses
    assert not sick.false_alarms
    assert not set(sick.expected) & set(healthy.fired)
    assert not healthy.false_alarms


@pytest.mark.parametrize("standard", STANDARDS, ids=lambda s: s.name)
def test_common_networks_are_left_in_peace(standard):
    visit = visit_standard(standard)
    assert not visit.false_alarms
    assert all(m.status in ("done", "refused") for m in visit.survey.measured)


def test_praise_is_given_where_it_is_due():
    sick, healthy = visits("exploding-residual-sum")
    praise = {f.rule for f in find(healthy.survey) if f.severity == "good"}
    blame = {f.rule for f in find(sick.survey) if f.severity == "good"}
    assert "signal-steady" in praise
    assert "signal-steady" not in blame


def test_the_bay_is_large_enough_and_holds_a_pair_for_every_rule():
    assert len(PAIRS) >= 16
    assert len(BY_NAME) == len(PAIRS)
    assert len(STANDARDS) >= 8
    expected = {rule for pair in PAIRS for rule in pair.expected}
    assert expected >= {rule.name for rule in RULES if rule.severity != "good"}
    checks = {each.name for each in ORDER}
    assert expected <= {rule.name for rule in RULES} | checks
    others = {name for pair in PAIRS for name in (*pair.also, *pair.notes)}
    assert others <= {rule.name for rule in RULES} | checks


@pytest.mark.parametrize("name", ["missing-norm", "inputs-as-bytes"])
def test_patients_are_the_same_at_every_call(name):
    pair = BY_NAME[name]
    state = torch.get_rng_state()
    first, second = pair.sick(), pair.sick()
    torch.testing.assert_close(
        first.model.state_dict(), second.model.state_dict(), rtol=0, atol=0
    )
    torch.testing.assert_close(first.batches, second.batches, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)


def test_patients_redrawn_are_others():
    pair = BY_NAME["missing-norm"]
    usual = pair.sick()
    with redrawn(1):
        other = pair.sick()
    again = pair.sick()
    assert not torch.equal(usual.model[0].weight, other.model[0].weight)
    assert not torch.equal(usual.batches[0][0], other.batches[0][0])
    assert torch.equal(usual.model[0].weight, again.model[0].weight)


ASKING = {r.name for r in (*RULES, *ORDER) if r.severity in ("sick", "warning")}
CURABLE = [p.name for p in PAIRS if ASKING & {*p.expected}]


@pytest.mark.parametrize("name", [n for n in CURABLE if n != "layer-never-called"])
def test_advice_runs_and_some_of_it_heals(name):
    pair = BY_NAME[name]
    result = visits(name)[0].survey
    findings = [f for f in find(result) if f.rule in pair.expected]
    advice = advise(result, findings)
    assert {a.rule for a in advice} >= {f.rule for f in findings[:1]}
    patient = pair.sick()
    before = copy.deepcopy(patient.model.state_dict())
    healed = [heals(pair, patient, each) for each in advice]
    torch.testing.assert_close(patient.model.state_dict(), before, rtol=0, atol=0)
    assert any(healed) or name in INCURABLE


def heals(pair, patient, advice):
    """Say whether the rule is silent on a copy that the code was run on."""
    pool = Pool(patient.batches)
    with preserve_process():
        reseed(0)
        treated = apply_advice(
            advice, copied(patient.model, patient.optimizer), pool.some_inputs()
        )
    batches = patient.batches
    if treated.batch_size is not None:
        draws = pool.draws(0, treated.batch_size)
        batches = [next(draws) for _ in range(4)]
    after = Case(
        model=treated.model,
        batches=batches,
        loss=patient.loss,
        optimizer=treated.optimizer,
    )
    result = examined(after, measures=READ)
    return advice.rule not in {finding.rule for finding in find(result)}
