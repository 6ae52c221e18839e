"""Networks of transformers, torchvision and timm, where these are installed.

They are built from small configurations; nothing is downloaded.
"""

from collections import Counter

import pytest
import torch

from tests.later import later
from theodolite.anatomy import anatomy

transformers = later("transformers", "pip install 'theodolite[transformers]'")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

IMAGES = {"pixel_values": torch.linspace(-2, 2, 2 * 3 * 64).sin().reshape(2, 3, 8, 8)}
TOKENS = {"input_ids": torch.arange(10).reshape(2, 5) % 7}
TINY = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}


def resnet():
    config = transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[8, 12], depths=[1, 2], layer_type="bottleneck",
        reduction=2,
    )  # fmt: skip
    return transformers.ResNetForImageClassification(config)


def convnext():
    config = transformers.ConvNextConfig(
        num_stages=2, hidden_sizes=[4, 6], depths=[1, 2], patch_size=2
    )
    return transformers.ConvNextForImageClassification(config)


def vit():
    config = transformers.ViTConfig(
        **TINY, intermediate_size=8, image_size=8, patch_size=4
    )
    return transformers.ViTForImageClassification(config)


def bert():
    config = transformers.BertConfig(**TINY, intermediate_size=8, vocab_size=7)
    return transformers.BertForSequenceClassification(config)


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=7, n_positions=8, n_embd=8, n_layer=2, n_head=2, n_inner=8,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def layouts(result):
    """Return kind of skip and layout of each addition."""
    return [
        (a.skip.kind, *(" ".join(branch.layout) for branch in a.branches))
        for a in result.additions
    ]


def placed(result):
    return Counter((norm.kind, norm.placement) for norm in result.norms)


def test_resnet():
    result = anatomy(resnet().eval(), IMAGES)
    branch = "linear norm activation linear norm activation linear norm"
    # The first stage widens, so that its first block projects too.
    assert layouts(result) == [
        ("projection", branch),
        ("projection", branch),
        ("identity", branch),
    ]
    stages = "resnet.encoder.stages"
    assert [a.module for a in result.additions] == [
        f"{stages}.0.layers.0",
        f"{stages}.1.layers.0",
        f"{stages}.1.layers.1",
    ]
    assert result.additions[1].skip.modules == (f"{stages}.1.layers.0.shortcut",)
    assert result.additions[2].branches[0].modules == (f"{stages}.1.layers.1.layer",)
    assert placed(result) == {
        ("batch", "stem"): 1,
        ("batch", "inside"): 9,
        ("batch", "skip"): 2,
    }
    assert result.piecewise_linear
    assert Counter(a.kind for a in result.activations) == {"relu": 10, "max_pool2d": 1}
    assert not result.others
    assert not result.unplaced


def test_convnext():
    result = anatomy(convnext().eval(), IMAGES)
    branch = "linear norm linear activation linear scale"
    assert layouts(result) == [("identity", branch)] * 3
    scales = [a.branches[0].scales for a in result.additions]
    assert [scale.name for (scale,) in scales] == [
        f"convnext.encoder.stages.{stage}.layers.{layer}.layer_scale_parameter"
        for stage, layer in ((0, 0), (1, 0), (1, 1))
    ]
    assert placed(result) == {
        ("layer", "stem"): 1,
        ("layer", "inside"): 3,
        ("layer", "between"): 1,
        ("layer", "final"): 1,
    }
    assert {a.kind for a in result.activations} == {"gelu"}
    assert not result.piecewise_linear


def test_vit():
    result = anatomy(vit().eval(), IMAGES)
    once = [
        ("identity", "norm linear linear linear attention linear"),
        ("identity", "norm linear activation linear"),
    ]
    assert layouts(result) == once * 2
    assert placed(result) == {("layer", "pre"): 4, ("layer", "final"): 1}
    assert [other.kind for other in result.others] == ["attention"] * 2
    assert not result.unplaced


