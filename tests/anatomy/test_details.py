"""What the parts say of themselves, and cases that are easily got wrong."""

import json
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.anatomy import styles
from theodolite.anatomy import anatomy, record
from theodolite.core import MeasurementError, Rows

ROWS = torch.linspace(-2, 2, 16).cos().reshape(4, 4)


class Function(nn.Module):
    """A function with a layer or two at hand."""

    def __init__(self, function, width=4, layers=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.function = function

    def forward(self, x):
        return self.function(x, *self.layers)


def of(function, batch=ROWS):
    return anatomy(Function(function), batch)


def kinds(found):
    return [addition.skip.kind for addition in found.additions]


def test_what_is_written_over_is_gone():
    def forward(x, a, *_):
        kept = x.clone()
        kept.copy_(torch.zeros_like(x))
        return kept + a(x).relu()

    assert not of(forward).additions


def test_more_can_be_noted_beside_a_recording():
    model, notes = Function(lambda x, a, *_: x + a(x).relu()), []

    @contextmanager
    def beside(recorder):
        def note(module, args):
            notes.append((*recorder.here(), recorder.number(args[0])))

        handle = model.layers[0].register_forward_pre_hook(note)
        yield
        handle.remove()

    found = record(model, ROWS, beside=beside)
    ((call, visit, number),) = notes
    assert found.visits[visit].module == "layers.0"
    assert found.visits[visit].first == call
    assert found.values[number].source == "input"


def test_factors_of_branches():
    found = anatomy(styles.Scaled(), ROWS)
    told = [
        [(s.by, s.value, s.name) for s in a.branches[0].scales] for a in found.additions
    ]
    assert told == [
        [("parameter", None, "rezero")],
        [("number", 0.17, "")],
        [],
        [("parameter", None, "gamma")],
        [("number", 0.5, "")],
    ]
    signs = [a.branches[0].sign for a in found.additions]
    assert signs == [1, 1, 0.5, 1, -1]


def test_a_network_of_functions_alone():
    found = anatomy(styles.OnlyFunctions(), ROWS)
    assert kinds(found) == ["identity", "identity"]
    first, second = (addition.branches[0] for addition in found.additions)
    assert (first.layout, first.parameters) == (
        ("activation", "norm", "linear"),
        ("w2",),
    )
    assert (second.layout, second.parameters) == (("activation", "linear"), ("w2",))
    assert first.modules == second.modules == ()
    assert [norm.placement for norm in found.norms] == ["pre", "final"]
    told = [(a.kind, a.piecewise_linear) for a in found.activations]
    assert told == [("leaky_relu", True), ("elu", False)]


def test_activations_and_norms_by_name():
    found = anatomy(styles.Vgg(), torch.ones(2, 3, 16, 16))
    assert [(a.kind, a.piecewise_linear) for a in found.activations] == [
        ("hardtanh", True),
        ("max_pool2d", True),
        ("prelu", True),
        ("hardswish", False),
        ("softplus", False),
        ("where", True),
        ("clamp", True),
        ("abs", True),
    ]
    assert [norm.kind for norm in found.norms] == ["batch", "instance", "group"]


def test_indices_lead_back_to_the_recording():
    found = anatomy(styles.TorchvisionLike().eval(), torch.ones(2, 3, 8, 8))
    calls, values = found.recording.calls, found.recording.values
    for addition in found.additions:
        assert calls[addition.call].name == "add"
        assert addition.output in calls[addition.call].outputs
        for span in (addition.skip, *addition.branches):
            given = calls[span.into].arguments[span.position]
            assert given.number == span.exit
            assert span.entry == addition.fork
            assert values[span.entry].shape[0] == 2
            inside = {n for c in span.calls for n in calls[c].outputs}
            assert span.exit in inside | {span.entry}
        branch = addition.branches[0]
        assert (branch.first, branch.last) == (branch.calls[0], branch.calls[-1])
    assert found.additions[0].skip.first is None


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
    found = of(function)
    assert kinds(found) == [kind]
    assert not found.unplaced


@pytest.mark.parametrize("name", OTHERS)
def test_a_sum_is_not_residual(name):
    others, function = OTHERS[name]
    found = of(function)
    assert not found.additions
    assert [o.kind for o in found.others if o.kind != "product"] == others
    assert not found.unplaced


def test_sums_of_scores_belong_to_attention():
    found = of(
        lambda x, a, b, c: (a(x) @ b(x).T + c(x)).softmax(-1) @ x,
    )
    assert [o.kind for o in found.others] == ["attention"]
    assert not found.additions
    assert not found.unplaced


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
    found = of(function)
    assert not found.additions
    (listed,) = found.unplaced
    assert "none is the skip" in listed.reason
    assert len(listed.operands) >= 2


def test_an_unknown_operator_is_listed():
    found = of(lambda x, a, b, c: torch.special.i0(a(x)))
    assert [each.reason for each in found.unplaced] == [
        "the operator i0 is not known: it counts as nonlinear"
    ]
    assert not found.piecewise_linear


@pytest.mark.parametrize(
    ("function", "straight"),
    [
        (lambda x, a, b, c: F.relu(x) - 0.1 * F.relu(-x), True),
        (lambda x, a, b, c: x * (x > 0), True),
        (lambda x, a, b, c: torch.where(x > 0, x, 0.1 * x), True),
        (lambda x, a, b, c: torch.maximum(x, 0.1 * x), True),
        (lambda x, a, b, c: x * torch.sigmoid(x), False),
        (lambda x, a, b, c: x * x, False),
        (lambda x, a, b, c: 1 / (1 + x.abs()), False),
        (lambda x, a, b, c: x.std(1), False),
    ],
)
def test_activations_by_hand(function, straight):
    found = of(lambda x, a, b, c: c(x) if x is None else function(a(x), a, b, c))
    assert found.activations
    assert found.piecewise_linear is straight
    assert not found.others


def test_one_activation_by_hand_is_one():
    found = of(lambda x, a, b, c: 0.5 * x * (1 + torch.tanh(x + 0.04 * x.pow(3))))
    assert [(a.kind, a.piecewise_linear) for a in found.activations] == [
        ("handwritten", False)
    ]


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


@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        (lambda x: F.rms_norm(x, (4,)), "rms"),
        (lambda x: F.normalize(x, dim=1), "rms"),
        (lambda x: F.local_response_norm(x[:, :, None], 3)[..., 0], "rms"),
        (lambda x: (x - x.mean(1, True)) / x.std(1, keepdim=True), "layer"),
        (lambda x: (x - x.mean(0)) * torch.rsqrt(x.var(0) + 1e-5), "batch"),
        (lambda x: F.instance_norm(x[:, None])[:, 0], "instance"),
        (lambda x: F.batch_norm(x, None, None, training=True), "batch"),
        (lambda x: F.group_norm(x, 2), "group"),
    ],
)
def test_norms_by_function_and_by_hand(norm, kind):
    found = of(lambda x, a, b, c: x + a(norm(x)).relu())
    assert [(n.kind, n.placement) for n in found.norms] == [(kind, "pre")]
    assert [a.kind for a in found.activations] == ["relu"]
    (addition,) = found.additions
    assert addition.branches[0].layout == ("norm", "linear", "activation")
    assert not found.others


