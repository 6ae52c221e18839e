"""Networks of torchvision and timm, where these are installed."""

from collections import Counter

import pytest
import torch

from theodolite.anatomy import anatomy

IMAGES = torch.linspace(-2, 2, 2 * 3 * 32 * 32).sin().reshape(2, 3, 32, 32)
BASIC = ("linear", "norm", "activation", "linear", "norm")


def skips(found):
    return Counter(addition.skip.kind for addition in found.additions)


def places(found):
    return Counter(norm.placement for norm in found.norms)


def test_torchvision_resnet():
    models = pytest.importorskip("torchvision.models")
    found = anatomy(models.resnet18(weights=None).eval(), IMAGES)
    assert skips(found) == {"identity": 5, "projection": 3}
    assert {a.branches[0].layout for a in found.additions} == {BASIC}
    assert places(found) == {"stem": 1, "inside": 16, "skip": 3}
    assert found.piecewise_linear


def test_torchvision_densenet_and_mobilenet():
    models = pytest.importorskip("torchvision.models")
    dense = models.DenseNet(growth_rate=2, block_config=(2, 2), num_init_features=4)
    found = anatomy(dense.eval(), IMAGES)
    assert not found.additions
    assert {other.kind for other in found.others} == {"concatenation"}
    found = anatomy(models.mobilenet_v2(weights=None).eval(), IMAGES)
    assert skips(found) == {"identity": 10}
    assert found.piecewise_linear


def test_torchvision_vit():
    vision_transformer = pytest.importorskip("torchvision.models").VisionTransformer
    model = vision_transformer(32, 8, 2, 2, 8, 16)
    found = anatomy(model.eval(), IMAGES)
    assert skips(found) == {"identity": 4}
    assert places(found) == {"pre": 4, "final": 1}


def test_timm():
    timm = pytest.importorskip("timm")
    found = anatomy(timm.create_model("resnet18").eval(), IMAGES)
    assert skips(found) == {"identity": 5, "projection": 3}
    model = timm.create_model("convnext_atto", depths=(1, 1, 1, 1), dims=(4, 8, 8, 8))
    assert skips(anatomy(model.eval(), IMAGES)) == {"identity": 4}
    model = timm.create_model(
        "vit_tiny_patch16_224", img_size=32, embed_dim=12, depth=2, num_heads=2
    )
    found = anatomy(model.eval(), IMAGES)
    assert skips(found) == {"identity": 4}
    assert places(found) == {"pre": 4, "final": 1}
