import dataclasses
import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from theodolite.core import (
    ConfigError,
    Cost,
    NormMode,
    Reading,
    Status,
    TheodoliteError,
    UnknownNameError,
    as_numbers,
)
from theodolite.core.spectra import PercentileCondition

COST = Cost(wall_s=2.0, cpu_s=1.5, passes=7)
CIRCUMSTANCES = {
    "status": Status.CONVERGED,
    "norm_mode": NormMode.EVAL,
    "seed": 3,
    "cost": COST,
    "method": "Lanczos",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum(Reading):
    dims: ClassVar = {
        "eigenvalues": ("rank",),
        "residuals": ("rank",),
        "shares": ("layer", "rank"),
        "trace": (),
    }
    error_of: ClassVar = {
        "eigenvalues": "residuals",
        "shares": "share_error",
        "trace": "trace_error",
    }

    eigenvalues: np.ndarray
    residuals: np.ndarray
    shares: np.ndarray
    share_error: float
    trace: float
    trace_error: float | None = None

    def coordinates(self):
        return {**super().coordinates(), "layer": ["first", "last"]}


@dataclass(frozen=True, kw_only=True, eq=False)
class Losses(Reading):
    dims: ClassVar = {"losses": ("seed",), "steps": ("seed",)}

    losses: np.ndarray
    steps: np.ndarray


def spectrum(**changes):
    given = {
        "eigenvalues": np.array([3.0, 1.0, -2.0]),
        "residuals": np.array([1e-9, 2e-9, 3e-9]),
        "shares": np.arange(6.0).reshape(2, 3),
        "share_error": 0.5,
        "trace": 2.0,
    }
    return Spectrum(**CIRCUMSTANCES | given | changes)


def custom(dims, error_of=None, **values):
    """Make a reading with these quantities on the spot."""
    cls = dataclasses.make_dataclass(
        "Custom",
        [(name, object) for name in values],
        bases=(Reading,),
        namespace={"dims": dims, "error_of": error_of or {}},
        frozen=True,
        kw_only=True,
        eq=False,
    )
    return cls(**CIRCUMSTANCES, **values)


def test_rows_carry_value_error_place_and_circumstances():
    rows = spectrum().rows()
    assert rows.levels("quantity") == ["eigenvalues", "shares", "trace"]
    assert len(rows) == 3 + 6 + 1
    assert rows.only(quantity="eigenvalues", rank=2) == {
        "quantity": "eigenvalues",
        "rank": 2,
        "value": -2.0,
        "error": 3e-9,
        "status": "converged",
        "norm_mode": "eval",
        "seed": 3,
        "method": "Lanczos",
        "cpu_s": 1.5,
        "passes": 7,
    }
    last = rows.only(quantity="shares", layer="last", rank=1)
    assert (last["value"], last["error"]) == (4.0, 0.5)


def test_scalars_have_one_row_and_no_place():
    row = spectrum().rows().only(quantity="trace")
    assert (row["value"], row["error"]) == (2.0, None)
    assert "rank" not in row
    assert "layer" not in row
    row = spectrum(trace=np.float32(0.5), trace_error=0.25).rows().only(error=0.25)
    assert (type(row["value"]), row["value"]) == (float, 0.5)
    assert spectrum(trace=np.array(4)).rows().value(quantity="trace") == 4


def test_a_quantity_without_error_says_none():
    rows = Losses(**CIRCUMSTANCES, losses=np.ones(2), steps=np.arange(2)).rows()
    assert rows.column("error") == [None] * 4
    assert [type(value) for value in rows.column("value")] == [float] * 2 + [int] * 2


def test_given_labels_win():
    rows = spectrum().rows(seed=8, depth=np.int64(16), method="other", status="odd")
    assert rows.levels("seed") == [8]
    assert rows.levels("depth") == [16]
    assert rows.levels("method") == ["other"]
    assert rows.levels("status") == ["odd"]
    assert spectrum().rows(rank=0).levels("rank") == [0]


def test_a_dimension_wins_over_the_circumstance_of_its_name():
    reading = Losses(**CIRCUMSTANCES, losses=np.array([5.0, 6.0]), steps=np.arange(2))
    assert reading.rows().where(quantity="losses").column("seed") == [0, 1]
    assert reading.rows(seed=9).levels("seed") == [9]


@given(
    hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    )
)
@settings(deadline=None)
def test_rows_hold_every_entry_at_its_place(values):
    dims = ("a", "b", "c")[: values.ndim]
    rows = custom({"x": dims}, x=values).rows()
    assert len(rows) == values.size
    back = np.full(values.shape, -1.0)
    for row in rows:
        back[tuple(row[dim] for dim in dims)] = row["value"]
    np.testing.assert_array_equal(back, values)


def test_coordinates_count_from_zero_unless_named():
    assert spectrum().coordinates() == {"rank": [0, 1, 2], "layer": ["first", "last"]}
    assert custom({}).coordinates() == {}
    assert len(custom({}).rows()) == 0


