"""The Jacobian of a block against finite differences of the block itself."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.sparse.linalg import aslinearoperator
from torch import nn

from tests.cases import CASES, Residual, modes_of
from tests.instruments.test_preservation import portrait, without_versions
from theodolite.core import MeasurementError, NormMode, UnknownNameError
from theodolite.instruments import BlockJacobian, MatrixOperator
from theodolite.instruments.singular.sample_blocks import Supports, sample_blocks

BY_NAME = {case.name: case for case in CASES}
BLOCKS = [
    ("mlp", "0"),
    ("mlp", ("0", "2")),
    ("mlp", ""),
    ("conv_bn_resnet", "1"),
    ("conv_bn_resnet", "1.branch.1"),
    ("conv_bn_resnet", ("1.branch.0", "1.branch.3")),
    ("conv_bn_resnet", ("1", "3")),
    ("pre_activation_resnet", "1"),
    ("pre_activation_resnet", ("1", "3")),
    ("group_norm", "1"),
    ("attention", "norm"),
    ("attention", ("norm", "head")),
    ("weight_norm", "0"),
    ("recurrent", ("cell", "head")),
    ("shared_weights", ""),
]
in_modes = pytest.mark.parametrize(
    ("name", "block", "mode"),
    [
        (name, block, mode)
        for place, (name, block) in enumerate(BLOCKS)
        for mode in modes_of(BY_NAME[name], place)
    ],
    ids=str,
)
TIGHT = {"rtol": 1e-10, "atol": 1e-11}


def set_mode(model, inputs, mode):
    """Put a copy of a model into a norm mode by hand.

    Under ``as_is`` the last norm of the model itself is frozen by eval mode first.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    if mode == "as_is":
        for norm in norms[-1:]:
            norm.eval()
        return copy.deepcopy(model)
    model = copy.deepcopy(model)
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    for norm in norms:
        norm.train(mode in ("batch", "full"))
    if mode == "frozen":
        # Each layer in turn stores the statistics of what enters it, then uses them.
        def store(norm, args):
            norm.running_mean.copy_(args[0].mean((0, 2, 3)))
            norm.running_var.copy_(args[0].var((0, 2, 3), correction=0))

        handles = [norm.register_forward_pre_hook(store) for norm in norms]
        with torch.no_grad():
            model(inputs)
        for handle in handles:
            handle.remove()
    return model


def block_map(model, inputs, block):
    """Return the block as a function of its input, and that input."""
    first, last = (block, block) if isinstance(block, str) else block
    modules = dict(model.named_modules())
    seen = {}

    def run(given):
        def enter(_, args):
            seen.setdefault("input", args[0].detach().clone())
            return (args[0] if given is None else given, *args[1:])

        def leave(_, args, out):
            seen["output"] = out.detach().clone()

        handles = [
            modules[first].register_forward_pre_hook(enter),
            modules[last].register_forward_hook(leave),
        ]
        with torch.no_grad():
            model(inputs)
        for handle in handles:
            handle.remove()
        return seen["output"]

    run(None)
    return run, seen["input"]


def finite_differences(model, inputs, block, step=1e-5):
    run, start = block_map(model, inputs, block)
    columns = []
    for i in range(start.numel()):
        shift = torch.zeros_like(start).reshape(-1)
        shift[i] = step
        shift = shift.reshape(start.shape)
        columns.append((run(start + shift) - run(start - shift)).reshape(-1))
    return (torch.stack(columns, dim=1) / (2 * step)).numpy()


@in_modes
def test_columns_equal_finite_differences(name, block, mode):
    model, (inputs, _), _ = BY_NAME[name].make(samples=3)
    by_hand = set_mode(model, inputs, str(mode))
    jacobian = BlockJacobian(model, inputs, block=block, norm_mode=mode)
    wanted = finite_differences(by_hand, inputs, block)
    assert jacobian.shape == wanted.shape
    eye = np.eye(jacobian.shape[1])
    assert_allclose(jacobian @ eye, wanted, rtol=1e-6, atol=1e-8)
    assert_allclose(jacobian.dense(), jacobian @ eye, **TIGHT)


@pytest.mark.parametrize("mode", ["batch", "eval"])
@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=str)
def test_products_are_adjoint(name, block, mode):
    model, batch, _ = BY_NAME[name].make()
    jacobian = BlockJacobian(model, batch, block=block, norm_mode=mode)
    for _ in range(3):
        u = torch.randn(jacobian.shape[1], dtype=torch.float64)
        v = torch.randn(jacobian.shape[0], dtype=torch.float64)
        forward, backward = (jacobian @ u) @ v, u @ (jacobian.T @ v)
        scale = float((jacobian @ u).norm() * v.norm())
        assert abs(float(forward - backward)) <= 1e-10 * max(scale, 1e-300)


