"""Layers and uses that other people's models have: measured rightly, or refused."""

import functools

import numpy as np
import pytest
import torch
from scipy.sparse.linalg import aslinearoperator
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tests.instruments.agreement import near
from tests.oracles import looped_hessian
from theodolite.core import MeasurementError
from theodolite.instruments import (
    BlockJacobian,
    GaussNewton,
    Hessian,
    MatrixOperator,
    TangentKernel,
    by_block,
    condition,
    diagonal,
    extreme_eigenvalues,
    hessian,
    index,
    singular_values,
    spectral_density,
    tangent_kernel,
    trace,
)

X = torch.linspace(-3, 3, 18, dtype=torch.float64).sin().reshape(6, 3)
TOKENS = torch.arange(24).reshape(6, 4) * 7 % 5
CLASSES = torch.tensor([0, 1, 1, 0, 1, 0])
CE = {"loss": nn.CrossEntropyLoss(), "norm_mode": "batch"}


class ReZero(nn.Module):
    """A residual branch behind a scalar."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return x + self.scale * self.layer(x)


class Functional(nn.Module):
    """Batch norm without a module."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return functional.batch_norm(self.layer(x), None, None, training=True)


class Words(nn.Module):
    """An embedding, its mean or a bag, and a readout."""

    def __init__(self, *, bag=False, **settings):
        super().__init__()
        kind = nn.EmbeddingBag if bag else nn.Embedding
        self.table, self.head = kind(5, 3, **settings), nn.Linear(3, 2)
        self.bag = bag

    def forward(self, tokens):
        found = self.table(tokens)
        return self.head(torch.tanh(found if self.bag else found.mean(1)))


def spectral(make):
    return nn.Sequential(make(nn.Linear(3, 3)), nn.Tanh(), nn.Linear(3, 2))


