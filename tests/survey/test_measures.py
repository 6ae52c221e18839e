"""Every number of a survey against an oracle, on networks of a few weights."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.testing import assert_close

from tests.survey.nets import data, functional, normed
from theodolite.anatomy.activation_hooks import ActivationHooks, OtherWayError
from theodolite.survey import survey

LOSS = nn.CrossEntropyLoss()


def take(model, batch, *measures, **settings):
    settings = {"loss": LOSS, "effort": "thorough", "progress": False, **settings}
    return survey(model, batch, measures=measures or None, **settings)


@pytest.fixture(scope="module")
def whole():
    """A survey with all measures of a network whose additions no module wraps."""
    return take(functional(), data())


def close(row, expected, factor=1.0):
    """Hold a row to its own error, and the error to be known and small."""
    assert row is not None
    assert row["error"] is not None
    gap = abs(row["value"] - float(expected))
    assert gap <= factor * row["error"] + 1e-9 * (1 + abs(float(expected)))


def exact(row, expected):
    assert row is not None
    assert_close(float(row["value"]), float(expected), rtol=1e-9, atol=1e-12)


def dense_hessian(model, batch):
    parameters = dict(model.named_parameters())
    names = list(parameters)
    sizes = [parameters[n].numel() for n in names]

    def loss(flat):
        parts = flat.split(sizes)
        moved = {
            n: p.reshape(parameters[n].shape) for n, p in zip(names, parts, strict=True)
        }
        return LOSS(functional_call(model, moved, (batch[0],)), batch[1])

    flat = torch.cat([parameters[n].detach().reshape(-1) for n in names])
    return torch.autograd.functional.hessian(loss, flat).numpy()


def test_all_measures_are_done(whole):
    assert {m.measure: m.status for m in whole.measured} == {
        **dict.fromkeys(
            ("checks", "map", "signal", "units", "curvature", "rates"), "done"
        ),
        "norms": "refused",
    }
    for row in whole.rows():
        assert {"measure", "quantity", "value", "error", "norm_mode", "seed"} <= set(
            row
        )
        assert row["value"] is None or math.isfinite(row["value"])


def test_the_map_finds_blocks_that_no_module_wraps(whole):
    kinds = ["stem", "residual", "residual", "residual", "head"]
    assert [block.kind for block in whole.blocks] == kinds
    names = ["stem", "layers.0", "layers.1", "layers.2", "head"]
    assert [block.name for block in whole.blocks] == names
    assert [block.skip for block in whole.blocks] == ["", *["identity"] * 3, ""]
    assert [block.n_parameters for block in whole.blocks] == [16, 20, 20, 20, 15]
    assert [block.addition for block in whole.blocks] == [None, 0, 1, 2, None]
    assert whole.blocks[1].activations == ("tanh",)


def test_signals_and_gains_are_those_by_hand(whole):
    model, (x, y) = functional(), data()
    ends, branches = model.by_hand(x)
    for end in ends:
        end.retain_grad()
    LOSS(ends[-1], y).backward()
    for block, end in zip(whole.blocks, ends, strict=True):
        row, back = (
            whole.number(f"{way}_rms", block=block.name)
            for way in ("forward", "backward")
        )
        exact(back, end.grad.square().mean().sqrt())
        end = end.detach()
        exact(row, end.square().mean().sqrt())
        unit = end / end.norm(dim=1, keepdim=True)
        cosines = (unit @ unit.T)[~torch.eye(len(x), dtype=torch.bool)]
        exact(whole.number("forward_correlation", block=block.name), cosines.mean())
        squares = end.square().mean(1)
        spread = squares.std() / (2 * squares.mean().sqrt() * math.sqrt(len(x)))
        assert_close(row["error"], float(spread))
    for block, branch, end in zip(whole.blocks[1:4], branches, ends[:3], strict=True):
        gain = branch.square().mean().sqrt() / end.square().mean().sqrt()
        exact(whole.number("branch_gain", block=block.name), gain.detach())


def test_losses_weights_and_gradients_are_those_by_hand(whole):
    model, (x, y) = functional(), data()
    logits = model(x)
    each = nn.functional.cross_entropy(logits, y, reduction="none")
    each.mean().backward()
    each = each.detach()
    exact(whole.number("loss"), each.mean())
    assert_close(whole.number("loss")["error"], float(each.std()) / 4)
    exact(whole.number("loss_at_chance"), math.log(3))
    layer = model.layers[1]
    both = torch.cat([layer.weight.grad.reshape(-1), layer.bias.grad])
    exact(whole.number("gradient_rms", module="layers.1"), both.square().mean().sqrt())
    both = torch.cat([layer.weight.reshape(-1), layer.bias]).detach()
    exact(whole.number("weight_rms", module="layers.1"), both.square().mean().sqrt())


def test_curvature_is_that_of_the_dense_hessian(whole):
    matrix = dense_hessian(functional(), data())
    values = np.linalg.eigvalsh(matrix)
    close(whole.number("largest_eigenvalue"), values[-1])
    close(whole.number("smallest_eigenvalue"), values[0])


def test_units_that_are_made_dead_and_saturated_are_counted():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 6), nn.Tanh(), nn.Linear(6, 3)
    ).double()
    with torch.no_grad():
        model[0].bias[:3], model[0].bias[3:] = -1e3, 0.5
        model[2].bias[:2] = 1e3
        model[2].weight[2:] = 0.0
        model[2].bias[2:] = 0.0
    result = take(model, data(), "units")
    assert_close(result.number("dead_share", module="1")["value"], 3 / 8)
    assert_close(result.number("saturated_share", module="3")["value"], 2 / 6)
    assert result.number("dead_share", module="3")["value"] == pytest.approx(4 / 6)


def test_modes_of_norms_are_those_that_were_found():
    model, (x, y) = normed(), data()
    for parameter in model.blocks[1].parameters():
        parameter.requires_grad_(False)
    model.train()
    model.blocks[0].eval()
    result = take(model, (x, y), "norms")
    exact(result.number("batch_per_channel", module="blocks.0.norm"), 16)
    modes = [result.number("in_train_mode", module=f"blocks.{i}.norm") for i in (0, 1)]
    assert [row["value"] for row in modes] == [0.0, 1.0]
    frozen = result.number("frozen_in_train_mode", module="blocks.1.norm")
    assert frozen["value"] == 1.0


def test_weights_that_the_optimizer_does_not_hold_are_counted():
    model = normed()
    optimizer = torch.optim.SGD(model.blocks.parameters(), lr=0.1)
    result = take(model, data(), "signal", optimizer=optimizer)
    assert result.find("left_out", module="stem").values().sum() == 16
    assert not result.find("left_out", module="blocks.0.first")


class FromInput(nn.Module):
    """Forks at its own input, along a sequence of channels; tokens of three axes."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(3, 3, 1)
        self.second = nn.Conv1d(3, 5, 1)
        self.head = nn.Linear(5, 4)

    def forward(self, x):
        x = x + self.first(x)
        x = torch.relu(self.second(x)).transpose(1, 2)
        return self.head(x)


