"""Every check fires on a broken set-up and is silent on its repaired twin."""

import copy
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from theodolite.survey import find, survey
from theodolite.survey.checks.first_aid import ORDER

N, WIDTH = 64, 8
X = torch.randn(N, WIDTH, generator=torch.Generator().manual_seed(0))
LABELS = (X[:, 0] > 0).long() + (X[:, 1] > 0).long()
VALUES = X[:, :1] * X[:, 1:2]
IMAGES = torch.randn(N, 3, 6, 6, generator=torch.Generator().manual_seed(1))
SERIES = torch.randn(N, 10, 4, generator=torch.Generator().manual_seed(2))
TOKENS = torch.randint(12, (N, 9), generator=torch.Generator().manual_seed(3))


def layers(*sizes: int) -> nn.Sequential:
    parts = [part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*parts[:-1])


def mlp(*more: nn.Module, out: int = 3) -> nn.Sequential:
    return nn.Sequential(*layers(WIDTH, 32, out), *more)


class Of(nn.Module):
    """A forward pass given as a function of the parts and the inputs."""

    def __init__(self, forward, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self._forward = forward

    def forward(self, x: Tensor) -> Tensor:
        return self._forward(self, x)


def classes(model, x=X, labels=LABELS, rate=0.1, optimizer=None, loss=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=rate)
    return model, (x, labels), loss or nn.CrossEntropyLoss(), optimizer


def numbers(model, x=X, values=VALUES, rate=0.01, loss=None):
    return classes(model, x, values, rate, loss=loss or nn.MSELoss())


def norm(kind=nn.BatchNorm1d, **settings) -> nn.Sequential:
    body = nn.Sequential(nn.Linear(WIDTH, 32), kind(32, **settings), nn.ReLU())
    return nn.Sequential(*body, nn.Linear(32, 3))


def changed(model, change):
    change(model)
    return model


def cut(operation):
    parts = {"body": nn.Linear(WIDTH, 32), "head": nn.Linear(32, 3)}
    return Of(lambda me, x: me.head(operation(me.body(x)).relu()), **parts)


def listed(kind):
    many = [nn.Linear(WIDTH, WIDTH) for _ in range(2)]
    parts = {"body": kind(many), "head": nn.Linear(WIDTH, 3)}
    return Of(lambda me, x: me.head(me.body[1](me.body[0](x).relu()).relu()), **parts)


def trained(part, **settings):
    model = mlp()
    return classes(model, optimizer=torch.optim.SGD(part(model), lr=0.1, **settings))


def stale(value):
    model = norm()
    model[1].running_var.fill_(value)
    model[1].running_mean.fill_(0.1)
    model[1].eval()
    return classes(model)


def convolved(norm_of):
    parts = {"conv": nn.Conv1d(4, 8, 3, padding=1), "norm": nn.LayerNorm(norm_of)}
    return Of(
        lambda me, x: me.head(me.norm(me.conv(x.mT)).relu().flatten(1)),
        head=nn.Linear(80, 3),
        **parts,
    )


def attention(scale=1.0, axis=-1):
    parts = {"q": nn.Linear(4, 8), "k": nn.Linear(4, 8), "v": nn.Linear(4, 8)}

    def forward(me, x):
        scores = scale * me.q(x) @ me.k(x).mT / 8**0.5
        return me.head((scores.softmax(axis) @ me.v(x)).relu().mean(1))

    return Of(forward, head=nn.Linear(8, 3), **parts)


def language(causal, tokens=12):
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)
    words = TOKENS % tokens
    mask = nn.Transformer.generate_square_subsequent_mask(8)

    def forward(me, x):
        hidden = me.layer(me.embedding(x), src_mask=mask if causal else None)
        return me.head(hidden).mT

    parts = {"embedding": nn.Embedding(tokens, 16), "head": nn.Linear(16, tokens)}
    model = Of(forward, layer=layer, **parts)
    return classes(model, words[:, :-1], words[:, 1:])


def recurrent(place=-1, first=True):
    parts = {"rnn": nn.GRU(4, 8, batch_first=first), "head": nn.Linear(8, 3)}
    return Of(lambda me, x: me.head(me.rnn(x)[0][:, place]), **parts)


def sums(column):
    parts = {"one": nn.Linear(WIDTH, 1), "two": nn.Linear(WIDTH, 1)}

    def forward(me, x):
        one = me.one(x).tanh()
        return (one + (me.two(x) if column else me.two(x)[:, 0])).mean(1, keepdim=True)

    return numbers(Of(forward, **parts))


