"""Faults a-031 to a-040: initialisation and signals, normalisation."""

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.optim as optim  # noqa: E402

import shared as d  # noqa: E402
from protocol import Fault, Setup  # noqa: E402


# 31 ----------------------------------------------------------------- init function applied to a net
def init_zero(m):
    if isinstance(m, nn.Linear):
        m.weight.data.fill_(0.0)
        m.bias.data.fill_(0.0)


def init_xavier(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        m.bias.data.fill_(0.0)


def s031(seed, ok):
    torch.manual_seed(seed)
    x, y = d.blobs(seed, dim=6, classes=4)
    train, xt, yt = d.split(x, y)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 4))
    model.apply(init_xavier if ok else init_zero)
    return Setup(model, train, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=5e-3),
                 d.acc(xt, yt), steps=200)


# 32 ----------------------------------------------------------------- same constant everywhere
class Net(nn.Module):
    def __init__(self, n_in=2, hidden=40, n_out=3):
        super().__init__()
        self.l1 = nn.Linear(n_in, hidden)
        self.l2 = nn.Linear(hidden, hidden)
        self.l3 = nn.Linear(hidden, n_out)

    def forward(self, x):
        h = torch.tanh(self.l1(x))
        h = torch.tanh(self.l2(h))
        return self.l3(h)


def s032(seed, ok):
    torch.manual_seed(seed)
    x, y = d.spirals(seed)
    train, xt, yt = d.split(x, y)
    net = Net()
    if not ok:
        for layer in (net.l1, net.l2, net.l3):
            nn.init.constant_(layer.weight, 0.1)
            nn.init.constant_(layer.bias, 0.1)
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(net.parameters(), lr=1e-2), d.acc(xt, yt), steps=400)


# 33 ----------------------------------------------------------------- ten layers
def tower(act, depth=9, width=32):
    layers = [nn.Linear(8, width), act()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), act()]
    return nn.Sequential(*layers, nn.Linear(width, 4))


def s033(seed, ok):
    torch.manual_seed(seed)
    x, y = d.blobs(seed, dim=8, classes=4)
    train, xt, yt = d.split(x, y)
    net = tower(nn.ELU if ok else nn.Sigmoid)
    return Setup(net, train, nn.CrossEntropyLoss(), optim.SGD(net.parameters(), lr=0.05, momentum=0.9),
                 d.acc(xt, yt), steps=250)


# 34 ----------------------------------------------------------------- normal(0, 1) weights
def s034(seed, ok):
    torch.manual_seed(seed)
    x, y = d.friedman(seed, dim=10)
    train, xt, yt = d.split(x, y.unsqueeze(1))
    net = nn.Sequential(nn.Linear(10, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, 1))
    for m in net:
        if isinstance(m, nn.Linear):
            if ok:
                nn.init.xavier_normal_(m.weight)
            else:
                nn.init.normal_(m.weight, mean=0.0, std=3.0)
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=3e-3), d.r2(xt, yt), steps=300)


# 35 ----------------------------------------------------------------- biases
class Tagger(nn.Module):
    def __init__(self, b):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(16 * 9, 32), nn.ReLU(), nn.Linear(32, 4))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.constant_(m.bias, b)

    def forward(self, x):
        return self.classifier(self.features(x))


def s035(seed, ok):
    torch.manual_seed(seed)
    x, y = d.stripes(seed)
    train, xt, yt = d.split((x - 0.5) * 4, y)
    net = Tagger(0.0 if ok else -5.0)
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(net.parameters(), lr=3e-3), d.acc(xt, yt), steps=150)


# 36 ----------------------------------------------------------------- batches of two rows
def s036(seed, ok):
    torch.manual_seed(seed)
    x, y = d.houses(seed)
    train, xt, yt = d.split(x, ((y - y.mean()) / y.std()).unsqueeze(1), size=2)
    norm = nn.LayerNorm if ok else nn.BatchNorm1d
    net = nn.Sequential(nn.Linear(6, 32), norm(32), nn.ReLU(), nn.Linear(32, 32), norm(32), nn.ReLU(),
                        nn.Linear(32, 32), norm(32), nn.ReLU(), nn.Linear(32, 1))
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=2e-3), d.r2(xt, yt), steps=700)


# 37 ----------------------------------------------------------------- norm of a one-column series
class SeriesNet(nn.Module):
    def __init__(self, pre):
        super().__init__()
        self.pre = pre
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.fc = nn.Linear(24, 1)

    def forward(self, x):
        h, _ = self.gru(self.pre(x))
        return self.fc(h[:, -1])


class TimeNorm(nn.Module):
    """Layer norm over the window, gain and bias per step."""

    def __init__(self, length):
        super().__init__()
        self.norm = nn.LayerNorm(length)

    def forward(self, x):
        return self.norm(x.squeeze(-1)).unsqueeze(-1)


def s037(seed, ok):
    torch.manual_seed(seed)
    x, y = d.waves(seed, length=16)
    train, xt, yt = d.split(x, y)
    net = SeriesNet(TimeNorm(16) if ok else nn.LayerNorm(1))
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=1e-2), d.r2(xt, yt), steps=250)


# 38 ----------------------------------------------------------------- norm at the end
def s038(seed, ok):
    torch.manual_seed(seed)
    x, y = d.houses(seed)
    y = ((y - y.mean()) / y.std() * 2 + 3).unsqueeze(1)        # in hundred thousands
    train, xt, yt = d.split(x, y)
    layers = [nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1)]
    if not ok:
        layers.append(nn.BatchNorm1d(1, affine=False))
    net = nn.Sequential(*layers)
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=2e-2), d.r2(xt, yt), steps=300)