@pytest.mark.parametrize(
    ("reading", "hints"),
    [
        (
            custom({"x": ("n",), "y": ("n",)}, x=np.ones(2), y=np.ones(3)),
            ("Custom.y", "3 entries", "'n'", "wanted 2"),
        ),
        (custom({"x": ("n",)}, x=1.0), ("Custom.x", "shape ()", "('n',)")),
        (custom({"x": ()}, x=np.ones(2)), ("Custom.x", "shape (2,)")),
        (custom({"x": ("n", "n")}, x=np.ones((2, 2))), ("own", "('n', 'n')")),
        (custom({"x": ("value",)}, x=np.ones(2)), ("not named", "('value',)")),
        (
            custom({"x": ("n",)}, {"x": "e"}, x=np.ones(2), e=np.ones(3)),
            ("Custom.e", "(3,)", "(2,)"),
        ),
        (spectrum(shares=np.ones((3, 3))), ("Spectrum.shares", "3", "'layer'", "2")),
    ],
)
def test_inconsistent_dims_are_refused_in_one_sentence(reading, hints):
    with pytest.raises(TheodoliteError) as caught:
        reading.rows()
    message = str(caught.value)
    assert all(hint in message for hint in hints), message
    assert "\n" not in message


def test_xarray_refuses_wrong_coordinates_alike():
    with pytest.raises(TheodoliteError, match="'layer'"):
        spectrum(shares=np.ones((3, 3))).to_xarray()


def test_readings_are_frozen_and_equal_only_to_themselves():
    reading = spectrum()
    for name in ("eigenvalues", "status", "cost", "seed"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(reading, name, None)
    assert reading == reading
    assert reading != spectrum()
    assert len({reading, reading}) == 1


def test_to_dict_is_json():
    reading = custom(
        {"x": ("n",)},
        x=np.array([1.0, np.nan]),
        integers=np.arange(2),
        scalar=np.float32(0.5),
        names=("a", "b"),
        condition=PercentileCondition(2.0, 4.0, 2.0, 0.0, np.bool_(True), 1.5),
    )
    result = json.loads(json.dumps(reading.to_dict()))
    assert np.isnan(result["x"][1])
    assert {**result, "x": None} == {
        "status": "converged",
        "norm_mode": "eval",
        "norm_layers": {},
        "seed": 3,
        "cost": {"wall_s": 2.0, "cpu_s": 1.5, "passes": 7},
        "method": "Lanczos",
        "x": None,
        "integers": [0, 1],
        "scalar": 0.5,
        "names": ["a", "b"],
        "condition": {
            "ratio": 2.0,
            "largest": 4.0,
            "small": 2.0,
            "error": 0.0,
            "resolved": True,
            "least": 1.5,
        },
    }


def test_rows_are_json():
    rows = list(spectrum(seed=np.int64(3)).rows(depth=np.float32(2)))
    assert {row["quantity"] for row in rows} >= {"eigenvalues", "shares", "trace"}
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_to_pandas_has_the_rows_and_labels():
    reading = spectrum()
    frame = reading.to_pandas(depth=4)
    assert len(frame) == len(reading.rows())
    assert set(frame["depth"]) == {4}
    picked = frame[frame["quantity"] == "eigenvalues"]
    np.testing.assert_array_equal(picked["value"], reading.eigenvalues)
    np.testing.assert_array_equal(picked["error"].astype(float), reading.residuals)


def test_to_xarray_has_coordinates_and_attributes():
    reading = spectrum(seed=None)
    dataset = reading.to_xarray()
    assert dataset["eigenvalues"].dims == ("rank",)
    assert dataset["shares"].dims == ("layer", "rank")
    assert dataset["trace"].dims == ()
    assert list(dataset.coords["layer"].values) == ["first", "last"]
    assert float(dataset["shares"].sel(layer="last", rank=2)) == 5.0
    np.testing.assert_array_equal(dataset["residuals"], reading.residuals)
    assert dataset.attrs == {
        "status": "converged",
        "norm_mode": "eval",
        "method": "Lanczos",
        "cpu_s": 1.5,
        "passes": 7,
    }
    assert spectrum().to_xarray().attrs["seed"] == 3


def test_status_says_whether_to_trust_and_what_to_try():
    trusted = {status for status in Status if status.trusted}
    assert trusted == {"exact", "converged", "finished", "sampled"}
    assert len({status.advice for status in Status}) == len(Status)
    assert "max_matvecs" in Status.MAX_MATVECS.advice
    assert str(NormMode("frozen")) == "frozen"
    with pytest.raises(UnknownNameError, match="training"):
        NormMode("training")


@given(st.sampled_from(Status), st.sampled_from(NormMode))
def test_status_and_norm_mode_survive_rows(status, norm_mode):
    row = spectrum(status=status, norm_mode=norm_mode).rows()[0]
    assert Status(row["status"]) is status
    assert NormMode(row["norm_mode"]) is norm_mode


def test_the_count_of_places_that_are_not_finite_is_right():
    values = np.array([1.0, np.nan, 2.0, 3.0])
    with pytest.raises(ConfigError, match="in 1 of 4 places"):
        as_numbers("x", values, "n")