def test_inputs_that_fork_channels_and_heads_of_three_axes_are_seen():
    torch.manual_seed(0)
    model = FromInput().double()
    with torch.no_grad():
        model.second.bias[:2], model.second.bias[2:] = -1e3, 1e3
    x = torch.randn(6, 3, 7, dtype=torch.float64)
    y = torch.zeros(6, 7, dtype=torch.long)

    def loss(model, batch):
        return nn.functional.cross_entropy(
            model(batch[0]).flatten(0, 1), batch[1].flatten()
        )

    result = take(model, (x, y), "map", "signal", "units", loss=loss)
    assert not result.unsupported
    with torch.no_grad():
        gain = model.first(x).square().mean().sqrt() / x.square().mean().sqrt()
        logits = model(x)
    exact(result.number("branch_gain"), gain)
    exact(result.find("forward_rms")[-1], logits.square().mean().sqrt())
    exact(result.number("dead_share"), 2 / 5)


# Numbers that hang on no sample.
EXACT = {"keeps_shape", "weight_rms"}
EXACT |= {"batch_per_channel", "in_train_mode", "frozen_in_train_mode"}


def test_the_gradient_pass_is_of_the_whole_batch_at_the_least_effort(tmp_path):
    names = ("map", "signal", "units", "norms")
    given = {"loss": nn.CrossEntropyLoss(), "measures": names, "progress": False}
    least = survey(normed(), data(32), effort=1, **given)
    for row in least.rows():
        counts = (row.get("n_samples"), row.get("of_samples"))
        wanted = (None, None) if row["quantity"] in EXACT else (32, 32)
        assert counts == wanted, row["quantity"]
    least.to_html(tmp_path / "least.html")
    for text in (str(least), (tmp_path / "least.html").read_text()):
        assert "of 32 samples" not in text


def test_which_of_several_batches_was_measured_is_said():
    result = take(normed(), [data(32), data(32, seed=1)], "curvature", "rates")
    counts = {(r.get("n_samples"), r.get("of_samples")) for r in result.rows()}
    assert counts == {(32, 32)}
    assert "norms: 2 in train mode, batch 1 of 2" in str(result)


def test_only_the_first_run_of_the_model_is_hooked():
    model, met = nn.Sequential(nn.Identity(), nn.ReLU()), []
    hooks = ActivationHooks({(0, 0): met.append}, {(0, 0): (3,)})
    x = torch.ones(2, 3)
    with hooks.during(model):
        torch.sin(x)  # before, as a loss of somebody's may
        with hooks.paused():
            torch.cos(x)
        model(-x)
        torch.exp(x)
        model(x)
    assert [each.tolist() for each in met] == [[[0.0] * 3] * 2]
    assert hooks.met == {(0, 0)}
    other = ActivationHooks({(0, 0): met.append}, {(0, 0): (4,)})
    with other.during(model), pytest.raises(OtherWayError, match="the same twice"):
        model(x)
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
