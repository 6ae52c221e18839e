"""Random residual networks, and operations on them one after another."""

import random

import pytest
import torch
from torch.testing import assert_close

from tests.anatomy.test_random import X, random_network
from tests.surgery.oracle import bits, operands, run_plain, run_with_factors, same_bits
from theodolite import surgery
from theodolite.anatomy import anatomy
from theodolite.core import SurgeryError

ROWS = X.double()


@pytest.mark.parametrize("seed", range(6))
def test_operations_on_random_networks_do_what_changed_operators_do(seed):
    model = random_network(seed).double()
    if not anatomy(model, ROWS).additions:
        with pytest.raises(SurgeryError, match="no residual addition"):
            surgery.remove_skips(model, ROWS)
        return
    draw = random.Random(seed)
    before, wanted = bits(model), run_plain(model, ROWS)
    places = operands(model, ROWS, "branch")
    factors = [draw.uniform(0.5, 2) for _ in places]
    scaled = surgery.scale_branches(model, ROWS, by=factors, learnable=seed % 2 == 0)
    changed = run_with_factors(model, ROWS, dict(zip(places, factors, strict=True)))
    assert_close(run_plain(scaled.model, ROWS), changed, rtol=1e-10, atol=1e-10)
    inverse = [1 / factor for factor in factors]
    back = surgery.scale_branches(scaled.model, ROWS, by=inverse)
    assert_close(run_plain(back.model, ROWS), wanted, rtol=1e-10, atol=1e-10)
    skips = operands(model, ROWS, "skip")
    chosen = sorted(draw.sample(range(len(skips)), draw.randint(1, len(skips))))
    bare = surgery.remove_skips(back.model, ROWS, which=chosen)
    changed = run_with_factors(
        model, ROWS, dict.fromkeys([skips[i] for i in chosen], 0.0)
    )
    assert_close(run_plain(bare.model, ROWS), changed, rtol=1e-10, atol=1e-10)
    assert same_bits(bits(bare.undo()), bits(back.model))
    assert same_bits(bits(back.undo()), bits(scaled.model))
    assert same_bits(bits(scaled.undo()), before)
    assert same_bits(bits(model), before)


@pytest.mark.parametrize("seed", range(6, 14))
def test_projections_of_random_networks_get_an_identity(seed):
    model = random_network(seed).double()
    paths = [n for n, m in model.named_modules() if n.endswith("project") and m]
    if not paths:
        with pytest.raises(SurgeryError, match="no skip of the network projects"):
            surgery.add_identity(model, ROWS)
        return
    result = surgery.add_identity(model, ROWS)
    assert sorted(change.module for change in result.log.done) == sorted(paths)
    with torch.no_grad():
        for path in paths:
            model.get_submodule(path).weight += torch.eye(4)
    assert_close(run_plain(result.model, ROWS), run_plain(model, ROWS))
