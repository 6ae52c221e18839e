"""What may be given as data."""

from collections import UserDict, namedtuple
from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from tests.instruments.agreement import near
from theodolite.core import MeasurementError
from theodolite.instruments import (
    BlockJacobian,
    GaussNewton,
    HalfSquareLoss,
    Hessian,
    Jacobian,
    TangentKernel,
    read_batches,
    share_of,
    singular_values,
    tangent_kernel,
)
from theodolite.instruments.model.objective import samples_in, tensors_in
from theodolite.instruments.norms.full_statistics import moments_of
from theodolite.instruments.operators.rounding_reference import rounding_reference
from theodolite.instruments.passes.batches import join_batches, split_batch

X = torch.arange(12.0, dtype=torch.float64).reshape(6, 2) / 10
Y = X.flip(1)
Pair = namedtuple("Pair", "x y")


class Shots(IterableDataset):
    def __iter__(self):
        return iter([(X[0], Y[0]), (X[1], Y[1])])


@pytest.mark.parametrize(
    "one",
    [
        (X, Y), [X, Y], X, {"x": X, "y": Y}, UserDict(x=X, y=Y), Pair(X, Y), None,
        ({"x": X}, Y), (X, {"y": Y}), 3.0,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_one_batch(one):
    found = read_batches(one)
    assert len(found) == 1
    assert found[0] is one


@pytest.mark.parametrize(
    ("several", "count"),
    [
        ([(X, Y), (X, Y)], 2),
        ([{"x": X}], 1),
        (DataLoader(TensorDataset(X, Y), batch_size=4), 2),
        (DataLoader(Shots(), batch_size=1), 2),
    ],
)
def test_several_batches(several, count):
    assert len(read_batches(several)) == count


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (iter([(X, Y)]), "only once"),
        ((pair for pair in [(X, Y)]), "only once"),
        (TensorDataset(X, Y), "DataLoader"),
        ([], "at least one"),
        (DataLoader(TensorDataset(X, Y), batch_size=None), "batch_size"),
    ],
)
def test_refused_in_one_sentence(data, words):
    with pytest.raises(MeasurementError, match=words) as caught:
        read_batches(data)
    assert "\n" not in str(caught.value)


EMPTY = X[:0], Y[:0]


class Again:
    """Batches that are no list."""

    def __init__(self, *batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


@pytest.mark.parametrize("kind", [list, lambda batches: Again(*batches)])
def test_batches_without_samples_are_left_out(kind):
    given = kind([EMPTY, (X[:4], Y[:4]), EMPTY, (X[4:], Y[4:])])
    assert [samples_in(batch) for batch in read_batches(given)] == [4, 2]
    assert [samples_in(batch) for batch in read_batches(given, max_batches=1)] == [4]
    with pytest.raises(MeasurementError, match="no batches with samples"):
        list(read_batches(kind([EMPTY])))


@pytest.mark.parametrize("mode", ["batch", "full", "frozen"])
@pytest.mark.parametrize("kind", [Hessian, GaussNewton, Jacobian])
def test_a_batch_without_samples_changes_nothing(kind, mode):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Tanh()).double()
    settings = {} if kind is Jacobian else {"loss": HalfSquareLoss()}
    settings["norm_mode"] = mode
    wanted = kind(model, (X, Y), **settings).dense()
    near(kind(model, [(X, Y), EMPTY], **settings).dense(), wanted)
    near(kind(model, [EMPTY, (X, Y)], **settings).dense(), wanted)


def test_moments_of_nothing_leave_others_as_they_are():
    nothing, some = moments_of(X[:0]), moments_of(X)
    for both in (nothing.merge(some), some.merge(nothing)):
        assert both.count == 6
        near(both.mean, X.mean(0))
        near(both.variance, X.var(0, correction=0))


@pytest.mark.parametrize("measure", [Jacobian, tangent_kernel])
def test_no_samples_at_all_have_no_statistics(measure):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double()
    with pytest.raises(MeasurementError, match=r"\(0, 2\), no value a channel"):
        measure(model, X[:0], norm_mode="batch")


