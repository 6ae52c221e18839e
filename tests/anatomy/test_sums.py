"""Which sums are residual, and which only look so."""

import pytest
import torch
from torch.nn import functional as F

from tests.anatomy.functions import kinds, of


def test_what_is_written_over_is_gone():
    def forward(x, a, *_):
        kept = x.clone()
        kept.copy_(torch.zeros_like(x))
        return kept + a(x).relu()

    assert not of(forward).additions


# Each has one residual addition, of the kind of skip named.
RESIDUAL = {
    "in place": ("identity", lambda x, a, b, c: x.clone().add_(F.relu(a(x)))),
    "skip in place": ("identity", lambda x, a, b, c: a(x).relu_().add_(x)),
    "alpha": ("identity", lambda x, a, b, c: torch.add(x, F.relu(a(x)), alpha=0.1)),
    "out": ("identity", lambda x, a, b, c: into(x, F.relu(a(x)))),
    "view": ("identity", lambda x, a, b, c: x.view(2, 8) + F.relu(a(x)).view(2, 8)),
    "linear branch": ("identity", lambda x, a, b, c: x + b(a(x))),
    "doubled skip": ("scale", lambda x, a, b, c: 2 * x + F.relu(a(x))),
    "projection": ("projection", lambda x, a, b, c: c(x) + b(F.relu(a(x)))),
    "pooled": (
        "pool",
        lambda x, a, b, c: (
            F.max_pool1d(x[:, None], 2)[:, 0]
            + F.relu(a(x)).unflatten(1, (2, 2))[..., 0]
        ),
    ),
    "sliced": ("slice", lambda x, a, b, c: x[:, :2] + F.relu(a(x))[:, :2]),
    "in-place activation of a view": (
        "identity",
        lambda x, a, b, c: through_view(a(x), b),
    ),
    "no gradient": ("identity", lambda x, a, b, c: x + quiet(lambda: F.relu(a(x)))),
    "the same part twice": (
        "identity",
        lambda x, a, b, c: x[:, :2] + F.relu(a(F.pad(x[:, :2], (0, 2))))[:, :2],
    ),
    "linear mixing": (
        "identity",
        lambda x, a, b, c: x + torch.fft.fft(torch.complex(x, x)).real,
    ),
    "double precision": (
        "identity",
        lambda x, a, b, c: x.double() + a(x).relu().double(),
    ),
    "joined with addmm": (
        "identity",
        lambda x, a, b, c: torch.addmm(x, a(x).tanh(), b.weight),
    ),
    "a pool behind weights": (
        "identity",
        lambda x, a, b, c: x + a.bias * x.flip(0),
    ),
    "a norm as branch": (
        "identity",
        lambda x, a, b, c: x + F.layer_norm(x, (4,), a.bias, b.bias),
    ),
}
# Each has a sum of signals, and none that is residual.
OTHERS = {
    "bias": ([], lambda x, a, b, c: F.relu(a(x)) + b.bias),
    "noise": ([], lambda x, a, b, c: F.relu(a(x)) + torch.randn_like(x)),
    "twice": ([], lambda x, a, b, c: x + x),
    "centred": (["broadcast sum"], lambda x, a, b, c: a(x) - x.mean(1, keepdim=True)),
    "halves": (
        ["coupling"],
        lambda x, a, b, c: x[:, :2] + F.relu(a(F.pad(x[:, 2:], (0, 2))))[:, :2],
    ),
    "symmetric": (["fixed map"], lambda x, a, b, c: a(x.flip(0) + x)),
    "mean of views": (["fixed map"], lambda x, a, b, c: a(x[:2]) @ (x[:2] + x[2:]).T),
    "swish": ([], lambda x, a, b, c: a(x * torch.sigmoid(x))),
    "cubic": ([], lambda x, a, b, c: a(x + 0.1 * x.pow(3))),
    "leaky by hand": ([], lambda x, a, b, c: a(F.relu(x) - 0.1 * F.relu(-x))),
    "softmax by hand": ([], lambda x, a, b, c: softmax_by_hand(a(x))),
    "normalised": ([], lambda x, a, b, c: F.normalize(a(x))),
}


def into(x, branch):
    with torch.no_grad():
        return torch.add(x, branch.detach(), out=torch.empty_like(x))


def through_view(h, layer):
    skip = h.view(-1)
    skip.relu_()  # writes to h too
    return h + layer(h).sigmoid()


def quiet(function):
    with torch.no_grad():
        return function()


def softmax_by_hand(x):
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


@pytest.mark.parametrize("name", RESIDUAL)
def test_an_addition_is_residual(name):
    kind, function = RESIDUAL[name]
    result = of(function)
    assert kinds(result) == [kind]
    assert not result.unplaced


@pytest.mark.parametrize("name", OTHERS)
def test_a_sum_is_not_residual(name):
    others, function = OTHERS[name]
    result = of(function)
    assert not result.additions
    assert [o.kind for o in result.others if o.kind != "product"] == others
    assert not result.unplaced


def test_sums_of_scores_belong_to_attention():
    result = of(
        lambda x, a, b, c: (a(x) @ b(x).T + c(x)).softmax(-1) @ x,
    )
    assert [o.kind for o in result.others] == ["attention"]
    assert not result.additions
    assert not result.unplaced


# Skip and branch cannot be told apart.
@pytest.mark.parametrize(
    "function",
    [
        lambda x, a, b, c: F.relu(a(x)) + F.relu(b(x)),
        lambda x, a, b, c: a(x) + b(x),
        lambda x, a, b, c: F.relu(a(x)) + F.relu(b(x)) + c(x).tanh(),
    ],
)
def test_equal_ways_are_listed_and_not_guessed(function):
    result = of(function)
    assert not result.additions
    (listed,) = result.unplaced
    assert "none is the skip" in listed.reason
    assert len(listed.operands) >= 2


def written_as_a_view(x, a):
    h = a(x)
    h.view(-1).relu_()
    return x + h


def written_in_part(x, a):
    h = a(x)
    h[:, :2].relu_()
    return x + h


def overwritten(x, a):
    h = torch.empty_like(x)
    h[:, :2] = a(x)[:, :2].relu()
    h[:, 2:] = a(x)[:, 2:]
    return x + h


@pytest.mark.parametrize(
    ("write", "layout"),
    [
        (written_as_a_view, ("linear", "activation")),
        (written_in_part, ("linear", "activation")),
        (overwritten, ("linear", "activation", "linear")),
    ],
)
def test_what_is_written_through_another_tensor_is_seen(write, layout):
    (addition,) = of(lambda x, a, b, c: write(x, a)).additions
    assert addition.skip.kind == "identity"
    assert addition.branches[0].layout == layout


def test_a_sum_over_several_calls_is_one():
    result = of(lambda x, a, b, c: x + F.relu(a(x)) + F.relu(b(x)) - F.relu(c(x)))
    (addition,) = result.additions
    assert len(addition.calls) == 3
    assert addition.call == addition.calls[-1]
    assert [b.modules for b in addition.branches] == [
        ("layers.0",),
        ("layers.1",),
        ("layers.2",),
    ]
    assert [b.sign for b in addition.branches] == [1, 1, -1]
    assert [b.into for b in addition.branches] == list(addition.calls)
