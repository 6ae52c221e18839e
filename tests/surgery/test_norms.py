"""Norms of another kind, folded away, moved; and what Fixup puts in their place."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from tests.anatomy.styles import images, sequences, vectors
from theodolite import surgery
from theodolite.anatomy import anatomy
from theodolite.core import ConfigError, SurgeryError

IMAGES = torch.linspace(-2, 2, 2 * 3 * 8 * 8).sin().reshape(2, 3, 8, 8)
ROWS = torch.linspace(-2, 2, 32).cos().reshape(2, 2, 8)


def trained(model):
    """Give batch norms something to remember."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return model


@pytest.mark.parametrize(
    ("to", "norm"),
    [
        ("group", lambda x, w, b: F.group_norm(x, 2, w, b)),
        ("layer", lambda x, w, b: F.group_norm(x, 1, w, b)),
        (
            "pixel",
            lambda x, w, b: F.layer_norm(
                x.transpose(1, 3), x.shape[1:2], w, b
            ).transpose(1, 3),
        ),
        ("none", lambda x, w, b: x),
    ],
)
def test_norms_become_another_kind_and_keep_what_they_learned(to, norm):
    model = trained(images.TorchvisionLike())
    result = surgery.change_norms(model, IMAGES, to=to, groups=2)
    twin = copy.deepcopy(model)
    for module in twin.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.forward = lambda x, m=module: norm(x, m.weight, m.bias)
    assert_close(result.model(IMAGES), twin(IMAGES))
    assert len(result.log.done) == 9
    one = surgery.change_norms(model, IMAGES, to=to, which="layer1.0.bn1")
    assert [change.module for change in one.log.done] == ["layer1.0.bn1"]


@pytest.mark.parametrize("to", ["group", "layer", "pixel"])
def test_norms_without_factors_stay_so_and_frozen_ones_stay_frozen(to):
    layers = nn.BatchNorm2d(3, affine=False), nn.BatchNorm2d(3).requires_grad_(False)
    changed = surgery.change_norms(nn.Sequential(*layers), IMAGES, to=to).model
    assert list(changed.state_dict()) == ["1.weight", "1.bias"]
    assert not any(parameter.requires_grad for parameter in changed.parameters())


class Curious(nn.Module):
    """A forward that reads its norm's weights."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x):
        return self.norm(x.to(self.norm.weight.dtype))


def test_code_that_cannot_do_without_a_part_is_refused():
    with pytest.raises(SurgeryError, match=r"does not run.*weight"):
        surgery.change_norms(Curious(), IMAGES, to="none")


def test_groups_divide_the_channels():
    model = nn.Sequential(nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12))
    changed = surgery.change_norms(model, IMAGES, to="group", groups=5).model
    assert changed[1].num_groups == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_folded_networks_in_eval_mode_do_what_they_did(dtype):
    for make in (images.TorchvisionLike, images.PreActNet, images.DenseNet):
        model = trained(make()).to(dtype)
        batch = IMAGES.to(dtype)
        result = surgery.fold_norms(model, batch)
        assert all(module.training for module in result.model.modules())
        outputs = result.model.eval()(batch)
        assert_close(outputs, model.eval()(batch), rtol=1e-6, atol=1e-6)
        assert not any(isinstance(m, nn.BatchNorm2d) for m in result.model.modules())


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(3, 6, 3, groups=3),
        nn.Conv2d(3, 6, 3, bias=False),
        nn.ConvTranspose2d(3, 6, 3, groups=3, bias=False),
        nn.ConvTranspose2d(3, 6, 3, stride=2),
    ],
)
def test_every_kind_of_layer_takes_a_norm_in(layer):
    model = trained(nn.Sequential(layer, nn.BatchNorm2d(6))).eval()
    for change in (
        surgery.fold_norms(model, IMAGES),
        surgery.change_norms(model, IMAGES, to="weight"),
    ):
        assert_close(change.model(IMAGES), model(IMAGES), rtol=1e-5, atol=1e-6)
        assert "0" in change.log.done[0].after
    lines = trained(nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))).eval()
    rows = ROWS.flatten(0, 1)
    assert_close(surgery.fold_norms(lines, rows).model(rows), lines(rows))


class Twice(nn.Module):
    """A layer whose output others read as well as its norm."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)

    def forward(self, x):
        x = self.layer(x)
        return torch.cat([self.norm(x), x], 1)


def test_a_layer_with_other_readers_keeps_its_weights():
    model = trained(Twice()).eval()
    result = surgery.fold_norms(model, IMAGES)
    assert result.log.done[0].after == "factor and shift"
    assert_close(result.model(IMAGES), model(IMAGES))


def test_weight_norm_normalises_weights():
    model = trained(images.TorchvisionLike())
    result = surgery.change_norms(model, IMAGES, to="weight")
    layer = result.model.layer1[0].conv1
    scale = layer.parametrizations.weight.original0
    assert_close(layer.weight.flatten(1).norm(dim=1), scale.flatten())
    conv = model.layer1[0].conv1
    with torch.no_grad():
        conv.weight[:, 0] = 0.0  # no channel of the outputs
        surgery.change_norms(model, IMAGES, to="weight")
        conv.weight[0] = 0.0
    with pytest.raises(SurgeryError, match=r"'layer1\.0\.conv1' .* a channel of zeros"):
        surgery.change_norms(model, IMAGES, to="weight")


