"""The checks train in place: all that they touch is as found after, and none raises."""

import warnings
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR

from tests.instruments.test_preservation import portrait
from theodolite.core import StopCheck
from theodolite.survey import survey

X = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] > 0).long()


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))


def checked(model, optimizer=None, loss=None, batch=(X, Y)):
    loss = nn.CrossEntropyLoss() if loss is None else loss
    return survey(
        model, batch, loss=loss, optimizer=optimizer, measures=["checks"],
        progress=False,
    )  # fmt: skip


def fired(result):
    return {row["rule"] for row in result.rows() if row.get("quantity") == "check"}


def tensor_facts(tensor: Tensor):
    grad = tensor.grad if tensor.is_leaf else None
    kept = None if grad is None else (id(grad), grad.to_dense().tolist())
    values = tensor.detach().tolist()
    return id(tensor), tensor.data_ptr(), values, tensor.requires_grad, kept


def picture(value, depth=6):
    """Describe a value by identity and by entries, as far as it holds others."""
    if isinstance(value, Tensor):
        return tensor_facts(value)
    if isinstance(value, torch.optim.Optimizer):
        return id(value), picture(vars(value), depth - 1)
    if depth and isinstance(value, dict):
        pairs = [(id(k), picture(v, depth - 1)) for k, v in value.items()]
        return id(value), pairs
    if depth and isinstance(value, list | tuple):
        return id(value), [picture(v, depth - 1) for v in value]
    return repr(value)


class Plain(torch.optim.Optimizer):
    """Replaces the data of parameters, as many optimisers of users do."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})
        self.count, self.past = 0, []

    def step(self, closure: Any = None) -> Any:
        self.count += 1
        self.past.append(self.count)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.data = p.data - group["lr"] * p.grad


class Around(torch.optim.Optimizer):
    """Steps another optimiser, as SAM and Lookahead do."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})
        self.base = torch.optim.Adam(self.param_groups, lr=lr)

    def step(self, closure: Any = None) -> Any:
        return self.base.step(closure)


def scheduled(params):
    optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9)
    vars(optimizer)["schedule"] = StepLR(optimizer, 1)
    return optimizer


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, amsgrad=True, foreach=True),
    "fused": lambda p: torch.optim.AdamW(p, fused=True),
    "rate in a tensor": lambda p: torch.optim.Adam(p, lr=torch.tensor(1e-3)),
    "lbfgs": lambda p: torch.optim.LBFGS(p, max_iter=2),
    "rprop": torch.optim.Rprop,
    "scheduled": scheduled,
    "replaces data": Plain,
    "around another": Around,
    "an empty group": lambda p: torch.optim.SGD(
        [{"params": list(p)}, {"params": []}], lr=0.1
    ),
}


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_optimizer_is_as_found(kind, used):
    model = net()
    optimizer = OPTIMIZERS[kind](model.parameters())

    def loss():
        optimizer.zero_grad()
        value = nn.functional.cross_entropy(model(X), Y)
        value.backward()
        return value

    if used:
        for _ in range(2):
            optimizer.step(loss)
    before = picture(optimizer), picture(list(model.buffers()))[1]
    drawn = portrait(model)[1:]
    found = fired(checked(model, optimizer))
    assert (picture(optimizer), picture(list(model.buffers()))[1]) == before
    assert portrait(model)[1:] == drawn
    assert "training-fails" not in found


