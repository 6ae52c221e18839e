"""Rows of a study as if nature were otherwise, and the rulings on them."""

import os
from functools import cache

import numpy as np
import pytest

from tests.studies.numbers import check_numbers
from theodolite.core import ConfigError, PredictedAndMeasured, Rows, to_json_values
from theodolite.runs import RunFolder, execute
from theodolite.studies import evidence_of, find, plan_study, prepare_worker
from theodolite.studies.judging import predicted_rows


@cache
def _run(root, name):
    entry = find(name)
    plan = plan_study(entry, scale="smoke")
    folder = RunFolder.create(root, plan.spec)
    cells = entry.study.cells(plan.config)
    execute(folder, cells, plan.work, jobs=0, initialise=prepare_worker)
    return entry.study, evidence_of(entry, plan.config, folder).own


def rows_of(root, name):
    """Return a study with the predicted and measured rows of its run at SMOKE."""
    return _run(root, name)


def theory_of(root, entry):
    """Return what a study predicts at SMOKE, computed once for all test processes."""
    plan = plan_study(entry, scale="smoke")
    return predicted_rows(entry, plan.config, RunFolder.create(root, plan.spec))


def claim_of(study, name):
    """Return a claim of a study by its name."""
    (claim,) = [claim for claim in study.claims if claim.name == name]
    return claim


def altered(rows, quantity, change, **labels):
    """Return the rows with the values of a quantity, or of several, changed."""
    named = quantity if isinstance(quantity, tuple) else (quantity,)
    changed, other = [], False
    for row in rows:
        if row.get("quantity") in named and all(
            row.get(key) == value for key, value in labels.items()
        ):
            value = to_json_values(change(row))
            other = other or repr(value) != repr(row["value"])
            row = {**row, "value": value}
        changed.append(row)
    assert other, f"no row of {quantity} was changed"
    return Rows.of_plain(changed)


def shift(amount):
    return lambda row: row["value"] + amount


def scale(factor):
    return lambda row: row["value"] * factor


def const(value):
    return lambda row: value


def first(change):
    """Change one row only: the first that is met."""
    met = []

    def once(row):
        met.append(row)
        return change(row) if len(met) == 1 else row["value"]

    return once


def with_change(both, side, quantity, change, **labels):
    """Return predicted and measured rows with one side changed."""
    if side == "m":
        return PredictedAndMeasured(
            both.predicted, altered(both.measured, quantity, change, **labels)
        )
    return PredictedAndMeasured(
        altered(both.predicted, quantity, change, **labels), both.measured
    )


def each_case(cases):
    """Parametrise a test over counterfactuals, named by their claims."""
    names = [f"{case[0]}-{i}" for i, case in enumerate(cases)]
    return pytest.mark.parametrize("case", cases, ids=names)


def said(ruling):
    """Return what a ruling says of what is printed and of what is right."""
    corrected = None if ruling.corrected is None else str(ruling.corrected.outcome)
    return str(ruling.outcome), corrected


def check_verdicts(root, name, wanted):
    """Every claim of a study has the verdict that was expected; HOLDS if not named."""
    study, both = rows_of(root, name)
    outcomes = {claim.name: said(claim.rule(both)) for claim in study.claims}
    assert wanted.keys() <= outcomes.keys()
    for claim in study.claims:
        expected = wanted.get(claim.name, "HOLDS")
        pair = expected if isinstance(expected, tuple) else (expected, None)
        assert outcomes[claim.name] == pair, claim.rule(both).judged.because


def check_errors(root, name):
    """Every row carries its error, and no number has changed unnoticed."""
    study, both = rows_of(root, name)
    check_numbers(study, both, find(name).full_name)
    for row in [*both.predicted, *both.measured]:
        assert row.get("error") is not None, row


def many(both, copies=3):
    """Return the sides as if there were several times as many networks."""
    rows = (
        {**row, "trial": row["trial"] + 100 * copy} if "trial" in row else row
        for copy in range(copies)
        for row in both.measured
        if copy == 0 or "trial" in row
    )
    return PredictedAndMeasured(both.predicted, Rows.of_plain(rows))


def check_counterfactual(root, name, case, copies=1):
    """A counterfactual turns a claim's verdict, given several times the networks."""
    claim, side, quantity, labels, change = case
    both = _copied(root, name, copies)
    judged_claim = claim_of(find(name).study, claim)
    after = judged_claim.rule(with_change(both, side, quantity, change, **labels))
    assert said(after) != _said_here(root, name, claim, copies)


def check_outcome(root, name, case, copies=1):
    """A claim has the verdict that a case names, given several times the networks."""
    wanted, claim, quantity, labels, change = case
    judged_claim = claim_of(find(name).study, claim)
    both = with_change(_copied(root, name, copies), "m", quantity, change, **labels)
    ruling = judged_claim.rule(both)
    assert str(ruling.outcome) == wanted, ruling.judged.because


