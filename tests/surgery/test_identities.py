"""I + A in place of A: by a layer, by functions, and where it cannot be."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from tests.anatomy.styles import images
from theodolite import surgery
from theodolite.anatomy import anatomy
from theodolite.core import ConfigError, SurgeryError
from theodolite.networks import AverageSkip, HaarSkip
from theodolite.surgery import edits

IMAGES = torch.linspace(-2, 2, 2 * 3 * 8 * 8).sin().reshape(2, 3, 8, 8)
PROJECTIONS = {
    images.TorchvisionLike: "layer2.0.downsample",
    images.PreActNet: "layers.1.shortcut",
}


def with_hook(model, path, skip, scale=1.0):
    """Return a copy whose submodule adds a skip of what it is given."""
    twin = copy.deepcopy(model)
    twin.get_submodule(path).register_forward_hook(
        lambda module, args, output: output + scale * skip(args[0])
    )
    return twin


@pytest.mark.parametrize("make", PROJECTIONS)
@pytest.mark.parametrize(("isometry", "kind"), [(False, AverageSkip), (True, HaarSkip)])
@pytest.mark.parametrize("learnable", [False, True])
def test_a_projection_gets_an_identity_beside_it(make, isometry, kind, learnable):
    model, path = make(), PROJECTIONS[make]
    result = surgery.add_identity(
        model, IMAGES, scale=0.7, isometry=isometry, learnable=learnable
    )
    wanted = with_hook(model, path, kind(4, 6, 2), 0.7)(IMAGES)
    assert_close(result.model(IMAGES), wanted)
    assert result.check.change > 1e-3
    (change,) = result.log.done
    assert change.module == path
    assert change.after == f"0.7 {kind.__name__}(4, 6, stride=2) + A"
    extra = [f"{path}.surgery_scale"] if learnable else []
    assert set(result.model.state_dict()) - set(model.state_dict()) == set(extra)


@pytest.mark.parametrize("make", PROJECTIONS)
def test_at_scale_zero_a_trained_network_does_what_it_did_and_can_learn(make):
    model = make().eval()
    result = surgery.add_identity(model, IMAGES, scale=0.0, learnable=True)
    assert_close(result.model(IMAGES), model(IMAGES), rtol=0, atol=1e-6)
    result.model(IMAGES).square().sum().backward()
    learned = result.model.get_parameter(f"{PROJECTIONS[make]}.surgery_scale")
    assert learned.grad.abs() > 0


def test_weights_of_the_original_fit_the_altered_network():
    model = images.TorchvisionLike()
    result = surgery.add_identity(model, IMAGES)
    other = images.TorchvisionLike()
    result.model.load_state_dict(other.state_dict())
    wanted = with_hook(other, "layer2.0.downsample", AverageSkip(4, 6, 2))(IMAGES)
    assert_close(result.model(IMAGES), wanted)


class Functional(nn.Module):
    """A projection by functions, from an argument or from what others made."""

    def __init__(self, start, added=False):
        super().__init__()
        torch.manual_seed(3)
        self.start, self.added = start, added
        self.stem, self.act = nn.Conv2d(3, 3, 3, padding=1), nn.ReLU()
        self.down = nn.Parameter(torch.randn(6, 3, 1, 1))
        self.norm = nn.BatchNorm2d(6)
        self.branch = nn.Sequential(
            nn.Conv2d(3, 6, 3, 2, 1), nn.ReLU(), nn.Conv2d(6, 6, 3, 1, 1)
        )

    def forward(self, x):
        if self.start == "function":
            x = torch.tanh(F.relu(torch.tanh(x)))
        elif self.start == "module":
            x = self.act(self.stem(x))
        elif self.start == "sum":
            x = x + self.stem(x)
        short = self.norm(F.conv2d(x, self.down, stride=2))
        if self.added:
            short = short + AverageSkip(3, 6, 2)(x)
        return F.relu(self.branch(x) + short)


@pytest.mark.parametrize("start", ["argument", "function", "module", "sum"])
def test_a_projection_by_functions_is_reached_from_wherever_it_starts(start):
    model = Functional(start)
    result = surgery.add_identity(model, IMAGES)
    wanted = Functional(start, added=True)(IMAGES)
    assert_close(result.model(IMAGES), wanted)
    assert_close(copy.deepcopy(result.model)(IMAGES), wanted)
    assert type(result.undo()) is Functional


class LastAxis(nn.Module):
    """A projecting skip on the last axis, as in transformers."""

    def __init__(self):
        super().__init__()
        self.skip, self.inner = nn.Linear(4, 7), nn.Linear(4, 7)

    def forward(self, x):
        return self.skip(x) + torch.tanh(self.inner(x))


def test_features_on_the_last_axis_are_padded_there():
    model, x = LastAxis(), torch.randn(2, 3, 4)
    result = surgery.add_identity(model, x)
    assert_close(result.model(x), model(x) + F.pad(x, (1, 2)))


class Narrow(nn.Module):
    """A projection that no identity can stand beside."""

    def __init__(self, outer, stride):
        super().__init__()
        self.skip = nn.Conv2d(3, outer, 1, stride)
        self.inner = nn.Conv2d(3, outer, 3, stride, 1)

    def forward(self, x):
        return self.skip(x) + torch.tanh(self.inner(x))


@pytest.mark.parametrize(
    ("outer", "stride", "size", "says"),
    [(2, 1, 8, "fewer channels"), (6, 2, 7, "no stride divides evenly")],
)
def test_shapes_that_an_identity_cannot_bridge_are_refused(outer, stride, size, says):
    with pytest.raises(SurgeryError, match=says) as caught:
        surgery.add_identity(Narrow(outer, stride), IMAGES[:, :, :size, :size])
    assert "\n" not in str(caught.value)


def test_a_block_without_a_projection_is_refused():
    with pytest.raises(SurgeryError, match="wanted is a projection"):
        surgery.add_identity(images.TorchvisionLike(), IMAGES, which="layer1.0")
    with pytest.raises(SurgeryError, match="names no residual addition"):
        surgery.add_identity(images.TorchvisionLike(), IMAGES, which="fc")
    with pytest.raises(SurgeryError, match="no skip of the network projects"):
        surgery.add_identity(images.OptionA(), IMAGES)


def test_what_is_no_number_or_network_is_refused():
    with pytest.raises(ConfigError, match="scale must be finite"):
        surgery.add_identity(images.PreActNet(), IMAGES, scale=float("nan"))
    with pytest.raises(ConfigError, match=r"which is \[0.5\]"):
        surgery.add_identity(images.PreActNet(), IMAGES, which=[0.5])
    with pytest.raises(SurgeryError, match=r"pass Module"):
        surgery.add_identity("resnet", IMAGES)


def test_operations_follow_one_another_and_are_undone_in_turn():
    model = images.TorchvisionLike()
    first = surgery.add_identity(model, IMAGES)
    second = surgery.scale_branches(first.model, IMAGES, by=0.5)
    third = surgery.change_norms(second.model, IMAGES, to="layer")
    fourth = surgery.scale_branches(third.model, IMAGES, by=2.0)
    assert_close(fourth.undo()(IMAGES), third.model(IMAGES))
    assert_close(second.undo()(IMAGES), first.model(IMAGES))
    halves = surgery.change_norms(first.model, IMAGES, to="layer").model
    assert_close(fourth.model(IMAGES), halves(IMAGES))


def test_anatomy_finds_the_identity():
    result = surgery.add_identity(images.PreActNet(), IMAGES)
    kinds = [a.skip.kind for a in anatomy(result.model, IMAGES).additions]
    assert kinds == ["identity", "pool"]


class Owner(nn.Module):
    """What edits read by name."""

    def __init__(self):
        super().__init__()
        self.own = nn.Parameter(torch.tensor([2.0, 3.0]))
        self.norm = nn.Threshold(4.0, -1.0)


@pytest.mark.parametrize(
    ("edit", "wanted"),
    [
        (edits.ScaleEdit(0.5), [2.0, 2.5]),
        (edits.ScaleEdit("own"), [8.0, 15.0]),
        (edits.ZeroEdit(), [0.0, 0.0]),
        (edits.ShiftEdit("own"), [6.0, 8.0]),
        (edits.NormEdit("norm"), [-1.0, 5.0]),
        (edits.IdentityEdit(nn.Identity(), 1.0), [14.0, 25.0]),
        (edits.IdentityEdit(nn.Identity(), 0.5), [9.0, 15.0]),
        (edits.IdentityEdit(nn.Identity(), "own"), [24.0, 65.0]),
    ],
)
def test_edits_are_arithmetic(edit, wanted):
    value, beside = torch.tensor([4.0, 5.0]), torch.tensor([10.0, 20.0])
    assert edit(Owner(), value, beside).tolist() == wanted
    assert not list(edit.parameters())