MODELS = {
    "rezero": (ReZero, X),
    "functional": (Functional, X),
    "sparse": (lambda: Words(sparse=True), TOKENS),
    "sparse_bag": (lambda: Words(bag=True, sparse=True), TOKENS),
    "parametrised": (
        lambda: spectral(nn.utils.parametrizations.spectral_norm), X
    ),
    "spectral": (lambda: spectral(nn.utils.spectral_norm), X),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*spectral_norm.*:FutureWarning")
@pytest.mark.parametrize("name", MODELS)
def test_tangent_kernels_of_foreign_models(name):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make().double()
    found = tangent_kernel(model, inputs, norm_mode="batch")
    rows = TangentKernel(model, inputs, norm_mode="batch").dense()
    near(found.matrix, rows)


def test_a_functional_batch_norm_is_refused_where_it_has_no_meaning():
    for mode in ("eval", "frozen"):
        with pytest.raises(MeasurementError, match="batch norm"):
            tangent_kernel(Functional().double(), X, norm_mode=mode)


BAGS = [
    {"mode": mode, "sparse": sparse, "padding_idx": padding}
    for mode in ("sum", "mean", "max")
    for sparse in ((False,) if mode == "max" else (False, True))
    for padding in (None, 3)
]


@pytest.mark.parametrize("settings", BAGS)
def test_bags_of_embeddings(settings):
    model = Words(bag=True, **settings).double()
    kept = Words(bag=True, **settings).double()
    kept.load_state_dict(model.state_dict())
    found = hessian(model, (TOKENS, CLASSES), **CE)
    loss = nn.functional.cross_entropy(kept(TOKENS), CLASSES)
    assert found.loss == pytest.approx(float(loss.detach()), rel=1e-12)
    step, vector = 1e-5, torch.linspace(-1, 1, len(found.matrix)).double()
    slopes = []
    for sign in (1, -1):
        place, shifted = 0, []
        for parameter in kept.parameters():
            part = vector[place : place + parameter.numel()].reshape(parameter.shape)
            shifted.append((parameter, sign * step * part))
            place += parameter.numel()
        slopes.append(gradient_at(kept, shifted))
    numeric = (slopes[0] - slopes[1]) / (2 * step)
    # Torch gives no gradient to the row of padding, whatever it is moved by.
    np.testing.assert_allclose(found.matrix @ vector.numpy(), numeric, atol=1e-8)


def gradient_at(model, shifted):
    with torch.no_grad():
        for parameter, shift in shifted:
            parameter += shift
    loss = nn.functional.cross_entropy(model(TOKENS), CLASSES)
    parts = torch.autograd.grad(loss, list(model.parameters()))
    dense = [part.to_dense() if part.is_sparse else part for part in parts]
    with torch.no_grad():
        for parameter, shift in shifted:
            parameter -= shift
    return torch.cat([part.reshape(-1) for part in dense]).numpy()


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_by_offsets_and_weights(mode, last):
    table = nn.EmbeddingBag(5, 3, mode=mode, include_last_offset=last).double()
    offsets = torch.tensor([0, 2, 2, 5, 8] if last else [0, 2, 2, 5])
    flat = torch.tensor([0, 1, 2, 3, 4, 0, 2, 2])
    weights = torch.linspace(0.5, 2, 8).double() if mode == "sum" else None

    def loss(model, _):
        return model(flat, offsets, weights).pow(3).sum()

    wanted = float(loss(table, None).detach())
    found = hessian(table, None, loss=loss, norm_mode="eval")
    assert found.loss == pytest.approx(wanted, rel=1e-12)
    assert np.abs(found.matrix).max() > 0


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
def test_sparse_and_dense_tables_have_one_hessian(kind):
    bag = kind is nn.EmbeddingBag
    sparse, dense = (Words(bag=bag, sparse=s).double() for s in (True, False))
    sparse.load_state_dict(dense.state_dict())
    near(
        hessian(sparse, (TOKENS, CLASSES), **CE).matrix,
        hessian(dense, (TOKENS, CLASSES), **CE).matrix,
    )
    assert sparse.table.sparse


class Lean(nn.Module):
    """A middle that is recomputed."""

    def __init__(self, reentrant, norm):
        super().__init__()
        self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 2)
        self.middle = nn.Sequential(nn.BatchNorm1d(3) if norm else nn.Tanh())
        self.around = functools.partial(checkpoint, use_reentrant=reentrant)

    def forward(self, x):
        return self.last(self.around(self.middle, self.first(x)))


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing(reentrant, norm):
    torch.manual_seed(0)
    model = Lean(reentrant, norm).double()
    plain = nn.Sequential(model.first, *model.middle, model.last)
    batch = X, CLASSES
    for operator in (Hessian, GaussNewton):
        wanted = operator(plain, batch, **CE).dense()
        names = [name for name, _ in model.named_parameters()]
        order = ["first.weight", "first.bias", "last.weight", "last.bias"]
        order[2:2] = [name for name in names if name.startswith("middle")]
        found = operator(model, batch, params=order, **CE)
        near(found.dense(), wanted)
    kernel = tangent_kernel(model, X, norm_mode="batch").matrix
    near(kernel, tangent_kernel(plain, X, norm_mode="batch").matrix)
    jacobian = BlockJacobian(model, X, block=("first", "last"), norm_mode="batch")
    other = BlockJacobian(plain, X, block=("0", "2"), norm_mode="batch")
    near(jacobian.dense(), other.dense())
    # And it is back.
    model.first(X).sum().backward()
    assert checkpoint(model.middle, X, use_reentrant=False).shape == X.shape


def test_checkpointing_is_back_in_whatever_order_sessions_end():
    layer, runs = nn.Linear(3, 3, dtype=torch.float64), []

    def counted(x):
        runs.append(1)
        return torch.tanh(layer(x))

    first, second = (Hessian(mlp(), (X, CLASSES), **CE).curves() for _ in range(2))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    for reentrant in (False, True):
        runs.clear()
        x = X.clone().requires_grad_()
        checkpoint(counted, x, use_reentrant=reentrant).sum().backward()
        assert len(runs) == 2


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2)).double()


ALL = [trace, diagonal, extreme_eigenvalues, index, condition, spectral_density]


