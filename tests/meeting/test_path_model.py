"""The model of path lengths against networks whose paths are all listed."""

import jaxtyping
import numpy as np
import pytest

from theodolite.core import ConfigError, PathBlueprint, ShortcutBlueprint
from theodolite.theory import PathModel, path_masses
from theodolite_papers.littwin2016loss.shared.enumeration import (
    built,
    enumerate_paths,
    recorded,
)

CYCLIC = PathBlueprint(inputs=6, width=8, depth=4, unique=4, scale=0.35)
X = np.random.default_rng(3).normal(size=(2, 6))


def listed(plan, *, seed=0, gate=0.6, x=X):
    """Return the model of a built network, its weights and its paths."""
    network = built(plan, seed=seed)
    weights = network.weights.detach().numpy()
    matrices = recorded(network, x).matrices
    paths = enumerate_paths(matrices, indices=plan.indices, unique=plan.parameters)
    return PathModel(blueprint=plan, weights=weights, gate=gate), paths


def by_length(paths, x, gate, depth):
    terms = gate**paths.length * paths.terms(x, gated=False)
    return np.bincount(paths.length, terms, depth + 1)[1:]


def test_the_chain_from_paths_to_eq_13_is_exact_where_a3_is():
    model, paths = listed(CYCLIC)
    assert np.bincount(paths.length)[1:].tolist() == list(path_masses(4, 8, 6))
    truth = np.stack([by_length(paths, x, 0.6, 4) for x in X])
    scale = np.abs(paths.product).sum() * np.abs(X).max()
    np.testing.assert_allclose(model.mean_terms(X), truth, atol=1e-13 * scale)
    np.testing.assert_allclose(model.approximate_terms(X), truth, atol=1e-13 * scale)
    # Rivals: one chance for all lengths, and the largest value of lemma 2.
    other = truth * 0.6 ** (1 - np.arange(1, 5))
    for rival in (other, np.sqrt(6) * truth):
        assert np.abs(model.mean_terms(X) - rival).max() > 1e-3 * np.abs(truth).max()


def test_terms_at_recorded_gates_are_the_output_and_all_open_is_a_rival():
    network = built(CYCLIC, seed=2)
    x = np.random.default_rng(0).normal(size=(5, 6))
    seen = recorded(network, x)
    weights = network.weights.detach().numpy()
    model = PathModel(blueprint=CYCLIC, weights=weights, gate=0.6)
    terms = model.terms(x, seen.gates)
    np.testing.assert_allclose(terms.sum(axis=1), seen.output, rtol=1e-12, atol=1e-13)
    assert seen.output.max() > 0.1
    assert np.abs(model.terms(x).sum(axis=1) - seen.output).min() > 1e-3
    paths = enumerate_paths(seen.matrices, gates=[gate[1] for gate in seen.gates])
    listed_terms = np.bincount(paths.length, paths.terms(x[1]), 5)[1:]
    np.testing.assert_allclose(terms[1], listed_terms, rtol=1e-12, atol=1e-13)
    with pytest.raises(ConfigError, match="gates of 3 layers for a network of 4"):
        model.terms(x, seen.gates[:3])


def test_the_two_lines_of_eq_14_differ_by_a_root():
    model, _ = listed(CYCLIC)
    assert model.beta == pytest.approx(0.6 * 8 * 0.35 / 2, rel=1e-13)
    np.testing.assert_allclose(
        model.first_line, np.sqrt(6 / 4) * model.second_line, rtol=1e-12
    )
    squares = model.first_line**2 * 4.0 ** np.arange(1, 5)
    np.testing.assert_allclose(squares / squares.sum(), model.epsilons**2, rtol=1e-12)


def test_assumptions_are_checked_and_say_why():
    model, _ = listed(CYCLIC)
    assert not model.independence.holds
    assert model.independence.why == (
        "each input is the variable of 5832 paths; wanted is 1"
    )
    assert model.redundancy.holds
    assert model.redundancy.why == "4 different weights on 240 edges"
    assert model.uniformity.holds
    assert "2 to 2 have the same of 4 weights" in model.uniformity.why
    assert model.sphere.holds
    held = {name: one.holds for name, one in model.assumptions.items()}
    assert held == {"A1": False, "A2": True, "A3": True, "A4": True}


@pytest.mark.parametrize(
    ("plan", "broken"),
    [
        (CYCLIC.with_(unique=3), "uniformity"),
        (CYCLIC.with_(unique=2, sharing="by_input"), "uniformity"),
        (CYCLIC.with_(unique=None), "redundancy"),
    ],
)
def test_assumptions_that_do_not_hold_are_seen(plan, broken):
    model, _ = listed(plan.with_(depth=2))
    assert not getattr(model, broken).holds
    if broken == "uniformity":
        with pytest.raises(ConfigError, match="A3 does not hold"):
            model.approximate_terms(X)


def test_weights_off_the_sphere_are_seen():
    weights = np.array([0.35, 0.35, 0.35, 0.36])
    assert not PathModel(blueprint=CYCLIC, weights=weights, gate=0.5).sphere.holds


def test_one_unit_and_one_layer_share_no_inputs():
    plan = PathBlueprint(inputs=3, width=1, depth=1, unique=1)
    assert PathModel(blueprint=plan, weights=[1.0], gate=0.5).independence.holds


@pytest.fixture
def _no_type_checks():
    """Call the model as it runs outside of tests, where types are not checked."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("_no_type_checks")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gate": 0.0}, "gate is 0.0: pass a chance above 0, up to 1"),
        ({"gate": 1.5}, "gate is 1.5"),
        ({"gate": float("nan")}, "gate is nan"),
        ({"weights": np.zeros(4)}, "all weights are 0"),
        ({"weights": np.ones(3)}, "weights has shape (3,)"),
        ({"blueprint": CYCLIC.with_(skip=False)}, "pass one with skip=True"),
        ({"blueprint": ShortcutBlueprint(width=4, depth=2)}, "pass PathBlueprint"),
    ],
)
def test_other_networks_are_refused(changes, words):
    given = {"blueprint": CYCLIC, "weights": np.ones(4), "gate": 0.5, **changes}
    with pytest.raises(ConfigError) as caught:
        PathModel(**given)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
