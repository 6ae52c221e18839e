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


@dataclass(frozen=True, kw_only=True)
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


BASIC = "conv1 bn1 relu conv2 bn2"
BOTTLENECK = "conv1 bn1 conv2 bn2 conv3 bn3"
STYLES = {
    "torchvision": Truth(
        make=images.TorchvisionLike,
        batch=IMAGES,
        additions=[
            ("identity", [], [inner("layer1.0", BASIC)], None),
            ("identity", [], [inner("layer1.1", BOTTLENECK)], None),
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
        make=images.PreActNet,
        batch=IMAGES,
        additions=[
            ("identity", [], [inner("layers.0", "bn1 conv1 bn2 conv2")], None),
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
        make=images.OptionA,
        batch=IMAGES,
        additions=[
            ("pad", [], [["conv1", "bn1", "conv2", "bn2"]], None),
            ("pool", [], [["conv3", "conv4"]], None),
        ],
        norms={"bn1": "inside", "bn2": "inside"},
    ),
    "pre-norm transformer": Truth(
        make=sequences.PreNormTransformer,
        batch=TOKENS,
        additions=[
            ("identity", [], [inner(f"blocks.{i}", names)], None)
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
        make=sequences.PostNormTransformer,
        batch={"source": torch.ones(2, 3, 8), "target": torch.ones(2, 4, 8)},
        additions=[
            *(
                ("identity", [], [inner(f"encoder.layers.{i}", names)], None)
                for i in range(2)
                for names in ("self_attn", "linear1 linear2")
            ),
            ("identity", [], [["decoder.self_attn"]], None),
            ("identity", [], [["decoder.multihead_attn"]], None),
            ("identity", [], [["decoder.linear1", "decoder.linear2"]], None),
        ],
        norms={
            **{f"encoder.layers.{i}.norm{j}": "post" for i in range(2) for j in (1, 2)},
            **{f"decoder.norm{j}": "post" for j in (1, 2, 3)},
        },
        others={"attention": 4},
        straight=False,
    ),
    "highway": Truth(
        make=vectors.Highway,
        batch=torch.ones(2, 5),
        others={"gate": 4, "highway": 2},
        straight=False,
    ),
    "highway in one term": Truth(
        make=vectors.HighwayInOneTerm,
        batch=torch.ones(2, 5),
        others={"gate": 2, "interpolation": 2},
        straight=False,
    ),
    "squeeze-excite": Truth(
        make=images.SqueezeExcite,
        batch=WIDE,
        additions=[("identity", [], [["conv", "bn", "avg_pool", "fc"]], None)],
        norms={"bn": "inside"},
        others={"squeeze-excite": 1},
        straight=False,
    ),
    "dense": Truth(
        make=images.DenseNet,
        batch=IMAGES,
        norms={f"norms.{i}": "plain" for i in range(3)},
        others={"concatenation": 3},
    ),
    "U": Truth(make=images.UNet, batch=IMAGES, others={"concatenation": 1}),
    "additive U": Truth(
        make=images.AdditiveUNet,
        batch=IMAGES,
        additions=[("identity", [], [["deep", "up"]], None)],
    ),
    "mixer": Truth(
        make=sequences.Mixer,
        batch=IMAGES,
        additions=[
            ("identity", [], [["norm1", "token_mix"]], None),
            ("identity", [], [["norm2", "channel_mix"]], None),
        ],
        norms={"norm1": "pre", "norm2": "pre"},
        straight=False,
    ),
    "convnext": Truth(
        make=images.ConvNeXt,
        batch=IMAGES,
        additions=[
            (
                "identity",
                [],
                [inner(f"stage{i}", "dwconv norm pwconv1 act pwconv2")],
                None,
            )
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
        make=vectors.RevNet,
        batch=ROWS,
        additions=[
            ("identity", [], [["f.0", "g.0"]], 1),
            ("identity", [], [["g.0", "f.1"]], 2),
            ("identity", [], [["f.1", "g.1"]], None),
        ],
        others={"coupling": 1, "concatenation": 1},
    ),
    "parallel branches": Truth(
        make=sequences.ParallelBlock,
        batch=torch.ones(2, 3, 8),
        additions=[
            ("identity", [], [["ln", "qkv", "proj"], ["ln", "fc_in", "fc_out"]], None)
        ],
        norms={"ln": "pre"},
        others={"attention": 1},
        straight=False,
    ),
    "residual of residuals": Truth(
        make=vectors.ResNetOfResNets,
        batch=ROWS[:, :4],
        additions=[
            ("identity", [], [["blocks.0"]], 2),
            ("identity", [], [["blocks.1"]], 2),
            ("identity", [], [["blocks.0", "blocks.1"]], None),
        ],
    ),
    "scaled": Truth(
        make=vectors.Scaled,
        batch=ROWS[:, :4],
        additions=[("identity", [], [[f"layers.{i}"]], None) for i in range(6)],
    ),
    "inception": Truth(
        make=images.InceptionResNet,
        batch=WIDE,
        additions=[("identity", [], [["branch0", "branch1", "up"]], None)],
        others={"concatenation": 1},
    ),
    "three branches": Truth(
        make=vectors.ThreeBranches,
        batch=ROWS[:, :4],
        additions=[("identity", [], [["a"], ["b"], ["c"]], None)],
        straight=False,
    ),
    "reparametrised": Truth(
        make=images.RepVGG,
        batch=WIDE,
        additions=[
            ("norm", ["identity_bn"], [["dense", "dense_bn"], ["one", "one_bn"]], None)
        ],
        norms={"dense_bn": "inside", "one_bn": "inside", "identity_bn": "skip"},
        unplaced=1,
    ),
    "recurrent by hand": Truth(
        make=sequences.RecurrentByHand,
        batch=torch.ones(2, 4, 3),
        others={"coupling": 3, "recurrence": 1},
        straight=False,
    ),
    "recurrent layers": Truth(
        make=sequences.RecurrentLayers,
        batch=torch.ones(2, 4, 3),
        others={"recurrence": 2},
        straight=False,
    ),
    "gated": Truth(
        make=sequences.Gated,
        batch=torch.ones(2, 5, 4),
        additions=[("identity", [], [["q", "gate", "up", "down"]], None)],
        norms={"": "pre"},
        others={"fixed map": 1, "gate": 1},
        straight=False,
    ),
    "long skips": Truth(
        make=images.LongSkip,
        batch=IMAGES,
        additions=[
            ("identity", [], [["body.0"]], 2),
            ("identity", [], [["body.1"]], 2),
            ("identity", [], [["body.0", "body.1", "last"]], 3),
            ("identity", [], [["head", "body.0", "body.1", "last", "tail"]], None),
        ],
    ),
    "plain": Truth(
        make=images.Vgg,
        batch=torch.ones(2, 3, 16, 16),
        norms={f"features.{i}": "plain" for i in (1, 5, 7)},
        straight=False,
    ),
    "stochastic depth": Truth(
        make=vectors.StochasticDepth,
        batch=ROWS[:, :4],
        additions=[("identity", [], [["layer", "norm"]], None)],
        norms={"norm": "inside"},
        training=True,
    ),
    "sources": Truth(
        make=sequences.Sources,
        batch={
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
