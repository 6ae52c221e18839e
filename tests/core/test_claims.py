import dataclasses
import json

import numpy as np
import pytest

from theodolite.core import (
    Claim,
    Kind,
    Number,
    Outcome,
    Rows,
    Verdict,
    holds_if,
    strict,
)


def grows(predicted, measured):
    values = measured.values()
    return holds_if(
        values[-1] > values[0],
        {"last": values[-1]},
        holds="the last is above the first",
        fails="the last is not above the first",
    )


CLAIM = Claim(
    name="growth",
    place="Theorem 1",
    statement="$x$ grows",
    check=grows,
    rival="$x$ stays",
)


def test_holds_if_follows_the_condition_and_keeps_the_numbers():
    numbers = {"slope": Number(1.0, 0.1)}
    for condition, outcome in ((True, Outcome.HOLDS), (False, Outcome.FAILS)):
        for kind in (bool, np.bool_):
            verdict = holds_if(kind(condition), numbers, holds="is 1", fails="is not")
            assert verdict.outcome is outcome
            assert verdict.because == ("is 1" if condition else "is not")
            assert verdict.numbers == numbers


def test_a_number_that_is_nan_decides_nothing():
    for condition in (True, False):
        numbers = {"slope": Number(float("nan")), "other": 1.0}
        verdict = holds_if(condition, numbers, holds="yes", fails="no")
        assert verdict.outcome is Outcome.UNDECIDED
        assert verdict.because == "slope could not be computed"


def test_a_verdict_is_json_with_value_and_error_of_every_number():
    verdict = Verdict(
        outcome=Outcome.UNDECIDED,
        because="too few seeds",
        numbers={
            "slope": Number(np.float64(0.5), np.float32(0.25)),
            "exact": Number(2.0),
            "n": 3,
            "mean": np.float64(1.5),
            "none": float("nan"),
        },
    )
    assert json.loads(json.dumps(strict(verdict.to_dict()), allow_nan=False)) == {
        "outcome": "UNDECIDED",
        "because": "too few seeds",
        "numbers": {
            "slope": {"value": 0.5, "error": 0.25},
            "exact": {"value": 2.0, "error": None},
            "n": {"value": 3, "error": None},
            "mean": {"value": 1.5, "error": None},
            "none": {"value": None, "error": None},
        },
        "rests_on": "",
        "alone": None,
    }
    assert type(verdict.to_dict()["outcome"]) is str
    assert Verdict(outcome=Outcome.HOLDS, because="so").to_dict()["numbers"] == {}


def test_numbers_print_with_their_error():
    assert str(Number(2.0)) == "2"
    assert str(Number(1.23456789, 0.0123)) == "1.23457 ± 0.012"
    assert str(Number(2.0, 0.0)) == "2 ± 0"


def test_a_claim_says_everything_but_its_check():
    assert CLAIM.to_dict() == {
        "claim": "growth",
        "place": "Theorem 1",
        "kind": "claim",
        "statement": "$x$ grows",
        "rival": "$x$ stays",
        "printed": "",
        "corrected": "",
    }
    erratum = dataclasses.replace(
        CLAIM, kind=Kind.ERRATUM, printed="$x$", corrected="$-x$"
    )
    found = json.loads(json.dumps(erratum.to_dict()))
    assert (found["kind"], found["printed"], found["corrected"]) == (
        "erratum",
        "$x$",
        "$-x$",
    )


def test_a_check_judges_rows():
    up = Rows([{"value": 1.0}, {"value": 2.0}])
    assert CLAIM.check(Rows(), up).outcome is Outcome.HOLDS
    assert CLAIM.check(Rows(), up[::-1]).outcome is Outcome.FAILS


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (CLAIM, "statement"),
        (Number(1.0), "value"),
        (holds_if(True, {}, holds="so", fails="no"), "outcome"),
    ],
)
def test_claims_numbers_and_verdicts_are_frozen(thing, name):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(thing, name, None)
