import copy
import json
import math
import pickle
import struct
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from theodolite.core import (
    Rows,
    Status,
    TheodoliteError,
    from_lines,
    to_lines,
    to_strict_json,
)
from theodolite.core import to_json_values as to_plain

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True, allow_infinity=True, allow_subnormal=True)
    | st.text()
)
nested = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
tables = st.lists(st.dictionaries(st.text(), nested, max_size=5), max_size=5)
numpy_values = st.one_of(
    st.floats(width=32).map(np.float32),
    st.floats().map(np.float64),
    st.floats().map(np.longdouble),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.booleans().map(np.bool_),
    st.text(alphabet="abc", min_size=1).map(np.str_),
    st.lists(st.floats(), max_size=3).map(np.array),
    st.floats().map(np.array),
)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass(frozen=True)
class Pair:
    left: float
    right: np.ndarray


def bits(value):
    """Spell a JSON value so that equal spellings mean equal bits and types."""
    if isinstance(value, float):
        if math.isnan(value):
            return "float nan"
        return f"float {struct.pack('>d', value).hex()}"
    if isinstance(value, dict):
        return {key: bits(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bits(item) for item in value]
    return f"{type(value).__name__} {value!r}"


@given(tables)
@settings(deadline=None)
@example([{"x": math.nan, "y": math.inf, "z": -math.inf}])
@example([{"x": -0.0, "y": 5e-324, "z": 2.2250738585072011e-308}])
@example([{"x": 0.1 + 0.2, "y": 1.7976931348623157e308, "z": 2**70}])
@example([{"λ": "ε\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e\r\n\t\0\ufeff😀"}])
@example([{}, {"": ""}])
def test_rows_come_back_bit_for_bit(table):
    back = from_lines(to_lines(table))
    assert [bits(row) for row in back] == [bits(row) for row in table]
    assert back == Rows(table)


def test_rows_survive_a_file(tmp_path):
    rows = Rows([{"name": "λ\u2028\r\n😀", "value": math.nan}, {"value": -0.0}])
    path = tmp_path / "rows.jsonl"
    path.write_text(to_lines(rows), encoding="utf-8")
    assert from_lines(path.read_text(encoding="utf-8")) == rows


def test_lines_are_one_a_row_sorted_and_legible():
    text = to_lines([{"value": np.float32(0.5), "ä": (1, 2)}, {"value": Status.EXACT}])
    assert text == '{"value": 0.5, "ä": [1, 2]}\n{"value": "exact"}\n'
    assert len(from_lines("\n" + text + "  \n")) == 2
    assert to_lines([]) == ""


@given(st.recursive(nested | numpy_values, lambda x: st.tuples(x, x), max_leaves=4))
@settings(deadline=None)
@example({"a": [math.nan, {"b": (math.inf, -math.inf)}]})
@example(np.array([[np.nan, 1.0], [np.inf, -0.0]]))
@example(np.float32("nan"))
def test_strict_gives_strictly_valid_json(value):
    result = to_strict_json(value)
    text = json.dumps(result, allow_nan=False)
    assert json.loads(text) == result


def test_strict_replaces_only_what_json_cannot_say():
    given = {"a": [math.nan, 1.0, "NaN"], "b": {"c": -math.inf}, "d": None, "e": True}
    wanted = {"a": [None, 1.0, "NaN"], "b": {"c": None}, "d": None, "e": True}
    assert to_strict_json(given) == wanted
    assert to_strict_json(given)["e"] is True


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (np.float64(1.5), 1.5),
        (np.longdouble(1.5), 1.5),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.array(2.0), 2.0),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (Status.EXACT, "exact"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        ((1, (2.0, None)), [1, [2.0, None]]),
        ({1: np.float32(0.5)}, {"1": 0.5}),
        (Pair(1.0, np.ones(2)), {"left": 1.0, "right": [1.0, 1.0]}),
        (range(3), [0, 1, 2]),
    ],
)
def test_plain_values_are_of_plain_types(given, wanted):
    result = to_plain(given)
    assert bits(result) == bits(wanted)


@given(st.floats(), st.floats(width=32))
def test_numpy_floats_keep_their_bits(double, single):
    wanted = [bits(double), bits(single)]
    result = to_plain([np.float64(double), np.float32(single)])
    assert [bits(value) for value in result] == wanted
    assert bits(to_plain(np.array([double, single]))) == wanted
    assert bits(to_plain(np.longdouble(double))) == wanted[0]


def test_sets_have_an_order_that_does_not_hang_on_the_hash_seed():
    words = [f"word{i}" for i in range(50)]
    assert to_plain(set(words)) == to_plain(frozenset(words[::-1])) == sorted(words)


def test_changing_the_input_does_not_change_the_rows():
    array, inner = np.ones(2), [1, 2]
    row = {"value": 1.0, "array": array, "list": inner}
    table = [row]
    rows = Rows(table)
    row["value"], row["new"] = 2.0, 3
    array[0] = 7.0
    inner.append(3)
    table.append({})
    assert list(rows) == [{"value": 1.0, "array": [1.0, 1.0], "list": [1, 2]}]


