"""The ensemble is the sum over paths that brute force finds, in every style."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.paths.nets import STYLES, make
from tests.paths.oracles import Held
from theodolite.instruments import HalfSquareLoss
from theodolite.paths import path_ensemble

MODES = {"eval": "running", "batch": "batch", "full": "batch", "frozen": "batch"}


def cases():
    for style in STYLES:
        norms = style in ("pre-activation", "post-activation")
        for mode in MODES if norms else ("eval",):
            yield style, mode


def assert_energy(result, expected):
    """Compare energies; branches side by side are never taken by one path."""
    np.testing.assert_allclose(result, expected[: len(result)], rtol=1e-8)
    np.testing.assert_allclose(expected[len(result) :], 0, atol=1e-20)


@pytest.mark.parametrize(("style", "mode"), list(cases()))
def test_energies_are_those_of_all_paths(style, mode):
    net, x = make(style)
    result = path_ensemble(net, x, norm_mode=mode)
    held = Held(net, x, statistics=MODES[mode])
    stack = held.coefficients()
    energy = stack.square().mean((1, 2)).numpy()
    assert_energy(result.energy[0], energy)
    product = (stack * held.true).sum((1, 2)) / held.true.square().sum()
    length = len(result.alignment[0])
    np.testing.assert_allclose(result.alignment[0], product[:length], atol=1e-10)
    assert result.residual[0] < 1e-12
    counts = np.exp(result.log_counts).round().astype(int).tolist()
    assert counts == COUNTS[style]


# Paths from the input by branches taken, counted by hand.
COUNTS = {
    "pre-activation": [1, 4, 6, 4, 1],
    "post-activation": [1, 3, 3, 1],
    "bottleneck": [1, 4, 6, 4, 1],
    # A block has its skip, its branch, and its branch with the inner one.
    "nested": [1, 2, 3, 2, 1],
    "fused": [1, 3, 3, 1],
    "parallel": [1, 4, 4],
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("level", [0.0, 0.3, -1.7])
def test_coefficients_give_the_frozen_network_at_any_level(style, level):
    from theodolite.paths.branches import find_branches, marks_of
    from theodolite.paths.frozen_model import subject_of
    from theodolite.paths.propagate import coefficients

    net, x = make(style)
    subject = subject_of(net, x, outputs=None, norm_mode="eval", promote=True)
    with subject.frozen(), torch.no_grad():
        branches = find_branches(net, x, None)
        tape = subject.trace(x, linearise=False)
        stack = coefficients(tape, marks_of(tape, branches.on(tape), "branches"))
    held = Held(net, x, statistics="running")
    value = sum(part * level**degree for degree, part in enumerate(stack))
    torch.testing.assert_close(value, held.at([level] * len(held.taps)))


@pytest.mark.parametrize("by", ["block", "input"])
@pytest.mark.parametrize("style", STYLES)
def test_gradient_is_resolved_as_by_enumeration(style, by):
    net, x = make(style)
    targets = torch.randn_like(net.eval()(x))
    result = path_ensemble(
        net, (x, targets), norm_mode="eval", loss=HalfSquareLoss(), by=by
    )
    held = Held(net, x, statistics="running")
    cotangent = (held.true - targets) / len(x)
    stack = _gradients(held, cotangent, _entry(net) if by == "block" else None)
    energy = stack.flatten(2).square().mean((1, 2)).numpy()
    assert_energy(result.energy[1], energy)
    assert result.residual[1] < 1e-12


def _entry(net):
    """Return the module whose output enters the first block."""
    return net.pool if hasattr(net, "pool") else net[0]


def _gradients(held, cotangent, entry):
    """Interpolate the gradient from whole levels, which suffices for a polynomial."""
    count = len(held.taps)
    leaves = []

    def by_output(module, args, output):
        leaves.append(output.detach().requires_grad_())
        return leaves[-1]

    def at(level):
        for tap in held.taps:
            tap.level = level
        leaves.clear()
        x = held.x.clone().requires_grad_()
        handle = entry.register_forward_hook(by_output) if entry is not None else None
        output = held.net(x)
        if handle is not None:
            handle.remove()
        leaf = leaves[0] if leaves else x
        return torch.autograd.grad(output, leaf, cotangent)[0]

    levels = torch.linspace(-1, 1, count + 1, dtype=torch.float64)
    values = torch.stack([at(float(level)) for level in levels])
    powers = torch.stack([levels**degree for degree in range(count + 1)], 1)
    return torch.tensordot(torch.linalg.inv(powers), values, 1)[: count + 1]


def test_true_gradient_is_met_where_nothing_is_neglected():
    net, x = make("post-activation")
    targets = torch.randint(3, (6,))
    given = {"loss": nn.CrossEntropyLoss()}
    for mode, least, most in (
        ("eval", 0, 1e-12),
        ("frozen", 0, 1e-12),
        ("batch", 0.01, 9),
    ):
        result = path_ensemble(net, (x, targets), norm_mode=mode, **given)
        assert least <= result.gradient_gap[0] <= most


@pytest.mark.parametrize("style", ["pre-activation", "bottleneck"])
def test_paths_of_inputs_alone(style):
    """Without what the frozen network makes of nothing, biases have no part."""
    net, x = make(style)
    result = path_ensemble(net, x, norm_mode="eval", biases=False)
    held = Held(net, x, statistics="running")
    stack = held.coefficients()
    held.x = torch.zeros_like(x)
    stack -= held.coefficients()
    assert_energy(result.energy[0], stack.square().mean((1, 2)).numpy())
    assert result.residual[0] < 1e-12


def test_lengths_in_layers_of_weights():
    net, x = make("bottleneck")
    result = path_ensemble(net, x, norm_mode="eval", counted="layers")
    by_branch = path_ensemble(net, x, norm_mode="eval")
    # Stem and head are two layers, every branch three more; biases begin anywhere.
    counts = {2: 1, 5: 4, 8: 6, 11: 4, 14: 1}
    logs = {int(k): round(np.exp(v)) for k, v in enumerate(result.log_counts) if v > -1}
    assert logs == counts
    assert result.residual[0] < 1e-12
    assert result.effective_depth[0] > by_branch.effective_depth[0]