@cache
def _copied(root, name, copies):
    return many(rows_of(root, name)[1], copies)


@cache
def _said_here(root, name, claim, copies):
    """Return what is said of a claim on the rows as they are."""
    return said(claim_of(find(name).study, claim).rule(_copied(root, name, copies)))


def check_both_ways(name, cases):
    """Every claim of a study holds on one counterfactual and fails on another."""
    names = {claim.name for claim in find(name).study.claims}
    for wanted in ("HOLDS", "FAILS"):
        assert {case[1] for case in cases if case[0] == wanted} == names


def check_all_turn(name, cases):
    """Every claim of a study has a counterfactual that turns its verdict."""
    assert {claim.name for claim in find(name).study.claims} == {
        case[0] for case in cases
    }


def study_tests(
    name,
    cases=None,
    verdicts=None,
    *,
    check=check_counterfactual,
    copies=None,
    alone=(),
):
    """Return a class with the tests that every study has.

    Args:
        name: The study.
        cases: Its counterfactuals, which begin with the claim; None to check none.
        verdicts: Verdicts at SMOKE that are not HOLDS; None to check none.
        check: Checks one counterfactual; None where the file does that itself.
        copies: By claim, how many times the networks of the run there should be.
        alone: Claims that one network leaves open.
    """

    class Tests:
        def test_rows_carry_their_error(self, smoke_root):
            check_errors(smoke_root, name)

        if verdicts is not None:

            def test_verdicts_at_smoke(self, smoke_root):
                check_verdicts(smoke_root, name, verdicts)

        if cases is not None:

            def test_every_claim_has_a_counterfactual(self):
                check_all_turn(name, cases)

        if cases is not None and check is not None:

            @each_case(cases)
            def test_each_verdict_turns_on_a_counterfactual(self, case, smoke_root):
                times = (copies or {}).get(case[0], 1)
                check(smoke_root, name, case, copies=times)

        if alone:

            def test_one_network_decides_nothing(self, smoke_root):
                study, both = rows_of(smoke_root, name)
                one = PredictedAndMeasured(both.predicted, both.measured.where(trial=0))
                for claim in alone:
                    outcome = claim_of(study, claim).rule(one).outcome
                    assert outcome == "UNDECIDED", claim

    return Tests


def outcome_tests(name, cases, copies):
    """Return tests of a study whose counterfactuals begin with the verdict."""
    ids = [f"{case[1]}-{case[0]}-{place}" for place, case in enumerate(cases)]

    class Tests:
        def test_rows_carry_their_error(self, smoke_root):
            check_errors(smoke_root, name)

        def test_every_claim_can_hold_and_fail(self):
            check_both_ways(name, cases)

        @pytest.mark.parametrize("case", cases, ids=ids)
        def test_each_verdict_turns_on_a_counterfactual(self, case, smoke_root):
            check_outcome(smoke_root, name, case, copies=copies)

    return Tests


def refused(make, *cases):
    """Return a test that a config, or that of a study, is refused in one sentence."""

    @pytest.mark.parametrize(("settings", "words"), cases)
    def test(settings, words):
        named = isinstance(make, str)
        config = type(find(make).study.presets["smoke"]) if named else make
        with pytest.raises(ConfigError) as caught:
            config(**settings)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)

    return test


def check_reproduced(name, cell, **chaotic):
    """A cell of the committed run is found there, and comes out the same again.

    But for a trajectory with the labels given, in which rounding, which differs among
    processors, grows.
    """
    study = find(name).study
    committed = study.committed
    assert committed is not None
    paper, labels = study.presets["paper"], committed.labels
    assert cell in study.cells(paper)
    kept = {
        tuple(row.get(label) for label in labels): row["value"]
        for row in committed.run.of_cell(paper, cell)
        if row.get("value") is not None
    }
    new = {
        tuple(row.get(label) for label in labels): row
        for row in study.of_cell(paper, cell)
    }
    assert kept
    assert kept.keys() <= new.keys()
    for key, value in kept.items():
        if chaotic and chaotic.items() <= dict(zip(labels, key, strict=True)).items():
            continue
        error = 10 * (new[key].get("error") or 0)
        np.testing.assert_allclose(
            new[key]["value"], value, rtol=1e-5, atol=error, err_msg=str(key)
        )


WITH_MNIST = pytest.mark.skipif(
    not os.path.isdir(os.path.join(os.environ.get("THEODOLITE_DATA", ""), "mnist")),
    reason="THEODOLITE_DATA names no folder with mnist in it",
)