def test_a_loader_that_shuffles_gives_one_operator_and_keeps_the_random_state():
    loader = DataLoader(TensorDataset(X, Y), batch_size=4, shuffle=True)
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).double()
    state = torch.get_rng_state()
    operator = Hessian(model, loader, loss=HalfSquareLoss(), norm_mode="batch")
    assert torch.equal(torch.get_rng_state(), state)
    assert operator.partition == (4, 2)
    first = operator.dense()
    operator.close()
    near(operator.dense(), first)


def test_samples_are_the_axis_all_tensors_share():
    assert samples_in((X, Y)) == 6
    assert samples_in({"x": X, "scale": torch.tensor(2.0)}) == 6
    assert samples_in((X, Y[:3])) is None
    assert samples_in(None) is None
    assert len(tensors_in(({"a": [X, Y]}, Pair(X, 3)))) == 3


def test_splitting_and_joining_are_inverse():
    batch = ({"x": X, "scale": 2}, Pair(Y, [X]))
    parts = split_batch(batch, 4)
    assert [samples_in(part) for part in parts] == [4, 2]
    joined = join_batches(parts)
    assert isinstance(joined[1], Pair)
    assert joined[0]["scale"] == 2
    for now, then in zip(tensors_in(joined), tensors_in(batch), strict=True):
        assert torch.equal(now, then)
    assert join_batches([(X, Y), (X[:, :1], Y)]) is None
    assert join_batches([(X, Y), (X,)]) is None
    with pytest.raises(MeasurementError, match="cannot be cut"):
        split_batch((X, Y[:2]), 2)


@pytest.mark.parametrize(
    "measure",
    [
        Jacobian,
        TangentKernel,
        tangent_kernel,
        partial(BlockJacobian, block="0"),
        partial(singular_values, block="0"),
    ],
)
def test_a_list_that_may_be_a_pair_or_two_inputs_is_refused(measure):
    model = nn.Sequential(nn.Linear(2, 2)).double()
    for second in (Y, Y[:4]):
        with pytest.raises(MeasurementError, match="two batches of inputs") as caught:
            measure(model, [X, second], norm_mode="eval")
        assert "\n" not in str(caught.value)
    measure(model, (X, Y), norm_mode="eval")
    measure(model, [X, torch.arange(6)], norm_mode="eval")


def test_a_loader_of_one_pair_alike_is_inputs_and_targets():
    model = nn.Linear(2, 2)
    loader = DataLoader(TensorDataset(X.float(), Y.float()), batch_size=6)
    found = tangent_kernel(model, loader, norm_mode="eval")
    wanted = tangent_kernel(model, X.float(), norm_mode="eval")
    near(found.matrix, wanted.matrix)
    kernel = TangentKernel(model, loader, norm_mode="eval")
    reference = rounding_reference(kernel)
    assert reference is not None
    assert reference.operator.shape == kernel.shape


def test_a_mapping_of_inputs_is_keyword_arguments():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2, dtype=torch.float64)

        def forward(self, left, right):
            return self.layer(left) + right

    inputs = {"left": X, "right": Y}
    operator = Hessian(Sum(), (inputs, Y), loss=HalfSquareLoss(), norm_mode="batch")
    by_function = Hessian(
        Sum(),
        [{"left": X, "right": Y}],
        loss=lambda model, batch: model(**batch).square().mean(),
        norm_mode="batch",
    )
    near(by_function.dense(), operator.dense())


def test_what_cannot_be_counted_has_no_mean():
    class Odd:
        pass

    model = nn.Linear(2, 2).double()

    def loss(network, batch):
        return network(X).square().sum()

    one = Hessian(model, [Odd(), Odd()], loss=loss, norm_mode="batch", reduction="sum")
    alone = Hessian(model, Odd(), loss=loss, norm_mode="batch")
    near(one.dense(), 2 * alone.dense())
    assert alone.partition == (None,)
    with pytest.raises(MeasurementError, match="cannot be counted"):
        Hessian(model, [Odd(), Odd()], loss=loss, norm_mode="batch")


@pytest.mark.parametrize("data", [[], torch.zeros(0, 3)], ids=["batches", "samples"])
def test_a_share_of_no_data_is_told(data):
    with pytest.raises(MeasurementError, match=r"^no (batches|samples) came") as said:
        share_of(data, None)
    assert "start fewer ranks" not in str(said.value)
