"""The best learning rates of rows are optima that are known."""

import math

import pytest

from theodolite.core import ConfigError, Rows
from theodolite.training import best_rates


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


def test_rows_without_runs_have_no_best_rate():
    with pytest.raises(ConfigError, match="no finished"):
        best_rates(Rows(), ["lr"])