def detached(model, batch, keep=True):
    outputs = model(batch[0])
    extra = outputs if keep else outputs.detach()
    return functional.mse_loss(extra, batch[1]) + 1e-3 * outputs.square().mean()


def backbone(used):
    """A frozen body before a head; trained weights leave the range of new ones."""
    body = layers(WIDTH, 32, 32, 32).requires_grad_(False)
    for part in body:
        if used and isinstance(part, nn.Linear):
            part.weight.data *= 1.5
    return classes(nn.Sequential(body, nn.ReLU(), nn.Linear(32, 3)))


def cosines(scale):
    def forward(me, x):
        one, two = (functional.normalize(t, dim=1) for t in (me.f(x), me.classes))
        out = one @ two.T
        return out if scale == 1.0 else scale * out

    parts = {"f": mlp(out=8), "classes": nn.Parameter(torch.randn(9, 8))}
    return classes(Of(forward, **parts))


def of_one_batch_norm(shared):
    parts = {n: nn.Linear(8, 8) for n in ("one", "two")}
    parts |= {"norm": nn.BatchNorm1d(8), "more": nn.BatchNorm1d(8)}

    def forward(me, x):
        x = me.norm(me.one(x)).relu()
        return me.head((me.norm if shared else me.more)(me.two(x)).relu())

    model = Of(forward, head=nn.Linear(8, 3), **parts)
    if shared:
        del model.more
    return classes(model)


def shifted(normalised):
    level = torch.randn(N, 1, generator=torch.Generator().manual_seed(5))
    norms = [nn.InstanceNorm1d(1)] if normalised else [nn.Identity()]
    model = nn.Sequential(*norms, nn.Flatten(), *layers(8, 32, 1))
    return numbers(model, (X + 3 * level)[:, None], level)


def matched(sign):
    """Two views of each sample that are to be nearest neighbours."""
    other = X + 0.1 * SERIES[:, 0, :1]

    def loss(outputs, targets):
        scores = sign * torch.cdist(outputs, outputs.roll(1, 1) + 0 * targets) / 0.1
        return functional.cross_entropy(scores, torch.arange(N))

    return numbers(layers(WIDTH, 32, 8), values=other, loss=loss)


