"""Means over batches weigh samples as the loss does, be it one's own."""

from functools import partial

import pytest
import torch
from torch import nn

from tests.instruments.agreement import multiplies_as, near
from tests.oracles import looped_hessian
from theodolite.core import MeasurementError
from theodolite.instruments import EmpiricalFisher, GaussNewton, Hessian, trace

X = torch.linspace(-2, 2, 24, dtype=torch.float64).sin().reshape(8, 3)
TARGETS = torch.tensor([-100, -100, 1, 2, -100, 0, 1, -100])


def model(norm=False):
    torch.manual_seed(0)
    middle = nn.BatchNorm1d(4) if norm else nn.Identity()
    return nn.Sequential(nn.Linear(3, 4), middle, nn.Tanh(), nn.Linear(4, 3)).double()


def masked(network, batch):
    """A language model's loss: the mean over the targets that count."""
    return nn.functional.cross_entropy(network(batch[0]), batch[1])


def counting(batch):
    return batch[1] != -100


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("micro_batch", [1, 2, 3])
@pytest.mark.parametrize("loss", [masked, nn.CrossEntropyLoss()])
def test_micro_batches_of_a_masked_loss(loss, micro_batch, norm):
    network = model(norm)
    settings = {"norm_mode": "batch", "micro_batch": micro_batch}
    if loss is masked:
        settings["weights"] = counting
    exact = looped_hessian(network, (X, TARGETS), nn.CrossEntropyLoss())
    multiplies_as(Hessian(network, (X, TARGETS), loss=loss, **settings), exact)


@pytest.mark.parametrize("micro_batch", [None, 1])
@pytest.mark.parametrize("mode", ["full", "frozen"])
@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_samples_of_ignored_targets_count_in_statistics(kind, mode, micro_batch):
    batches = [(X[:2], TARGETS[:2]), (X[2:], TARGETS[2:])]
    settings = {"loss": nn.CrossEntropyLoss(), "norm_mode": mode}
    whole = kind(model(norm=True), (X, TARGETS), **settings)
    settings["micro_batch"] = micro_batch
    multiplies_as(kind(model(norm=True), batches, **settings), whole)


@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_a_batch_with_ignored_targets_alone_counts_zero(kind):
    batches = [(X[:2], TARGETS[:2]), (X[2:], TARGETS[2:])]
    settings = {"loss": nn.CrossEntropyLoss(), "norm_mode": "batch"}
    whole = kind(model(), (X[2:], TARGETS[2:]), **settings).dense()
    near(kind(model(), batches, **settings).dense(), whole)
    with pytest.raises(MeasurementError, match="no sample counts"):
        kind(model(), [batches[0], batches[0]], **settings)


class Looking(nn.Sequential):
    """Takes a path that hangs on values behind its norm, so that chunks take turns."""

    def forward(self, x):
        z = self[1](self[0](x))
        return self[3](self[2](z if z.mean() < 1e9 else 2 * z))


def test_chunks_without_a_target_take_turns_before_weights_behind_all_norms():
    network, targets = Looking(*model(norm=True)), TARGETS.clone()
    targets[:4] = -100
    settings = {"loss": nn.CrossEntropyLoss(), "norm_mode": "full"}
    settings["params"] = ["3.weight"]
    whole = Hessian(network, (X, targets), **settings)
    turns = Hessian(network, (X, targets), micro_batch=4, **settings)
    near(turns.dense(), whole.dense())
    assert turns.way == "sequential"
    near(turns.loss_and_gradient()[1], whole.loss_and_gradient()[1])


def test_weights_may_be_one_number_or_one_a_sample():
    whole = Hessian(model(), (X, TARGETS), loss=masked, norm_mode="eval").dense()
    for weights in (
        counting,
        lambda batch: int(counting(batch).sum()),
        lambda batch: counting(batch).double(),
        lambda batch: counting(batch).tolist(),
    ):
        settings = {"norm_mode": "eval", "micro_batch": 3, "weights": weights}
        multiplies_as(Hessian(model(), (X, TARGETS), loss=masked, **settings), whole)


