"""Identities between shapes, against dense matrices."""

import copy

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from theodolite.core import ConfigError
from theodolite.networks import AverageSkip, HaarSkip


def dense(skip, channels, *sizes):
    """Return the matrix of a skip, from its values on a basis."""
    count = channels * torch.Size(sizes).numel()
    return (
        skip(torch.eye(count, dtype=torch.float64).view(count, channels, *sizes))
        .flatten(1)
        .T
    )


def singular_values(skip, channels, *sizes):
    return torch.linalg.svdvals(dense(skip, channels, *sizes))


def test_the_map_of_the_authors_has_eighty_ones_and_zeros_besides():
    values = singular_values(AverageSkip(5, 20, 3), 5, 12, 12)
    wanted = torch.cat((torch.ones(80), torch.zeros(240))).double()
    assert_close(values, wanted, rtol=0, atol=1e-12)


def test_zeros_stand_before_and_behind():
    x = torch.randn(2, 5, 6, 6)
    outputs = AverageSkip(5, 20, 3)(x)
    wanted = functional.pad(3 * functional.avg_pool2d(x, 3), (0, 0, 0, 0, 7, 8))
    assert_close(outputs, wanted, rtol=0, atol=0)


@pytest.mark.parametrize("skip", [AverageSkip, HaarSkip])
@pytest.mark.parametrize("sizes", [(), (4,), (4, 6), (2, 2, 4)])
def test_a_mean_is_scaled_to_singular_value_one_on_any_number_of_axes(skip, sizes):
    stride = 2 if sizes else 1
    values = singular_values(skip(2, 2, stride), 2, *sizes)
    assert_close(values, torch.ones_like(values), rtol=0, atol=1e-12)


def test_without_stride_and_new_channels_nothing_happens():
    x = torch.randn(3, 4, 5)
    assert AverageSkip(4, 4)(x) is x
    assert_close(HaarSkip(4, 4)(x), x, rtol=0, atol=0)
    assert_close(HaarSkip(4, 7)(x), AverageSkip(4, 7)(x), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("channels", "stride"),
    [(2, 2), (3, 2), (4, 2), (5, 2), (7, 2), (8, 2), (5, 3), (18, 3)],
)
def test_details_fill_the_zeros_and_all_singular_values_are_one(channels, stride):
    values = singular_values(HaarSkip(2, channels, stride), 2, 6, 6)
    assert_close(values, torch.ones_like(values), rtol=0, atol=1e-12)


def test_with_room_for_all_details_norms_are_kept():
    x = torch.randn(4, 2, 6, 6, dtype=torch.float64)
    for channels in (8, 11):
        kept = HaarSkip(2, channels, 2)(x)
        assert_close(kept.flatten(1).norm(dim=1), x.flatten(1).norm(dim=1))
    assert HaarSkip(2, 7, 2)(x).norm() < x.norm()


@pytest.mark.parametrize("channels", [2, 3, 4, 7, 8, 11])
def test_the_average_stands_where_the_other_skip_has_it(channels):
    x = torch.randn(1, 2, 4, 4, dtype=torch.float64)
    plain, haar = AverageSkip(2, channels, 2)(x), HaarSkip(2, channels, 2)(x)
    first = (channels - 2) // 2
    assert_close(haar[:, first : first + 2], plain[:, first : first + 2])


@pytest.mark.parametrize("kind", [AverageSkip, HaarSkip])
def test_the_scale_multiplies_all(kind):
    x = torch.randn(1, 2, 4, 4)
    assert_close(kind(2, 5, 2, scale=0.5)(x), 0.5 * kind(2, 5, 2)(x))
    assert kind(2, 5, 2, scale=0.0)(x).count_nonzero() == 0


@pytest.mark.parametrize("kind", [AverageSkip, HaarSkip])
def test_no_parameter_no_state_and_types_are_kept(kind):
    skip = kind(2, 5, 2)
    assert not list(skip.parameters())
    assert not skip.state_dict()
    x = torch.randn(1, 2, 4, 4, dtype=torch.float64)
    assert skip(x).dtype == torch.float64
    assert skip(x.float()).dtype == torch.float32
    assert_close(copy.deepcopy(skip)(x), skip(x), rtol=0, atol=0)


@pytest.mark.parametrize("kind", [AverageSkip, HaarSkip])
def test_gradients_are_the_adjoint(kind):
    skip = kind(2, 5, 2)
    x = torch.randn(1, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    towards = torch.randn(1, 5, 2, 2, dtype=torch.float64)
    skip(x).backward(towards)
    matrix = dense(skip, 2, 4, 4)
    assert x.grad is not None
    assert_close(x.grad.flatten(), matrix.T @ towards.flatten())


@pytest.mark.parametrize("kind", [AverageSkip, HaarSkip])
@pytest.mark.parametrize(
    ("make", "shape", "says"),
    [
        ((0, 2), None, "channels_in"),
        ((2, 1), None, "no room in fewer channels"),
        ((2, 4, 0), None, "stride"),
        ((2, 4, 1.0), None, "stride"),
        ((2, 4, 2), (1, 3, 4, 4), "channels to the second place"),
        ((2, 4, 2), (1, 2, 5, 4), "multiples of the stride"),
        ((2, 4, 2), (1, 2), "channels to the second place"),
    ],
)
def test_what_cannot_be_bridged_is_refused_in_a_sentence(kind, make, shape, says):
    with pytest.raises(ConfigError, match=says) as caught:
        kind(*make)(torch.zeros(shape or (1, 2, 4, 4)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", [float("nan"), float("inf"), "1", True])
def test_a_scale_that_is_no_number_is_refused(scale):
    with pytest.raises(ConfigError, match="scale"):
        AverageSkip(2, 4, 2, scale=scale)