@in_modes
def test_rows_pulled_back_together_equal_rows_alone(name, block, mode):
    model, batch, _ = BY_NAME[name].make(samples=2)
    jacobian = BlockJacobian(model, batch, block=block, norm_mode=mode)
    eye = torch.eye(jacobian.shape[0], dtype=torch.float64)
    together = jacobian.pull_back_block(eye)
    alone = torch.stack([jacobian.rmatvec(row) for row in eye])
    assert_allclose(together.numpy(), alone.numpy(), **TIGHT)
    assert_allclose(together.numpy(), jacobian.dense(), **TIGHT)


def built_of(jacobian, supports):
    """Put the blocks of all samples where they belong in the whole matrix."""
    blocks = sample_blocks(jacobian, supports)
    height, width = (length // jacobian.samples for length in jacobian.shape)
    built = np.zeros(jacobian.shape)
    columns, count = blocks.columns.numpy(), 0
    vectors = torch.randn(jacobian.samples, width, dtype=jacobian.torch_dtype)
    for i, (part, rows, product) in enumerate(blocks.matrices(vectors)):
        built[np.ix_(i * height + rows.numpy(), i * width + columns)] = part.numpy()
        wanted = part @ vectors[i, blocks.columns].double()
        assert_allclose(product, wanted, rtol=1e-9, atol=1e-9)
        count += 1
    assert count == jacobian.samples
    return built


@pytest.mark.parametrize("mode", list(NormMode))
@pytest.mark.parametrize(
    ("name", "block"),
    [("conv_bn_resnet", "1"), ("pre_activation_resnet", ("1", "3")), ("mlp", "0")],
)
def test_sample_blocks_are_the_diagonal_of_the_frozen_jacobian(name, block, mode):
    model, batch, _ = BY_NAME[name].make(samples=4)
    frozen = "eval" if mode is NormMode.EVAL else "frozen"
    whole = BlockJacobian(model, batch, block=block, norm_mode=frozen).dense()
    single = BlockJacobian(model, batch, block=block, norm_mode=mode, coupled=False)
    built = built_of(single, Supports(single.output_shape[1:]))
    assert_allclose(built, whole, **TIGHT)
    assert_allclose(single.dense(), whole, **TIGHT)


def test_batch_statistics_couple_samples_by_the_stated_rank_only():
    model, batch, _ = BY_NAME["conv_bn_resnet"].make(samples=4)
    coupled = BlockJacobian(model, batch, block="1", norm_mode="batch")
    frozen = BlockJacobian(model, batch, block="1", norm_mode="frozen")
    gap = np.linalg.svd(coupled.dense() - frozen.dense(), compute_uv=False)
    assert coupled.coupling_rank == 2 * (2 + 2)
    assert frozen.coupling_rank == 0
    assert int((gap > 1e-10).sum()) == coupled.coupling_rank


def test_paths_around_a_span_and_in_place_layers():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3, 3), nn.Linear(3, 3)
            self.relu, self.bend = nn.ReLU(inplace=True), nn.Tanh()

        def forward(self, x):
            y = self.relu(self.one(x))
            y = self.bend(self.two(y)).add_(x)
            return torch.relu_(y)

    model, x = InPlace().double(), torch.randn(4, 3, dtype=torch.float64)
    for block in ("one", "relu", ("relu", "bend"), ("one", "two")):
        got = BlockJacobian(model, x, block=block, norm_mode="eval").dense()
        assert_allclose(got, finite_differences(model, x, block), atol=1e-8)
    # What the model then does to the output of its tanh, backward() refuses as well.
    whole = BlockJacobian(model, x, block="", norm_mode="eval")
    with pytest.raises(MeasurementError, match="in-place operations replaced"):
        whole.rmatvec(torch.ones(whole.shape[0], dtype=torch.float64))


def test_block_products_and_scipy():
    model, batch, _ = BY_NAME["mlp"].make()
    jacobian = BlockJacobian(model, batch, block="0", norm_mode="eval")
    dense = MatrixOperator(torch.as_tensor(jacobian.dense()))
    block = torch.randn(jacobian.shape[1], 3, dtype=torch.float64)
    assert_allclose((jacobian @ block).numpy(), (dense @ block).numpy(), **TIGHT)
    v = np.ones(jacobian.shape[0])
    assert_allclose(aslinearoperator(jacobian).rmatvec(v), dense.T @ v, **TIGHT)
    assert jacobian.passes > 0


@pytest.mark.parametrize("mode", list(NormMode))
@pytest.mark.parametrize("coupled", [True, False])
def test_left_as_found(mode, coupled):
    model, batch, loss = BY_NAME["conv_bn_resnet"].make()
    loss(model(batch[0]), batch[1]).backward()
    model.register_forward_hook(lambda *_: None)
    before = portrait(model)
    jacobian = BlockJacobian(model, batch, block="1", norm_mode=mode, coupled=coupled)
    jacobian @ torch.randn(jacobian.shape[1], dtype=torch.float64)
    jacobian.T @ torch.randn(jacobian.shape[0], dtype=torch.float64)
    after = portrait(model)
    # Random numbers were drawn by this test, by no instrument.
    assert without_versions(after)[:2] == without_versions(before)[:2]