def test_a_masked_loss_of_ones_own_counts_its_targets():
    given = {"norm_mode": "eval", "micro_batch": 3}
    whole = Hessian(model(), (X, TARGETS), loss=masked, norm_mode="eval").dense()
    near(Hessian(model(), (X, TARGETS), loss=masked, **given).dense(), whole)

    def of_all(network, batch):
        loss = nn.CrossEntropyLoss(reduction="sum")
        return loss(network(batch[0]), batch[1]) / len(batch[1])

    whole = Hessian(model(), (X, TARGETS), loss=of_all, norm_mode="eval").dense()
    near(Hessian(model(), (X, TARGETS), loss=of_all, **given).dense(), whole)


def test_without_weights_another_mask_is_not_cut():
    def without_zeros(network, batch):
        return nn.functional.cross_entropy(network(batch[0]), batch[1], ignore_index=0)

    batch = X, TARGETS.clamp(0)
    with pytest.raises(MeasurementError, match="pass weights="):
        Hessian(model(), batch, loss=without_zeros, norm_mode="eval", micro_batch=3)
    told = partial(nn.functional.cross_entropy, ignore_index=0)
    whole = Hessian(model(), batch, loss=told, norm_mode="eval").dense()
    cut = Hessian(model(), batch, loss=told, norm_mode="eval", micro_batch=3)
    near(cut.dense(), whole)


def test_weights_reach_every_instrument_and_misuse_is_one_sentence():
    settings = {"loss": masked, "norm_mode": "eval", "micro_batch": 3}
    exact = trace(model(), (X, TARGETS), method="dense", loss=masked, norm_mode="eval")
    found = trace(model(), (X, TARGETS), method="dense", weights=counting, **settings)
    assert found.trace == pytest.approx(exact.trace, rel=1e-10)
    with pytest.raises(MeasurementError, match=r"weights\(batch\) gave str"):
        Hessian(model(), (X, TARGETS), weights=lambda batch: "three", **settings)
    with pytest.raises(MeasurementError, match="leave them out"):
        Hessian(model(), (X, TARGETS), weights=counting, reduction="sum", **settings)


def test_weights_in_plain_numbers_keep_their_digits():
    shares = torch.linspace(0.1, 1, 8, dtype=torch.float64)
    data = {"x": X, "y": TARGETS.clamp(0), "w": shares}

    def loss(network, batch):
        each = nn.functional.cross_entropy(
            network(batch["x"]), batch["y"], reduction="none"
        )
        return (each * batch["w"]).sum() / batch["w"].sum()

    network = model()
    exact = Hessian(network, data, loss=loss, norm_mode="eval").dense()
    for weights in (lambda b: float(b["w"].sum()), lambda b: b["w"].tolist()):
        given = {"norm_mode": "eval", "micro_batch": 3, "weights": weights}
        found = Hessian(network, data, loss=loss, **given).dense()
        assert abs(found - exact).max() < 1e-14


def summed(outputs, targets):
    return (outputs - targets).square().sum()


@pytest.mark.parametrize("kind", [Hessian, GaussNewton, EmpiricalFisher])
@pytest.mark.parametrize("sizes", [(8,), (1, 7), (1,) * 8])
def test_a_sum_that_is_taken_for_a_mean_is_refused(kind, sizes):
    batches = list(zip(X.split(sizes), X.split(sizes), strict=True))
    given = {"loss": summed, "norm_mode": "eval"}
    with pytest.raises(MeasurementError, match="together and apart"):
        kind(model(), batches, **given, micro_batch=2)
    kind(model(), batches, **given, micro_batch=2, reduction="sum")


def test_samples_that_count_are_looked_for_behind_those_that_do_not():
    targets = torch.tensor([-100] * 5 + [0, 1, 2])

    def loss(network, batch):
        sum_of = nn.CrossEntropyLoss(reduction="sum")
        return sum_of(network(batch[0]), batch[1])

    given = {"norm_mode": "eval", "weights": counting, "micro_batch": 4}
    with pytest.raises(MeasurementError, match="together and apart"):
        Hessian(model(), (X, targets), loss=loss, **given)
