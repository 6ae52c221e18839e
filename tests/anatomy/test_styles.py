"""Networks of many styles, each against a truth written by hand."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
import torch

from tests.anatomy.styles import images, sequences, vectors
from theodolite.anatomy import anatomy

IMAGES = torch.linspace(-2, 2, 2 * 3 * 8 * 8).sin().reshape(2, 3, 8, 8)
WIDE = torch.linspace(-3, 3, 2 * 4 * 4 * 4).sin().reshape(2, 4, 4, 4)
TOKENS = torch.arange(10).reshape(2, 5) * 7 % 9
ROWS = torch.linspace(-2, 2, 24).cos().reshape(4, 6)


@dataclass(frozen=True)
class Truth:
    """What a person reads off the code.

    An addition is its kind of skip, the submodules of the skip, those of each branch,
    and in whose branch it lies.
    """

    make: type
    batch: object
    additions: list = field(default_factory=list)
    norms: dict = field(default_factory=dict)
    others: dict = field(default_factory=dict)
    unplaced: int = 0
    straight: bool = True
    training: bool = False


def inner(prefix, names):
    return [f"{prefix}.{name}" for name in names.split()]


def identity(*branches, inside=None):
    """Return an addition whose skip is the identity; branches by their submodules."""
    named = [b.split() if isinstance(b, str) else b for b in branches]
    return "identity", [], named, inside


BASIC = "conv1 bn1 relu conv2 bn2"
BOTTLENECK = "conv1 bn1 conv2 bn2 conv3 bn3"
STYLES = {
    "torchvision": Truth(
        images.TorchvisionLike,
        IMAGES,
        additions=[
            identity(inner("layer1.0", BASIC)),
            identity(inner("layer1.1", BOTTLENECK)),
            (
                "projection",
                ["layer2.0.downsample"],
                [inner("layer2.0", BASIC)],
                None,
            ),
        ],
        norms={
            "bn1": "stem",
            **dict.fromkeys(inner("layer1.0", "bn1 bn2"), "inside"),
            **dict.fromkeys(inner("layer1.1", "bn1 bn2 bn3"), "inside"),
            **dict.fromkeys(inner("layer2.0", "bn1 bn2"), "inside"),
            "layer2.0.downsample.1": "skip",
        },
    ),
    "pre-activation": Truth(
        images.PreActNet,
        IMAGES,
        additions=[
            identity(inner("layers.0", "bn1 conv1 bn2 conv2")),
            (
                "projection",
                ["layers.1.shortcut"],
                [inner("layers.1", "conv1 bn2 conv2")],
                None,
            ),
        ],
        norms={
            "layers.0.bn1": "pre",
            "layers.0.bn2": "inside",
            "layers.1.bn1": "pre",
            "layers.1.bn2": "inside",
            "bn": "final",
        },
    ),
    "option A": Truth(
        images.OptionA,
        IMAGES,
        additions=[
            ("pad", [], [["conv1", "bn1", "conv2", "bn2"]], None),
            ("pool", [], [["conv3", "conv4"]], None),
        ],
        norms={"bn1": "inside", "bn2": "inside"},
    ),
    "pre-norm transformer": Truth(
        sequences.PreNormTransformer,
        TOKENS,
        additions=[
            identity(inner(f"blocks.{i}", names))
            for i in range(2)
            for names in ("ln1 attn", "ln2 mlp")
        ],
        norms={
            **{
                f"blocks.{i}.{name}": "pre" for i in range(2) for name in ("ln1", "ln2")
            },
            "norm": "final",
        },
        others={"attention": 2},
        straight=False,
    ),
    "post-norm transformer": Truth(
        sequences.PostNormTransformer,
        {"source": torch.ones(2, 3, 8), "target": torch.ones(2, 4, 8)},
        additions=[
            *(
                identity(inner(f"encoder.layers.{i}", names))
                for i in range(2)
                for names in ("self_attn", "linear1 linear2")
            ),
            identity("decoder.self_attn"),
            identity("decoder.multihead_attn"),
            identity("decoder.linear1 decoder.linear2"),
        ],
        norms={
            **{f"encoder.layers.{i}.norm{j}": "post" for i in range(2) for j in (1, 2)},
            **{f"decoder.norm{j}": "post" for j in (1, 2, 3)},
        },
        others={"attention": 4},
        straight=False,
    ),
    "highway": Truth(
        vectors.Highway,
        torch.ones(2, 5),
        others={"gate": 4, "highway": 2},
        straight=False,
    ),
    "highway in one term": Truth(
        vectors.HighwayInOneTerm,
        torch.ones(2, 5),
        others={"gate": 2, "interpolation": 2},
        straight=False,
    ),
    "squeeze-excite": Truth(
        images.SqueezeExcite,
        WIDE,
        additions=[identity("conv bn avg_pool fc")],
        norms={"bn": "inside"},
        others={"squeeze-excite": 1},
        straight=False,
    ),
    "dense": Truth(
        images.DenseNet,
        IMAGES,
        norms={f"norms.{i}": "plain" for i in range(3)},
        others={"concatenation": 3},
    ),
    "U": Truth(images.UNet, IMAGES, others={"concatenation": 1}),
    "additive U": Truth(images.AdditiveUNet, IMAGES, additions=[identity("deep up")]),
    "mixer": Truth(
        sequences.Mixer,
        IMAGES,
        additions=[identity("norm1 token_mix"), identity("norm2 channel_mix")],
        norms={"norm1": "pre", "norm2": "pre"},
        straight=False,
    ),
    "convnext": Truth(
        images.ConvNeXt,
        IMAGES,
        additions=[
            identity(inner(f"stage{i}", "dwconv norm pwconv1 act pwconv2"))
            for i in range(2)
        ],
        norms={
            "stem.1": "stem",
            "stage0.norm": "inside",
            "downsample.0": "between",
            "stage1.norm": "inside",
            "norm": "final",
        },
        straight=False,
    ),
    "reversible": Truth(
        vectors.RevNet,
        ROWS,
        additions=[
            identity("f.0 g.0", inside=1),
            identity("g.0 f.1", inside=2),
            identity("f.1 g.1"),
        ],
        others={"coupling": 1, "concatenation": 1},
    ),
    "parallel branches": Truth(
        sequences.ParallelBlock,
        torch.ones(2, 3, 8),
        additions=[identity("ln qkv proj", "ln fc_in fc_out")],
        norms={"ln": "pre"},
        others={"attention": 1},
        straight=False,
    ),
    "residual of residuals": Truth(
        vectors.ResNetOfResNets,
        ROWS[:, :4],
        additions=[
            identity("blocks.0", inside=2),
            identity("blocks.1", inside=2),
            identity("blocks.0 blocks.1"),
        ],
    ),
    "scaled": Truth(
        vectors.Scaled,
        ROWS[:, :4],
        additions=[identity(f"layers.{i}") for i in range(6)],
    ),
    "inception": Truth(
        images.InceptionResNet,
        WIDE,
        additions=[identity("branch0 branch1 up")],
        others={"concatenation": 1},
    ),
    "three branches": Truth(
        vectors.ThreeBranches,
        ROWS[:, :4],
        additions=[identity("a", "b", "c")],
        straight=False,
    ),
    "reparametrised": Truth(
        images.RepVGG,
        WIDE,
        additions=[
            ("norm", ["identity_bn"], [["dense", "dense_bn"], ["one", "one_bn"]], None)
        ],
        norms={"dense_bn": "inside", "one_bn": "inside", "identity_bn": "skip"},
        unplaced=1,
    ),
    "recurrent by hand": Truth(
        sequences.RecurrentByHand,
        torch.ones(2, 4, 3),
        others={"coupling": 3, "recurrence": 1},
        straight=False,
    ),
    "recurrent layers": Truth(
        sequences.RecurrentLayers,
        torch.ones(2, 4, 3),
        others={"recurrence": 2},
        straight=False,
    ),
    "gated": Truth(
        sequences.Gated,
        torch.ones(2, 5, 4),
        additions=[identity("q gate up down")],
        norms={"": "pre"},
        others={"fixed map": 1, "gate": 1},
        straight=False,
    ),
    "long skips": Truth(
        images.LongSkip,
        IMAGES,
        additions=[
            identity("body.0", inside=2),
            identity("body.1", inside=2),
            identity("body.0 body.1 last", inside=3),
            identity("head body.0 body.1 last tail"),
        ],
    ),
    "plain": Truth(
        images.Vgg,
        torch.ones(2, 3, 16, 16),
        norms={f"features.{i}": "plain" for i in (1, 5, 7)},
        straight=False,
    ),
    "stochastic depth": Truth(
        vectors.StochasticDepth,
        ROWS[:, :4],
        additions=[identity("layer norm")],
        norms={"norm": "inside"},
        training=True,
    ),
    "sources": Truth(
        sequences.Sources,
        {
            "tokens": TOKENS,
            "other": torch.ones(2, 5, 4),
            "mask": torch.ones(2, 5),
        },
        others={"sum of sources": 2, "mask": 1, "broadcast sum": 1},
    ),
}


@pytest.mark.parametrize("name", STYLES)
def test_anatomy_is_what_a_person_reads_off_the_code(name):
    truth = STYLES[name]
    result = anatomy(truth.make().train(truth.training), truth.batch)
    additions = [
        (
            a.skip.kind,
            list(a.skip.modules),
            [list(b.modules) for b in a.branches],
            a.inside,
        )
        for a in result.additions
    ]
    assert additions == truth.additions
    assert {norm.module: norm.placement for norm in result.norms} == truth.norms
    assert len(result.norms) == len(truth.norms)
    assert Counter(other.kind for other in result.others) == truth.others
    assert len(result.unplaced) == truth.unplaced
    assert result.piecewise_linear == truth.straight
