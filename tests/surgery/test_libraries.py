"""Networks of transformers, torchvision and timm, where these are installed."""

import copy

import pytest
import torch
from safetensors.torch import load, save
from torch import nn
from torch.testing import assert_close

from tests.anatomy.test_libraries import IMAGES as PIXELS
from tests.anatomy.test_libraries import TOKENS, bert, convnext, gpt2, resnet
from theodolite import surgery
from theodolite.anatomy import anatomy
from theodolite.core import PreactivationBlueprint, ShortcutBlueprint
from theodolite.networks import AverageSkip, build

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def scores(model, batch):
    outputs = model(**batch) if isinstance(batch, dict) else model(batch)
    return outputs if isinstance(outputs, torch.Tensor) else outputs.logits


def statistics(model):
    """Give batch norms something to remember."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(std=0.1)
            module.running_var.uniform_(0.5, 2)
    return model.eval()


def operate_on_a_resnet(model, batch, projections):
    """Do all that a ResNet with batch norms should bear, and compare."""
    model = statistics(model)
    wanted = scores(model, batch)
    same = surgery.add_identity(model, batch, scale=0.0, learnable=True)
    assert len(same.log.done) == projections
    assert not same.log.left
    assert_close(scores(same.model, batch), wanted, rtol=0, atol=1e-6)
    changed = surgery.add_identity(model, batch)
    assert_close(scores(changed.model, batch), hooked(model, changed.log, batch))
    folded = surgery.fold_norms(model, batch)
    size = wanted.detach().abs().max().item()
    assert_close(
        scores(folded.model, batch), wanted, rtol=0, atol=max(1e-6, 4e-6 * size)
    )
    scaled = surgery.scale_branches(changed.model, batch, by=0.5, learnable=True)
    twin = copy.deepcopy(scaled.model)
    twin.load_state_dict(load(save(scaled.model.state_dict())))
    assert_close(scores(twin, batch), scores(scaled.model, batch), rtol=0, atol=0)
    grouped = surgery.change_norms(model, batch, to="group", groups=2)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in grouped.model.modules())
    bare = surgery.remove_skips(model, batch)
    assert not anatomy(bare.model, batch).additions
    for result in (same, changed, folded, grouped, bare):
        assert_close(scores(result.undo(), batch), wanted, rtol=0, atol=0)


def hooked(model, log, batch):
    """Run a copy whose projections get their identity by hooks."""
    twin = copy.deepcopy(model)

    def add(module, args, output):
        into, out = args[0].shape, output.shape
        return output + AverageSkip(into[1], out[1], into[2] // out[2])(args[0])

    for change in log.done:
        twin.get_submodule(change.module).register_forward_hook(add)
    return scores(twin, batch)


def test_transformers_resnet():
    operate_on_a_resnet(resnet(), PIXELS, 2)


@pytest.mark.parametrize(
    ("make", "batch"),
    [(convnext, PIXELS), (bert, TOKENS), (gpt2, TOKENS)],
    ids=["convnext", "bert", "gpt2"],
)
def test_networks_of_transformers_bear_what_their_parts_allow(make, batch):
    model = make().eval()
    count = len(anatomy(model, batch).additions)
    wanted = scores(model, batch)
    same = surgery.scale_branches(model, batch, by=1.0, learnable=True)
    assert len(same.log.done) == count
    assert_close(scores(same.model, batch), wanted, rtol=0, atol=1e-6)
    zero = surgery.zero_branches(model, batch)
    also = surgery.zero_branches(model, batch, how="scale")
    assert_close(scores(zero.model, batch), scores(also.model, batch))
    bare = surgery.remove_skips(model, batch)
    assert not anatomy(bare.model, batch).additions
    for result in (same, zero, also, bare):
        assert_close(scores(result.undo(), batch), wanted, rtol=0, atol=0)


def test_a_head_that_tokens_share_is_left_by_fixup():
    model = surgery.change_norms(gpt2().eval(), TOKENS, to="none").model
    result = surgery.fixup(model, TOKENS, seed=0)
    assert "acts elsewhere too" in result.log.left[0].after
    assert model.transformer.wte.weight.any()


@pytest.mark.parametrize("norm", ["batch", "none"])
def test_our_networks(norm):
    images = torch.randn(2, 3, 8, 8)
    model = build(PreactivationBlueprint(depth=8, width=4, norm=norm), seed=0)
    result = surgery.scale_branches(model, images, by="sqrt_depth")
    plan = PreactivationBlueprint(
        depth=8, width=4, norm=norm, branch_scale=len(model.units) ** -0.5
    )
    wanted = build(plan, seed=0)(images)
    assert_close(result.model(images), wanted, rtol=1e-5, atol=1e-6)
    rows = torch.randn(3, 4, dtype=torch.float64)
    linear = build(ShortcutBlueprint(width=4, depth=6, shortcut=3), seed=0)
    assert_close(surgery.zero_branches(linear, rows, how="scale").model(rows), rows)


def images(size, device):
    return (
        torch.linspace(-2, 2, 2 * 3 * size**2)
        .sin()
        .reshape(2, 3, size, size)
        .to(device)
    )


def operate_on_both(device, *, deep):
    """Operate on the ResNets of torchvision and timm, where they are installed."""
    models = pytest.importorskip("torchvision.models")
    timm = pytest.importorskip("timm")
    batch = images(64 if deep else 32, device)
    operate_on_a_resnet(models.resnet18(weights=None).to(device), batch, 3)
    operate_on_a_resnet(timm.create_model("resnet18").to(device), batch, 3)
    if deep:
        operate_on_a_resnet(models.resnet50(weights=None).to(device), batch, 4)
        model = timm.create_model("convnext_atto").to(device).eval()
        result = surgery.zero_branches(model, batch, how="scale")
        assert len(result.log.done) == 12
        assert not result.log.left


def test_torchvision_and_timm():
    operate_on_both("cpu", deep=False)


@pytest.mark.gpu
def test_torchvision_and_timm_on_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    operate_on_both("cuda", deep=True)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")  # torch.compile's
def test_altered_networks_run_on_a_gpu_as_on_the_cpu(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    model, batch = statistics(resnet()), PIXELS["pixel_values"]
    altered = surgery.add_identity(model, {"pixel_values": batch}, isometry=True).model
    wanted = scores(altered, {"pixel_values": batch})
    moved = copy.deepcopy(altered).to("cuda")
    on_gpu = scores(moved, {"pixel_values": batch.to("cuda")})
    assert_close(on_gpu.cpu(), wanted, rtol=1e-4, atol=1e-5)
    there = statistics(copy.deepcopy(model)).to("cuda")
    batch = {"pixel_values": batch.to("cuda")}
    result = surgery.scale_branches(there, batch, by=0.5, learnable=True)
    compiled = torch.compile(result.model, fullgraph=True)
    assert_close(
        scores(compiled, batch), scores(result.model, batch), rtol=1e-3, atol=1e-4
    )