@pytest.mark.parametrize("mode", list(NormMode))
def test_left_as_found_after_an_exception(mode):
    model, batch, _ = BY_NAME["conv_bn_resnet"].make()
    before = portrait(model)

    def failing(network, given):
        network(given[0])
        torch.rand(3)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        BlockJacobian(model, batch, block="1", norm_mode=mode, outputs=failing)
    assert without_versions(portrait(model)) == without_versions(before)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(4, 3)
        self.cell = nn.RNN(3, 3, batch_first=True)
        self.spare = nn.Linear(3, 3)

    def forward(self, tokens):
        return self.cell(self.table(tokens))[0]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("table", "no derivative"),
        ("cell", "returned 2 tensors"),
        ("spare", "never called"),
        (("cell", "table"), "does not depend|returned"),
    ],
)
def test_what_has_no_jacobian_is_said_in_one_sentence(block, words):
    tokens = torch.zeros(2, 3, dtype=torch.long)
    with pytest.raises(MeasurementError, match=words) as caught:
        BlockJacobian(Two(), tokens, block=block, norm_mode="eval")
    assert "\n" not in str(caught.value)


def test_other_misuse_is_said_in_one_sentence():
    tied, batch, _ = BY_NAME["shared_weights"].make()
    with pytest.raises(MeasurementError, match="called 2 times"):
        BlockJacobian(tied, batch, block="layer", norm_mode="eval")
    model, batch, _ = BY_NAME["mlp"].make()
    with pytest.raises(UnknownNameError, match="submodule 'layer'"):
        BlockJacobian(model, batch, block="layer", norm_mode="eval")
    with pytest.raises(MeasurementError, match="empty"):
        BlockJacobian(model, batch[0][:0], block="0", norm_mode="eval")
    with pytest.raises(MeasurementError, match="first and the last"):
        BlockJacobian(model, batch, block=("0", "1", "2"), norm_mode="eval")


class Mixing(nn.Module):
    """Couples samples without any BatchNorm module."""

    def forward(self, x):
        return x - x.mean(0)


def test_other_coupling_is_refused_by_sample():
    model, x = nn.Sequential(Mixing()), torch.randn(5, 2, dtype=torch.float64)
    with pytest.raises(MeasurementError, match="couples samples"):
        BlockJacobian(model, x, block="0", norm_mode="batch", coupled=False)
    whole = BlockJacobian(model, x, block="0", norm_mode="batch").dense()
    assert_allclose(whole, np.kron(np.eye(5) - 0.2, np.eye(2)), atol=1e-12)


def test_a_training_step_ends_an_operator_with_one_sentence():
    model, batch, _ = BY_NAME["mlp"].make()
    jacobian = BlockJacobian(model, batch, block=("0", "2"), norm_mode="eval")
    with torch.no_grad():
        model[2].weight.add_(1.0)
    with pytest.raises(MeasurementError, match="make a new operator"):
        jacobian.rmatvec(torch.ones(jacobian.shape[0], dtype=torch.float64))


def test_without_gradients_and_in_inference_mode():
    model, batch, _ = BY_NAME["conv_bn_resnet"].make(samples=2)
    wanted = BlockJacobian(model, batch, block="1", norm_mode="batch").dense()
    with torch.no_grad():
        got = BlockJacobian(model, batch, block="1", norm_mode="batch").dense()
    assert_allclose(got, wanted, **TIGHT)
    with torch.inference_mode():
        got = BlockJacobian(model, batch, block="1", norm_mode="batch").dense()
    assert_allclose(got, wanted, **TIGHT)


def test_float32_is_near_float64():
    case = BY_NAME["conv_bn_resnet"]
    dense = []
    for dtype in (torch.float64, torch.float32):
        model, batch, _ = case.make(dtype=dtype, samples=2)
        jacobian = BlockJacobian(model, batch, block="1", norm_mode="batch")
        assert jacobian.torch_dtype is dtype
        dense.append(jacobian.dense())
    assert_allclose(dense[1], dense[0], rtol=1e-3, atol=1e-5)


def test_a_compiled_model_runs_as_it_was_written():
    inner = nn.Sequential(
        nn.Linear(3, 3), Residual(nn.Linear(3, 3), nn.Tanh())
    ).double()
    x = torch.randn(2, 3, dtype=torch.float64)
    compiled = torch.compile(inner, backend="eager")
    got = BlockJacobian(compiled, x, block="1", norm_mode="eval").dense()
    wanted = BlockJacobian(inner, x, block="1", norm_mode="eval").dense()
    assert_allclose(got, wanted, **TIGHT)
