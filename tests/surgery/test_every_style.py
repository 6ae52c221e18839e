"""Every operation on networks of every style, against changed operators."""

import copy
import io

import pytest
import torch
from safetensors.torch import load, save
from torch import nn
from torch.testing import assert_close

from tests.anatomy.styles import vectors
from tests.anatomy.test_styles import ROWS, STYLES, Truth
from tests.surgery.oracle import (
    bits,
    operands,
    run_plain,
    run_with_factors,
    same_bits,
)
from theodolite import surgery
from theodolite.anatomy import anatomy
from theodolite.core import SurgeryError

NETWORKS = {
    **STYLES,
    "only functions": Truth(make=vectors.OnlyFunctions, batch=ROWS[:, :4]),
}
RESIDUAL = [name for name, truth in STYLES.items() if truth.additions]
RESIDUAL.append("only functions")
OTHERS = [name for name in NETWORKS if name not in RESIDUAL]
OPERATIONS = {
    "scale_branches": {"by": 0.5, "learnable": True},
    "add_identity": {},
    "insert_skips": {"around": "0"},
    "change_norms": {"to": "group", "groups": 2},
    "fold_norms": {},
    "move_norms": {"to": "post"},
    "remove_skips": {},
    "zero_branches": {},
    "fixup": {"seed": 0},
}
# The first on every network, each other one on every fifth.
PAIRS = [
    (name, operation)
    for place, name in enumerate(NETWORKS)
    for at, operation in enumerate(OPERATIONS)
    if at == 0 or (place + at) % 5 == 0
]


def network(name):
    """Build a network in float64, its batch norms with statistics of their own."""
    truth = NETWORKS[name]
    model = truth.make().double().train(truth.training)
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return model, doubled(truth.batch)


def doubled(batch):
    if isinstance(batch, dict):
        return {key: doubled(part) for key, part in batch.items()}
    return batch.double() if batch.is_floating_point() else batch


@pytest.fixture(autouse=True)
def in_float64():
    """Constants that networks make in their forward are of the default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("name", RESIDUAL)
def test_branches_are_scaled_where_they_are_added(name):
    model, batch = network(name)
    learnable = RESIDUAL.index(name) % 2 == 0
    places = operands(model, batch, "branch")
    factors = [0.3 + 0.2 * number for number in range(len(places))]
    result = surgery.scale_branches(model, batch, by=factors, learnable=learnable)
    wanted = run_with_factors(model, batch, dict(zip(places, factors, strict=True)))
    assert_close(run_plain(result.model, batch), wanted, rtol=1e-12, atol=1e-12)
    more = len(places) if learnable else 0
    before, after = result.check.parameters
    assert after - before == more
    assert len(result.log.done) == len(places)
    assert not result.log.left


@pytest.mark.parametrize("name", RESIDUAL)
def test_skips_are_removed(name):
    model, batch = network(name)
    places = operands(model, batch, "skip")
    result = surgery.remove_skips(model, batch)
    wanted = run_with_factors(model, batch, dict.fromkeys(places, 0.0))
    assert_close(run_plain(result.model, batch), wanted, rtol=1e-12, atol=1e-12)
    assert not anatomy(result.model, batch).additions


@pytest.mark.parametrize("name", RESIDUAL)
def test_branches_start_at_zero(name):
    model, batch = network(name)
    places = operands(model, batch, "branch")
    wanted = run_with_factors(model, batch, dict.fromkeys(places, 0.0))
    scaled = surgery.zero_branches(model, batch, how="scale")
    assert_close(run_plain(scaled.model, batch), wanted, rtol=1e-12, atol=1e-12)
    if name == "only functions":  # one matrix ends both branches
        with pytest.raises(SurgeryError, match="acts elsewhere too"):
            surgery.zero_branches(model, batch)
        return
    result = surgery.zero_branches(model, batch)
    if name == "residual of residuals":  # the outer branch is no more than inner skips
        assert len(result.log.left) == 1
        wanted = run_with_factors(model, batch, dict.fromkeys(places[:2], 0.0))
    else:
        assert not result.log.left
    assert_close(run_plain(result.model, batch), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_norms_folded_away_change_nothing(name):
    model, batch = network(name)
    held = [
        m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)
    ]
    if not held:
        with pytest.raises(SurgeryError):
            surgery.fold_norms(model, batch)
        return
    result = surgery.fold_norms(model, batch)
    assert result.model.training == model.training
    wanted = run_plain(model.eval(), batch)
    for kind in (result, surgery.change_norms(model, batch, to="weight")):
        assert_close(run_plain(kind.model.eval(), batch), wanted, rtol=1e-6, atol=1e-9)
        left = [m for m in kind.model.modules() if type(m) in {type(h) for h in held}]
        assert not left


@pytest.mark.parametrize(("name", "operation"), PAIRS)
def test_the_original_is_left_and_the_copy_can_be_undone(name, operation):
    model, batch = network(name)
    before = bits(model)
    settings = dict(OPERATIONS[operation])
    if operation == "insert_skips":
        settings["around"] = passing(model, batch)
    state = torch.get_rng_state()
    result, error = attempted(operation, model, batch, settings)
    assert "\n" not in error
    assert torch.equal(torch.get_rng_state(), state)
    assert same_bits(bits(model), before)
    if result is not None:
        assert same_bits(bits(result.undo()), before)
        assert same_bits(bits(result.undo()), before)
        assert str(result.log).startswith(f"{operation}: ")
        survives(result.model, batch)


def attempted(operation, model, batch, settings):
    """Return the result of an operation and "", or None and what it said."""
    try:
        return getattr(surgery, operation)(model, batch, **settings), ""
    except SurgeryError as error:
        return None, str(error)


def passing(model, batch):
    """Return the submodules that give back the shape they were given."""
    shapes = {}

    def note(module, args, output):
        if (
            args
            and isinstance(args[0], torch.Tensor)
            and isinstance(output, torch.Tensor)
        ):
            shapes[names[module]] = (args[0].shape, output.shape, args[0].dtype)

    names = {module: name for name, module in model.named_modules() if name}
    handles = [module.register_forward_hook(note) for module in names]
    run_plain(model, batch)
    for handle in handles:
        handle.remove()
    kept = [
        n for n, (a, b, kind) in shapes.items() if a == b and kind.is_floating_point
    ]
    return kept[:2] or ["nowhere"]


def survives(model, batch):
    """Copies by every road do what the model does."""
    wanted = run_plain(model, batch)
    twin = copy.deepcopy(model)
    assert torch.equal(run_plain(twin, batch), wanted)
    numbers = load(save(model.state_dict()))
    with torch.no_grad():
        for tensor in (*twin.parameters(), *twin.buffers()):
            tensor.zero_()
    twin.load_state_dict(numbers)
    assert torch.equal(run_plain(twin, batch), wanted)
    if not any(nn.utils.parametrize.is_parametrized(m) for m in model.modules()):
        stored = io.BytesIO()
        torch.save(model, stored)
        stored.seek(0)
        loaded = torch.load(stored, weights_only=False)
        assert torch.equal(run_plain(loaded, batch), wanted)


@pytest.mark.parametrize("name", OTHERS)
def test_what_has_no_skip_is_refused_and_not_guessed(name):
    model, batch = network(name)
    for operation in ("remove_skips", "zero_branches"):
        with pytest.raises(SurgeryError, match="no residual addition"):
            getattr(surgery, operation)(model, batch)