class Criterion(nn.Module):
    """A loss with a weight, a buffer, a counter and a list of its own."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(()))
        self.count, self.past = 0, []

    def forward(self, outputs, targets):
        self.count += 1
        self.past.append(self.count)
        self.get_buffer("mean").add_(outputs.detach().mean())
        return nn.functional.cross_entropy(outputs * self.scale, targets)


@pytest.mark.parametrize("trained", [False, True])
def test_a_loss_with_state_is_as_found(trained):
    model, loss = net(), Criterion()
    parameters = [*model.parameters(), *(loss.parameters() if trained else ())]
    optimizer = torch.optim.Adam(parameters, lr=0.1)
    before = picture([*loss.parameters(), loss.mean, loss.count, loss.past])[1]
    checked(model, optimizer, loss)
    after = picture([*loss.parameters(), loss.mean, loss.count, loss.past])[1]
    assert after == before


def test_another_model_of_the_optimizer_is_as_found():
    model, other = net(), net()
    nn.functional.cross_entropy(other(X), Y).backward()
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1, weight_decay=0.1)
    before = picture(list(other.parameters()))[1]
    checked(model, optimizer)
    assert picture(list(other.parameters()))[1] == before


def test_steps_inside_of_backward_leave_their_optimizers_as_found():
    model = net()
    own = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in model.parameters()}
    for p in own:
        p.register_post_accumulate_grad_hook(lambda p: own[p].step())
    checked(model)
    assert not any(optimizer.state for optimizer in own.values())
    nn.functional.cross_entropy(model(X), Y).backward()
    assert all(optimizer.state for optimizer in own.values())


class Stop(BaseException):
    pass


@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyboardInterrupt, Stop])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_an_end_inside_of_the_optimizer_leaves_all_as_found(error, share):
    model, calls = net(), [0, 10**9]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def stop(*_):
        calls[0] += 1
        if calls[0] >= calls[1]:
            raise error("inside")

    optimizer.register_step_post_hook(stop)
    checked(model, optimizer)
    calls[:] = [0, int(share * calls[0])]
    before = picture(optimizer)
    with suppress(Stop):
        checked(model, optimizer)
    assert picture(optimizer) == before


@pytest.mark.parametrize("share", [0.1, 0.4, 0.7, 0.95])
def test_a_time_limit_at_a_safe_point_leaves_all_as_found(share):
    model, loss, left = net(), Criterion(), [10**9]
    optimizer = torch.optim.Adam([*model.parameters(), *loss.parameters()])

    def stop():
        left[0] -= 1
        if not left[0]:
            raise Stop

    with StopCheck(stop):
        checked(model, optimizer, loss)
    left[0] = int(share * (10**9 - left[0]))
    before = picture(optimizer), loss.count
    with pytest.raises(Stop), StopCheck(stop):
        checked(model, optimizer, loss)
    assert (picture(optimizer), loss.count) == before


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_modes_of_the_caller_change_no_finding(mode):
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    outside = repr(list(checked(model, optimizer).rows()))
    assert repr(list(checked(model, optimizer).rows())) == outside
    with mode():
        inside = repr(list(checked(model, optimizer).rows()))
    assert inside == outside


class Of(nn.Module):
    """A forward pass given as a function of the outputs of one layer."""

    def __init__(self, forward, layer=None):
        super().__init__()
        self.layer, self._forward = layer or nn.Linear(4, 2), forward

    def forward(self, x):
        return self._forward(self.layer(x))


def sparse():
    return Of(lambda e: e.mean(1), nn.Embedding(9, 2, sparse=True))


def first(model, batch):
    return nn.functional.cross_entropy(next(iter(model(batch[0]).values())), batch[1])


TOKENS = torch.randint(9, (16, 5), generator=torch.Generator().manual_seed(1))
CROSS = nn.CrossEntropyLoss()
ODD = {
    "dict": (lambda: Of(lambda z: {"logits": z}), (X, Y), first),
    "tuple": (
        lambda: Of(lambda z: (z, None)),
        (X, Y),
        lambda model, batch: CROSS(model(batch[0])[0], batch[1]),
    ),
    "no parameters": (nn.Identity, (X, Y), CROSS),
    "complex": (
        lambda: Of(torch.fft.fft),
        (X, Y),
        lambda model, batch: model(batch[0]).abs().square().mean(),
    ),
    "complex weights": (
        lambda: nn.Linear(4, 2, dtype=torch.complex64),
        (X.to(torch.complex64), Y),
        lambda model, batch: model(batch[0]).abs().square().mean(),
    ),
    "integers": (
        lambda: Of(lambda e: e.mean(1), nn.Embedding(9, 2)),
        (TOKENS, Y),
        CROSS,
    ),
    "sparse gradients": (sparse, (TOKENS, Y), CROSS),
    "nan": (lambda: Of(lambda z: z * torch.nan), (X, Y), CROSS),
    "no loss": (lambda: Of(lambda z: z), (X, Y), None),
    "frozen": (lambda: net().requires_grad_(False), (X, Y), CROSS),
    "one sample": (lambda: Of(lambda z: z), (X[:1], Y[:1]), CROSS),
}


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("kind", ODD)
def test_odd_models_give_findings_and_no_foreign_error(kind, optimized):
    build, batch, loss = ODD[kind]
    model = build()
    before = picture(list(model.parameters()))[1]
    held = list(model.parameters()) or [nn.Parameter(torch.ones(1))]
    optimizer = torch.optim.SGD(held, lr=0.1) if optimized else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = survey(
            model, batch, loss=loss, optimizer=optimizer, measures=["checks"],
            progress=False,
        )  # fmt: skip
    assert picture(list(model.parameters()))[1] == before
    assert [outcome.status for outcome in result.measured] == ["done"]
    assert result.unsupported == ()
    if kind == "sparse gradients" and optimized:
        assert "training-fails" not in fired(result)


def test_a_graph_made_before_can_be_differentiated_after():
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    value = nn.functional.cross_entropy(model(X), Y)
    checked(model, optimizer)
    value.backward()
