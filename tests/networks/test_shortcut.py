"""Networks compute what their blueprint says, from one seed."""

import numpy as np
import pytest
import torch

from theodolite.core import ConfigError, ShortcutBlueprint
from theodolite.networks import build, get_weights, initial_weights, set_weights


def by_hand(plan, weights, x):
    """Definition 2 with tanh and relu written out."""
    maps = {
        "tanh": np.tanh,
        "relu": lambda z: np.maximum(z, 0),
        "identity": lambda z: z,
    }
    for r in range(plan.units):
        z = maps[plan.pre](x)
        for place in range(plan.shortcut):
            if place:
                z = maps[plan.mid](z)
            z = z @ weights[r * plan.shortcut + place].T
        z = maps[plan.post](z)
        x = x + z if plan.skip else z
    return x


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("shortcut", [1, 2, 3])
def test_forward(shortcut, skip):
    plan = ShortcutBlueprint(width=3, depth=6, shortcut=shortcut, skip=skip, pre="tanh",
                             mid="relu", post="tanh", init="xavier")  # fmt: skip
    network = build(plan, seed=4)
    x = np.random.default_rng(0).normal(size=(5, 3))
    wanted = by_hand(plan, initial_weights(plan, seed=4), x)
    np.testing.assert_allclose(network(torch.as_tensor(x)).detach(), wanted, rtol=1e-12)
    np.testing.assert_array_equal(get_weights(network), initial_weights(plan, seed=4))


PLACES = [(place, n) for n in (1, 2, 3, 4) for place in ("pre", "mid", "post")]


@pytest.mark.parametrize(("place", "n"), [p for p in PLACES if p != ("mid", 1)])
def test_each_activation_acts_where_it_is_placed_and_nowhere_else(place, n):
    """Definition 2: before the first matrix, between matrices, after the last."""
    plan = ShortcutBlueprint(width=4, depth=3 * n, shortcut=n, init="xavier")
    network = build(plan.with_(**{place: "tanh"}), seed=1)
    x = np.random.default_rng(0).normal(size=(5, 4))
    made = network(torch.as_tensor(x)).detach().numpy()
    weights = get_weights(network)
    assert weights.size == sum(p.numel() for p in network.parameters()) == 3 * n * 16
    for other in ("pre", "mid", "post"):
        wanted = by_hand(plan.with_(**{other: "tanh"}), weights, x)
        gap = np.abs(made - wanted).max() / np.abs(made).max()
        assert gap < 1e-13 if other == place else gap > 1e-3
    plain = by_hand(plan.with_(skip=False, **{place: "tanh"}), weights, x)
    assert np.abs(made - plain).max() > 1e-3


def test_bias_sits_after_every_matrix_but_the_last():
    network = build(ShortcutBlueprint(width=2, depth=3, shortcut=3, bias=True), seed=0)
    names = [name for name, _ in network.named_parameters()]
    assert [name.split(".", 2)[2] for name in names] == [
        "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
        "layers.2.weight",
    ]  # fmt: skip
    assert all(not p.any() for name, p in network.named_parameters() if "bias" in name)


def test_initialisations():
    plan = ShortcutBlueprint(width=50, depth=8, init="xavier")
    xavier = initial_weights(plan, seed=0)
    assert xavier.var() == pytest.approx(1 / 50, rel=0.05)
    small = initial_weights(plan.with_(init="small"), seed=0)
    np.testing.assert_allclose(small, 0.01 * xavier)
    orthogonal = initial_weights(plan.with_(init="orthogonal"), seed=0)
    gram = orthogonal @ np.swapaxes(orthogonal, 1, 2)
    np.testing.assert_allclose(
        gram, np.broadcast_to(np.eye(50), gram.shape), atol=1e-12
    )
    assert not initial_weights(plan.with_(init="zero"), seed=0).any()
    assert np.abs(initial_weights(plan, seed=1) - xavier).max() > 0.1


def test_orthogonal_is_haar():
    """Without the sign fix the mean of the diagonal would be far from zero."""
    plan = ShortcutBlueprint(width=2, depth=4000, init="orthogonal")
    drawn = initial_weights(plan, seed=0)
    diagonal = drawn[:, 0, 0]
    assert abs(diagonal.mean()) < 4 * diagonal.std() / np.sqrt(4000)


def test_layers_draw_the_same_whatever_the_depth():
    short = initial_weights(ShortcutBlueprint(width=3, depth=2, init="xavier"), seed=5)
    long = initial_weights(ShortcutBlueprint(width=3, depth=6, init="xavier"), seed=5)
    np.testing.assert_array_equal(long[:2], short)


def test_building_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    build(ShortcutBlueprint(width=3, depth=2), seed=0)
    assert torch.equal(before, torch.get_rng_state())


def test_wrong_shapes_are_refused():
    network = build(ShortcutBlueprint(width=3, depth=2), seed=0)
    with pytest.raises(ConfigError, match=r"wants \(samples, 3\)"):
        network(torch.ones(2, 4, dtype=torch.float64))
    with pytest.raises(ConfigError, match="same blueprint"):
        set_weights(network, np.zeros((1, 3, 3)))
