"""What the parts say of themselves, and cases that are easily got wrong."""

import json
from contextlib import contextmanager

import pytest
import torch
from torch import nn

from tests.anatomy import styles
from tests.anatomy.functions import ROWS, Function, kinds, of
from theodolite.anatomy import anatomy, record
from theodolite.core import MeasurementError, Rows


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


def test_an_unknown_operator_is_listed():
    found = of(lambda x, a, b, c: torch.special.i0(a(x)))
    assert [each.reason for each in found.unplaced] == [
        "the operator i0 is not known: it counts as nonlinear"
    ]
    assert not found.piecewise_linear


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
