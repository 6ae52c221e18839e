"""Random systems, parameters and data, for tests that no bound is ever passed."""

import math

import numpy as np
import torch
from hypothesis import strategies as st
from torch.nn.modules.batchnorm import _BatchNorm

from theodolite.core import (
    NONLINEARITIES,
    AffineLayer,
    BatchNormLayer,
    ConvolutionLayer,
    FlattenLayer,
    NonlinearLayer,
    ResidualLayer,
    SystemBlueprint,
)
from theodolite.networks import build

SMOOTH = [name for name in NONLINEARITIES if name not in ("relu", "three_halves")]
WAYS = ("plain", "weight_norm", "entry_norm", "length_direction")
NORMALISED = WAYS[1:3]
# Above this a dense Hessian is too slow to take many times.
MOST_PARAMETERS = 40


def powers(low, high):
    return st.floats(low, high).map(lambda power: 10.0**power)


@st.composite
def affine(draw, into, *, ways=WAYS, out=None, biases=True):
    return AffineLayer(
        into=into,
        out=out or draw(st.integers(1, 3)),
        parameterisation=draw(st.sampled_from(ways)),
        eps=draw(powers(-1, 1)),
        scale=draw(powers(-0.5, 0.3)),
        bias=biases and draw(st.booleans()),
    )


@st.composite
def block(draw, into, *, ways=WAYS, biases=True, norms=True):
    inner = draw(affine(into, ways=ways, biases=biases))
    layers = [inner, NonlinearLayer(activation=draw(st.sampled_from(SMOOTH)))]
    if norms and draw(st.booleans()):
        layers.append(BatchNormLayer(features=inner.out, eps=draw(powers(-1, 1))))
    layers.append(draw(affine(inner.out, ways=ways, biases=biases)))
    return ResidualLayer(branch=tuple(layers))


@st.composite
def layer(draw, shape, *, ways=WAYS, biases=True, norms=True):
    """One layer that fits behind samples of a shape."""
    kinds = ["nonlinear", "norm"] if norms else ["nonlinear"]
    kinds += ["affine", "affine", "block"] if len(shape) == 1 else ["convolution"] * 3
    kind = draw(st.sampled_from(kinds))
    if kind == "affine":
        return draw(affine(shape[0], ways=ways, biases=biases))
    if kind == "block":
        return draw(block(shape[0], ways=ways, biases=biases, norms=norms))
    if kind == "convolution":
        return ConvolutionLayer(
            into=shape[0],
            out=draw(st.integers(1, 2)),
            kernel=(draw(st.integers(1, 2)), draw(st.integers(1, 3))),
            stride=(draw(st.integers(1, 2)), 1),
            padding=(1, 1),
            parameterisation=draw(st.sampled_from(ways)),
            eps=draw(powers(-1, 1)),
            bias=biases and draw(st.booleans()),
        )
    if kind == "norm":
        affine_too = biases and draw(st.booleans())
        eps = draw(powers(-1, 1))
        return BatchNormLayer(features=shape[0], eps=eps, affine=affine_too)
    return NonlinearLayer(activation=draw(st.sampled_from(SMOOTH)))


@st.composite
def systems(draw, *, ways=WAYS, biases=True, norms=True, images=True, depth=4):
    """A chain with two outputs or more and not too many parameters."""
    flat = (draw(st.integers(1, 4)),)
    shape = (draw(st.integers(1, 2)), 3, 2)
    shape = shape if images and draw(st.booleans()) else flat
    inputs, layers = shape, []
    for _ in range(draw(st.integers(0, depth))):
        layers.append(draw(layer(shape, ways=ways, biases=biases, norms=norms)))
        shape = layers[-1].shape_after(shape)
    layers.append(FlattenLayer())
    last = affine(math.prod(shape), ways=ways, out=2, biases=biases)
    layers.append(draw(last))
    return SystemBlueprint(inputs=inputs, layers=tuple(layers))


def without_state(network):
    """Make batch norms forget what they have seen, so that passes repeat."""
    for module in network.modules():
        if isinstance(module, _BatchNorm):
            module.track_running_stats = False
            module.running_mean = module.running_var = None
    return network


def built(plan, seed):
    """Build a network and draw every parameter, batch norms' and biases too."""
    network, rng = without_state(build(plan, seed=seed)), np.random.default_rng(seed)
    scale = 10 ** rng.uniform(-1, 1)
    with torch.no_grad():
        for parameter in network.parameters():
            drawn = rng.normal(size=tuple(parameter.shape))
            parameter.copy_(torch.as_tensor(scale * drawn))
    return network


def inside(network, radius, seed):
    """Return parameters of a random point in the ball about each layer's."""
    rng, groups = np.random.default_rng(seed), {}
    for name, parameter in network.named_parameters():
        groups.setdefault(name.rpartition(".")[0], {})[name] = parameter.detach()
    result = {}
    for group in groups.values():
        drawn = {
            name: torch.as_tensor(rng.normal(size=tuple(one.shape)))
            for name, one in group.items()
        }
        size = math.sqrt(sum(float(one.square().sum()) for one in drawn.values()))
        away = radius * rng.random() ** 0.2 / size
        if radius == math.inf:
            away = 10 ** rng.uniform(-1.5, 1.5)
        for name, one in group.items():
            result[name] = one + away * drawn[name]
    return result


def hessian_norm(network, parameters, loss):
    """Return the norm of the Hessian of ``loss(outputs of the network)``."""
    names = list(parameters)
    sizes = [parameters[name].numel() for name in names]

    def value(flat):
        parts = flat.split(sizes)
        held = {
            name: part.view_as(parameters[name])
            for name, part in zip(names, parts, strict=True)
        }
        return loss(lambda x: torch.func.functional_call(network, held, (x,)))

    flat = torch.cat([parameters[name].flatten() for name in names])
    matrix = torch.autograd.functional.hessian(value, flat)
    return float(torch.linalg.matrix_norm(matrix, 2))
