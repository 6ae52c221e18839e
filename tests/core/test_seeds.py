import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from theodolite.core import ConfigError, Status, derive, stream

seeds = st.integers(0, 2**80)
labels = st.lists(st.text(max_size=4) | st.integers() | st.booleans(), max_size=4)


@pytest.mark.parametrize(
    ("seed", "path", "wanted"),
    [
        (0, (), 4_761_921_975_702_974_394),
        (0, ("trial", 1), 8_124_988_796_035_101_758),
        (7, ("λ", -3, "init"), 4_638_309_069_190_173_001),
    ],
)
def test_the_algorithm_has_not_changed(seed, path, wanted):
    # Saved runs are result and resumed by these numbers.
    assert derive(seed, *path) == wanted


def spelled(path):
    return [(type(label).__name__, label) for label in path]


@given(seeds, labels, seeds, labels)
@example(0, ["a", "bc"], 0, ["ab", "c"])
@example(0, [1], 0, ["1"])
@example(0, [True], 0, [1])
@example(0, [True], 0, ["True"])
@example(0, ["a", "b"], 0, ["b", "a"])
@example(0, ["a"], 0, ["a", ""])
@example(0, [], 0, [""])
@example(1, [1], 11, [])
@example(0, ["a\x1fstr:b"], 0, ["a", "b"])
@example(0, ["\x1e1"], 0, ["\x1f"])
@example(0, ["\x1e", "x"], 0, ["\x1e\x1fstr:x"])
def test_different_names_are_different_streams(seed, path, other_seed, other_path):
    same = seed == other_seed and spelled(path) == spelled(other_path)
    assert (derive(seed, *path) == derive(other_seed, *other_path)) == same


@given(seeds, labels)
def test_derived_seeds_have_63_bits(seed, path):
    assert 0 <= derive(seed, *path) < 2**63


def test_derived_seeds_fill_their_range():
    result = np.array([derive(0, i) for i in range(4000)], dtype=np.float64) / 2**63
    assert len(set(result)) == 4000
    # Standard error of the mean of a uniform: 1/√(12·4000) = 0.0046.
    assert abs(result.mean() - 0.5) < 4 * 0.0046
    assert abs(np.var(result) - 1 / 12) < 0.01


def test_numpy_integers_and_enums_are_the_plain_label():
    assert derive(0, np.int64(4), np.uint8(2)) == derive(0, 4, 2)
    assert derive(np.int64(5), "a") == derive(5, "a")
    assert derive(0, Status.EXACT) == derive(0, np.str_("exact")) == derive(0, "exact")
    assert derive(0, np.bool_(True)) == derive(0, True)


def test_a_stream_does_not_depend_on_the_order_of_work():
    names = [("trial", i, part) for i in range(5) for part in ("init", "data")]
    forward = {name: stream(3, *name).normal(size=4).tolist() for name in names}
    # Backwards, and with other draws in between.
    backward = {}
    for name in reversed(names):
        stream(3, "other").normal(size=7)
        backward[name] = stream(3, *name).normal(size=4).tolist()
    assert forward == backward
    assert len({tuple(draws) for draws in forward.values()}) == len(names)


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**63 - 1])
def test_a_stream_without_labels_is_numpys(seed):
    ours, numpys = stream(seed), np.random.default_rng(seed)
    np.testing.assert_array_equal(ours.normal(size=10), numpys.normal(size=10))


def test_a_stream_with_labels_is_that_of_the_derived_seed():
    ours, numpys = stream(2, "a"), np.random.default_rng(derive(2, "a"))
    np.testing.assert_array_equal(ours.normal(size=10), numpys.normal(size=10))


def test_streams_look_independent():
    n_draws = 2000
    names = [(i, j) for i in range(6) for j in range(6)]
    draws = [stream(i, "net", j).normal(size=n_draws) for i, j in names]
    draws += [stream(i).normal(size=n_draws) for i in range(6)]
    correlation = np.corrcoef(draws)
    pairs = [correlation[i, j] for i, j in itertools.combinations(range(len(draws)), 2)]
    # 861 pairs, each normal with deviation 1/√n: beyond 5 has odds below 1 in 1000.
    assert max(map(abs, pairs)) < 5 / np.sqrt(n_draws)
    assert np.std(pairs) == pytest.approx(1 / np.sqrt(n_draws), rel=0.15)


@pytest.mark.parametrize("seed", [-1, 1.0, True, False, None, "0", np.float64(2), [1]])
@pytest.mark.parametrize("draw", [derive, stream])
def test_what_is_not_a_seed_is_refused(draw, seed):
    with pytest.raises(ConfigError, match=r"seed is .*: pass a whole number"):
        draw(seed)
    with pytest.raises(ConfigError, match=r"seed is .*: pass a whole number"):
        draw(seed, "label")


@pytest.mark.parametrize("label", [0.5, None, ("a", 1), np.arange(2), b"a"])
def test_what_is_not_a_label_is_refused(label):
    with pytest.raises(ConfigError, match=r"labels is .*: pass str or a whole number"):
        derive(0, "a", label)
