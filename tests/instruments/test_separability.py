"""Cutting and listing data leaves the number as it is, or is refused in a sentence."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.instruments.agreement import multiplies_as, near
from theodolite.core import MeasurementError
from theodolite.instruments import GaussNewton, Hessian

EVAL = {"norm_mode": "eval"}


def classifier(dtype=torch.float64, *, zero=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)).to(dtype)
    if zero:
        nn.init.zeros_(model[2].weight)
    return model, (torch.randn(40, 6, dtype=dtype), torch.arange(40) % 4)


def information(share):
    """Add a share of what predictions tell of the samples, which couples them."""

    def entropy(p):
        return -(p * p.log()).sum(-1)

    def loss(model, batch):
        outputs = model(batch[0])
        p = outputs.softmax(1)
        told = entropy(p.mean(0)) - entropy(p).mean()
        return functional.cross_entropy(outputs, batch[1]) - share * told

    return loss


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_coupled_by_a_hundredth_are_not_cut(dtype, zero):
    model, batch = classifier(dtype, zero=zero)
    with pytest.raises(MeasurementError, match="together and apart"):
        Hessian(model, batch, loss=information(0.01), micro_batch=8, **EVAL)
    Hessian(model, batch, loss=information(0.0), micro_batch=8, **EVAL)


def test_samples_are_drawn_from_all_the_data():
    model, (x, labels) = classifier()

    def loss(network, batch):
        outputs = network(batch[0])
        late = (batch[0][:, 0] > 50).sum()  # in the last quarter, which is coupled
        return functional.cross_entropy(outputs, batch[1]) * (1 + 0.01 * late)

    x[30:, 0] += 100
    with pytest.raises(MeasurementError, match="together and apart"):
        Hessian(model, (x, labels), loss=loss, micro_batch=8, **EVAL)


@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_float32_networks_that_amplify_rounding_are_cut(kind):
    """Samples that are nearly alike: batch norm makes their rounding large."""
    torch.manual_seed(0)
    layers, width = [], 64
    for _ in range(12):
        layers += [nn.Linear(width, 32), nn.BatchNorm1d(32), nn.Tanh()]
        width = 32
    model = nn.Sequential(*layers, nn.Linear(32, 5))
    batch = 1 + 1e-5 * torch.randn(24, 64), torch.arange(24) % 5
    given = {"loss": nn.CrossEntropyLoss(), "norm_mode": "batch", "micro_batch": 8}
    kind(model, batch, **given)
    with pytest.raises(MeasurementError, match="together and apart"):
        kind(nn.Sequential(model, Centred()), batch, **given)


class Centred(nn.Module):
    """Takes a twentieth of the mean over samples away."""

    def forward(self, x):
        return x - 0.05 * x.mean(0)


def summed(outputs, targets):
    return (outputs - targets).square().sum()


def averaged(outputs, targets):
    return (outputs - targets).square().mean()


@pytest.mark.parametrize("mode", ["eval", "batch"])
@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
@pytest.mark.parametrize(
    ("loss", "right", "wrong"), [(summed, "sum", None), (averaged, None, "sum")]
)
def test_a_list_of_batches_combines_as_its_loss_does(kind, loss, right, wrong, mode):
    model, (x, _) = classifier()
    y = x[:, :4].cos()
    batches = [(x[:10], y[:10]), (x[10:], y[10:])]
    given = {"loss": loss, "norm_mode": mode}
    whole = kind(model, (x, y), **given)
    multiplies_as(kind(model, batches, reduction=right, **given), whole)
    with pytest.raises(MeasurementError, match=f"reduction={right or 'mean'!r}"):
        kind(model, batches, reduction=wrong, **given)


def contrasted(model, batch):
    """Tell each sample from the others of its batch."""
    z = functional.normalize(model(batch[0]), dim=1)
    return functional.cross_entropy(z @ z.T / 0.5, torch.arange(len(z)))


def test_a_list_of_batches_may_couple_the_samples_of_each():
    model, (x, labels) = classifier()
    batches = [(x[:10], labels[:10]), (x[10:], labels[10:])]
    v = torch.ones(92, dtype=torch.float64)
    alone = [Hessian(model, one, loss=contrasted, **EVAL) @ v for one in batches]
    found = Hessian(model, batches, loss=contrasted, **EVAL) @ v
    near(found, (alone[0] + 3 * alone[1]) / 4)


def told_apart(model, batch):
    """Tell the next sample from all others of the batch but itself."""
    z = functional.normalize(model(batch[0]), dim=1)
    alike = (z @ z.T).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
    return functional.cross_entropy(alike, torch.arange(len(z)).roll(1))


def spread(model, batch):
    """Spread samples over experts, each of which takes those that it is likeliest."""
    outputs = model(batch[0])
    p = outputs.softmax(1)
    share = functional.one_hot(p.argmax(1), 4).to(p).mean(0)
    balance = 4 * (share * p.mean(0)).sum()
    return functional.cross_entropy(outputs, batch[1]) + 0.01 * balance


@pytest.mark.parametrize("loss", [told_apart, spread])
@pytest.mark.parametrize("micro_batch", [1, 2, 3])
def test_samples_that_two_of_them_do_not_couple(loss, micro_batch):
    model, batch = classifier()
    with pytest.raises(MeasurementError, match="together and apart"):
        Hessian(model, batch, loss=loss, micro_batch=micro_batch, **EVAL)


class Pooling(nn.Module):
    """Attention over positions, whose scores have a bias with a gradient of zero."""

    def __init__(self):
        super().__init__()
        self.into, self.score, self.head = map(nn.Linear, (8, 16, 16), (16, 1, 3))

    def forward(self, x):
        z = torch.tanh(self.into(x))
        share = torch.softmax(self.score(z).squeeze(-1), -1)
        return self.head((share.unsqueeze(-1) * z).sum(1))


def test_a_parameter_whose_gradient_is_rounding_alone_couples_nothing():
    loss = nn.CrossEntropyLoss()
    for seed in range(20):  # of which one in ten was refused
        torch.manual_seed(seed)
        model, x = Pooling(), torch.randn(32, 12, 8)
        Hessian(model, (x, torch.arange(32) % 3), loss=loss, micro_batch=8, **EVAL)


def partial_likelihood(outputs, _):
    """Cox's, in which each sample meets those before it: neither a sum nor a mean."""
    risks = outputs[:, 0]
    return -(risks - torch.logcumsumexp(risks, 0)).sum()


