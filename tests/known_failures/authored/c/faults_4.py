"""Faults 31-40 of author c."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch
import torch.nn.functional as F
from torch import nn

from protocol import Fault, Setup
from shared import (accuracy, batches, blobs, dict_batches, gen, r2, recall_tokens, sets,
                    sine_windows, waves)


# ---------------------------------------------------------------- c-103
class LoRALinear(nn.Module):
    def __init__(self, base, rank, both_zero):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad = False
        self.lora_A = nn.Parameter(torch.zeros(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        if not both_zero:
            nn.init.kaiming_uniform_(self.lora_A, a=5 ** 0.5)

    def forward(self, x):
        return self.base(x) + 2.0 * F.linear(F.linear(x, self.lora_A), self.lora_B)


def f31(both_zero):
    def make(seed):
        x, y = blobs(seed, 1024)
        torch.manual_seed(seed)
        layers = [nn.Linear(10, 64), nn.Linear(64, 64), nn.Linear(64, 4)]
        a, b, c = (LoRALinear(l, 4, both_zero) for l in layers)
        model = nn.Sequential(a, nn.ReLU(), b, nn.ReLU(), c)
        train = [p for p in model.parameters() if p.requires_grad]
        return Setup(model, batches(x[:768], y[:768], 64), nn.CrossEntropyLoss(),
                     torch.optim.AdamW(train, lr=1e-2), accuracy(x[768:], y[768:]), steps=300)
    return make


# ---------------------------------------------------------------- c-022
class RecallNet(nn.Module):
    def __init__(self, std, vocab=8, dim=24):
        super().__init__()
        self.word = nn.Embedding(vocab, dim)
        nn.init.normal_(self.word.weight, std=std)
        self.lstm = nn.LSTM(dim, 48, batch_first=True)
        self.score = nn.Linear(48, vocab)

    def forward(self, input_ids, labels=None):
        out, _ = self.lstm(self.word(input_ids))
        logits = self.score(out[:, -1])
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def f32(std):
    def make(seed):
        x, y = recall_tokens(seed, 1280, length=8)
        model = RecallNet(std)
        return Setup(model, dict_batches(64, input_ids=x[:1024], labels=y[:1024]),
                     lambda m, b: m(**b)["loss"], torch.optim.Adam(model.parameters(), lr=5e-3),
                     accuracy(x[1024:], y[1024:], lambda o: o["logits"]), steps=300)
    return make


# ---------------------------------------------------------------- c-037
class SineLayer(nn.Module):
    def __init__(self, i, o, first=False, divide=True, w0=30.0):
        super().__init__()
        self.linear, self.w0 = nn.Linear(i, o), w0
        with torch.no_grad():
            if first:
                self.linear.weight.uniform_(-1 / i, 1 / i)
            else:
                bound = (6 / i) ** 0.5 / (w0 if divide else 1.0)
                self.linear.weight.uniform_(-bound, bound)

    def forward(self, x):
        return torch.sin(self.w0 * self.linear(x))


def f33(divide):
    def make(seed):
        g = gen(seed, 33)
        xy = torch.rand(900, 2, generator=g) * 2 - 1
        val = torch.sin(5 * xy[:, :1]) * torch.cos(4 * xy[:, 1:]) + 0.3 * torch.sin(11 * xy[:, 1:])
        model = nn.Sequential(SineLayer(2, 64, True), SineLayer(64, 64, divide=divide),
                              SineLayer(64, 64, divide=divide), nn.Linear(64, 1))
        return Setup(model, batches(xy[:700], val[:700], 175), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=1e-3), r2(xy[700:], val[700:]), steps=300)
    return make


# ---------------------------------------------------------------- c-034
class ReluRNN(nn.Module):
    def __init__(self, normal):
        super().__init__()
        self.rnn = nn.RNN(3, 48, batch_first=True, nonlinearity="relu")
        self.fc = nn.Linear(48, 4)
        for name, p in self.rnn.named_parameters():
            if "bias" in name:
                nn.init.zeros_(p)
            elif normal:
                nn.init.normal_(p)
            elif "hh" in name:
                nn.init.orthogonal_(p)
            else:
                nn.init.xavier_uniform_(p)

    def forward(self, x):
        return self.fc(self.rnn(x)[0].mean(1))


def f34(normal):
    def make(seed):
        x, y = waves(seed, 832)
        x = x.transpose(1, 2).contiguous()
        model = ReluRNN(normal)
        return Setup(model, batches(x[:640], y[:640], 64), nn.CrossEntropyLoss(),
                     torch.optim.Adam(model.parameters(), lr=2e-3), accuracy(x[640:], y[640:]),
                     steps=250)
    return make


# ---------------------------------------------------------------- c-069
def critic(act, depth=10, width=32):
    layers = [nn.Linear(6, width), act()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), act()]
    return nn.Sequential(*layers, nn.Linear(width, 1), nn.Flatten(0))


def f35(act):
    def make(seed):
        g = gen(seed, 35)
        s = torch.randn(1024, 6, generator=g)
        ret = torch.tanh(s[:, 0] + s[:, 1] * s[:, 2])
        model = critic(act)
        for m in model:
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
        return Setup(model, batches(s[:768], ret[:768], 64), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=1e-3), r2(s[768:], ret[768:]), steps=250)
    return make


# ---------------------------------------------------------------- c-137
class SeriesNet(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.norm = norm
        self.up = nn.Linear(1, 32)
        self.gru = nn.GRU(32, 32, batch_first=True)
        self.out = nn.Linear(32, 1)

    def forward(self, x):                               # (batch, time, 1)
        h, _ = self.gru(torch.tanh(self.up(self.norm(x))))
        return self.out(h[:, -1])


def f36(single):
    def make(seed):
        x, y = sine_windows(seed, 768)
        model = SeriesNet(nn.LayerNorm(1) if single else nn.Identity())
        return Setup(model, batches(x[:576], y[:576], 64), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=5e-3), r2(x[576:], y[576:]), steps=250)
    return make


# ---------------------------------------------------------------- c-010
class Reversible(nn.Module):
    """Per-window normalisation around a linear-plus-MLP forecaster."""

    def __init__(self, back, length=20, ahead=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(length, 64), nn.GELU(), nn.Linear(64, ahead))
        self.back = back

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        std = x.std(1, keepdim=True) + 1e-4
        y = self.body((x - mean) / std)
        return y * std + mean if self.back else y


def f37(back):
    def make(seed):
        x, y = sine_windows(seed, 768, ahead=4)
        g = gen(seed, 37)
        level = 1.2 * torch.randn(768, 1, generator=g)
        scale = 0.5 + torch.rand(768, 1, generator=g)
        x, y = x.squeeze(-1) * scale + level, y * scale + level
        model = Reversible(back)
        return Setup(model, batches(x[:576], y[:576], 64), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=3e-3), r2(x[576:], y[576:]), steps=300)
    return make


# ---------------------------------------------------------------- c-082
class SetModel(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48))
        self.rho = nn.Sequential(norm(48), nn.Linear(48, 48), norm(48), nn.ReLU(),
                                 nn.Linear(48, 48), norm(48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.rho(self.phi(x).amax(1)).squeeze(-1)


def f38(norm):
    def make(seed):
        x, y = sets(seed, 1000)
        y = (y - y[:800].mean()) / y[:800].std()
        model = SetModel(norm)
        return Setup(model, batches(x[:800], y[:800], 2), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=1e-3), r2(x[800:], y[800:]), steps=800)
    return make


# ---------------------------------------------------------------- c-059
class FrozenStats(nn.Module):
    """A backbone whose batch norm stays in evaluation mode, as for fine-tuning."""

    def __init__(self, mean, var):
        super().__init__()
        self.bn_in = nn.BatchNorm1d(3)
        self.bn_in.running_mean.fill_(mean)
        self.bn_in.running_var.fill_(var)
        self.conv1 = nn.Conv1d(3, 16, 5, padding=2)
        self.conv2 = nn.Conv1d(16, 16, 5, padding=2)
        self.head = nn.Linear(16, 4)

    def train(self, mode=True):
        super().train(mode)
        self.bn_in.eval()
        for p in self.bn_in.parameters():
            p.requires_grad = False
        return self

    def forward(self, x):
        x = self.bn_in(x)
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.head(x.mean(-1))


def f39(mean, var):
    def make(seed):
        x, y = waves(seed, 832)
        model = FrozenStats(mean, var).train()
        params = [p for p in model.parameters() if p.requires_grad]
        return Setup(model, batches(x[:640], y[:640], 64), nn.CrossEntropyLoss(),
                     torch.optim.Adam(params, lr=5e-3), accuracy(x[640:], y[640:]), steps=200)
    return make


# ---------------------------------------------------------------- c-107
class ConvNormPool(nn.Module):
    def __init__(self, over_time, length=24, width=24):
        super().__init__()
        self.stem = nn.Conv1d(3, width, 5, padding=2)
        self.mid = nn.Conv1d(width, width, 5, padding=2)
        self.norm = nn.LayerNorm(length if over_time else width, elementwise_affine=False)
        self.over_time = over_time
        self.fc = nn.Linear(width, 4)

    def forward(self, x):
        h = F.relu(self.mid(F.relu(self.stem(x))))                  # (batch, width, time)
        h = self.norm(h) if self.over_time else self.norm(h.transpose(1, 2)).transpose(1, 2)
        return self.fc(h.mean(-1))


def f40(over_time):
    def make(seed):
        x, y = waves(seed, 832)
        model = ConvNormPool(over_time)
        return Setup(model, batches(x[:640], y[:640], 64), nn.CrossEntropyLoss(),
                     torch.optim.Adam(model.parameters(), lr=3e-3), accuracy(x[640:], y[640:]),
                     steps=200)
    return make


FAULTS = [
    Fault("c-103", "initialisation and signals", f31(True), f31(False),
          "Both LoRA matrices start at zero, so each one's gradient is multiplied by the other's "
          "zeros: the adapters get exactly zero gradient and nothing trains.",
          ("A and B both initialised to zero", "every trainable gradient is exactly zero"),
          ("the base weights are frozen", "the adapters do not change"),
          "https://github.com/Guitaricet/relora/issues/18"),
    Fault("c-022", "initialisation and signals", f32(100.0), f32(0.5),
          "The embedding is drawn with std 100, so every gate of the LSTM is saturated from the "
          "first step: gradients through the gates vanish and nothing can be remembered.",
          ("embedding initialised far too large", "saturated LSTM gates",
           "pre-activations far too large"),
          ("gradients of the recurrent layer vanish", "hidden states are all plus or minus one"),
          "https://github.com/syncdoth/RetNet/issues/31"),
    Fault("c-037", "initialisation and signals", f33(False), f33(True),
          "The hidden sine layers are initialised without dividing by w0=30, so sin(30 W h) wraps "
          "around many times and the network is noise.",
          ("SIREN initialisation wrong", "hidden weights far too large for the sine activation"),
          ("pre-activations too large", "gradients explode"),
          "https://github.com/lucidrains/siren-pytorch/issues/1"),
    Fault("c-034", "initialisation and signals", f34(True), f34(False),
          "The recurrent weights are drawn from N(0,1) with 48 units, a spectral radius near 7: "
          "the ReLU state explodes over the time steps.",
          ("recurrent weights too large", "exploding activations over time"),
          ("loss is huge or NaN", "gradients explode")),
    Fault("c-069", "initialisation and signals", f35(nn.Sigmoid), f35(nn.Tanh),
          "Eleven sigmoid layers in a plain stack: the signal and the gradient shrink at each "
          "layer until the output is constant.",
          ("vanishing gradients in a deep sigmoid network", "saturating activation in a deep stack"),
          ("the first layers get tiny gradients", "the output does not depend on the input")),
    Fault("c-137", "normalisation", f36(True), f36(False),
          "LayerNorm over a single feature always returns its bias: the mean of one number is the "
          "number itself, so the input series is erased.",
          ("LayerNorm over one feature", "normalisation removes the whole signal"),
          ("the output is the same for all inputs", "no gradient reaches the input"),
          "https://github.com/pytorch/pytorch/issues/108956"),
    Fault("c-010", "normalisation", f37(False), f37(True),
          "Each window is normalised by its own mean and deviation, but the forecast is not "
          "transformed back: level and scale, which the target contains, are lost.",
          ("instance normalisation without de-normalisation",
           "normalisation removes the information about level and scale"),
          ("the target cannot be predicted from the normalised input",)),
    Fault("c-082", "normalisation", f38(nn.BatchNorm1d), f38(nn.LayerNorm),
          "Batch norm on batches of two: each feature becomes plus or minus one, so all "
          "magnitudes are lost, and the running statistics do not match training.",
          ("batch size too small for batch norm",), ("training is noisy", "train/eval mismatch"),
          "https://github.com/pytorch/pytorch/issues/4534"),
    Fault("c-059", "normalisation", f39(120.0, 5000.0), f39(0.0, 0.5),
          "The frozen batch norm holds statistics of other data (mean 120, variance 5000), while "
          "the inputs are of unit scale: after it all inputs are nearly the same constant.",
          ("frozen bad running statistics", "batch norm statistics do not fit the inputs"),
          ("the signal after the first layer is nearly constant",)),
    Fault("c-107", "normalisation", f40(True), f40(False),
          "LayerNorm runs over the time axis of (batch, channel, time) and is followed by a mean "
          "over time, so the pooled features are constants for every input.",
          ("layer norm over the wrong axis", "normalisation followed by averaging over the same axis "
           "removes the signal"),
          ("the classifier sees the same input for all samples",)),
]
