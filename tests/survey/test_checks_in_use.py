"""Checks of forward passes, readings of data and longer trials, in pairs."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.survey.cases import by_hand, done, row
from tests.survey.test_checks import (
    LABELS,
    SERIES,
    TOKENS,
    VALUES,
    WIDTH,
    N,
    Of,
    X,
    changed,
    classes,
    fired,
    layers,
    mlp,
    numbers,
    trained,
)
from theodolite.survey import find
from theodolite.survey.checks.chance import best_constant
from theodolite.survey.checks.first_aid import ORDER
from theodolite.survey.checks.seen import Seen

COUNTS = (X[:, :1].exp() * 3).floor()
EDGES = torch.randint(N, (2, 300), generator=torch.Generator().manual_seed(11))
SMOOTH = torch.randn(N, 12, 4, generator=torch.Generator().manual_seed(12)).cumsum(1)
SMOOTH = (SMOOTH - SMOOTH.mean((0, 1))) / SMOOTH.std((0, 1))


def dropped(follows):
    def forward(me, x):
        hidden = me.body(x).relu()
        on = me.training if follows else True
        return me.head(functional.dropout(hidden, 0.3, training=on))

    parts = {"body": nn.Linear(WIDTH, 32), "head": nn.Linear(32, 3)}
    return classes(Of(forward, **parts))


def zeroed(hidden):
    def forward(me, x):
        return me.head(me.norm(me.body(x)).relu())

    parts = {"body": nn.Linear(WIDTH, 32), "norm": nn.BatchNorm1d(32)}
    model = Of(forward, head=nn.Linear(32, 3), **parts)
    nn.init.zeros_((model.norm if hidden else model.head).weight)
    return classes(model)


def quantised(copied):
    def forward(me, x):
        z = me.body(x)
        code = me.table(torch.cdist(z, me.table.weight).argmin(1))
        penalty = (z - code.detach()).square().mean() + (
            z.detach() - code
        ).square().mean()
        return me.head(z + (code - z).detach() if copied else code), penalty

    def loss(outputs, wanted):
        return functional.mse_loss(outputs[0], wanted) + outputs[1]

    parts = {"body": layers(WIDTH, 32, 4), "table": nn.Embedding(16, 4)}
    return numbers(Of(forward, head=layers(4, 32, 1), **parts), loss=loss)


def graph(both):
    def forward(me, x):
        sent = me.send(x)[EDGES[0 if both else 1]]
        near = torch.zeros(N, 32).index_add(0, EDGES[1], sent)
        return me.head((me.keep(x) + 0.1 * near).relu())

    parts = {"send": nn.Linear(WIDTH, 32), "keep": nn.Linear(WIDTH, 32)}
    return classes(Of(forward, head=nn.Linear(32, 3), **parts))


def counted(twice):
    model = Of(lambda me, x: me.f(x).exp() if twice else me.f(x), f=mlp(out=1))
    return numbers(model, values=COUNTS, loss=nn.PoissonNLLLoss(), rate=1e-3)


def swapped(exchanged):
    def loss(outputs, wanted):
        pair = (wanted, outputs) if exchanged else (outputs, wanted)
        return functional.binary_cross_entropy(*pair)

    wanted = (X[:, :1] > 0).float() * 0.8 + 0.1
    return numbers(mlp(nn.Sigmoid(), out=1), values=wanted, loss=loss, rate=0.1)


def masked(inverted):
    known = torch.arange(WIDTH) < torch.randint(2, 7, (N, 1))
    wanted = torch.where(known, X.cumsum(1), 0.0)

    def loss(outputs, target):
        error = (outputs - target).square()
        mask = (target == 0) if inverted else (target != 0)
        return (error * mask).sum() / mask.sum()

    return numbers(mlp(out=WIDTH), values=wanted, loss=loss)


def several(same):
    model = mlp()
    batches = [(X[:16] + 0, LABELS[:16] + 0) for _ in range(5)]
    if not same:
        batches = [*zip(X.split(16), LABELS.split(16), strict=True)]
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, batches, nn.CrossEntropyLoss(), sgd


def remembered(kept):
    def forward(me, x):
        hidden = me.rnn(x, me.state if kept else None)[1]
        me.state = hidden.detach()
        return me.head(hidden[0])

    parts = {"rnn": nn.GRU(4, 8, batch_first=True), "head": nn.Linear(8, 3)}
    return classes(Of(forward, state=None, **parts), SERIES, rate=0.3)


def placed(by_sample):
    table = torch.randn(N, 9, 8, generator=torch.Generator().manual_seed(14))

    def forward(me, x):
        where = table[:, :1] if by_sample else table[:1]
        return me.head((me.embedding(x) + where).flatten(1))

    parts = {"embedding": nn.Embedding(12, 8), "head": nn.Linear(72, 3)}
    return classes(Of(forward, **parts), TOKENS, TOKENS[:, 0] % 3, rate=0.02)


def rated(rate):
    model = layers(WIDTH, 64, 64, 3)
    adam = torch.optim.Adam(model.parameters(), lr=rate)
    return classes(model, labels=(X[:, 0] * X[:, 1] > 0).long(), optimizer=adam)


class Wrong(nn.Module):
    """A norm that forgets to divide in eval mode."""

    def __init__(self, right):
        super().__init__()
        self.right = right
        self.register_buffer("mean", torch.zeros(32))

    def forward(self, x):
        if self.training or self.right:
            return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)
        return -100 * x + self.mean


def related(to_inputs):
    model = layers(WIDTH, 16, 3)
    x = torch.randn(3200, WIDTH)
    wanted = (x[:, 0] > 0).long() if to_inputs else torch.randint(3, (3200,))
    batches = [*zip(x.split(200), wanted.split(200), strict=True)]
    sgd = torch.optim.SGD(model.parameters(), lr=0.05)
    return model, batches, nn.CrossEntropyLoss(), sgd


def hinge(low):
    wanted = torch.where(X[:, :1] > 0, 1.0, float(low))

    def loss(outputs, target):
        return (1 - target * outputs).clamp(min=0).mean()

    return numbers(mlp(out=1), values=wanted, loss=loss, rate=0.1)


def hidden(added):
    parts = {n: nn.Linear(4, 8) for n in ("q", "k", "v")}

    def forward(me, x):
        mask = (x[:, None, :, 0] > 0.5).float()
        scores = me.q(x) @ me.k(x).mT / 8**0.5
        scores = scores + mask if added else scores.masked_fill(mask == 1, -1e9)
        return me.head((scores.softmax(-1) @ me.v(x)).relu().mean(1))

    labels = (SERIES[:, 0, 1] > 0).long()
    return classes(Of(forward, head=nn.Linear(8, 3), **parts), SERIES, labels, rate=1.0)


def two_columns(wide):
    wanted = torch.cat([VALUES, wide * X[:, 2:3]], 1)
    return numbers(mlp(out=2), values=wanted, rate=0.03)


PAIRS = {
    "targets-unscaled": (lambda: two_columns(80.0), lambda: two_columns(1.0)),
    "dropout-in-evaluation": (lambda: dropped(False), lambda: dropped(True)),
    "zeros-stay-zero": (lambda: zeroed(True), lambda: zeroed(False)),
    "choice-without-gradient": (lambda: quantised(False), lambda: quantised(True)),
    "rate-too-large": (lambda: rated(3.0), lambda: rated(3e-3)),
    "rate-too-small": (lambda: rated(7e-5), lambda: rated(3e-3)),
    "stays-at-chance": (lambda: related(False), lambda: related(True)),
    "odd-optimizer-setting": (
        lambda: trained(lambda m: m.parameters(), momentum=0.99),
        lambda: trained(lambda m: m.parameters(), momentum=0.9),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_check_fires_on_the_broken_one_and_is_silent_on_the_twin(name):
    broken, twin = PAIRS[name]
    assert name in fired(broken)
    alarms = {f.rule for f in fired(twin).values() if f.severity in ("sick", "warning")}
    assert not alarms


def repeated_dropout(p):
    parts = [nn.Linear(WIDTH, 32)]
    for _ in range(5):
        parts += [nn.ReLU(), nn.Dropout(p), nn.Linear(32, 32)]
    return classes(nn.Sequential(*parts, nn.ReLU(), nn.Linear(32, 3)), rate=0.3)


def within(high):
    return numbers(Of(lambda me, x: me.f(x).clamp(-9, high), f=mlp(out=1)))


def several_labels(end):
    wanted = (X[:, :3] > 0).float()
    return numbers(mlp(end, out=3), values=wanted, loss=nn.BCELoss(), rate=0.3)


@pytest.mark.parametrize(
    ("name", "broken", "twin"),
    [
        (
            "dropout-too-strong",
            lambda: repeated_dropout(0.5),
            lambda: repeated_dropout(0.1),
        ),
        ("targets-out-of-reach", lambda: within(0.0), lambda: within(9.0)),
        (
            "targets-out-of-reach",
            lambda: several_labels(nn.Softmax(1)),
            lambda: several_labels(nn.Sigmoid()),
        ),
    ],
)
def test_another_way_to_make_a_mistake_is_found_too(name, broken, twin):
    assert name in fired(broken)
    assert name not in fired(twin)


def test_no_check_reads_weights_that_change_when_they_are_read():
    model = changed(mlp(), lambda m: nn.utils.parametrizations.spectral_norm(m[0]))
    before = copy.deepcopy(model.train().state_dict())
    seen = Seen(model=model, batches=[(X, LABELS)], loss=nn.CrossEntropyLoss())
    for each in ORDER:
        each.look(seen)
        torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)


def test_values_of_one_column_follow_from_others():
    assert not fired(lambda: numbers(mlp(out=1), X, VALUES, rate=0.1))


def test_dead_units_of_a_network_that_learns_later_are_a_note():
    units = done("units", [row("units", "dead_share", 0.9, 0.01, module="a")])
    later = done("checks", [row("checks", "learns_later", 1.0, 0.0)])
    for more, severity in (((), "sick"), ((later,), "note")):
        found = find(replace(by_hand(), measured=(units, *more), findings=()))
        assert [(f.rule, f.severity) for f in found] == [("dead-units", severity)]


def test_the_best_constant_is_what_is_known_in_closed_form():
    labels = torch.tensor([0, 0, 0, 1, 2, 2])
    scores, wanted = torch.randn(6, 3), torch.randn(6, 2)
    shares = torch.tensor([3, 1, 2]) / 6
    entropy = -(shares * shares.log()).sum().item()
    cross, square = nn.CrossEntropyLoss(), nn.MSELoss()
    pair = [(scores, labels)]
    assert best_constant(scores, pair, cross) == pytest.approx(entropy, abs=1e-5)
    likely = scores.log_softmax(1)
    assert best_constant(likely, pair, nn.NLLLoss()) == pytest.approx(entropy, abs=1e-5)
    variance = wanted.var(0, unbiased=False).mean().item()
    found = best_constant(torch.randn(6, 2), [(scores, wanted)], square)
    assert found == pytest.approx(variance, abs=1e-6)
    assert best_constant(scores, pair, lambda out, y: out.sum()) is None