def test_norms_that_cannot_be_folded_or_changed_are_refused_or_left():
    mixer = sequences.Mixer()
    with pytest.raises(SurgeryError, match="not linear in eval mode"):
        surgery.fold_norms(mixer, IMAGES)
    with pytest.raises(SurgeryError, match="on the second axis"):
        surgery.change_norms(mixer, IMAGES, to="group")
    with pytest.raises(SurgeryError, match="no norm layer of the network"):
        surgery.fold_norms(mixer, IMAGES, which="stem")
    forgetful = nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False))
    with pytest.raises(SurgeryError, match="no running statistics"):
        surgery.fold_norms(forgetful, IMAGES)
    with pytest.raises(SurgeryError, match="no norm layer that can be changed"):
        surgery.change_norms(vectors.OnlyFunctions(), ROWS[0, :, :4], to="none")
    with pytest.raises(ConfigError, match="unknown to 'spectral'"):
        surgery.change_norms(mixer, IMAGES, to="spectral")
    vgg = surgery.fold_norms(images.Vgg().double(), torch.ones(2, 3, 16, 16).double())
    assert len(vgg.log.left) == 2


class NormAndMore(nn.BatchNorm2d):
    """A norm with an activation in it, as libraries have them."""

    def forward(self, input):
        return F.relu(super().forward(input))


def test_a_norm_that_does_more_is_not_taken_for_one():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), NormAndMore(4))
    for to in ("group", "none"):
        with pytest.raises(SurgeryError, match="more than norm"):
            surgery.change_norms(model, IMAGES, to=to)
    with pytest.raises(SurgeryError, match="linear in eval mode"):
        surgery.fold_norms(model, IMAGES)


class Transformer(nn.Module):
    """Norms before the branches, or behind the sums."""

    def __init__(self, placement):
        super().__init__()
        torch.manual_seed(1)
        self.placement = placement
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(2))
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)) for _ in range(2)
        )
        for norm in self.norms:
            nn.init.normal_(norm.weight)

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers, strict=True):
            if self.placement == "pre":
                x = x + layer(norm(x))
            else:
                x = norm(x + layer(x))
        return x


@pytest.mark.parametrize(("start", "to"), [("pre", "post"), ("post", "pre")])
def test_norms_are_moved(start, to):
    model, other = Transformer(start), Transformer(to)
    result = surgery.move_norms(model, ROWS, to=to)
    assert_close(result.model(ROWS), other(ROWS))
    assert len(result.log.done) == 2
    assert {n.placement for n in anatomy(result.model, ROWS).norms} == {to}
    back = surgery.move_norms(result.model, ROWS, to=start)
    assert_close(back.model(ROWS), model(ROWS))


def test_torch_s_own_post_norm_layers_become_pre_norm():
    torch.manual_seed(2)
    settings = {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "batch_first": True}
    post = nn.TransformerEncoderLayer(**settings).eval()
    pre = nn.TransformerEncoderLayer(**settings, norm_first=True).eval()
    pre.load_state_dict(post.state_dict())
    result = surgery.move_norms(post, ROWS, to="pre")
    assert_close(result.model(ROWS), pre(ROWS))
    with torch.no_grad():  # where torch would take its fused path
        assert_close(result.model(ROWS), pre(ROWS))


def test_norms_that_cannot_be_moved_are_refused():
    with pytest.raises(SurgeryError, match="0 norms of placement 'pre'"):
        surgery.move_norms(images.TorchvisionLike(), IMAGES, to="post")
    with pytest.raises(SurgeryError, match="written by hand"):
        surgery.move_norms(sequences.Gated(), torch.ones(2, 5, 4), to="post")
    with pytest.raises(SurgeryError, match="the same channels"):
        surgery.move_norms(images.PreActNet(), IMAGES, to="post", which="layers.1")
    with pytest.raises(SurgeryError, match="no residual addition"):
        surgery.move_norms(images.Vgg(), torch.ones(2, 3, 16, 16), to="post")
    with pytest.raises(ConfigError, match="unknown to 'inside'"):
        surgery.move_norms(images.PreActNet(), IMAGES, to="inside")


def residual(blocks, width=64):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
            self.third = nn.Linear(width, width)

        def forward(self, x):
            z = self.second(torch.relu(self.first(x)))
            return x + self.third(torch.relu(z))

    return nn.Sequential(*(Block() for _ in range(blocks)), nn.Linear(width, 2))


def test_fixup_draws_by_depth_and_starts_at_the_skip():
    model, x = residual(16), torch.randn(5, 64)
    result = surgery.fixup(model, x, seed=0)
    wanted = math.sqrt(2 / 64) * 16 ** (-1 / 4)
    for block in result.model[:-1]:
        assert block.first.weight.std().item() == pytest.approx(wanted, rel=0.05)
        assert block.second.weight.std().item() == pytest.approx(wanted, rel=0.05)
        assert not block.third.weight.any()
        assert not block.first.bias.any()
        assert_close(block(x), x)
    assert not result.model(x).any()
    assert result.check.parameters[1] - result.check.parameters[0] == 16 * (1 + 3)
    same = surgery.fixup(model, x, seed=0).model.state_dict()
    other = surgery.fixup(model, x, seed=1).model.state_dict()
    weight = "0.first.weight"
    assert torch.equal(same[weight], result.model.state_dict()[weight])
    assert not torch.equal(other[weight], same[weight])
    bare = surgery.fixup(model, x, seed=0, scalars=False, head=False)
    assert set(bare.model.state_dict()) == set(model.state_dict())
    assert torch.equal(bare.model[-1].weight, model[-1].weight)


def test_fixup_wants_no_norms():
    with pytest.raises(SurgeryError, match="a branch holds a norm"):
        surgery.fixup(images.TorchvisionLike(), IMAGES, seed=0)
    bare = surgery.change_norms(images.TorchvisionLike(), IMAGES, to="none").model
    result = surgery.fixup(bare, IMAGES, seed=0)
    assert result.check.gradient > 0
    assert not result.model(IMAGES).any()