def test_bert():
    result = anatomy(bert().eval(), TOKENS)
    once = [
        ("identity", "linear linear linear attention linear"),
        ("identity", "linear activation linear"),
    ]
    assert layouts(result) == once * 2
    first = result.additions[0]
    assert first.module == "bert.encoder.layer.0.attention.output"
    assert first.branches[0].modules == (
        "bert.encoder.layer.0.attention.self",
        "bert.encoder.layer.0.attention.output.dense",
    )
    assert placed(result) == {("layer", "stem"): 1, ("layer", "post"): 4}
    assert not result.unplaced


def test_gpt2():
    result = anatomy(gpt2().eval(), TOKENS)
    once = [
        ("identity", "norm linear attention linear"),
        ("identity", "norm linear activation linear"),
    ]
    assert layouts(result) == once * 2
    assert result.additions[1].branches[0].modules == (
        "transformer.h.0.ln_2",
        "transformer.h.0.mlp",
    )
    assert placed(result) == {("layer", "pre"): 4, ("layer", "final"): 1}
    # Its GELU is made of powers, sums and products, and is one activation.
    kinds = Counter(a.kind for a in result.activations)
    assert kinds == {"handwritten": 2, "softmax": 2}
    assert [other.kind for other in result.others] == ["attention"] * 2
    assert not result.unplaced


@pytest.mark.parametrize("make", [gpt2, bert])
def test_dropout_of_training_changes_nothing_but_the_run(make):
    model = make()
    in_training = layouts(anatomy(model.train(), TOKENS))
    assert in_training == layouts(anatomy(model.eval(), TOKENS))


LARGE_IMAGES = torch.linspace(-2, 2, 2 * 3 * 32 * 32).sin().reshape(2, 3, 32, 32)
BASIC = ("linear", "norm", "activation", "linear", "norm")


def skip_kinds(result):
    return Counter(addition.skip.kind for addition in result.additions)


def placements(result):
    return Counter(norm.placement for norm in result.norms)


def test_torchvision_resnet():
    models = pytest.importorskip("torchvision.models")
    result = anatomy(models.resnet18(weights=None).eval(), LARGE_IMAGES)
    assert skip_kinds(result) == {"identity": 5, "projection": 3}
    assert {a.branches[0].layout for a in result.additions} == {BASIC}
    assert placements(result) == {"stem": 1, "inside": 16, "skip": 3}
    assert result.piecewise_linear


def test_torchvision_densenet_and_mobilenet():
    models = pytest.importorskip("torchvision.models")
    dense = models.DenseNet(growth_rate=2, block_config=(2, 2), num_init_features=4)
    result = anatomy(dense.eval(), LARGE_IMAGES)
    assert not result.additions
    assert {other.kind for other in result.others} == {"concatenation"}
    result = anatomy(models.mobilenet_v2(weights=None).eval(), LARGE_IMAGES)
    assert skip_kinds(result) == {"identity": 10}
    assert result.piecewise_linear


def test_torchvision_vit():
    vision_transformer = pytest.importorskip("torchvision.models").VisionTransformer
    model = vision_transformer(32, 8, 2, 2, 8, 16)
    result = anatomy(model.eval(), LARGE_IMAGES)
    assert skip_kinds(result) == {"identity": 4}
    assert placements(result) == {"pre": 4, "final": 1}


def test_timm():
    timm = pytest.importorskip("timm")
    result = anatomy(timm.create_model("resnet18").eval(), LARGE_IMAGES)
    assert skip_kinds(result) == {"identity": 5, "projection": 3}
    model = timm.create_model("convnext_atto", depths=(1, 1, 1, 1), dims=(4, 8, 8, 8))
    assert skip_kinds(anatomy(model.eval(), LARGE_IMAGES)) == {"identity": 4}
    model = timm.create_model(
        "vit_tiny_patch16_224", img_size=32, embed_dim=12, depth=2, num_heads=2
    )
    result = anatomy(model.eval(), LARGE_IMAGES)
    assert skip_kinds(result) == {"identity": 4}
    assert placements(result) == {"pre": 4, "final": 1}
