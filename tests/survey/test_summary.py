"""The table of blocks and layers, against counts by hand and plain torch."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from tests.survey.nets import data, normed
from theodolite import networks, summary
from theodolite.core import MeasurementError, ResnetBlueprint, Rows
from theodolite.instruments import Problem

LOSS = nn.CrossEntropyLoss()


class Attention(nn.Module):
    """Attention of a sequence to itself, by the fused function of torch."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x, need_weights=False)[0]


class BasicBlock(nn.Module):
    """A block of a ResNet: 3 × 3 with stride 2, 3 × 3, and a projection."""

    def __init__(self):
        super().__init__()
        self.one = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False)
        self.two = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.skip = nn.Conv2d(4, 8, 1, stride=2, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x):
        return self.skip(x) + self.two(torch.relu(self.norm(self.one(x))))


class Twice(nn.Module):
    """One layer applied two times, and a long name."""

    def __init__(self):
        super().__init__()
        self.a_layer_with_quite_a_long_name_that_no_table_of_text_holds = nn.Linear(
            3, 3
        )

    def forward(self, x):
        layer = self.a_layer_with_quite_a_long_name_that_no_table_of_text_holds
        return layer(torch.tanh(layer(x)))


# Model, shape of a sample, and multiply-accumulate operations of one, by hand.
COUNTED = {
    "linear": (lambda: nn.Linear(3, 4), (5, 3), 5 * 3 * 4),
    "without_bias": (lambda: nn.Linear(3, 4, bias=False), (3,), 3 * 4),
    "conv": (lambda: nn.Conv2d(4, 6, 3, padding=1), (4, 5, 7), 5 * 7 * 6 * 4 * 9),
    "groups": (lambda: nn.Conv2d(4, 6, 3, groups=2), (4, 5, 7), 3 * 5 * 6 * 2 * 9),
    "transposed": (lambda: nn.ConvTranspose1d(2, 3, 4), (2, 5), 5 * 2 * 3 * 4),
    "block": (BasicBlock, (4, 6, 6), 9 * (8 * 4 * 9 + 8 * 8 * 9 + 8 * 4)),
    # Three projections, scores, their sum over values, and the last projection.
    "attention": (Attention, (5, 8), 3 * 5 * 64 + 2 * 5 * 5 * 8 + 5 * 64),
    "lstm": (lambda: nn.LSTM(3, 4, batch_first=True), (5, 3), 5 * 16 * (3 + 4)),
}


@pytest.mark.parametrize("layers", [False, True])
@pytest.mark.parametrize("name", COUNTED)
def test_macs_are_those_counted_by_hand(name, layers):
    make, shape, macs = COUNTED[name]
    # More samples than are recorded for the map.
    table = summary(make(), torch.randn(11, *shape), layers=layers)
    assert table.macs == macs
    assert sum(table.rows().column("parameters")) == table.n_parameters


def resnet():
    return networks.build(ResnetBlueprint(blocks=(1, 1), width=4, channels=3), seed=0)


def transformer():
    layers = [nn.TransformerEncoderLayer(8, 2, 16, batch_first=True) for _ in range(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(40, 3))


@pytest.mark.parametrize("layers", [False, True])
@pytest.mark.parametrize(
    ("make", "shape"), [(resnet, (3, 8, 8)), (transformer, (5, 8))]
)
def test_macs_are_half_the_flops_that_torch_counts(make, shape, layers):
    model = make().eval()
    x = torch.randn(6, *shape, dtype=next(model.parameters()).dtype)
    # That counter does not know the fused attention of a CPU.
    with sdpa_kernel(SDPBackend.MATH), torch.enable_grad():
        counter = FlopCounterMode(display=False)
        with counter:
            model(x)
    table = summary(model, x, layers=layers)
    assert table.macs * 2 == counter.get_total_flops() / 6
    assert sum(table.rows().column("parameters")) == table.n_parameters


def plain():
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    with torch.no_grad():
        model[0].bias[:2] = -100.0
    return model, (torch.randn(16, 4).double(), torch.arange(16) % 3)


def test_signals_gradients_and_dead_units_are_those_of_plain_torch():
    model, (x, y) = plain()
    kept = [x]
    for layer in model:
        kept.append(layer(kept[-1]))
        kept[-1].retain_grad()
    LOSS(kept[-1], y).backward()
    rows = summary(model, (x, y), loss=LOSS, layers=True).rows()
    assert rows.column("name") == ["0", "1", "2"]
    assert rows.column("shape") == [[6], [6], [3]]
    assert rows.column("parameters") == [30, 0, 21]
    for row, value in zip(rows, kept[1:], strict=True):
        for name, of in (("signal", value.detach()), ("gradient", value.grad)):
            squares = of.square().mean(1)
            assert_close(row[name], float(squares.mean().sqrt()))
            error = float(squares.std() / (2 * squares.mean().sqrt() * 4))
            assert_close(row[f"{name}_error"], error)
    assert (rows[1]["dead_units"], rows[1]["units"]) == (2, 6)
    assert rows[1]["dead_error"] == pytest.approx(2 * 3 / 16)
    assert "units" not in rows[0]


def test_errors_are_the_spread_between_batches():
    torch.manual_seed(3)
    model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 6), nn.Tanh())
    drawn = [summary(model, torch.randn(64, 4), layers=True).rows() for _ in range(80)]
    for layer, value, error in (
        (0, "norm_spread", "norm_error"),
        (2, "signal", "signal_error"),
    ):
        values = torch.tensor([rows[layer][value] for rows in drawn]).double()
        stated = torch.tensor([rows[layer][error] for rows in drawn]).double().mean()
        # The spread of 80 numbers is known to 8 %.
        assert 0.75 < float(values.std() / stated) < 1.25


