"""Checks of data, joints and biases: each fires on a broken set-up, not on its twin."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.survey.test_checks import (
    TOKENS,
    WIDTH,
    Of,
    X,
    changed,
    classes,
    fired,
    layers,
    mlp,
    numbers,
)

MANY = torch.randn(320, WIDTH, generator=torch.Generator().manual_seed(6))
KINDS = (MANY[:, 0] > 0).long() + 2 * (MANY[:, 1] > 0).long()
UNEVEN = (X[:, 0] > 1.2).long()


def joined(itself):
    def forward(me, x):
        one, two = me.one(x).relu(), me.two(x).relu()
        return me.head(torch.cat([one, one if itself else two], 1))

    parts = {name: nn.Linear(WIDTH, 16) for name in ("one", "two")}
    return classes(Of(forward, head=nn.Linear(32, 3), **parts))


def drawn(sample):
    def forward(me, x):
        mean, raw = me.body(x).chunk(2, 1)
        normal = torch.distributions.Normal(mean, functional.softplus(raw) + 0.01)
        return me.head(normal.sample() if sample else normal.rsample())

    return classes(Of(forward, body=nn.Linear(WIDTH, 32), head=nn.Linear(16, 3)))


def residual(create):
    def loss(model, batch):
        x = batch[0].clone().requires_grad_()
        first = torch.autograd.grad(model(x).sum(), x, create_graph=True)[0]
        again = torch.autograd.grad(first.sum(), x, create_graph=create)[0]
        made = model(batch[0])
        return (again + x).square().mean() + 0.1 * made.square().mean()

    model = nn.Sequential(nn.Linear(WIDTH, 32), nn.Tanh(), nn.Linear(32, 1))
    return numbers(model, loss=loss)


def rows(by_row):
    table = X * torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 800]) + 3 * torch.arange(8.0) ** 3
    axis = 1 if by_row else 0
    table = (table - table.mean(axis, keepdim=True)) / table.std(axis, keepdim=True)
    return classes(mlp(), table)


def pictures(viewed):
    rough = torch.randn(64, 3, 4, 4, generator=torch.Generator().manual_seed(7))
    smooth = functional.interpolate(rough, scale_factor=3.0)
    read = smooth.permute(0, 2, 3, 1).contiguous()  # as an image reader gives it
    x = read.view(64, 3, 12, 12) if viewed else smooth
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
    model(x)
    return classes(model, x, rate=0.01)


def shut(amount):
    model = layers(WIDTH, 32, 32, 3)
    return classes(changed(model, lambda m: nn.init.constant_(m[2].bias, amount)))


def vectors(freeze):
    table = torch.randn(12, 8, generator=torch.Generator().manual_seed(8))
    table[:6] = 0
    embedding = nn.Embedding.from_pretrained(table, freeze=freeze)
    model = nn.Sequential(embedding, nn.Flatten(), nn.Linear(72, 3))
    return classes(model, TOKENS, TOKENS[:, 0] % 3, rate=0.01)


def in_batches(order):
    model = layers(WIDTH, 64, 4)
    targets = KINDS[order]
    batches = [(MANY[n : n + 32], targets[n : n + 32]) for n in range(0, 320, 32)]
    return (
        model,
        batches,
        nn.CrossEntropyLoss(),
        torch.optim.Adam(model.parameters(), 0.01),
    )


def two_inputs(used):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 16), nn.Linear(4, 16)
            self.head = nn.Linear(16, 3)

        def forward(self, one, two):
            return self.head((self.one(one) + self.two(two if used else one)).relu())

    return classes(Two(), (X[:, :4].contiguous(), X[:, 4:].contiguous()))


def padded(inverted):
    tokens = functional.pad(TOKENS + 1, (0, 4))
    layer = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(me, x):
        hidden = me.embedding(x) + me.places
        mask = x != 0 if inverted else x == 0
        return me.head(
            me.layer(hidden, hidden, hidden, key_padding_mask=mask)[0].mean(1)
        )

    parts = {"embedding": nn.Embedding(13, 16), "head": nn.Linear(16, 3)}
    parts |= {"places": nn.Parameter(torch.randn(13, 16)), "layer": layer}
    return classes(Of(forward, **parts), tokens, TOKENS[:, 0] % 3)


def weighted(power):
    counts = torch.bincount(UNEVEN).float()
    loss = nn.CrossEntropyLoss(weight=counts**power)
    return classes(layers(WIDTH, 32, 2), labels=UNEVEN, loss=loss)


def turned(norm_of):
    def forward(me, x):
        hidden = me.embedding(x)
        hidden = me.norm(hidden.mT).mT if norm_of == 9 else me.norm(hidden)
        return me.head(hidden.flatten(1))

    parts = {"embedding": nn.Embedding(12, 8), "norm": nn.LayerNorm(norm_of)}
    return classes(Of(forward, head=nn.Linear(72, 3), **parts), TOKENS, rate=0.01)


ORDER = torch.randperm(320, generator=torch.Generator().manual_seed(9))
PAIRS = {
    "joined-with-itself": (lambda: joined(True), lambda: joined(False)),
    "sampled-without-gradient": (lambda: drawn(True), lambda: drawn(False)),
    "loss-term-without-gradient": (lambda: residual(False), lambda: residual(True)),
    "channels-cut-by-view": (lambda: pictures(True), lambda: pictures(False)),
    "biases-shut-units": (lambda: shut(-9.0), lambda: shut(-0.1)),
    "targets-unrelated": (
        lambda: in_batches(ORDER),
        lambda: in_batches(torch.arange(320)),
    ),
    "input-unused": (lambda: two_inputs(False), lambda: two_inputs(True)),
    "mask-inverted": (lambda: padded(True), lambda: padded(False)),
    "norm-over-wrong-axis": (lambda: turned(9), lambda: turned(8)),
    "nothing-moves": (
        lambda: classes(layers(WIDTH, 32, 3), rate=1e-3),
        lambda: classes(layers(WIDTH, 32, 3), rate=0.3),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_check_fires_on_the_broken_one_and_is_silent_on_the_twin(name):
    broken, twin = PAIRS[name]
    assert name in fired(broken)
    alarms = {f.rule for f in fired(twin).values() if f.severity in ("sick", "warning")}
    assert not alarms
