"""Models as other people write them: tiny, and each with something of its own."""

import torch
from torch import nn

from tests.later import later


class Named(nn.Module):
    """Takes two inputs by name."""

    def __init__(self):
        super().__init__()
        self.image, self.text = nn.Linear(6, 4), nn.Embedding(9, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, image, text):
        return self.head(self.image(image) + self.text(text).mean(1))


class Several(nn.Module):
    """Puts out a dict of two."""

    def __init__(self):
        super().__init__()
        self.body, self.aux, self.head = (
            nn.Linear(*n) for n in ((5, 8), (8, 1), (8, 4))
        )

    def forward(self, x):
        z = torch.relu(self.body(x))
        return {"aux": self.aux(z), "logits": self.head(z)}


class Squared(torch.autograd.Function):
    """A square whose derivatives somebody wrote by hand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return 2 * x * upstream


class ByHand(nn.Module):
    """Uses an autograd function of its own."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.second(Squared.apply(self.first(x)))


class OwnLoss(nn.Module):
    """Returns its loss and nothing else, as energies do."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x).square().mean()


class Lenet(nn.Module):
    """Fits images of 28 pixels only, and puts out log-probabilities."""

    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(1, 2, 5), nn.Linear(2 * 24 * 24, 10)

    def forward(self, x):
        return self.fc(self.conv(x).relu().view(-1, 2 * 24 * 24)).log_softmax(1)


class Tokens(nn.Module):
    """A language model whose positions end at 12."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 8), nn.Embedding(12, 8)
        self.head = nn.Linear(8, 20)

    def forward(self, ids):
        return self.head(self.tokens(ids) + self.places(torch.arange(ids.shape[1])))


class Distribution(nn.Module):
    """Puts out probabilities."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x).softmax(1)


SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "intermediate_size": 32}  # fmt: skip
# Settings of a config, and the class that is made of them.
CONFIGS = {
    "resnet": (
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1],
         "layer_type": "basic", "num_labels": 3},
        "ResNetForImageClassification",
    ),
    "convnext": (
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2, "num_labels": 3,
         "image_size": 32},
        "ConvNextForImageClassification",
    ),
    "vit": ({**SMALL, "image_size": 16, "patch_size": 4}, "ViTForImageClassification"),
    "bert": ({**SMALL, "vocab_size": 60}, "BertForMaskedLM"),
    "gpt2": (
        {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 60, "bos_token_id": 0,
         "eos_token_id": 0},
        "GPT2LMHeadModel",
    ),
    "llama": ({**SMALL, "vocab_size": 60}, "LlamaForCausalLM"),
}  # fmt: skip


def transformers():
    """Return the library, or skip the test."""
    return later("transformers", "pip install 'theodolite[transformers]'")


def transformer(kind, **more):
    """Return a model of transformers, from its config."""
    library, (settings, name) = transformers(), CONFIGS[kind]
    config = library.AutoConfig.for_model(kind, **{**settings, **more})
    torch.manual_seed(0)
    return getattr(library, name)._from_config(config, attn_implementation="eager")


def state(model):
    """Return all that must be left as found, bit for bit."""
    values = {name: one.clone() for name, one in model.state_dict().items()}
    grads = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
    return values, grads, [m.training for m in model.modules()], torch.get_rng_state()


def same(one, other):
    """Say whether two states are equal, bit for bit."""
    pairs = [*zip(one[0].values(), other[0].values(), strict=True)]
    pairs += [*zip(one[1], other[1], strict=True), (one[3], other[3])]
    equal = all(a is b or (b is not None and torch.equal(a, b)) for a, b in pairs)
    return equal and one[2] == other[2] and one[0].keys() == other[0].keys()
