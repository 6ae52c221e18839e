"""Skips put around modules and taken away."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from tests.anatomy.styles import images, sequences, vectors
from theodolite import surgery
from theodolite.anatomy import anatomy
from theodolite.core import ConfigError, SurgeryError
from theodolite.networks import AverageSkip, HaarSkip

IMAGES = torch.linspace(-2, 2, 2 * 3 * 16 * 16).sin().reshape(2, 3, 16, 16)


def plain():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU()),
        nn.Sequential(nn.Conv2d(4, 8, 3, 2, 1), nn.Tanh()),
        nn.Flatten(),
        nn.Linear(512, 3),
    )


def test_a_skip_around_a_module_changes_nothing_and_learns():
    model = plain()
    result = surgery.insert_skips(model, IMAGES, around=["1", "2"])
    assert_close(result.model(IMAGES), model(IMAGES), rtol=0, atol=1e-6)
    assert result.check.parameters[1] == result.check.parameters[0] + 2
    result.model(IMAGES).square().sum().backward()
    for path in ("1", "2"):
        assert result.model.get_parameter(f"{path}.surgery_scale").grad.abs() > 0
    assert len(anatomy(result.model, IMAGES).additions) == 2


@pytest.mark.parametrize(("isometry", "kind"), [(False, AverageSkip), (True, HaarSkip)])
def test_a_skip_of_a_fixed_factor_adds_it(isometry, kind):
    model = plain()
    result = surgery.insert_skips(
        model, IMAGES, around=["1", "2"], scale=0.5, learnable=False, isometry=isometry
    )
    first = model[0](IMAGES)
    second = model[1](first) + 0.5 * first
    third = model[2](second) + 0.5 * kind(4, 8, 2)(second)
    assert_close(result.model(IMAGES), model[4](third.flatten(1)))
    assert set(result.model.state_dict()) == set(model.state_dict())


def test_an_inserted_skip_can_be_removed_only_by_undoing():
    result = surgery.insert_skips(plain(), IMAGES, around="1", scale=1.0)
    with pytest.raises(SurgeryError, match="does not register"):
        surgery.remove_skips(result.model, IMAGES)
    assert not anatomy(result.undo(), IMAGES).additions


@pytest.mark.parametrize(
    ("around", "says"),
    [
        ("7", "no submodule that ran"),
        ("", "no submodule that ran"),
        ("0", "cannot bridge"),
        ("4", "cannot bridge"),
    ],
)
def test_modules_that_no_skip_can_go_around_are_refused(around, says):
    model = plain()
    if around == "0":
        model[0] = nn.Conv2d(3, 4, 5)
        model[4] = nn.Linear(288, 3)
    with pytest.raises(SurgeryError, match=says) as caught:
        surgery.insert_skips(model, IMAGES, around=around)
    assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match="paths of submodules"):
        surgery.insert_skips(model, IMAGES, around=[])


def test_an_attention_layer_has_no_one_output():
    model = sequences.PreNormTransformer()
    tokens = torch.arange(10).reshape(2, 5) % 9
    with pytest.raises(SurgeryError, match="return one"):
        surgery.insert_skips(model, tokens, around="blocks.0.attn")
    result = surgery.insert_skips(model.eval(), tokens, around="blocks.0.mlp")
    assert_close(result.model(tokens), model(tokens), rtol=0, atol=1e-6)


def test_chosen_skips_are_removed_and_others_stay():
    model = images.TorchvisionLike()
    for which in (2, "layer2", ["layer2.0"]):
        result = surgery.remove_skips(model, IMAGES, which=which)
        kinds = [a.skip.kind for a in anatomy(result.model, IMAGES).additions]
        assert kinds == ["identity", "identity"]
        assert result.check.unreached == tuple(
            f"layer2.0.downsample.{name}" for name in ("0.weight", "1.bias", "1.weight")
        )


def test_the_log_is_a_table_and_rows():
    result = surgery.remove_skips(images.TorchvisionLike(), IMAGES)
    assert str(result.log).splitlines() == [
        "remove_skips: 3 changes",
        "module    what  before      after",
        "layer1.0  skip  identity    none",
        "layer1.1  skip  identity    none",
        "layer2.0  skip  projection  none",
    ]
    assert [row["module"] for row in result.log.rows()] == [
        "layer1.0", "layer1.1", "layer2.0",
    ]  # fmt: skip


class Shared(nn.Module):
    """One block that runs twice, and a network in which it adds at one place only."""

    def __init__(self, between):
        super().__init__()
        self.block = vectors.ResNetOfResNets()
        self.between = between

    def forward(self, x):
        return self.block(self.between(self.block(x)))


def test_a_module_that_runs_twice_is_changed_in_both_runs_or_not_at_all():
    model, x = Shared(nn.Linear(4, 4)), torch.randn(3, 4)
    result = surgery.scale_branches(model, x, by=0.5)
    once = surgery.scale_branches(model.block, x, by=0.5).model
    assert_close(result.model(x), once(model.between(once(x))))
    with pytest.raises(SurgeryError, match="runs 2 times"):
        surgery.scale_branches(model, x, by=0.5, which=0)


class Composite(nn.Module):
    """A sum inside a function of torch's."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.stack([x, torch.relu(self.layer(x))]).sum(0)


class Hidden(nn.Module):
    """A block that its owner does not register."""

    def __init__(self):
        super().__init__()
        self.blocks = [vectors.ResNetOfResNets()]

    def forward(self, x):
        return self.blocks[0](x)


