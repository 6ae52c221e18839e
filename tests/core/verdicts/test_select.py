"""Selections: rows by their labels, and the numbers that are made of them."""

import math

import pytest

from theodolite.core import (
    PredictedAndMeasured,
    Rows,
    above,
    at_each,
    below,
    beside,
    counted,
    difference,
    each,
    every,
    highest,
    inside,
    largest,
    largest_distance,
    lowest,
    mean,
    measured,
    meets,
    named_rows,
    predicted,
    slope,
    slope_difference,
    smallest,
    some,
    span,
)

ROWS = Rows(
    {"quantity": "loss", "depth": depth, "epoch": epoch, "trial": trial,
     "value": depth + epoch + 0.1 * trial, "error": 0.0}
    for depth, last in ((2, 3), (4, 1)) for epoch in range(last + 1)
    for trial in (0, 1)
)  # fmt: skip


def common(rows):
    """Return the last readings of the networks that went on longest."""
    return rows.where(epoch=max(rows.column("epoch")))


def test_what_is_made_of_all_rows_comes_before_labels():
    chosen = measured("loss", depth=4)
    assert len(chosen.keeping(common)(PredictedAndMeasured(Rows(), ROWS))) == 2
    assert len(chosen.out_of(common)(PredictedAndMeasured(Rows(), ROWS))) == 0


def test_rows_may_be_made_that_were_not_there():
    def shares(rows):
        return Rows({**row, "quantity": "share", "value": 0.5} for row in rows)

    both = PredictedAndMeasured(Rows(), ROWS)
    assert mean(measured("share").out_of(shares).at(depth=2))(both).value == 0.5
    assert mean(measured("share"))(both).n == 0


def made(quantity, values, errors=(0.0, 0.0), **labels):
    return [
        {"quantity": quantity, "trial": t, "value": v, "error": e, **labels}
        for t, (v, e) in enumerate(zip(values, errors, strict=True))
    ]