def test_changing_what_came_out_does_not_change_the_rows():
    rows = Rows([{"value": 1.0}, {"value": 2.0}])
    rows[0]["value"] = 9.0
    rows.only(value=2.0)["value"] = 9.0
    for row in rows:
        row["value"] = 9.0
    rows.where(lambda row: row.update(value=9.0) is None)
    rows[:1][0]["value"] = 9.0
    assert rows.column("value") == [1.0, 2.0]
    with pytest.raises(TypeError):
        rows[0] = {}
    with pytest.raises(AttributeError):
        rows.extra = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(rows)


def test_rows_are_a_sequence():
    rows = Rows([{"depth": d} for d in (2, 4, 8)])
    assert (len(rows), repr(rows)) == (3, "Rows(3 rows)")
    assert rows[-1] == {"depth": 8}
    assert isinstance(rows[1:], Rows)
    assert rows[1:].column("depth") == [4, 8]
    assert (rows + Rows([{"depth": 16}])).column("depth") == [2, 4, 8, 16]
    assert {"depth": 4} in rows
    assert rows.index({"depth": 8}) == 2
    assert not Rows()
    with pytest.raises(IndexError):
        rows[3]


def test_equality_knows_nan_order_and_type():
    nan = Rows([{"a": math.nan, "b": 1}])
    assert nan == Rows([{"b": 1, "a": float("nan")}])
    assert nan != Rows([{"a": math.nan, "b": 1.0}])
    assert Rows([{"a": 0.0}]) != Rows([{"a": -0.0}])
    assert Rows([{"a": 1}, {"a": 2}]) != Rows([{"a": 2}, {"a": 1}])
    assert Rows([{"a": 1}]) != [{"a": 1}]


def test_rows_travel_between_processes():
    rows = Rows([{"value": math.nan, "name": "λ"}])
    assert pickle.loads(pickle.dumps(rows)) == rows
    assert copy.deepcopy(rows) == rows


TABLE = Rows(
    [
        {"quantity": "loss", "depth": 2, "value": 0.5, "status": Status.EXACT},
        {"quantity": "loss", "depth": 4, "value": 0.25},
        {"quantity": "slope", "depth": np.int64(4), "value": None, "pair": (1, 2)},
    ]
)


def test_where_keeps_what_carries_all_labels_and_passes_the_test():
    assert TABLE.where(depth=4).column("quantity") == ["loss", "slope"]
    assert TABLE.where(depth=4, quantity="loss").values().tolist() == [0.25]
    assert TABLE.where(lambda r: r["depth"] > 2, quantity="loss").value() == 0.25
    assert TABLE.where(status=Status.EXACT) == TABLE.where(status="exact") == TABLE[:1]
    assert TABLE.where(pair=(1, 2)) == TABLE.where(pair=[1, 2]) == TABLE[2:]
    assert len(TABLE.where(depth=5)) == len(TABLE.where(absent=1)) == 0
    assert TABLE.where() == TABLE


def test_values_are_float64_with_nan_where_absent():
    result = TABLE.values()
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, [0.5, 0.25, np.nan])
    assert Rows().values().shape == (0,)
    assert TABLE.column("status") == ["exact", None, None]


def test_levels_are_distinct_sorted_and_present():
    assert TABLE.levels("depth") == [2, 4]
    assert TABLE.levels("status") == ["exact"]
    assert TABLE.levels("absent") == []


@pytest.mark.parametrize(
    ("ask", "hints"),
    [
        (lambda: TABLE.only(depth=4), ("2 rows", "'depth': 4", "exactly 1")),
        (lambda: TABLE.only(depth=5), ("0 rows", "'depth': 5", "rerun")),
        (lambda: Rows().only(), ("0 rows",)),
        (lambda: TABLE.value(quantity="slope"), ("'slope'", "None", "number")),
        (lambda: Rows([{"a": 1}]).value(a=1), ("'a': 1", "None")),
        (lambda: TABLE.values("quantity"), ("'quantity'", "numbers", "column")),
        (lambda: Rows([{"a": 1}, {"a": "b"}]).levels("a"), ("'a'", "types")),
        (lambda: Rows([{"a": [1]}]).levels("a"), ("'a'", "lists")),
    ],
)
def test_errors_are_one_sentence(ask, hints):
    with pytest.raises(TheodoliteError) as caught:
        ask()
    message = str(caught.value)
    assert all(hint in message for hint in hints), message
    assert "\n" not in message
    assert ". " not in message


def test_only_and_value_return_the_one_row():
    assert TABLE.only(quantity="loss", depth=4) == {
        "quantity": "loss",
        "depth": 4,
        "value": 0.25,
    }
    assert TABLE.value(quantity="loss", depth=2) == 0.5