@pytest.mark.parametrize("instrument", [trace, condition])
def test_blocks_of_a_compiled_model(instrument):
    compiled = torch.compile(mlp(), backend="eager")
    found = by_block(instrument, compiled, (X, CLASSES), **CE)
    assert found.blocks == ("0", "2")
    plain = by_block(instrument, mlp(), (X, CLASSES), **CE)
    (name, *_) = instrument.__annotations__["return"].dims
    np.testing.assert_allclose(found.stack(name), plain.stack(name), rtol=1e-9)


class Idle(nn.Module):
    """A layer that is not used, and parameters that hold nothing."""

    def __init__(self):
        super().__init__()
        self.used, self.idle = nn.Linear(3, 2), nn.Linear(3, 2)
        self.nothing = nn.Parameter(torch.zeros(0))
        self.hollow = nn.ParameterList([torch.zeros(0, 3)])

    def forward(self, x):
        return self.used(x) + self.nothing.sum()


@pytest.mark.parametrize("method", ["dense", "products"])
@pytest.mark.parametrize("instrument", ALL)
def test_blocks_with_an_unused_layer_and_empty_parameters(instrument, method):
    model = Idle().double()
    settings = {**CE, "method": method}
    found = by_block(instrument, model, (X, CLASSES), **settings)
    assert found.blocks == ("used", "idle")
    (name, *_) = found["idle"].dims
    if instrument in (trace, diagonal, extreme_eigenvalues, index):
        assert not np.any(getattr(found["idle"], name))
    if instrument is not index:  # a linear model has none below zero
        assert np.any(getattr(found["used"], name))
    with pytest.raises(MeasurementError, match="hold numbers"):
        instrument(model, (X, CLASSES), params=["nothing"], **settings)


def test_a_loss_that_depends_on_nothing_is_still_refused():
    def detached(model, batch):
        return model(batch[0]).detach().square().mean()

    for name in ("used.weight", "idle.weight"):
        with pytest.raises(MeasurementError, match="does not depend"):
            hessian(
                Idle().double(), (X, CLASSES), loss=detached, norm_mode="eval",
                params=[name],
            )  # fmt: skip


def normed():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)).double()


@pytest.mark.parametrize("mode", ["full", "frozen"])
def test_statistics_of_all_the_data_though_one_batch_has_one_sample(mode):
    parts = [(X[:1], CLASSES[:1]), (X[1:], CLASSES[1:])]
    settings = {"loss": CE["loss"], "norm_mode": mode}
    whole = hessian(normed(), (X, CLASSES), **settings).matrix
    near(hessian(normed(), parts, **settings).matrix, whole)
    near(hessian(normed(), parts[::-1], **settings).matrix, whole)
    kernel = tangent_kernel(normed(), parts, norm_mode=mode).matrix
    near(kernel, tangent_kernel(normed(), X, norm_mode=mode).matrix)
    if mode == "full":
        near(whole, looped_hessian(normed(), (X, CLASSES), CE["loss"]))


ONE = {
    "hessian": lambda m, s: hessian(m, (X[:1], CLASSES[:1]), loss=CE["loss"], **s),
    "kernel": lambda m, s: tangent_kernel(m, X[:1], **s),
    "block": lambda m, s: BlockJacobian(m, X[:1], block="1", **s),
    "singular": lambda m, s: singular_values(m, X[:1], block="1", **s),
}


@pytest.mark.parametrize("mode", ["batch", "full"])
@pytest.mark.parametrize("name", ONE)
def test_one_sample_has_no_batch_statistics(name, mode):
    with pytest.raises(MeasurementError, match="one value a channel"):
        ONE[name](normed(), {"norm_mode": mode})


def test_narrow_types_reach_scipy():
    matrix = torch.diag(torch.tensor([1.0, 2.0, 4.0], dtype=torch.bfloat16))
    operator = aslinearoperator(MatrixOperator(matrix, symmetric=True))
    assert operator.dtype == np.float32
    np.testing.assert_array_equal(operator @ np.ones(3), [1, 2, 4])
    half = MatrixOperator(matrix.half(), symmetric=True)
    assert half.dtype == np.float16
