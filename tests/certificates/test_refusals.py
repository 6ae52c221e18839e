"""What no certificate is written for, each in a sentence."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm, weight_norm

from tests.certificates.chains import (
    CHAINS,
    CLASSES,
    SAME,
    double,
    inputs,
    residual,
)
from theodolite.certificates import certificate
from theodolite.core import (
    AffineLayer,
    NonlinearLayer,
    SystemBlueprint,
    TheodoliteError,
    normalised_residual,
)
from theodolite.networks import build


class Odd(nn.Module):
    """A layer that nobody knows."""

    def forward(self, x):
        return x.sin()


class Twice(nn.Sequential):
    """A chain that does not run its layers one after the other."""

    def forward(self, x):
        return 2 * super().forward(x)


def hooked():
    model = double(nn.Linear(5, 3))
    model[0].register_forward_hook(lambda module, args, out: 2 * out)
    return model


def tied():
    layer = nn.Linear(5, 5)
    return double(layer, nn.Tanh(), layer, nn.Linear(5, 3))


def shared_weight():
    model = double(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5), nn.Linear(5, 3))
    model[2].weight = model[0].weight
    return model


UNKNOWN = [
    (lambda: double(nn.Linear(5, 3), nn.LayerNorm(3)), "layer 1 (LayerNorm)"),
    (lambda: double(nn.Linear(5, 3), nn.Sequential(Odd())), "layer 1.0 (Odd)"),
    (lambda: double(nn.Linear(5, 3), nn.Dropout(0.5)), "layer 1 (Dropout)"),
    (lambda: double(nn.Linear(5, 3), nn.ELU(alpha=2.0)), "layer 1 (ELU)"),
    (lambda: double(nn.Linear(5, 3), nn.GELU(approximate="tanh")), "layer 1 (GELU)"),
    (lambda: double(nn.Linear(5, 3), nn.LeakyReLU()), "layer 1 (LeakyReLU)"),
    (lambda: double(spectral_norm(nn.Linear(5, 3))), "layer 0 (Linear) has a param"),
    (lambda: double(weight_norm(nn.Linear(5, 3), dim=1)), "layer 0 (Linear) has a"),
    (lambda: Twice(nn.Linear(5, 3)).double(), "the model (Twice)"),
    (hooked, "layer 0 (Linear) has a forward hook"),
    (tied, "holds a layer twice"),
    (shared_weight, "parameter 2.weight is also 0.weight"),
    (lambda: nn.Sequential(), "no layer"),
    (lambda: normalised_residual(inputs=5, widths=(3,)), "pass Module"),
]


@pytest.mark.parametrize(("make", "hint"), UNKNOWN, ids=[u[1] for u in UNKNOWN])
@pytest.mark.usefixtures("_untyped")
def test_a_layer_without_known_bounds_is_named(make, hint):
    with pytest.raises(TheodoliteError) as caught:
        certificate(make(), (inputs(4, 5), CLASSES), "cross_entropy")
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def _untyped():
    """Call as outside of tests, where types go unchecked."""
    import jaxtyping

    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


REFUSED = [
    ("4.7", residual, SAME, "linearly independent samples"),
    ("5.1", residual, SAME, "linearly independent samples"),
    ("4.7", residual, inputs(9, 5), "9 samples came: pass at most 5"),
    ("4.7", lambda: residual(branch_norm=1.5), inputs(4, 5), "branches whose Jacobian"),
    ("5.1", lambda: residual(branch_norm=1.5), inputs(4, 5), "branches whose Jacobian"),
    ("5.1", lambda: residual(activation="gelu"), inputs(4, 5), "slopes up to 1.129"),
    ("4.7", CHAINS["linear"], inputs(4, 5), "layer 1 is of kind nonlinearity"),
    ("4.5", CHAINS["linear"], inputs(4, 5), "layer 0 has a bias"),
    ("4.5", CHAINS["batch norm"], inputs(4, 5), "layer 0 has weights that are not"),
    ("5.2", residual, inputs(4, 5), "unknown theorem '5.2'"),
]


@pytest.mark.parametrize(("theorem", "make", "x", "hint"), REFUSED)
def test_a_theorem_that_does_not_apply_is_refused_in_a_sentence(theorem, make, x, hint):
    classes = torch.zeros(len(x), dtype=torch.long)
    with pytest.raises(TheodoliteError) as caught:
        certificate(make(), (x, classes), "cross_entropy", theorem=theorem)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


def asked(change=lambda x: x, y=CLASSES, cost="cross_entropy", **options):
    """Return a call with changed inputs."""
    return lambda m, x: certificate(m, (change(x), y), cost, **options)


def one_sample(m, x):
    model = CHAINS["batch norm"]()
    return certificate(model, (x[:1], CLASSES[:1]), "cross_entropy")


BAD = [
    (one_sample, "more than 1 value per channel"),
    (asked(lambda x: x.long()), "no tensor of real"),
    (lambda m, x: certificate(m, x, "cross_entropy"), "Tensor of shape (4, 5)"),
    (lambda m, x: certificate(m, (x, CLASSES, x), "square"), "pass tuple[Any, Any]"),
    (asked(lambda x: x[0]), "along the first axis"),
    (asked(lambda x: x[:0], CLASSES[:0]), "along the first"),
    (asked(lambda x: x.numpy()), "no tensor"),
    (asked(cost="hinge"), "unknown cost 'hinge'"),
    (asked(cost=nn.L1Loss()), "L1Loss() has no known"),
    (asked(cost=nn.CrossEntropyLoss(reduction="sum")), "default settings"),
    (asked(y=CLASSES + 5), "no classes"),
    (asked(y=CLASSES[:2]), "shape (2,)"),
    (asked(y=inputs(4, 3), cost="logistic"), "no signs"),
    (asked(y=inputs(4, 2), cost="square"), "shape (4, 2)"),
    (asked(lambda x: x[:, :3]), "shape (3,)"),
    (asked(radius=-1.0), "radius is -1.0"),
    (asked(norm_mode="frozen"), "'frozen' holds statistics"),
    (asked(lambda x: x.half()), "torch.float16 on cpu"),
    (asked(lambda x: x.to("meta")), "torch.float64 on meta"),
    (asked(lambda x: x * math.nan), "NaN"),
]


@pytest.mark.parametrize(("call", "hint"), BAD, ids=[b[1] for b in BAD])
@pytest.mark.usefixtures("_untyped")
def test_bad_input_is_one_sentence(call, hint):
    with pytest.raises(TheodoliteError) as caught:
        call(residual(1), inputs(4, 5))
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_chain_that_the_outputs_contradict_is_refused():
    plan = SystemBlueprint(
        inputs=5,
        layers=(AffineLayer(into=5, out=3), NonlinearLayer(activation="tanh")),
    )
    network = build(plan, seed=0)
    network.forward = lambda x: 2 * network.layers(x)
    with pytest.raises(TheodoliteError, match="not those of its layers"):
        certificate(network, (inputs(4, 5), CLASSES), "cross_entropy")
