"""The search for learning rates finds optima that are known."""

import math

import numpy as np
import pytest

from theodolite.core import ConfigError, Rows, ShortcutBlueprint
from theodolite.training import best_rates, search_rates, train_grid


def row(lr, value, seed=0, **labels):
    return {
        "quantity": "final_loss",
        "lr": lr,
        "seed": seed,
        "value": value,
        "error": 0.0,
        **labels,
    }


def bowl(best, rates, seed=0, **labels):
    """Rows whose log loss is a parabola in log rate with a known vertex."""
    return [
        row(r, math.exp(3 * (math.log10(r) - best) ** 2), seed, **labels) for r in rates
    ]


RATES = [10 ** (-3 + k / 3) for k in range(10)]


def test_the_vertex_between_grid_points_is_found():
    rows = Rows(bowl(-1.2, RATES) + bowl(-1.0, RATES, seed=1))
    (best,) = best_rates(rows, ["seed", "lr"])
    assert math.log10(best.lr) == pytest.approx(-1.1, abs=1e-9)
    assert best.edge is None
    assert best.n_seeds == 2
    # Spread of two seeds 0.2 apart: 0.1; resolution of a third of a decade.
    assert best.lr_error == pytest.approx(math.hypot(0.1, 1 / 3 / math.sqrt(12)))


def test_settings_are_told_apart():
    rows = Rows(bowl(-1.2, RATES, depth=2) + bowl(-2.0, RATES, depth=4))
    best = best_rates(rows, ["depth", "seed", "lr"])
    assert [b.labels for b in best] == [{"depth": 2}, {"depth": 4}]
    assert [math.log10(b.lr) for b in best] == pytest.approx([-1.2, -2.0], abs=1e-9)


@pytest.mark.parametrize(("best", "edge"), [(-4.0, "low"), (2.0, "high")])
def test_an_optimum_on_the_edge_is_flagged(best, edge):
    (best,) = best_rates(Rows(bowl(best, RATES)), ["seed", "lr"])
    assert best.edge == edge


def test_a_diverged_neighbour_brackets_the_optimum():
    rows = Rows([row(0.01, 2.0), row(0.1, 1.0), row(1.0, None)])
    (best,) = best_rates(rows, ["seed", "lr"])
    assert best.edge is None
    assert best.lr == 0.1
    assert best.lr_error == pytest.approx(1 / math.sqrt(12))


def test_when_everything_diverged_there_is_no_optimum():
    (best,) = best_rates(Rows([row(1.0, None), row(2.0, None)]), ["seed", "lr"])
    assert best.status == "diverged"
    assert math.isnan(best.lr)
    assert best.n_seeds == 0


def test_a_quadratic_has_its_known_best_rate():
    # One matrix, whitened data: the error shrinks by (1 - lr) a step, best at lr = 1.
    rng = np.random.default_rng(0)
    x = np.linalg.qr(rng.normal(size=(20, 3)))[0] * math.sqrt(20)
    y = rng.normal(size=(20, 3))
    plan = ShortcutBlueprint(width=3, depth=1, shortcut=1, init="zero")
    search = search_rates(
        plan, (x, y), {"lr": [0.1, 0.35, 1.3, 1.9]}, steps=4, rounds=4
    )
    (best,) = search.best
    assert best.lr == pytest.approx(1.0, rel=0.05)
    assert abs(math.log10(best.lr)) < 2 * best.lr_error
    assert best.spacing < 0.05
    coarse = train_grid(plan, (x, y), {"lr": [0.1, 0.35, 1.3, 1.9]}, steps=4)
    assert best.final_loss < np.nanmin(coarse.final_loss)


def test_a_search_of_named_networks_refines_each():
    x = np.eye(3)
    plans = {
        "two": ShortcutBlueprint(width=3, depth=4),
        "one": ShortcutBlueprint(width=3, depth=4, shortcut=1),
    }
    search = search_rates(
        plans,
        (x, x[::-1]),
        {"lr": [0.03, 0.3, 3.0], "seed": [0, 1]},
        steps=30,
        rounds=1,
    )
    assert [best.labels["network"] for best in search.best] == ["two", "one"]
    assert all(best.spacing < 0.6 for best in search.best)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"axes": {"lr": 0.1}}, r"axes is"),
        ({"axes": [0.1]}, "axes is .*: pass Mapping"),
        ({"axes": {"lr": [1]}}, "at least 3"),
        ({"folder": "x"}, "folder"),
        ({"rounds": -1}, "rounds is -1"),
        ({"rounds": 1.5}, "rounds is 1.5"),
    ],
)
def test_bad_input_is_a_sentence(change, words):
    given = {"axes": {"lr": [0.1, 1.0, 2.0]}, "rounds": 1, "steps": 2, **change}
    plan = ShortcutBlueprint(width=2, depth=2)
    with pytest.raises(ConfigError, match=words):
        search_rates(plan, (np.eye(2),) * 2, **given)


def test_rows_without_runs_have_no_best_rate():
    with pytest.raises(ConfigError, match="no finished"):
        best_rates(Rows(), ["lr"])


def test_axes_that_can_be_read_once_are_kept():
    plan, data = ShortcutBlueprint(width=2, depth=2), (np.eye(2), np.eye(2)[::-1])
    axes = {"seed": [0, 1], "lr": [0.1, 0.5, 2.0]}
    once = {name: iter(values) for name, values in axes.items()}
    search = search_rates(plan, data, once, steps=20, rounds=1)
    assert search.rows.levels("lr") == pytest.approx(
        search_rates(plan, data, axes, steps=20, rounds=1).rows.levels("lr")
    )
    assert len(search.rows.levels("lr")) > 3
    assert search.rows.levels("seed") == [0, 1]