@pytest.mark.parametrize(
    ("norm", "shape", "centred", "axes", "numbers"),
    [
        (nn.BatchNorm2d(4), (4, 3, 3), True, [0, 2, 3], 9 * 12),
        (nn.GroupNorm(1, 4), (4, 3, 3), True, [1, 2, 3], 36),
        (nn.InstanceNorm2d(4), (4, 3, 3), True, [2, 3], 9),
        (nn.LayerNorm([3, 3]), (4, 3, 3), True, [2, 3], 9),
        (nn.RMSNorm(3), (4, 3, 3), False, [3], 3),
    ],
)
def test_statistics_of_norms_are_those_of_their_inputs(
    norm, shape, centred, axes, numbers
):
    x = 2 + torch.randn(12, *shape)
    inside = nn.Sequential(nn.Conv2d(4, 4, 1), norm)
    given = inside[0](x).detach()
    centre = given.mean(axes, keepdim=True) if centred else 0.0
    (row,) = [r for r in summary(inside, x).rows() if "norm_spread" in r]
    assert_close(row["norm_spread"], float((given - centre).square().mean().sqrt()))
    assert row["norm_numbers"] == numbers
    assert 0 < row["norm_error"] < 0.2 * row["norm_spread"]


def test_blocks_are_those_of_the_survey_and_gradients_need_a_loss():
    batch = data()
    model = normed()
    with_loss, without = summary(model, batch, loss=LOSS), summary(model, batch[0])
    assert "gradient" not in without.rows()[0]
    assert "gradient" not in str(without).splitlines()[1]
    assert with_loss.rows()[0]["gradient"] > 0
    problem = Problem(model, batch, loss=LOSS, norm_mode="batch")
    again = summary(problem)
    assert again.rows().column("gradient") == with_loss.rows().column("gradient")
    assert again.norms == "norms in batch mode"
    frozen = summary(replace(problem, norm_mode="eval"))
    assert frozen.rows().column("signal") != again.rows().column("signal")
    with pytest.raises(MeasurementError, match="a Problem came with batches"):
        summary(problem, batch)


def test_each_call_of_a_shared_layer_has_a_row_and_its_weights_count_once():
    rows = summary(Twice(), torch.randn(4, 3), layers=True).rows()
    names = [row["name"].rpartition("holds")[2] for row in rows]
    assert names == ["#1", "(model)", "#2"]  # which computes the tanh
    assert rows.column("parameters") == [12, 0, 0]
    assert rows.column("macs") == [9, 0, 9]


def test_it_prints_in_eighty_columns_as_html_and_as_a_frame():
    table = summary(Twice(), torch.randn(4, 3), layers=True)
    lines = str(table).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Twice: 12 parameters (all trained), 18 MACs per sample"
    assert "holds#1" in lines[2]
    assert "a_layer_with_quite_a_long_name" in table._repr_html_()
    wide = replace(table, table=summary(*resnet_batch(), loss=LOSS).rows())
    assert max(map(len, str(wide).splitlines())) <= 80
    assert wide._repr_html_().count("<tr>") == len(wide.rows()) + 1
    frame = wide.to_pandas()
    assert list(frame["name"]) == wide.rows().column("name")
    assert math.isfinite(frame["gradient_error"].sum())


def resnet_batch():
    x = torch.randn(6, 3, 8, 8)
    model = resnet()
    return model, (x.to(next(model.parameters()).dtype), torch.arange(6))


def test_columns_that_do_not_fit_are_left_out_of_the_text_alone():
    table = summary(*resnet_batch(), loss=LOSS)
    wide = [{**row, "shape": [100_000] * 7} for row in table.rows()]
    table = replace(table, table=Rows(wide))
    assert "norm in" not in str(table).splitlines()[1]
    assert "norm in" in table._repr_html_()
    assert max(map(len, str(table).splitlines())) <= 80


def test_a_model_that_does_not_run_is_refused_in_one_sentence():
    with pytest.raises(MeasurementError, match="no map could be made"):
        summary(nn.Linear(3, 4), torch.randn(5, 7))


def test_products_that_have_no_formula_make_the_count_unknown():
    @torch.library.custom_op("theodolite_tests::product", mutates_args=())
    def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ w

    class Own(nn.Linear):
        def forward(self, x):
            return torch.relu(super().forward(x)) + product(x, self.weight)

    table = summary(Own(3, 3), torch.randn(4, 3))
    assert math.isnan(table.macs)
    assert "? MACs" in str(table)


def test_it_says_in_which_mode_batch_norms_were_and_nothing_of_layer_norms():
    assert summary(normed().eval(), data()).norms.endswith("in eval mode")
    table = summary(transformer().eval(), torch.randn(6, 5, 8))
    assert table.norms == ""
    assert "no batch norms" not in str(table)
    assert all("norm_spread" in row for row in table.rows()[:4])
