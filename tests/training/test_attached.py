"""Batch and loss of loops as people write them, seen without being given."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from tests.training.probe_cases import network
from theodolite.training import Attached, Every, Probe, Watcher

KEPT = torch.ones(3, requires_grad=True).exp()  # with a graph of its own


def data(samples=12):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(samples, 3, generator=generator, dtype=torch.float64)
    return x, torch.arange(samples) % 2


def by_module(model, x, y):
    return nn.CrossEntropyLoss()(model(x), y)


def by_function(model, x, y):
    return F.cross_entropy(model(x), y, label_smoothing=0.1)


def by_formula(model, x, y):
    scores = model(x).log_softmax(1)
    penalty = sum(p.square().sum() for p in model.parameters())
    return -scores[torch.arange(len(y)), y].mean() + 1e-2 * penalty


def reshaped(model, x, y):
    wanted = F.one_hot(y, 2).double().view(-1)
    return F.mse_loss(model(x).view(-1), wanted)


def two_passes(model, x, y):
    return (model(x) - model(x.flip(0))).square().mean()


def from_outside(model, x, y):
    return model(x).square().mean() + KEPT.square().sum()


def scaled(model, x, y):
    return by_module(model, x, y) * torch.tensor(1024.0)  # as GradScaler does


def inside_a_device(model, x, y):
    with torch.device("cpu"):
        outputs = model(x)
    return F.cross_entropy(outputs, y)


class OwnLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x, labels=None):
        outputs = self.inner(x)
        return {"loss": F.cross_entropy(outputs, labels), "logits": outputs}


def own(model, x, y):
    return model(x, labels=y)["loss"]


def seen(loss_of, model=None, *, parts=1, clip=False):
    """Watch two steps of a loop, and return what a probe saw and the loop computed."""
    model, looks, truth = model or network(), [], []
    optim = torch.optim.SGD(model.parameters(), lr=0.1)

    def look(at):
        value = at.criterion(at.model, at.data)
        grads = torch.autograd.grad(value, list(at.model.parameters()))
        looks.append((at.loss, float(value.detach()), grads))
        return 0.0

    watcher = Watcher([Probe("look", look, Every(1))])
    with Attached(watcher, model, optim):
        for _ in range(2):
            optim.zero_grad()
            x, y = data()
            for part in zip(x.chunk(parts), y.chunk(parts), strict=True):
                loss = loss_of(model, *part)
                loss = loss / parts if parts > 1 else loss
                loss.backward()
            grads = [p.grad.clone() for p in model.parameters()]
            truth.append((float(loss.detach()) * parts, grads))
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            optim.step()
            with torch.no_grad():
                model(x[:5], y[:5]) if isinstance(model, OwnLoss) else model(x[:5])
    assert watcher.retired == {}
    assert not torch.overrides._get_current_function_mode_stack()
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    return looks, truth


@pytest.mark.parametrize(
    "loss_of", [by_module, by_function, by_formula, reshaped, two_passes, own]
)
def test_the_loss_of_a_loop_is_seen_and_computed_again(loss_of):
    model = OwnLoss() if loss_of is own else network()
    looks, truth = seen(loss_of, model, clip=True)
    assert len(looks) == 3  # one after the last update
    for (loss, again, grads), (value, wanted) in zip(looks, truth, strict=False):
        assert loss == pytest.approx(value, rel=1e-12)
        assert again == pytest.approx(value, rel=1e-12)
        for ours, theirs in zip(grads, wanted, strict=True):  # before clipping
            assert_close(ours, theirs, rtol=1e-10, atol=1e-14)


def test_the_scale_of_a_grad_scaler_is_left_out():
    looks, truth = seen(scaled)
    assert looks[0][1] == pytest.approx(truth[0][0] / 1024, rel=1e-12)


def test_losses_of_accumulated_batches_are_added():
    looks, _ = seen(by_module, parts=3)
    x, y = data()
    with torch.no_grad():
        whole = by_module(network(), x, y)
        last = by_module(network(), x.chunk(3)[2], y.chunk(3)[2])
    assert looks[0][0] == pytest.approx(float(whole), rel=1e-12)
    assert looks[0][1] == pytest.approx(float(last), rel=1e-12)


@pytest.mark.parametrize("loss_of", [from_outside, inside_a_device])
def test_a_loss_that_cannot_be_computed_again_is_not_guessed(loss_of):
    model, losses = network(), []
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    probe = Probe("look", lambda at: losses.append(at.criterion) or 0.0)
    with Attached(Watcher([probe]), model, optim):
        loss_of(model, *data()).backward()
        optim.step()
    assert losses == [None, None]
    assert not torch.overrides._get_current_function_mode_stack()
