"""Sound set-ups b-112 ... b-126: implicit networks, conditioning, self-supervision, metric learning."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from shared import accuracy, discs, dots, gen, grid, images, of_model, patterns, quiet, r2, register, retrieval, split

from protocol import Setup, Sound

SOUND = []
sound = register(SOUND, Sound)


def mlp(*sizes, act=nn.ReLU):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), act()]
    return nn.Sequential(*layers[:-1])


def conv_encoder(out, c=12):
    return nn.Sequential(nn.Conv2d(1, c, 3, 2, 1), nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 2 * c, 3, 2, 1), nn.BatchNorm2d(2 * c), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8 * c, out))  # fmt: skip


def picture(seed, n=1700):
    """Coordinates and grey values of one picture with fine detail."""
    g = gen(seed)
    p = 2 * torch.rand(n, 2, generator=g) - 1
    v = torch.sin(9 * p[:, 0]) * torch.cos(7 * p[:, 1]) + 0.5 * torch.sin(12 * p.norm(dim=1) + seed)
    return split(p, v[:, None], batch=128, held=256)


@sound("b-112", "SIREN: sine activations, first factor 20, scaled uniform init", "Sitzmann et al. 2020")
def _(seed):
    b, (hx, hy) = picture(seed)

    class Sine(nn.Module):
        def __init__(self, i, o, w, first=False):
            super().__init__()
            self.lin, self.w = nn.Linear(i, o), w
            k = 1 / i if first else math.sqrt(6 / i) / w
            nn.init.uniform_(self.lin.weight, -k, k)

        def forward(self, x):
            return torch.sin(self.w * self.lin(x))

    net = nn.Sequential(Sine(2, 64, 20.0, True), Sine(64, 64, 20.0), nn.Linear(64, 1))
    nn.init.uniform_(net[2].weight, -0.02, 0.02)
    return Setup(net, b, nn.MSELoss(), torch.optim.Adam(net.parameters(), 2e-3), r2(hx, hy), 300)


@sound("b-113", "coordinate MLP on fixed Fourier features", "Tancik et al. 2020")
def _(seed):
    b, (hx, hy) = picture(seed + 3)

    class Fourier(nn.Module):
        def __init__(self, m=48, s=1.2):
            super().__init__()
            self.register_buffer("B", s * torch.randn(2, m))

        def forward(self, x):
            a = 2 * math.pi * x @ self.B
            return torch.cat([a.sin(), a.cos()], 1)

    net = nn.Sequential(Fourier(), mlp(96, 64, 64, 1))
    return Setup(net, b, nn.MSELoss(), torch.optim.Adam(net.parameters(), 3e-3), r2(hx, hy), 250)


@sound("b-114", "hypernetwork: a code makes the weights of a small MLP", "Ha et al. 2017")
def _(seed):
    g = gen(seed)
    code, x = torch.randn(1400, 2, generator=g), 4 * torch.rand(1400, 1, generator=g) - 2
    y = torch.sin(x * (1 + 0.3 * code[:, :1])) + 0.5 * code[:, 1:]
    b, (hc, hx, hy) = split(code, x, y, batch=64)

    class Hyper(nn.Module):
        def __init__(self, h=16):
            super().__init__()
            self.h, self.net = h, mlp(2, 48, 3 * h + 1)

        def forward(self, code, x):
            w = self.net(code)
            w1, b1, w2, b2 = w.split([self.h, self.h, self.h, 1], 1)
            return (torch.tanh(w1 * 3 * x + b1) * w2).sum(1, keepdim=True) + b2

    net = Hyper()
    return Setup(net, [((p, q), r) for p, q, r in b], nn.MSELoss(), torch.optim.Adam(net.parameters(), 4e-3), r2((hc, hx), hy), 300)


@sound("b-115", "style generator: learnt constant, adaptive instance norm from a style", "Karras et al. 2019")
def _(seed):
    yy, xx = grid(16)
    c = torch.randn(640, 2, generator=gen(seed))
    x = (c[:, :1, None] * torch.sin(5 * xx) + torch.tanh(c[:, 1:, None] + 2 * yy))[:, None]
    b, (hc, hx) = split(c, x)

    class Ada(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.conv, self.norm, self.s = nn.Conv2d(i, o, 3, padding=1), nn.InstanceNorm2d(o), nn.Linear(32, 2 * o)

        def forward(self, x, w):
            g, b = self.s(w)[..., None, None].chunk(2, 1)
            return F.leaky_relu(self.norm(self.conv(x)) * (1 + g) + b, 0.2)

    class Style(nn.Module):
        def __init__(self, c=16):
            super().__init__()
            self.map, self.const = nn.Sequential(mlp(2, 32, 32), nn.LeakyReLU(0.2)), nn.Parameter(torch.randn(1, c, 8, 8))
            self.a, self.b, self.rgb = Ada(c, c), Ada(c, c), nn.Conv2d(c, 1, 1)

        def forward(self, s):
            w = self.map(s)
            h = self.a(self.const.expand(len(s), -1, -1, -1), w)
            return self.rgb(self.b(F.interpolate(h, scale_factor=2.0, mode="bilinear", align_corners=False), w))

    net = Style()
    return Setup(net, b, nn.MSELoss(), torch.optim.Adam(net.parameters(), 4e-3), r2(hc, hx), 200)


@sound("b-116", "masked autoencoder: half of the patches hidden, loss on hidden ones", "He et al. 2022")
def _(seed):
    x, _ = patterns(seed, n=900, noise=0.05)
    tok = F.unfold(x, 4, stride=4).transpose(1, 2)
    hide = torch.rand(900, 16, generator=gen(seed, 3)).argsort(1) < 8
    b, (ht, hh) = split(tok, hide)

    class MAE(nn.Module):
        def __init__(self, d=32):
            super().__init__()
            self.e, self.pos, self.mask, self.o = nn.Linear(16, d), nn.Parameter(0.1 * torch.randn(1, 16, d)), nn.Parameter(torch.zeros(1, 1, d)), nn.Linear(d, 16)
            self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 64, 0.0, batch_first=True, norm_first=True), 2, enable_nested_tensor=False)

        def forward(self, t, hide):
            h = torch.where(hide[..., None], self.mask.expand(*t.shape[:2], -1), self.e(t))
            return self.o(self.body(h + self.pos))

    net = MAE()

    @of_model
    def loss(model, batch):
        t, hide = batch
        return ((model(t, hide) - t) ** 2).mean(-1)[hide].mean()

    def score(model):
        with quiet(model):
            return 1 - (((model(ht, hh) - ht) ** 2).mean(-1)[hh].mean() / ht.var()).item()

    return Setup(net, b, loss, torch.optim.AdamW(net.parameters(), 4e-3), score, 300)


@sound("b-117", "spatial transformer whose localisation starts at the identity", "Jaderberg et al. 2015")
def _(seed):
    b, hx, hy = images(seed, 6)

    class STN(nn.Module):
        def __init__(self):
            super().__init__()
            self.loc = nn.Sequential(nn.Conv2d(1, 8, 5, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(512, 16), nn.ReLU(), nn.Linear(16, 6))
            nn.init.zeros_(self.loc[-1].weight)
            self.loc[-1].bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
            self.cnn = conv_encoder(6)

        def forward(self, x):
            th = self.loc(x).view(-1, 2, 3)
            return self.cnn(F.grid_sample(x, F.affine_grid(th, x.shape, align_corners=False), align_corners=False))

    net = STN()
    return Setup(net, b, nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), 2e-3), accuracy(hx, hy), 150)


def views(x, seed, k):
    g = gen(seed, 30 + k)
    out = torch.roll(x, int(torch.randint(-2, 3, (1,), generator=g)), -1) * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1, generator=g))
    return out + 0.3 * torch.randn(x.shape, generator=g)


def two_views(seed, batch=64, n=896):
    x, y = patterns(seed, classes=6, n=n, noise=0.5)
    b, (hx, hy) = split(x, y, batch=batch)
    return [(views(p, seed, i), views(p, seed, 100 + i)) for i, (p, _) in enumerate(b)], hx, hy


@sound("b-118", "SimCLR: NT-Xent on two augmented views, temperature 0.2", "Chen et al. 2020")
def _(seed):
    b, hx, hy = two_views(seed)
    net = nn.Sequential(conv_encoder(32), nn.ReLU(), nn.Linear(32, 16))

    @of_model
    def ntxent(model, batch):
        z = F.normalize(model(torch.cat(batch)))
        s = z @ z.T / 0.2
        s = s.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
        n = len(z) // 2
        return F.cross_entropy(s, torch.arange(2 * n).roll(n))

    return Setup(net, b, ntxent, torch.optim.Adam(net.parameters(), 3e-3), retrieval(hx, hy, F.normalize), 100)


@sound("b-119", "triplet loss, hardest in batch, normalised embeddings", "Hermans et al. 2017")
def _(seed):
    x, y = patterns(seed, classes=8, n=900, noise=0.6)
    b, (hx, hy) = split(x, y, batch=48)
    net = conv_encoder(16)

    def hard(e, lab):
        e = F.normalize(e)
        d = (2 - 2 * e @ e.T).clamp(min=1e-6).sqrt()
        same = lab[:, None] == lab
        return F.relu((d * same).amax(1) - (d + 9 * same).amin(1) + 0.3).mean()

    return Setup(net, b, hard, torch.optim.Adam(net.parameters(), 2e-3), retrieval(hx, hy, F.normalize), 150)


@sound("b-120", "siamese pairs, contrastive loss with margin 1", "Hadsell et al. 2006")
def _(seed):
    x, y = patterns(seed, classes=5, n=768, noise=0.5)
    b, (hx, hy) = split(x, y)
    g = gen(seed, 2)
    pairs = []
    for p, q in b:
        i = torch.randperm(len(p), generator=g)
        near = torch.stack([(q == k).nonzero()[int(torch.randint(int((q == k).sum()), (1,), generator=g)), 0] for k in q])
        j = torch.where(torch.arange(len(p)) % 2 == 0, near, i)
        pairs.append({"a": p, "b": p[j], "same": (q == q[j]).float()})
    net = conv_encoder(8)

    @of_model
    def contrastive(model, batch):
        d = F.pairwise_distance(model(batch["a"]), model(batch["b"]))
        return (batch["same"] * d**2 + (1 - batch["same"]) * F.relu(1 - d) ** 2).mean()

    return Setup(net, pairs, contrastive, torch.optim.Adam(net.parameters(), 2e-3), retrieval(hx, hy), 150)


@sound("b-121", "BYOL: predictor, target network moved by EMA in the step", "Grill et al. 2020")
def _(seed):
    b, hx, hy = two_views(seed)

    class BYOL(nn.Module):
        def __init__(self):
            super().__init__()
            self.online = conv_encoder(24)
            self.predictor = nn.Sequential(nn.Linear(24, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 24))
            self.target = copy.deepcopy(self.online).requires_grad_(False)

        def forward(self, x):
            return self.online(x)

    net = BYOL()
    opt = torch.optim.Adam([*net.online.parameters(), *net.predictor.parameters()], 3e-3)

    @of_model
    def loss(model, batch):
        u, v = batch
        total = 0
        for p, q in ((u, v), (v, u)):
            with torch.no_grad():
                t = model.target(q)
            total = total + 2 - 2 * F.cosine_similarity(model.predictor(model.online(p)), t).mean()
        return total

    def step(s, batch):
        opt.zero_grad()
        loss(net, batch).backward()
        opt.step()
        with torch.no_grad():
            for p, q in zip(net.target.parameters(), net.online.parameters()):
                p.lerp_(q, 0.03)

    return Setup(net, b, loss, opt, retrieval(hx, hy, F.normalize), 90, step)


@sound("b-122", "Barlow twins: cross-correlation to the identity", "Zbontar et al. 2021")
def _(seed):
    b, hx, hy = two_views(seed)
    net = nn.Sequential(conv_encoder(24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 32), nn.BatchNorm1d(32, affine=False))

    @of_model
    def barlow(model, batch):
        a, c = model(batch[0]), model(batch[1])
        m = a.T @ c / len(a)
        eye = torch.eye(len(m))
        return ((m - eye) ** 2 * (eye + 0.02 * (1 - eye))).sum()

    return Setup(net, b, barlow, torch.optim.Adam(net.parameters(), 3e-3), retrieval(hx, hy), 100)


@sound("b-123", "prototypical network, episodes of 5 ways", "Snell et al. 2017")
def _(seed):
    x, y = patterns(seed, classes=8, n=1000, noise=0.6)
    hx, hy, x, y = x[:160], y[:160], x[160:], y[160:]
    g = gen(seed, 2)
    episodes = []
    for _ in range(24):
        ways = torch.randperm(8, generator=g)[:5]
        idx = [(y == w).nonzero()[:, 0] for w in ways]
        pick = [i[torch.randperm(len(i), generator=g)[:9]] for i in idx]
        episodes.append({"support": torch.stack([x[p[:3]] for p in pick]), "query": torch.stack([x[p[3:]] for p in pick])})
    net = conv_encoder(16)

    @of_model
    def proto(model, ep):
        w, k = ep["support"].shape[:2]
        c = model(ep["support"].flatten(0, 1)).view(w, k, -1).mean(1)
        q = model(ep["query"].flatten(0, 1))
        return F.cross_entropy(-torch.cdist(q, c) ** 2, torch.arange(w).repeat_interleave(ep["query"].shape[1]))

    return Setup(net, episodes, proto, torch.optim.Adam(net.parameters(), 2e-3), retrieval(hx, hy), 120)


@sound("b-124", "two towers, image and words, learnt temperature", "Radford et al. 2021")
def _(seed):
    x, c = dots(seed, n=1024)
    words = torch.stack([((c[:, 0] + 1) * 4).long(), 8 + ((c[:, 1] + 1) * 4).long()], 1)
    b, (hx, hw) = split(x, words, batch=64)

    class Clip(nn.Module):
        def __init__(self):
            super().__init__()
            self.img = nn.Sequential(nn.Conv2d(1, 12, 3, 2, 1), nn.ReLU(), nn.Conv2d(12, 24, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(384, 24))
            self.emb, self.txt, self.scale = nn.Embedding(16, 24), mlp(48, 48, 24), nn.Parameter(torch.tensor(math.log(1 / 0.07)))

        def forward(self, image, text):
            a, t = F.normalize(self.img(image)), F.normalize(self.txt(self.emb(text).flatten(1)))
            return self.scale.exp() * a @ t.T

    net = Clip()

    @of_model
    def clip(model, batch):
        s = model(*batch)
        t = torch.arange(len(s))
        return 0.5 * (F.cross_entropy(s, t) + F.cross_entropy(s.T, t))

    def score(model):
        with quiet(model):
            p = model(hx, hw).argmax(1)
            return (hw[p] == hw).float().mean().item()

    return Setup(net, b, clip, torch.optim.AdamW(net.parameters(), 2e-3), score, 200)


@sound("b-125", "supervised contrastive loss over the batch", "Khosla et al. 2020")
def _(seed):
    x, y = patterns(seed, classes=6, n=900, noise=0.6)
    b, (hx, hy) = split(x, y, batch=64)
    net = conv_encoder(16)

    def supcon(e, lab):
        e = F.normalize(e)
        s = (e @ e.T / 0.1).masked_fill(torch.eye(len(e), dtype=torch.bool), -1e9)
        pos = (lab[:, None] == lab).float() - torch.eye(len(e))
        return -((s.log_softmax(1) * pos).sum(1) / pos.sum(1).clamp(min=1)).mean()

    return Setup(net, b, supcon, torch.optim.SGD(net.parameters(), 0.1, momentum=0.9), retrieval(hx, hy, F.normalize), 120)


@sound("b-126", "multi-task: mask and centre, losses weighted by learnt variances", "Kendall et al. 2018")
def _(seed):
    x, m = discs(seed, n=416)
    yy, xx = grid(16)
    c = torch.stack([(m[:, 0] * xx).sum((1, 2)), (m[:, 0] * yy).sum((1, 2))], 1) / m.sum((1, 2, 3))[:, None].clamp(min=1)
    b, (hx, hm, hc) = split(x, m, c, held=96)

    class Multi(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())
            self.seg, self.reg, self.s = nn.Conv2d(16, 1, 1), nn.Sequential(nn.AvgPool2d(4), nn.Flatten(), nn.Linear(256, 2)), nn.Parameter(torch.zeros(2))

        def forward(self, x):
            f = self.body(x)
            return {"mask": self.seg(f), "centre": self.reg(f)}

    net = Multi()

    @of_model
    def loss(model, batch):
        o = model(batch[0])
        a = F.binary_cross_entropy_with_logits(o["mask"], batch[1])
        r = F.mse_loss(o["centre"], batch[2])
        return (torch.stack([a, r]) * torch.exp(-model.s) + 0.5 * model.s).sum()

    return Setup(net, b, loss, torch.optim.Adam(net.parameters(), 4e-3), r2(hx, hc, lambda o: o["centre"]), 120)