class Coder(nn.Module):
    """A variational autoencoder."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = layers(WIDTH, 32, 8), layers(4, 32, WIDTH)

    def forward(self, x):
        mean, logs = self.encode(x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (0.5 * logs).exp()
        return self.decode(code), mean, logs


def coded(beta):
    def loss(outputs, targets):
        made, mean, logs = outputs
        prior = 0.5 * (mean.pow(2) + logs.exp() - 1 - logs).sum(1).mean()
        return functional.mse_loss(made, targets) + beta * prior

    return numbers(Coder(), values=0.3 * X, x=0.3 * X, loss=loss)


def in_order(order):
    order = torch.as_tensor(list(order))
    batches = [(X[i], LABELS[i]) for i in order.chunk(8)]
    model, _, loss, optimizer = classes(mlp())
    return model, batches, loss, optimizer


def waves(factor):
    parts = {n: nn.Linear(8, 8) for n in ("one", "two")}
    torch.nn.init.normal_(parts["two"].weight, std=0.7)

    def forward(me, x):
        return me.head((factor * me.two(me.one(x).sin())).sin())

    return classes(Of(forward, head=nn.Linear(8, 3), **parts))


def bag(placed):
    places = nn.Parameter(torch.randn(9, 16))
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True)

    def forward(me, x):
        hidden = me.embedding(x) + (me.places if placed else 0)
        return me.head(me.layer(hidden).mean(1))

    parts = {"embedding": nn.Embedding(12, 16), "head": nn.Linear(16, 3)}
    parts |= {"places": places} if placed else {}
    return classes(Of(forward, layer=layer, **parts), TOKENS, TOKENS[:, 0] % 3)


def long_memory(factor):
    rnn = nn.RNN(4, 8, batch_first=True)
    nn.init.orthogonal_(rnn.weight_hh_l0, gain=factor)
    model = Of(
        lambda me, x: me.head(me.rnn(x)[0][:, -1]), rnn=rnn, head=nn.Linear(8, 3)
    )
    return classes(model, SERIES, torch.arange(N) % 3, rate=0.01)


BAD = X.clone()
BAD[3, 3] = torch.nan
LEAK = torch.cat([X, VALUES], 1)
PAIRS = {
    "inputs-not-finite": (lambda: classes(mlp(), BAD), lambda: classes(mlp())),
    "inputs-unscaled": (lambda: classes(mlp(), 200 + 80 * X), lambda: classes(mlp())),
    "target-in-inputs": (
        lambda: numbers(layers(WIDTH + 1, 32, 1), LEAK),
        lambda: numbers(mlp(out=1)),
    ),
    "columns-idle": (
        lambda: classes(layers(16, 32, 3), torch.cat([X, X], 1)),
        lambda: classes(mlp()),
    ),
    "axes-mixed-by-view": (
        lambda: classes(
            Of(lambda me, x: me.f(x.view(N, 4, 10).flatten(1)), f=layers(40, 8, 3)),
            SERIES,
        ),
        lambda: classes(
            Of(lambda me, x: me.f(x.mT.flatten(1)), f=layers(40, 8, 3)), SERIES
        ),
    ),
    "loss-without-gradient": (
        lambda: classes(Of(lambda me, x: me.f(x).detach(), f=mlp())),
        lambda: classes(mlp()),
    ),
    "every-gradient-zero": (
        lambda: classes(Of(lambda me, x: me.f(x).sign(), f=mlp())),
        lambda: classes(mlp()),
    ),
    "not-registered": (
        lambda: classes(listed(list)),
        lambda: classes(listed(nn.ModuleList)),
    ),
    "not-in-optimizer": (
        lambda: trained(lambda m: m[0].parameters()),
        lambda: trained(lambda m: m.parameters()),
    ),
    "no-gradient": (
        lambda: classes(cut(Tensor.detach)),
        lambda: classes(cut(Tensor.tanh)),
    ),
    "frozen-at-random": (lambda: backbone(False), lambda: backbone(True)),
    "weights-all-equal": (
        lambda: classes(changed(mlp(), lambda m: nn.init.constant_(m[0].weight, 0.1))),
        lambda: classes(changed(mlp(), lambda m: nn.init.constant_(m[2].weight, 0.1))),
    ),
    "loss-term-without-gradient": (
        lambda: numbers(
            mlp(out=1), loss=lambda model, batch: detached(model, batch, False)
        ),
        lambda: numbers(mlp(out=1), loss=lambda model, batch: detached(model, batch)),
    ),
    "training-in-eval-mode": (
        lambda: classes(norm().eval()),
        lambda: classes(norm()),
    ),
    "dropout-too-strong": (
        lambda: classes(
            nn.Sequential(
                nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.95), nn.Linear(32, 3)
            )
        ),
        lambda: classes(
            nn.Sequential(
                nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3)
            )
        ),
    ),
    "odd-norm-setting": (lambda: classes(norm(momentum=0.0)), lambda: classes(norm())),
    "batch-norm-of-few": (
        lambda: classes(norm(), X[:3], LABELS[:3]),
        lambda: classes(norm()),
    ),
    "running-statistics-far": (lambda: stale(1e5), lambda: stale(0.3)),
    "norm-removes-signal": (
        lambda: classes(
            nn.Sequential(
                nn.Unflatten(1, (8, 1)), nn.LayerNorm(1), nn.Flatten(), *mlp()
            )
        ),
        lambda: classes(nn.Sequential(nn.LayerNorm(8), *mlp())),
    ),
    "norm-over-wrong-axis": (
        lambda: classes(convolved(10), SERIES),
        lambda: classes(convolved((8, 10)), SERIES),
    ),
    "norm-on-outputs": (
        lambda: numbers(mlp(nn.BatchNorm1d(1), out=1)),
        lambda: numbers(mlp(out=1)),
    ),
    "odd-optimizer-setting": (
        lambda: trained(lambda m: m.parameters(), momentum=0.999),
        lambda: trained(lambda m: m.parameters(), momentum=0.9),
    ),
    "decay-too-strong": (
        lambda: trained(lambda m: m.parameters(), weight_decay=0.9),
        lambda: trained(lambda m: m.parameters(), weight_decay=1e-4),
    ),
    "shapes-broadcast": (
        lambda: numbers(mlp(out=1), values=VALUES[:, 0]),
        lambda: numbers(mlp(out=1)),
    ),
    "softmax-of-one": (
        lambda: numbers(mlp(nn.Softmax(1), out=1)),
        lambda: numbers(mlp(out=1)),
    ),
    "softmax-over-batch": (
        lambda: numbers(
            mlp(nn.Softmax(0)), values=functional.one_hot(LABELS, 3).float(), rate=0.3
        ),
        lambda: numbers(
            mlp(nn.Softmax(1)), values=functional.one_hot(LABELS, 3).float(), rate=0.3
        ),
    ),
    "probabilities-as-logits": (
        lambda: classes(mlp(nn.Softmax(1))),
        lambda: classes(mlp()),
    ),
    "targets-out-of-reach": (
        lambda: numbers(mlp(nn.Sigmoid(), out=1)),
        lambda: numbers(mlp(out=1)),
    ),
    "labels-constant": (
        lambda: classes(mlp(), labels=0 * LABELS),
        lambda: classes(mlp()),
    ),
    "square-loss-on-classes": (
        lambda: numbers(
            mlp(out=1),
            values=LABELS,
            loss=lambda out, y: functional.mse_loss(out[:, 0], y.float()),
        ),
        lambda: classes(mlp()),
    ),
    "loss-below-zero": (
        lambda: numbers(mlp(out=1), loss=lambda out, y: -functional.mse_loss(out, y)),
        lambda: numbers(mlp(out=1), loss=lambda out, y: functional.mse_loss(out, y)),
    ),
    "summed-loss": (
        lambda: numbers(mlp(out=1), rate=0.1, loss=nn.MSELoss(reduction="sum")),
        lambda: numbers(mlp(out=1), rate=0.1),
    ),
    "no-activation": (
        lambda: classes(nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 3))),
        lambda: classes(mlp()),
    ),
    "addition-broadcasts": (lambda: sums(False), lambda: sums(True)),
    "one-module-for-several": (
        lambda: of_one_batch_norm(True),
        lambda: of_one_batch_norm(False),
    ),
    "sees-the-future": (lambda: language(False), lambda: language(True)),
    "samples-mixed": (
        lambda: classes(recurrent(first=False), SERIES),
        lambda: classes(recurrent(), SERIES),
    ),
    "attention-axis": (
        lambda: classes(attention(axis=-2), SERIES),
        lambda: classes(attention(), SERIES),
    ),
    "attention-one-hot": (
        lambda: classes(attention(scale=900.0), SERIES),
        lambda: classes(attention(), SERIES),
    ),
    "inputs-without-effect": (
        lambda: classes(Of(lambda me, x: me.f(torch.ones_like(x)), f=mlp())),
        lambda: classes(mlp()),
    ),
    "not-log-probabilities": (
        lambda: classes(mlp(), loss=nn.NLLLoss()),
        lambda: classes(mlp(nn.LogSoftmax(1)), loss=nn.NLLLoss()),
    ),
    "prior-outweighs": (lambda: coded(1.0), lambda: coded(0.01)),
    "targets-unscaled": (
        lambda: numbers(mlp(out=1), values=1000 + 50 * VALUES, rate=1e-5),
        lambda: numbers(mlp(out=1)),
    ),
    "batches-sorted": (lambda: in_order(LABELS.argsort()), lambda: in_order(range(N))),
    "sine-wraps-around": (lambda: waves(30.0), lambda: waves(1.0)),
    "order-ignored": (lambda: bag(False), lambda: bag(True)),
    "gradient-lost-in-time": (lambda: long_memory(1e-3), lambda: long_memory(1.0)),
    "loss-starts-high": (
        lambda: classes(
            changed(mlp(), lambda m: m[2].weight.data.mul_(1e4)), rate=1e-5
        ),
        lambda: classes(mlp()),
    ),
    "does-not-run": (
        lambda: classes(
            nn.Sequential(nn.Conv2d(3, 8, 6), nn.InstanceNorm2d(8), nn.Flatten()),
            IMAGES,
        ),
        lambda: classes(nn.Sequential(nn.Conv2d(3, 8, 6), nn.Flatten()), IMAGES),
    ),
    "rate-too-large": (lambda: classes(mlp(), rate=300.0), lambda: classes(mlp())),
    "nothing-moves": (lambda: classes(mlp(), rate=1e-8), lambda: classes(mlp())),
}


def fired(make):
    torch.manual_seed(0)
    model, batch, loss, optimizer = make()
    before = copy.deepcopy(model.state_dict())
    result = survey(
        model,
        batch,
        loss=loss,
        optimizer=optimizer,
        measures=["checks"],
        tries=False,
        progress=False,
    )
    torch.testing.assert_close(
        model.state_dict(), before, rtol=0, atol=0, equal_nan=True
    )
    assert not optimizer.state
    return {finding.rule: finding for finding in find(result)}


@pytest.mark.parametrize("name", PAIRS)
def test_a_check_fires_on_the_broken_one_and_is_silent_on_the_twin(name):
    broken, twin = PAIRS[name]
    assert name in fired(broken)
    alarms = {f.rule for f in fired(twin).values() if f.severity in ("sick", "warning")}
    assert not alarms


def test_nearly_every_check_has_a_pair():
    from tests.survey import test_checks_in_use, test_checks_of_data, test_user_step

    files = (test_user_step, test_checks_of_data, test_checks_in_use)
    pairs = set(PAIRS).union(*(file.PAIRS for file in files))
    missing = {each.name for each in ORDER} - pairs
    # These are held against set-ups by other authors alone.
    assert missing == {
        "labels-shifted-twice",
        "loss-does-not-fall",
        "not-finite-in-training",
        "training-fails",
    }


def test_equal_weights_of_a_single_layer_are_sound():
    linear = nn.Linear(WIDTH, 3)
    assert not fired(
        lambda: classes(changed(linear, lambda m: nn.init.constant_(m.weight, 0.1)))
    )


def test_an_optimizer_may_leave_out_a_network_that_the_loss_does_not_reach():
    model = Of(lambda me, x: me.f(x), f=mlp(), other=mlp())
    optimizer = torch.optim.SGD(model.f.parameters(), lr=0.1)
    assert not fired(lambda: classes(model, optimizer=optimizer))


def test_a_network_that_learns_is_not_sick():
    found = fired(lambda: classes(mlp(nn.Softmax(1)), rate=1.0))
    assert {f.severity for f in found.values()} == {"warning"}


def test_a_linear_network_of_a_linear_problem_is_sound():
    linear = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 1))
    found = fired(lambda: numbers(linear, values=X[:, :1] - X[:, 1:2], rate=0.1))
    assert {r: f.severity for r, f in found.items()} == {"no-activation": "note"}


@pytest.mark.parametrize("end", [nn.Identity(), nn.Softmax(1), nn.LogSoftmax(1)])
def test_a_missing_activation_is_seen_through_the_last_one(end):
    linear = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 3), end)
    bent = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3), end)
    for weight in bent.parameters():
        weight.data *= 0.1
    assert "no-activation" in fired(lambda: classes(linear, loss=nn.NLLLoss()))
    assert "no-activation" not in fired(lambda: classes(bent, loss=nn.NLLLoss()))


@pytest.mark.parametrize(("rare", "severity"), [(0, "sick"), (1, "warning")])
def test_targets_that_are_nearly_all_the_same_are_found(rare, severity):
    found = fired(lambda: classes(mlp(), labels=(torch.arange(N) < rare).long()))
    assert found["labels-constant"].severity == severity


def test_dropout_that_is_off_is_a_note():
    model = mlp(nn.ReLU(), nn.Dropout(0.1), nn.Linear(3, 3)).eval()
    found = fired(lambda: classes(model))
    assert {r: f.severity for r, f in found.items()} == {
        "training-in-eval-mode": "note"
    }


def test_one_input_that_is_the_target_is_found():
    class Copier(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.head = nn.Embedding(12, 8), nn.Linear(8, 12)

        def forward(self, x, wanted):
            return self.head(self.tokens(x) + self.tokens(wanted)).mT

    def given(labels):
        return classes(Copier(), (TOKENS[:, :-1], TOKENS[:, 1:]), labels)

    assert "target-in-inputs" in fired(lambda: given(TOKENS[:, 1:]))
    assert "target-in-inputs" not in fired(lambda: given(TOKENS[:, :-1] % 3))


def test_a_causal_network_of_as_many_positions_as_classes_does_not_see_the_future():
    assert not fired(lambda: language(True, tokens=8))


def test_repairs_of_checks_run_and_are_known_as_ours():
    from theodolite.survey import apply_advice
    from theodolite.survey.advice.applying import copied

    torch.manual_seed(0)
    model, batch, loss, optimizer = trained(lambda m: m[0].parameters())
    result = survey(
        model,
        batch,
        loss=loss,
        optimizer=optimizer,
        measures=["checks"],
        progress=False,
    )
    (advice,) = (a for a in result.advice if a.rule == "not-in-optimizer")
    treated = apply_advice(advice, copied(model, optimizer), batch[0])
    assert [len(g["params"]) for g in treated.optimizer.param_groups] == [2, 2]
    assert [len(g["params"]) for g in optimizer.param_groups] == [2]