BY_HAND = PredictedAndMeasured(
    Rows(made("gap", [2.0, 4.0], [0.1, 0.2])),
    Rows(
        [
            *made("gap", [-3.0, 5.0], [0.5, 0.25]),
            *made("low", [1.0, 2.0], [0.1, 0.3]),
            *[
                {"quantity": q, "depth": d, "trial": t, "value": (1 + t) * d**power}
                for q, power in (("cube", 3.0), ("root", 0.5))
                for d in (1, 4, 16)
                for t in (0, 1)
            ],
        ]
    ),
)
GAP, LOW, CUBE, ROOT = (measured(q) for q in ("gap", "low", "cube", "root"))
# A number, its value, the bound on its error, and its standard error over networks.
READ = {
    "mean": (mean(GAP), 1.0, 0.375, 4.0),
    "log mean": (
        mean(LOW, log=True),
        math.log10(2) / 2,
        -(math.log10(0.9) + math.log10(0.85)) / 2,
        math.log10(2) / 2,
    ),
    "difference": (difference(GAP, LOW), -0.5, 0.575, 3.5),
    "apart": (difference(GAP, LOW, paired=False), -0.5, 0.575, math.hypot(4, 0.5)),
    "slope": (slope(CUBE, "depth"), 3.0, 0.0, 0.0),
    "plain slope": (slope(ROOT, "depth", log_x=False, log_y=False), 2 / 7, 0, 2 / 21),
    "two slopes": (slope_difference(CUBE, ROOT, "depth"), 2.5, 0.0, 0.0),
    "largest": (largest(GAP), 5.0, 0.25, None),
    "smallest": (smallest(GAP), 3.0, 0.5, None),
    "span": (span(GAP), 1.6, 0.2, None),
    "distance": (largest_distance(predicted("gap"), GAP, ("trial",)), 2.5, 0.3, None),
    "plain distance": (
        largest_distance(predicted("gap"), GAP, ("trial",), relative=False),
        5.0,
        0.6,
        None,
    ),
    "share": (counted(GAP, lambda row: row["value"] > 0), 0.5, 0.0, None),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_numbers_are_those_by_hand(name):
    read, value, slack, stderr = READ[name]
    result = read(BY_HAND)
    assert result.value == pytest.approx(value, rel=1e-4)
    assert result.slack == pytest.approx(slack, rel=1e-9)
    if stderr is not None:
        assert result.stderr == pytest.approx(stderr, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize(
    "read",
    [
        mean(measured("none")),
        largest(measured("none")),
        span(measured("none")),
        largest_distance(GAP, measured("none"), ("trial",)),
        largest_distance(predicted("none"), GAP, ("trial",)),
        slope(LOW, "trial", log_x=False),
        slope_difference(LOW, GAP, "trial", log_x=False),
    ],
)
def test_a_number_without_its_rows_is_open_and_says_why(read):
    result = read(BY_HAND)
    assert math.isnan(result.value)
    assert result.note


@pytest.mark.parametrize(
    ("read", "value", "reach"), [(highest, 2.0, 3.5), (lowest, -3.0, -4.0)]
)
def test_signed_extremes_cover_the_error_of_every_row(read, value, reach):
    values = {"a": (-3.0, 1.0), "b": (2.0, 0.0), "c": (1.5, 2.0)}
    rows = [row for v, e in values.values() for row in named_rows({"y": v}, e)]
    number = read(measured("y"))(PredictedAndMeasured(Rows(), Rows(rows)))
    assert number.value == value
    end = number.upper(0.05) if reach > value else number.lower(0.05)
    assert end == reach
    for error in (None, math.nan, math.inf):
        unknown = Rows([*rows, {"quantity": "y", "value": 0.0, "error": error}])
        open_ = read(measured("y"))(PredictedAndMeasured(Rows(), unknown))
        assert math.isinf(open_.error)
    assert math.isnan(read(measured("z"))(PredictedAndMeasured(Rows(), unknown)).value)


def test_an_extreme_less_a_row_has_the_errors_of_both():
    rows = Rows(named_rows({"y": -3.0}, 1.0) + named_rows({"y": 2.0}, 0.0))
    both = PredictedAndMeasured(Rows(named_rows({"floor": 0.5}, 0.25)), rows)
    number = lowest(measured("y"), less=predicted("floor"))(both)
    assert (number.value, number.lower(0.05)) == (-3.5, -4.75)


def test_a_join_takes_tests_one_by_one_or_as_an_iterable():
    first, second = (inside(mean(measured("y", k=k)), above(0)) for k in (0, 1))
    rows = Rows(row for k in (0, 1) for row in named_rows({"y": 1 - 2 * k}, 0.0, k=k))
    both = PredictedAndMeasured(Rows(), rows)
    for join in (every, some):
        apart_, as_one = join(first, second)(both), join(t for t in (first, second))
        assert as_one(both) == as_one(both) == join(first, [second])(both) == apart_
    assert len(every(first, (second,))(both).pieces) == 2


def test_rows_are_judged_at_each_value_of_a_label():
    rows = Rows(row for k in (0, 1) for row in named_rows({"y": 1 - 2 * k}, 0.0, k=k))
    both = PredictedAndMeasured(Rows(), rows)
    judged = at_each("k", measured("y"), lambda at: inside(mean(at), above(0)))(both)
    wanted = each(
        "k", measured("y"), lambda k: inside(mean(measured("y", k=k)), above(0))
    )
    assert judged == wanted(both)
    assert [str(piece.outcome) for piece in judged.pieces] == ["UNDECIDED"] * 2
    assert at_each("k", measured("y"), lambda at: at, least=3)(both).note


@pytest.mark.parametrize(("gap", "wanted"), [(0.1, "HOLDS"), (0.3, "FAILS")])
def test_measured_rows_meet_a_formula_of_the_same_labels(gap, wanted):
    theory = named_rows({"law": 1.0, "other": 9.0}, 0.0, kind="a", k=0)
    rows = Rows(
        named_rows({"y": 1 + gap}, 0.0, kind="a", k=0)
        + named_rows({"y": 9.0}, 0.0, kind="b", k=0)
    )
    test = meets("y", ("k",), below(0.2), formula="law", kind="a")
    assert test(PredictedAndMeasured(Rows(theory), rows)).outcome == wanted


def test_an_edge_in_the_middle_leaves_a_slope_open():
    """The middle of three points has no leverage, and its error is infinite."""
    rows = Rows(
        {"quantity": "decay", "epoch": epoch, "trial": trial, "value": 1 / epoch,
         "error": 0.0, "edge": epoch == 10}
        for epoch in (1, 10, 100) for trial in (0, 1)
    )  # fmt: skip
    read = slope(measured("decay"), "epoch")(PredictedAndMeasured(Rows(), rows))
    assert math.isinf(read.slack)


def test_a_comparison_sets_predictions_beside_means_of_the_same_labels():
    law = Rows(
        {"quantity": "y", "kind": kind, "depth": depth, "value": value}
        for kind, depth, value in (("a", 2, 1.0), ("a", 4, 2.0), ("b", 2, 9.0))
    )
    rows = Rows(
        {"quantity": "y", "kind": kind, "depth": depth, "stage": 0, "trial": trial,
         "value": float(depth + trial), "error": 0.5}
        for kind in ("a", "c") for depth in (2, 4, 8) for trial in range(2 - depth // 4)
    )  # fmt: skip
    line = ("depth {depth:g}", measured("y", kind="a", stage=0))
    lines = beside(line)(PredictedAndMeasured(law, rows))
    assert [(row["label"], row["predicted"], row["measured"]) for row in lines] == [
        ("depth 2", 1.0, 2.5), ("depth 4", 2.0, 4.0),
    ]  # fmt: skip
    assert [row["error"] for row in lines] == [pytest.approx(0.5), 0.5]
    assert not beside(("{kind}", measured("y", kind="c")))(
        PredictedAndMeasured(law, rows)
    )
