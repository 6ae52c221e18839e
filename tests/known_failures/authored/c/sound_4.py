"""Sound set-ups 31-40 of author c: time series and convolutions over time."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from protocol import Setup, Sound
from shared import Positional, accuracy, batches, gen, keyword_tokens, quiet, r2, recall_tokens, sine_windows, waves


def season(seed, n=768, length=24, ahead=6, salt=31, level=1.0):
    """Trend, season of period six, a level of its own for each series, noise."""
    g = gen(seed, salt)
    t = torch.arange(length + ahead).float()
    slope = 0.05 * torch.randn(n, 1, generator=g)
    amp = 0.5 + torch.rand(n, 1, generator=g)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    s = level * torch.randn(n, 1, generator=g) + slope * t + amp * torch.sin(2 * torch.pi * t / 6 + phase)
    s = s + 0.1 * torch.randn(s.shape, generator=g)
    return s[:, :length], s[:, length:]


def forecast(model, seed, steps=300, lr=3e-3, loss=None, opt=None, pick=lambda o: o, **kw):
    x, y = season(seed, **kw)
    return Setup(model, batches(x[:576], y[:576], 64), loss or nn.MSELoss(),
                 opt or torch.optim.Adam(model.parameters(), lr=lr), r2(x[576:], y[576:], pick), steps=steps)


# 31 temporal convolutional network
class Chomp(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, x):
        return x[..., :-self.n].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, i, o, dilation):
        super().__init__()
        pad = 2 * dilation
        self.net = nn.Sequential(weight_norm(nn.Conv1d(i, o, 3, padding=pad, dilation=dilation)), Chomp(pad), nn.ReLU(),
                                 nn.Dropout(0.05),
                                 weight_norm(nn.Conv1d(o, o, 3, padding=pad, dilation=dilation)), Chomp(pad), nn.ReLU())
        self.down = nn.Conv1d(i, o, 1) if i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.net(x) + self.down(x))


def s031(seed):
    x, y = recall_tokens(seed, 1280, length=10)

    class TCN(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(8, 16)
            self.body = nn.Sequential(*[TemporalBlock(16 if i == 0 else 24, 24, 2 ** i) for i in range(3)])
            self.out = nn.Linear(24, 8)

        def forward(self, ids):
            return self.out(self.body(self.emb(ids).transpose(1, 2))[..., -1])
    m = TCN()
    return Setup(m, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(), torch.optim.Adam(m.parameters(), 4e-3),
                 accuracy(x[1024:], y[1024:]), steps=250)


# 32 WaveNet-like: gated units, skips summed at the end
class WaveNet(nn.Module):
    def __init__(self, ch=16, layers=4):
        super().__init__()
        self.inp = nn.Conv1d(1, ch, 1)
        self.filt = nn.ModuleList([nn.Conv1d(ch, 2 * ch, 2, dilation=2 ** i) for i in range(layers)])
        self.res = nn.ModuleList([nn.Conv1d(ch, ch, 1) for _ in range(layers)])
        self.skip = nn.ModuleList([nn.Conv1d(ch, ch, 1) for _ in range(layers)])
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(ch, ch, 1), nn.ReLU(), nn.Conv1d(ch, 1, 1))

    def forward(self, x):
        h, total = self.inp(x.transpose(1, 2)), 0
        for i, conv in enumerate(self.filt):
            a, b = conv(F.pad(h, (2 ** i, 0))).chunk(2, 1)
            z = torch.tanh(a) * torch.sigmoid(b)
            total = total + self.skip[i](z)
            h = h + self.res[i](z)
        return self.out(total)[..., -1]


def s032(seed):
    x, y = sine_windows(seed, 768)
    m = WaveNet()
    return Setup(m, batches(x[:576], y[:576], 64), nn.L1Loss(), torch.optim.Adam(m.parameters(), 5e-3),
                 r2(x[576:], y[576:]), steps=250)


# 33 DLinear: moving average and remainder, two linear maps, no activation at all
class DLinear(nn.Module):
    def __init__(self, length=24, ahead=6):
        super().__init__()
        self.pool = nn.AvgPool1d(7, 1)
        self.trend, self.rest = nn.Linear(length, ahead), nn.Linear(length, ahead)
        for layer in (self.trend, self.rest):
            nn.init.constant_(layer.weight, 1 / length)

    def forward(self, x):
        smooth = self.pool(F.pad(x[:, None], (3, 3), mode="replicate"))[:, 0]
        return self.trend(smooth) + self.rest(x - smooth)


def s033(seed):
    return forecast(DLinear(), seed, lr=1e-2)


# 34 N-BEATS: doubly residual
class Beat(nn.Module):
    def __init__(self, length, ahead, width=48):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(length, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.back, self.fore = nn.Linear(width, length), nn.Linear(width, ahead)

    def forward(self, x):
        h = self.fc(x)
        return self.back(h), self.fore(h)


class NBeats(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Beat(24, 6) for _ in range(3)])

    def forward(self, x):
        total = 0
        for block in self.blocks:
            back, fore = block(x)
            x, total = x - back, total + fore
        return total


def s034(seed):
    return forecast(NBeats(), seed)


# 35 reversible instance norm around a small network, levels far apart
class RevIN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))
        self.net = nn.Sequential(nn.Linear(24, 48), nn.SiLU(), nn.Linear(48, 6))

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True).detach(), x.std(1, keepdim=True).detach() + 1e-5
        y = self.net((x - mean) / std * self.gain + self.shift)
        return (y - self.shift) / self.gain * std + mean


def s035(seed):
    return forecast(RevIN(), seed, level=0.3)


# 36 patches of the series as tokens
class PatchTST(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed, self.pos = nn.Linear(6, dim), Positional(8, dim)
        self.enc = nn.TransformerEncoderLayer(dim, 4, 64, 0.1, "gelu", batch_first=True, norm_first=True)
        self.head = nn.Linear(7 * dim, 6)

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        patches = (x - mean).unfold(1, 6, 3)
        return self.head(self.enc(self.pos(self.embed(patches))).flatten(1)) + mean


def s036(seed):
    m = PatchTST()
    return forecast(m, seed, opt=torch.optim.AdamW(m.parameters(), lr=2e-3))


# 37 quantile forecast
LEVELS = torch.tensor([0.1, 0.5, 0.9])


def pinball(out, y):
    e = y[..., None] - out
    return torch.maximum(LEVELS * e, (LEVELS - 1) * e).mean()


class Quantiles(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 64), nn.ELU(), nn.Linear(64, 64), nn.ELU(), nn.Linear(64, 18))

    def forward(self, x):
        return self.net(x).unflatten(1, (6, 3))


def s037(seed):
    return forecast(Quantiles(), seed, loss=pinball, pick=lambda o: o[..., 1])


# 38 DeepAR-like: Gaussian with learned deviation
class DeepAR(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 40, batch_first=True)
        self.mu, self.raw = nn.Linear(40, 1), nn.Linear(40, 1)

    def forward(self, x):
        h = self.rnn(x)[0][:, -1]
        return self.mu(h), F.softplus(self.raw(h)) + 1e-3


def s038(seed):
    x, y = sine_windows(seed, 768)
    m = DeepAR()
    nll = nn.GaussianNLLLoss()
    return Setup(m, batches(x[:576], y[:576], 64), lambda o, t: nll(o[0], t, o[1] ** 2),
                 torch.optim.Adam(m.parameters(), 5e-3), r2(x[576:], y[576:], lambda o: o[0]), steps=250)


# 39 diagonal state space layer as a convolution with a learned kernel
class DiagonalSSM(nn.Module):
    def __init__(self, ch, states=8):
        super().__init__()
        self.log_a = nn.Parameter(torch.log(0.05 + 0.4 * torch.rand(ch, states)))
        self.freq = nn.Parameter(torch.linspace(0.1, 1.6, states).repeat(ch, 1))
        self.c = nn.Parameter(torch.randn(ch, states) / states)
        self.d = nn.Parameter(torch.ones(ch))

    def forward(self, u):                                   # (batch, ch, time)
        n = u.shape[-1]
        t = torch.arange(n).float()
        kernel = (self.c[..., None] * torch.exp(-self.log_a.exp()[..., None] * t)
                  * torch.cos(self.freq[..., None] * t)).sum(1)
        y = torch.fft.irfft(torch.fft.rfft(u, 2 * n) * torch.fft.rfft(kernel, 2 * n), 2 * n)[..., :n]
        return y + self.d[:, None] * u


class SSMNet(nn.Module):
    def __init__(self, ch=16):
        super().__init__()
        self.inp = nn.Conv1d(3, ch, 1)
        self.layers = nn.ModuleList([DiagonalSSM(ch) for _ in range(2)])
        self.mix = nn.ModuleList([nn.Conv1d(ch, 2 * ch, 1) for _ in range(2)])
        self.out = nn.Linear(ch, 4)

    def forward(self, x):
        x = self.inp(x)
        for ssm, mix in zip(self.layers, self.mix):
            x = x + F.glu(mix(F.gelu(ssm(x))), 1)
        return self.out(x.pow(2).mean(-1).sqrt() + x.mean(-1))


def s039(seed):
    x, y = waves(seed, 832)
    m = SSMNet()
    return Setup(m, batches(x[:640], y[:640], 64), nn.CrossEntropyLoss(), torch.optim.AdamW(m.parameters(), 5e-3),
                 accuracy(x[640:], y[640:]), steps=250)


# 40 Kim's text CNN
class TextCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(60, 20)
        self.convs = nn.ModuleList([nn.Conv2d(1, 12, (k, 20)) for k in (1, 2, 3)])
        self.drop, self.fc = nn.Dropout(0.3), nn.Linear(36, 4)

    def forward(self, ids):
        x = self.emb(ids)[:, None]
        x = torch.cat([F.relu(c(x)).squeeze(3).amax(2) for c in self.convs], 1)
        return self.fc(self.drop(x))


def s040(seed):
    x, y = keyword_tokens(seed, 1280)
    m = TextCNN()
    return Setup(m, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(), torch.optim.Adam(m.parameters(), 5e-3),
                 accuracy(x[1024:], y[1024:]), steps=250)


SOUND = [
    Sound("c-119", "temporal convolutional network", s031, "arXiv:1803.01271"),
    Sound("c-085", "WaveNet-like gated convolutions", s032, "arXiv:1609.03499"),
    Sound("c-102", "DLinear", s033, "arXiv:2205.13504"),
    Sound("c-113", "N-BEATS", s034, "arXiv:1905.10437"),
    Sound("c-061", "reversible instance norm forecaster", s035, "RevIN, ICLR 2022"),
    Sound("c-129", "PatchTST-like", s036, "arXiv:2211.14730"),
    Sound("c-121", "quantile forecaster", s037),
    Sound("c-117", "DeepAR-like Gaussian GRU", s038, "arXiv:1704.04110"),
    Sound("c-026", "diagonal state space layers", s039, "arXiv:2206.11893"),
    Sound("c-015", "text CNN", s040, "arXiv:1408.5882"),
]
