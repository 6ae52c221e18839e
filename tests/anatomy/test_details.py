"""Details of the parts, refusals, and that model and process are not changed."""

import json
import random
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules import module as hooks

from tests.anatomy.functions import ROWS, Function, kinds, of
from tests.anatomy.styles import images, sequences, vectors
from tests.instruments.test_preservation import portrait
from theodolite.anatomy import anatomy, record
from theodolite.core import MeasurementError, Rows

IMAGES = torch.linspace(-2, 2, 2 * 3 * 8 * 8).sin().reshape(2, 3, 8, 8)


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_as_found(training):
    model = images.TorchvisionLike().train(training)
    model(IMAGES).sum().backward()
    model.layer1[0].bn1.eval()
    before, inputs = portrait(model), IMAGES.clone()
    anatomy(model, IMAGES)
    assert portrait(model) == before
    assert torch.equal(inputs, IMAGES)


def test_random_states_are_left_as_found():
    model = vectors.StochasticDepth()
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    anatomy(model, ROWS)
    now = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert torch.equal(states[0], now[0])
    assert states[1:] == now[1:]


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        self.norm(x)
        raise ValueError("a fault of its own")


def test_a_fault_of_the_model_comes_through_and_leaves_nothing_behind():
    model = Fails()
    before = portrait(model)
    fast = torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(ValueError, match="a fault of its own"):
        anatomy(model, ROWS)
    assert portrait(model) == before
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert not hooks._global_forward_hooks
    assert not hooks._global_forward_pre_hooks
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_mode_of_the_caller_does_not_matter(mode):
    model = sequences.PreNormTransformer().eval()
    tokens = torch.arange(10).reshape(2, 5)
    usual = anatomy(model, tokens)
    with mode():
        assert anatomy(model, tokens) == usual


def test_batches_of_every_make():
    model = vectors.Scaled()
    usual = anatomy(model, ROWS)
    assert anatomy(model, (ROWS, torch.zeros(4))) == usual
    assert anatomy(model, {"x": ROWS}) == usual


def test_wrappers_are_looked_through():
    model = vectors.ResNetOfResNets()
    usual = [a.skip.kind for a in anatomy(model, ROWS).additions]
    parallel = nn.DataParallel(model)
    compiled = torch.compile(model, backend="eager")
    for wrapped, prefix in ((parallel, "module."), (compiled, "_orig_mod.")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = anatomy(wrapped, ROWS)
        assert [a.skip.kind for a in result.additions] == usual
        assert result.additions[0].branches[0].modules == (f"{prefix}blocks.0",)


def test_modules_run_again_keep_their_name():
    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

        def forward(self, x):
            for _ in range(3):
                x = x + self.layer(x)
            return x

    result = anatomy(Again(), ROWS)
    assert [a.branches[0].modules for a in result.additions] == [("layer",)] * 3
    (again,) = result.others
    assert (again.kind, again.module) == ("recurrence", "layer")


def test_more_can_be_noted_beside_a_recording():
    model, notes = Function(lambda x, a, *_: x + a(x).relu()), []

    @contextmanager
    def beside(recorder):
        def note(module, args):
            notes.append((*recorder.here(), recorder.number(args[0])))

        handle = model.layers[0].register_forward_pre_hook(note)
        yield
        handle.remove()

    result = record(model, ROWS, beside=beside)
    ((call, visit, number),) = notes
    assert result.visits[visit].module == "layers.0"
    assert result.visits[visit].first == call
    assert result.values[number].source == "input"


def test_factors_of_branches():
    result = anatomy(vectors.Scaled(), ROWS)
    branches = [a.branches[0] for a in result.additions]
    assert [[(s.by, s.value, s.name) for s in b.scales] for b in branches] == [
        [("parameter", None, "rezero")],
        [("number", 0.17, "")],
        [],
        [("parameter", None, "gamma")],
        [("parameter", None, "delta")],
        [("number", 0.5, "")],
    ]
    assert [branch.sign for branch in branches] == [1, 1, 0.5, 1, 1, -1]


def test_a_network_of_functions_alone():
    result = anatomy(vectors.OnlyFunctions(), ROWS)
    assert kinds(result) == ["identity", "identity"]
    first, second = (addition.branches[0] for addition in result.additions)
    assert (first.layout, first.parameters) == (
        ("activation", "norm", "linear"),
        ("w2",),
    )
    assert (second.layout, second.parameters) == (("activation", "linear"), ("w2",))
    assert first.modules == second.modules == ()
    assert [norm.placement for norm in result.norms] == ["pre", "final"]
    activations = [(a.kind, a.piecewise_linear) for a in result.activations]
    assert activations == [("leaky_relu", True), ("elu", False)]


def test_indices_lead_back_to_the_recording():
    result = anatomy(images.TorchvisionLike().eval(), torch.ones(2, 3, 8, 8))
    calls, values = result.recording.calls, result.recording.values
    for addition in result.additions:
        assert calls[addition.call].name == "add"
        assert addition.output in calls[addition.call].outputs
        for span in (addition.skip, *addition.branches):
            given = calls[span.into].arguments[span.position]
            assert given.number == span.exit
            assert span.entry == addition.fork
            assert values[span.entry].shape[0] == 2
            inside = {n for c in span.calls for n in calls[c].outputs}
            assert span.exit in inside | {span.entry}


def test_an_unknown_operator_is_listed():
    result = of(lambda x, a, b, c: torch.special.i0(a(x)))
    assert [each.reason for each in result.unplaced] == [
        "the operator i0 is not known: it counts as nonlinear"
    ]
    assert not result.piecewise_linear


def test_text_rows_and_json():
    result = anatomy(images.ConvNeXt(), torch.ones(2, 3, 8, 8))
    layout = "linear norm linear activation linear scale"
    assert str(result).splitlines() == [
        "2 residual additions",
        f"  0–1 in stage0 … stage1: identity + [{layout}]",
        "norms: 1 layer stem, 2 layer inside, 1 layer between, 1 layer final",
        "activations: 2 gelu (curved)",
        "others: none",
        "unplaced: none",
    ]
    rows = result.rows()
    assert isinstance(rows, Rows)
    assert rows.levels("quantity") == ["activation", "addition", "norm"]
    assert len(rows) == 2 + 5 + 2
    saved = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert saved["additions"][1]["branches"][0]["scales"][0]["name"] == "stage1.gamma"
    assert saved["piecewise_linear"] is False


def test_calls_are_numbered_alike_in_every_run():
    model = sequences.PreNormTransformer()
    tokens = torch.arange(10).reshape(2, 5)
    first, second = record(model, tokens), record(model, tokens)
    assert first == second
    assert [call.index for call in first.calls] == list(range(len(first.calls)))
    assert first.visits[0].module == ""
    assert first.visits[0].stop == len(first.calls)


def test_what_is_no_module_is_refused():
    with pytest.raises(MeasurementError, match=r"model is .*: pass Module"):
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