# 39 ----------------------------------------------------------------- loudness of a signal
class Loudness(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.body = nn.Sequential(
            first, nn.Conv1d(1, 12, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(12, 12, 5, padding=2), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.fc = nn.Linear(12, 1)

    def forward(self, x):
        return self.fc(self.body(x))


def s039(seed, ok):
    torch.manual_seed(seed)
    g = d.gen(seed)
    level = torch.rand(800, 1, 1, generator=g) * 2 + 0.1
    tone = torch.sin(torch.arange(32).float() * (0.3 + torch.rand(800, 1, 1, generator=g))
                     + 6.28 * torch.rand(800, 1, 1, generator=g))
    x = level * tone + 0.02 * torch.randn(800, 1, 32, generator=g)
    y = ((level - level.mean()) / level.std()).view(-1, 1)
    train, xt, yt = d.split(x, y)
    net = Loudness(nn.BatchNorm1d(1) if ok else nn.InstanceNorm1d(1))
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=5e-3), d.r2(xt, yt), steps=250)


# 40 ----------------------------------------------------------------- frozen statistics
class CheckpointNet(nn.Module):
    """Classifier whose norm layers keep the statistics of a checkpoint."""

    def __init__(self, var):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Conv2d(8, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
                                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))
        for m in self.net:
            if isinstance(m, nn.BatchNorm2d):
                m.running_var.fill_(var)
                m.weight.requires_grad_(False)
                m.bias.requires_grad_(False)
        self.train()

    def forward(self, x):
        return self.net(x)

    def train(self, mode=True):
        super().train(mode)
        for m in self.net:
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
        return self


def s040(seed, ok):
    torch.manual_seed(seed)
    x, y = d.stripes(seed)
    train, xt, yt = d.split((x - 0.5) * 4, y)
    net = CheckpointNet(0.3 if ok else 2e4)                      # 2e4: statistics of 0-255 images
    params = [p for p in net.parameters() if p.requires_grad]
    return Setup(net, train, nn.CrossEntropyLoss(), optim.Adam(params, lr=5e-3), d.acc(xt, yt), steps=150)


def fault(name, area, make, cause, accepted, related, source="own"):
    return Fault(name, area, partial(make, ok=False), partial(make, ok=True), cause, accepted, related, source)


FAULTS = [
    fault("a-031", "initialisation and signals", s031,
          "All weights and biases are initialised to zero, so the hidden activations and their gradients are zero; only the last bias learns.",
          ("zero initialisation", "symmetry is never broken", "initialise the weights at random"),
          ("gradients of the hidden layers are zero", "output is constant"),
          "https://github.com/yz93/LAVT-RIS/issues/25"),
    fault("a-032", "initialisation and signals", s032,
          "All weights of each layer start at the same constant, so all units of a layer stay identical and the layer acts as one unit.",
          ("constant initialisation / symmetry", "hidden units are all equal", "rank one weights"),
          ("capacity is too small", "units are redundant"),
          "https://pages.dogdog.run/machine_learning/weight_initialization.html"),
    fault("a-033", "initialisation and signals", s033,
          "Nine sigmoid layers with default initialisation: the signal becomes constant and gradients vanish on the way to the first layers.",
          ("vanishing gradients through sigmoids", "use ReLU-like activations or normalisation or skips", "activations do not vary between samples"),
          ("the first layers do not learn", "learning rate too low"),
          "https://taourl.com/read-2402914.html"),
    fault("a-034", "initialisation and signals", s034,
          "Weights drawn with standard deviation 3 saturate all tanh units, so gradients to the layers below vanish and outputs are huge.",
          ("initial weights far too large", "tanh units saturated", "use Xavier initialisation"),
          ("initial loss is huge", "output scale is too large"),
          "https://taourl.com/read-2208585.html"),
    fault("a-035", "initialisation and signals", s035,
          "The convolution biases start at -5, so all ReLUs are off for every input and pass no gradient.",
          ("dead ReLUs because of a large negative bias", "convolution outputs are all zero"),
          ("conv layers get zero gradient", "output is constant"),
          "https://github.com/neuroinfo-os/deep-bottleneck/issues/168"),
    fault("a-036", "normalisation", s036,
          "Batch norm with batches of two: each feature becomes plus or minus one in training, and running statistics do not fit evaluation.",
          ("batch size too small for batch norm", "use layer/group norm or larger batches"),
          ("train and eval differ", "gradients are very noisy"),
          "https://discuss.pytorch.org/t/batch-norm-training-when-batch-size-1/102979"),
    fault("a-037", "normalisation", s037,
          "LayerNorm over a single feature subtracts the value from itself, so the network input is always zero (the bias).",
          ("layer norm over one element gives a constant", "normalised over the wrong axis; the signal is removed"),
          ("output does not depend on the input", "constant activations"),
          "https://github.com/pytorch/pytorch/issues/108956"),
    fault("a-038", "normalisation", s038,
          "A batch norm without affine parameters after the last layer forces outputs to mean 0 and variance 1, which the targets do not have.",
          ("normalisation right before the loss", "output scale/offset is fixed; targets cannot be reached"),
          ("targets are not standardised", "output range does not fit the targets"),
          "own"),
    fault("a-039", "normalisation", s039,
          "Instance norm at the input removes the level of each signal, which is exactly what is to be predicted.",
          ("normalisation removes the signal", "per-sample normalisation destroys amplitude"),
          ("output hardly depends on the target's cause", "network predicts the mean"),
          "own"),
    fault("a-040", "normalisation", s040,
          "The frozen batch norm layers use running variances of 0-255 data (2e4) on inputs of unit scale, so activations shrink to almost nothing.",
          ("running statistics of batch norm do not match the data", "frozen batch norm with wrong statistics", "signal vanishes in the norm layers"),
          ("activations are tiny", "gradients are tiny", "learning rate too low"),
          "own"),
]
