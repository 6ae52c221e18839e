"""The model, its surroundings and the random states are left as found."""

import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks

from tests.anatomy import styles
from tests.instruments.test_preservation import portrait
from theodolite.anatomy import anatomy

IMAGES = torch.linspace(-2, 2, 2 * 3 * 8 * 8).sin().reshape(2, 3, 8, 8)
ROWS = torch.linspace(-2, 2, 16).cos().reshape(4, 4)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_found(training):
    model = styles.TorchvisionLike().train(training)
    model(IMAGES).sum().backward()
    model.layer1[0].bn1.eval()
    before, images = portrait(model), IMAGES.clone()
    anatomy(model, IMAGES)
    assert portrait(model) == before
    assert torch.equal(images, IMAGES)


def test_random_states_are_left_as_found():
    model = styles.StochasticDepth()
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    anatomy(model, ROWS)
    now = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert torch.equal(states[0], now[0])
    assert states[1:] == now[1:]


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        self.norm(x)
        raise ValueError("a fault of its own")


def test_a_fault_of_the_model_comes_through_and_leaves_nothing_behind():
    model = Fails()
    before = portrait(model)
    fast = torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(ValueError, match="a fault of its own"):
        anatomy(model, ROWS)
    assert portrait(model) == before
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert not hooks._global_forward_hooks
    assert not hooks._global_forward_pre_hooks
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_mode_of_the_caller_does_not_matter(mode):
    model = styles.PreNormTransformer().eval()
    tokens = torch.arange(10).reshape(2, 5)
    usual = anatomy(model, tokens)
    with mode():
        assert anatomy(model, tokens) == usual


def test_batches_of_every_make():
    model = styles.Scaled()
    usual = anatomy(model, ROWS)
    assert anatomy(model, (ROWS, torch.zeros(4))) == usual
    assert anatomy(model, {"x": ROWS}) == usual


def test_wrappers_are_looked_through():
    model = styles.ResNetOfResNets()
    usual = [a.skip.kind for a in anatomy(model, ROWS).additions]
    parallel = nn.DataParallel(model)
    compiled = torch.compile(model, backend="eager")
    for wrapped, prefix in ((parallel, "module."), (compiled, "_orig_mod.")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = anatomy(wrapped, ROWS)
        assert [a.skip.kind for a in found.additions] == usual
        assert found.additions[0].branches[0].modules == (f"{prefix}blocks.0",)


def test_modules_run_again_keep_their_name():
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

        def forward(self, x):
            for _ in range(3):
                x = x + self.layer(x)
            return x

    found = anatomy(Again(), ROWS)
    assert [a.branches[0].modules for a in found.additions] == [("layer",)] * 3
    (again,) = found.others
    assert (again.kind, again.module) == ("recurrence", "layer")