def test_a_loss_that_couples_has_no_other_reduction():
    for seed in range(6):  # of which three were told that they take a mean
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16))
        batches = [(torch.randn(16, 6), torch.randn(16, 16)) for _ in range(3)]
        Hessian(model, batches, loss=partial_likelihood, reduction="sum", **EVAL)


class TestTokens:
    """Language models in miniature: dicts whose labels may be ignored."""

    VOCABULARY = 11

    def model(self):
        torch.manual_seed(0)
        layers = nn.Embedding(self.VOCABULARY, 5), nn.Tanh(), nn.Linear(5, 11)
        return nn.Sequential(*layers).double()

    def batch(self, samples, length, seed=0):
        generator = torch.Generator().manual_seed(seed)
        shape = samples, length
        tokens = torch.randint(0, self.VOCABULARY, shape, generator=generator)
        masked = torch.rand(shape, generator=generator)
        shares = torch.linspace(0.05, 1, samples)[:, None]
        return {"input_ids": tokens, "labels": tokens.where(masked < shares, -100)}

    @staticmethod
    def loss(causal):
        def of(model, batch):
            outputs, labels = model(batch["input_ids"]), batch["labels"]
            if causal:
                outputs, labels = outputs[:, :-1], labels[:, 1:]
            return functional.cross_entropy(outputs.flatten(0, 1), labels.flatten())

        return of

    @pytest.mark.parametrize("causal", [False, True])
    @pytest.mark.parametrize("micro_batch", [1, 3])
    def test_in_pieces(self, causal, micro_batch):
        model, batch = self.model(), self.batch(9, 6)
        given = {"loss": self.loss(causal), **EVAL}
        whole = Hessian(model, batch, **given)
        pieces = Hessian(model, batch, micro_batch=micro_batch, **given)
        multiplies_as(pieces, whole, rtol=1e-12)

    @pytest.mark.parametrize("causal", [False, True])
    def test_in_batches_of_several_lengths(self, causal):
        """The mean over all targets, which is that of one batch padded with -100."""
        model, short, long = self.model(), self.batch(4, 3), self.batch(6, 8, seed=1)
        padding = {"input_ids": 0, "labels": -100}
        padded = {
            key: torch.cat([functional.pad(short[key], (0, 5), value=fill), long[key]])
            for key, fill in padding.items()
        }
        given = {"loss": self.loss(causal), **EVAL}
        wanted = Hessian(model, padded, **given)
        multiplies_as(Hessian(model, [short, long], **given), wanted, rtol=1e-12)