class Outsider(nn.Module):
    """A sum beside one in a module that is not registered."""

    def __init__(self, hidden):
        super().__init__()
        self.hidden, self.layer = [hidden], nn.Linear(4, 4)

    def forward(self, x):
        return x + self.layer(self.hidden[0](x))


def test_a_module_that_is_not_registered_is_in_the_way_only_if_it_adds():
    x = torch.randn(3, 4)
    model = Outsider(nn.Tanh())
    result = surgery.scale_branches(model, x, by=0.5)
    assert_close(result.model(x), x + 0.5 * (model(x) - x))
    with pytest.raises(SurgeryError, match="cannot be distinguished from its own"):
        surgery.scale_branches(Outsider(vectors.ResNetOfResNets()), x, by=0.5, which=3)


class Moody(nn.Module):
    """A forward that adds more in training than in eval mode."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x, more=False):
        if self.training:
            x = x + torch.relu(self.first(x))
        x = x + torch.tanh(self.second(x))
        return x + torch.ones_like(x) if more else x


def test_a_forward_that_adds_elsewhere_is_refused_when_it_runs():
    x = torch.randn(3, 4)
    model = surgery.scale_branches(Moody().eval(), x, by=0.5).model
    assert_close(model(x, more=True), model(x) + 1)  # sums behind do no harm
    with pytest.raises(SurgeryError, match="other sums in this run"):
        model.train()(x)
    assert model.eval()(x).isfinite().all()
    model = surgery.remove_skips(Moody().train(), x).model
    with pytest.raises(SurgeryError, match="other sums in this run"):
        model.eval()(x)


def test_sums_that_cannot_be_reached_are_refused():
    x = torch.randn(3, 4)
    with pytest.raises(SurgeryError, match="no residual addition"):
        surgery.remove_skips(Composite(), x)
    with pytest.raises(SurgeryError, match="does not register"):
        surgery.remove_skips(Hidden(), x)
    traced = torch.fx.symbolic_trace(vectors.ResNetOfResNets())
    with pytest.raises(SurgeryError, match="in a manner of its own"):
        surgery.remove_skips(traced, x)
    model = vectors.ResNetOfResNets()
    model.forward = model.forward
    with pytest.raises(SurgeryError, match="set on the object itself"):
        surgery.remove_skips(model, x)


@pytest.mark.parametrize(
    ("by", "error"),
    [
        ("width", ConfigError),
        ([0.5], ConfigError),
        (float("inf"), ConfigError),
        (1e300, SurgeryError),
    ],
)
def test_factors_that_are_none_are_refused(by, error):
    with pytest.raises(error) as caught:
        surgery.scale_branches(images.TorchvisionLike(), IMAGES, by=by)
    assert "\n" not in str(caught.value)


def test_branches_are_scaled_by_the_depth_of_their_level():
    model, x = images.LongSkip(), IMAGES[:, :, :8, :8]
    log = surgery.scale_branches(model, x, by="depth").log
    assert [change.after for change in log.done] == ["0.5", "0.5", "1", "1"]
    log = surgery.scale_branches(images.TorchvisionLike(), x, by="sqrt_depth").log
    assert [change.after for change in log.done] == ["0.5774"] * 3


@pytest.mark.parametrize(
    "operate",
    [
        lambda model: surgery.scale_branches(model, IMAGES, by=None),
        lambda model: surgery.remove_skips(model, IMAGES, which=1.5),
        lambda model: surgery.insert_skips(model, IMAGES, around=None),
        lambda model: surgery.fold_norms(model, IMAGES, which=3),
    ],
)
def test_settings_that_are_no_list_are_one_sentence(operate):
    with pytest.raises(ConfigError, match="pass "):
        operate(images.TorchvisionLike())


@pytest.mark.parametrize(
    ("batch", "says"), [(IMAGES[:0], "no numbers"), (IMAGES * float("nan"), "NaN")]
)
def test_a_batch_on_which_nothing_can_be_checked_is_refused(batch, says):
    with pytest.raises(SurgeryError, match=f"returns {says} on the batch"):
        surgery.remove_skips(images.TorchvisionLike().eval(), batch)


class InPlace(nn.Module):
    """A sum that is written into a tensor, which is read under another name."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        made = kept = self.layer(x).tanh() * 1
        made.add_(x)
        return kept


@pytest.mark.parametrize("learnable", [False, True])
def test_sums_in_place_are_seen_under_every_name(learnable):
    model, x = InPlace(), torch.randn(3, 4)
    result = surgery.scale_branches(model, x, by=0.5, learnable=learnable)
    assert_close(result.model(x), x + 0.5 * (model(x) - x))
    assert result.check.gradient > 0


def test_a_skip_goes_around_a_module_that_writes_over_its_input():
    inner = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))
    model, x = nn.Sequential(nn.Linear(4, 4), inner), torch.randn(3, 4)
    result = surgery.insert_skips(model, x, around="1", scale=1.0, learnable=False)
    first = model[0](x)
    assert_close(result.model(x), first + inner[1](first.relu()))


class Overwriting(nn.Module):
    """A projection by functions, of a tensor that the branch writes over."""

    def __init__(self):
        super().__init__()
        self.stem, self.branch = nn.Linear(4, 4), nn.Linear(4, 4)
        self.down = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        x = self.stem(x) * 1
        short = torch.matmul(x, self.down) * 1
        return short + self.branch(x.tanh_())


def test_a_tensor_that_is_written_over_before_the_sum_is_refused():
    with torch.no_grad(), pytest.raises(SurgeryError, match="written over"):
        surgery.add_identity(Overwriting(), torch.randn(3, 4))
