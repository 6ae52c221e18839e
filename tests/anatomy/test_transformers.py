"""Networks of `transformers`, built from small configurations, nothing downloaded."""

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


def told(found):
    """Return kind of skip and layout of each addition."""
    return [
        (a.skip.kind, *(" ".join(branch.layout) for branch in a.branches))
        for a in found.additions
    ]


def placed(found):
    return Counter((norm.kind, norm.placement) for norm in found.norms)


def test_resnet():
    found = anatomy(resnet().eval(), IMAGES)
    branch = "linear norm activation linear norm activation linear norm"
    # The first stage widens, so that its first block projects too.
    assert told(found) == [
        ("projection", branch),
        ("projection", branch),
        ("identity", branch),
    ]
    stages = "resnet.encoder.stages"
    assert [a.module for a in found.additions] == [
        f"{stages}.0.layers.0",
        f"{stages}.1.layers.0",
        f"{stages}.1.layers.1",
    ]
    assert found.additions[1].skip.modules == (f"{stages}.1.layers.0.shortcut",)
    assert found.additions[2].branches[0].modules == (f"{stages}.1.layers.1.layer",)
    assert placed(found) == {
        ("batch", "stem"): 1,
        ("batch", "inside"): 9,
        ("batch", "skip"): 2,
    }
    assert found.piecewise_linear
    assert Counter(a.kind for a in found.activations) == {"relu": 10, "max_pool2d": 1}
    assert not found.others
    assert not found.unplaced


def test_convnext():
    found = anatomy(convnext().eval(), IMAGES)
    branch = "linear norm linear activation linear scale"
    assert told(found) == [("identity", branch)] * 3
    scales = [a.branches[0].scales for a in found.additions]
    assert [scale.name for (scale,) in scales] == [
        f"convnext.encoder.stages.{stage}.layers.{layer}.layer_scale_parameter"
        for stage, layer in ((0, 0), (1, 0), (1, 1))
    ]
    assert placed(found) == {
        ("layer", "stem"): 1,
        ("layer", "inside"): 3,
        ("layer", "between"): 1,
        ("layer", "final"): 1,
    }
    assert {a.kind for a in found.activations} == {"gelu"}
    assert not found.piecewise_linear


def test_vit():
    found = anatomy(vit().eval(), IMAGES)
    assert (
        told(found)
        == [
            ("identity", "norm linear linear linear attention linear"),
            ("identity", "norm linear activation linear"),
        ]
        * 2
    )
    assert placed(found) == {("layer", "pre"): 4, ("layer", "final"): 1}
    assert [other.kind for other in found.others] == ["attention"] * 2
    assert not found.unplaced


def test_bert():
    found = anatomy(bert().eval(), TOKENS)
    assert (
        told(found)
        == [
            ("identity", "linear linear linear attention linear"),
            ("identity", "linear activation linear"),
        ]
        * 2
    )
    first = found.additions[0]
    assert first.module == "bert.encoder.layer.0.attention.output"
    assert first.branches[0].modules == (
        "bert.encoder.layer.0.attention.self",
        "bert.encoder.layer.0.attention.output.dense",
    )
    assert placed(found) == {("layer", "stem"): 1, ("layer", "post"): 4}
    assert not found.unplaced


def test_gpt2():
    found = anatomy(gpt2().eval(), TOKENS)
    assert (
        told(found)
        == [
            ("identity", "norm linear attention linear"),
            ("identity", "norm linear activation linear"),
        ]
        * 2
    )
    assert found.additions[1].branches[0].modules == (
        "transformer.h.0.ln_2",
        "transformer.h.0.mlp",
    )
    assert placed(found) == {("layer", "pre"): 4, ("layer", "final"): 1}
    # Its GELU is made of powers, sums and products, and is one activation.
    kinds = Counter(a.kind for a in found.activations)
    assert kinds == {"handwritten": 2, "softmax": 2}
    assert [other.kind for other in found.others] == ["attention"] * 2
    assert not found.unplaced


@pytest.mark.parametrize("make", [gpt2, bert])
def test_dropout_of_training_changes_nothing_but_the_run(make):
    model = make()
    assert told(anatomy(model.train(), TOKENS)) == told(anatomy(model.eval(), TOKENS))