def normed(x):
    return F.layer_norm(x, x.shape[-1:])


@pytest.mark.parametrize(
    ("function", "places"),
    [
        (lambda x, a: normed(x + a(x).relu()), ["post", "post", "post"]),
        (lambda x, a: x + a(normed(x)).relu(), ["pre", "pre", "pre"]),
        (lambda x, a: x + normed(a(x).relu()), ["inside", "inside", "inside"]),
    ],
)
def test_norms_of_a_network_in_one_function(function, places):
    def run(x, *layers):
        for layer in layers:
            x = function(x, layer)
        return x

    found = of(run)
    assert [norm.placement for norm in found.norms] == places
    assert [norm.addition for norm in found.norms] == [0, 1, 2]


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (lambda x, a, b, c: normed(x + b(a(normed(x)).relu()) + c(x)), "after"),
        (lambda x, a, b, c: b(normed(x + a(normed(x)).relu()) * 2), "after"),
        (lambda x, a, b, c: normed(c(x + a(normed(x)).relu())), "final"),
    ],
)
def test_a_norm_behind_the_only_addition(function, place):
    found = of(function)
    assert [norm.placement for norm in found.norms] == ["pre", place]


def test_a_sum_over_several_calls_is_one():
    found = of(lambda x, a, b, c: x + F.relu(a(x)) + F.relu(b(x)) - F.relu(c(x)))
    (addition,) = found.additions
    assert len(addition.calls) == 3
    assert addition.call == addition.calls[-1]
    assert [b.modules for b in addition.branches] == [
        ("layers.0",),
        ("layers.1",),
        ("layers.2",),
    ]
    assert [b.sign for b in addition.branches] == [1, 1, -1]
    assert [b.into for b in addition.branches] == list(addition.calls)


def test_text_rows_and_json():
    found = anatomy(styles.ConvNeXt(), torch.ones(2, 3, 8, 8))
    layout = "linear norm linear activation linear scale"
    assert str(found).splitlines() == [
        "2 residual additions",
        f"  0–1 in stage0 … stage1: identity + [{layout}]",
        "norms: 1 layer stem, 2 layer inside, 1 layer between, 1 layer final",
        "activations: 2 gelu (curved)",
        "others: none",
        "unplaced: none",
    ]
    rows = found.rows()
    assert isinstance(rows, Rows)
    assert rows.levels("quantity") == ["activation", "addition", "norm"]
    assert len(rows) == 2 + 5 + 2
    saved = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert saved["additions"][1]["branches"][0]["scales"][0]["name"] == "stage1.gamma"
    assert saved["piecewise_linear"] is False


def test_calls_are_numbered_alike_in_every_run():
    model = styles.PreNormTransformer()
    tokens = torch.arange(10).reshape(2, 5)
    first, second = record(model, tokens), record(model, tokens)
    assert first == second
    assert [call.index for call in first.calls] == list(range(len(first.calls)))
    assert first.visits[0].module == ""
    assert first.visits[0].stop == len(first.calls)


def test_what_is_no_module_is_refused():
    with pytest.raises(MeasurementError, match=r"wanted is a torch\.nn\.Module"):
        anatomy(lambda x: x, ROWS)


def test_copies_in_other_threads_are_refused():
    model = nn.DataParallel(nn.Linear(4, 4))
    model.device_ids = [0, 1]  # as on a machine with two devices
    with pytest.raises(MeasurementError, match=r"over 2 devices .* pass model\.module"):
        anatomy(model, ROWS)


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_parameters_without_numbers_are_refused():
    for model in (nn.LazyLinear(3), nn.Linear(4, 3, device="meta")):
        with pytest.raises(MeasurementError, match="'weight' has no numbers yet"):
            anatomy(model, ROWS)


def test_a_model_that_computes_nothing_is_refused():
    with pytest.raises(MeasurementError, match="no operator of torch"):
        anatomy(nn.Identity(), ROWS)


def test_inputs_of_a_wrong_kind_are_refused():
    with pytest.raises(MeasurementError, match="does not take inputs"):
        anatomy(nn.Linear(4, 4), [[1.0, 2.0]])
