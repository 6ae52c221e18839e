"""Sound set-ups 51-60 of author c: sets, contrastive and metric learning."""

import copy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch
import torch.nn.functional as F
from torch import nn

from protocol import Setup, Sound
from shared import batches, blobs, dict_batches, gen, quiet, r2, sets, two_views


def mlp(*sizes, act=nn.ReLU):
    layers = []
    for i, o in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(i, o), act()]
    return nn.Sequential(*layers[:-1])


def noisy_pairs(seed, n=640, dim=24, salt=52):
    """Points of eight hidden groups in a subspace; the views differ in the other directions."""
    g0 = torch.Generator().manual_seed(52)
    centre = 1.3 * torch.randn(8, dim // 2, generator=g0)
    mix = torch.linalg.qr(torch.randn(dim, dim, generator=g0))[0]
    g = gen(seed, salt)
    k = torch.randint(0, 8, (n,), generator=g)
    core = centre[k] + 0.3 * torch.randn(n, dim // 2, generator=g)

    def view():
        return torch.cat([core + 0.1 * torch.randn(core.shape, generator=g),
                          2.5 * torch.randn(n, dim // 2, generator=g)], 1) @ mix
    return view(), view(), k


def neighbour_score(embed, x, y, half=320):
    """Share of held-out points whose nearest neighbours (five) agree with their group."""
    def score(m):
        with quiet(m):
            z = F.normalize(embed(m, x), dim=-1)
            near = (z[half:] @ z[:half].T).topk(5, 1).indices
            return float((y[:half][near].mode(1).values == y[half:]).float().mean())
    return score


def pair_task(model, loss, seed, embed, steps=250, lr=3e-3, step=None, opt=None):
    a, b, _ = noisy_pairs(seed)
    test, _, k = noisy_pairs(seed, salt=53)
    opt = opt or torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    return Setup(model, dict_batches(128, a=a, b=b), loss, opt, neighbour_score(embed, test, k), steps=steps, step=step)


# 51 Deep sets
class DeepSets(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi, self.rho = mlp(2, 64, 64, act=nn.ELU), mlp(128, 64, 1, act=nn.ELU)

    def forward(self, x):
        h = self.phi(x)
        return self.rho(torch.cat([h.mean(1), h.amax(1)], -1)).squeeze(-1)


def s051(seed):
    x, y = sets(seed, 1000)
    m = DeepSets()
    return Setup(m, batches(x[:800], y[:800], 80), nn.MSELoss(), torch.optim.Adam(m.parameters(), lr=3e-3),
                 r2(x[800:], y[800:]), steps=300)


# 52 SimCLR
class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.projector = mlp(24, 64, 16), mlp(16, 32, 16)

    def forward(self, x):
        return F.normalize(self.projector(F.relu(self.encoder(x))), dim=-1)


def nt_xent(m, batch, t=0.3):
    z = torch.cat([m(batch["a"]), m(batch["b"])])
    n = len(z) // 2
    sim = (z @ z.T / t).masked_fill(torch.eye(2 * n).bool(), float("-inf"))
    return F.cross_entropy(sim, torch.arange(2 * n).roll(n))


def s052(seed):
    return pair_task(SimCLR(), nt_xent, seed, lambda m, x: m.encoder(x))


# 53 CLIP with a learned temperature, two unlike encoders
class CLIP(nn.Module):
    def __init__(self):
        super().__init__()
        self.image, self.text = mlp(16, 64, 16, act=nn.GELU), mlp(16, 48, 48, 16)
        self.logit_scale = nn.Parameter(torch.tensor(2.65))

    def forward(self, a, b):
        a, b = F.normalize(self.image(a), dim=-1), F.normalize(self.text(b), dim=-1)
        return self.logit_scale.exp() * a @ b.T


def s053(seed):
    a, b = two_views(seed, 768)
    m = CLIP()

    def loss(out, index):
        t = torch.arange(len(out))
        return (F.cross_entropy(out, t) + F.cross_entropy(out.T, t)) / 2

    def score(mod):
        with quiet(mod):
            return float((mod(a[640:], b[640:]).argmax(1) == torch.arange(128)).float().mean())
    return Setup(m, batches((a[:640], b[:640]), torch.arange(640), 128), loss,
                 torch.optim.AdamW(m.parameters(), lr=3e-3), score, steps=300)


# 54 triplets
def s054(seed):
    x, _, k = noisy_pairs(seed)
    test, _, kt = noisy_pairs(seed, salt=53)
    g = gen(seed, 54)
    rank = torch.rand(640, 640, generator=g)
    same = k[:, None] == k[None]
    pos = (rank * same - torch.eye(640)).argmax(1)
    neg = (rank * ~same).argmax(1)
    m = mlp(24, 64, 8)
    crit = nn.TripletMarginLoss(margin=1.0)
    return Setup(m, dict_batches(64, anchor=x, positive=x[pos], negative=x[neg]),
                 lambda mod, b: crit(mod(b["anchor"]), mod(b["positive"]), mod(b["negative"])),
                 torch.optim.Adam(m.parameters(), lr=2e-3), neighbour_score(lambda mod, z: mod(z), test, kt), steps=300)


# 55 ArcFace: angular margin, large scale
class ArcFace(nn.Module):
    def __init__(self, classes=8, s=16.0, margin=0.2):
        super().__init__()
        self.backbone = mlp(24, 64, 16)
        self.weight = nn.Parameter(torch.randn(classes, 16))
        self.s, self.margin = s, margin

    def forward(self, x, y=None):
        cos = F.linear(F.normalize(self.backbone(x)), F.normalize(self.weight)).clamp(-0.999, 0.999)
        if y is None:
            return self.s * cos
        hard = torch.cos(torch.acos(cos) + self.margin)
        return self.s * torch.where(F.one_hot(y, cos.shape[1]).bool(), hard, cos)


def s055(seed):
    x, _, k = noisy_pairs(seed)
    test, _, kt = noisy_pairs(seed, salt=53)
    m = ArcFace()

    def score(mod):
        with quiet(mod):
            return float((mod(test).argmax(1) == kt).float().mean())
    return Setup(m, dict_batches(64, x=x, y=k), lambda mod, b: F.cross_entropy(mod(b["x"], b["y"]), b["y"]),
                 torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9), score, steps=250)


# 56 BYOL: slow target without gradient
class BYOL(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
        self.predictor = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False

    def forward(self, a, b):
        def half(u, v):
            with torch.no_grad():
                t = self.target(v)
            return 2 - 2 * F.cosine_similarity(self.predictor(self.online(u)), t).mean()
        return half(a, b) + half(b, a)


def s056(seed):
    m = BYOL()
    opt = torch.optim.Adam([p for p in m.parameters() if p.requires_grad], lr=3e-3)

    def loss(mod, b):
        return mod(b["a"], b["b"])

    def step(setup, batch):
        opt.zero_grad()
        loss(m, batch).backward()
        opt.step()
        with torch.no_grad():
            for t, o in zip(m.target.parameters(), m.online.parameters()):
                t.lerp_(o, 0.03)
    return pair_task(m, loss, seed, lambda mod, x: mod.online(x), opt=opt, step=step, steps=300)


# 57 SimSiam: stop-gradient on one side
class SimSiam(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16),
                               nn.BatchNorm1d(16, affine=False))
        self.h = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 16))

    def forward(self, a, b):
        za, zb = self.f(a), self.f(b)
        return (self.h(za), self.h(zb)), (za.detach(), zb.detach())


def s057(seed):
    def loss(m, b):
        (pa, pb), (za, zb) = m(b["a"], b["b"])
        return -(F.cosine_similarity(pa, zb).mean() + F.cosine_similarity(pb, za).mean()) / 2
    m = SimSiam()
    return pair_task(m, loss, seed, lambda mod, x: mod.f(x), opt=torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
                     steps=300)


# 58 Barlow Twins
def s058(seed):
    m = nn.Sequential(nn.Linear(24, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))

    def loss(mod, b):
        za, zb = (F.batch_norm(mod(b[k]), None, None, training=True) for k in ("a", "b"))
        c = za.T @ zb / len(za)
        off = c - torch.diag(torch.diagonal(c))
        return (1 - torch.diagonal(c)).pow(2).sum() + 0.02 * off.pow(2).sum()
    return pair_task(m, loss, seed, lambda mod, x: mod(x))


# 59 prototypical network: each batch is an episode
def s059(seed):
    x, _, k = noisy_pairs(seed)
    test, _, kt = noisy_pairs(seed, salt=53)
    g = gen(seed, 59)
    per = [torch.nonzero(k == c).flatten() for c in range(8)]
    episodes = []
    for _ in range(40):
        ways = torch.randperm(8, generator=g)[:4]
        pick = torch.stack([per[int(c)][torch.randperm(len(per[int(c)]), generator=g)[:10]] for c in ways])
        episodes.append({"support": x[pick[:, :5]], "query": x[pick[:, 5:]]})
    m = mlp(24, 64, 16)

    def loss(mod, ep):
        proto = mod(ep["support"]).mean(1)
        q = mod(ep["query"]).flatten(0, 1)
        return F.cross_entropy(-torch.cdist(q, proto).pow(2), torch.arange(4).repeat_interleave(5))
    return Setup(m, episodes, loss, torch.optim.Adam(m.parameters(), lr=2e-3),
                 neighbour_score(lambda mod, z: mod(z), test, kt), steps=250)


# 60 supervised contrastive
def s060(seed):
    x, _, k = noisy_pairs(seed)
    test, _, kt = noisy_pairs(seed, salt=53)
    m = SimCLR()

    def supcon(z, y, t=0.2):
        me = torch.eye(len(y)).bool()
        logp = (z @ z.T / t).masked_fill(me, -1e9).log_softmax(1)
        same = (y[:, None] == y[None]) & ~me
        return -((logp * same).sum(1) / same.sum(1).clamp(min=1)).mean()
    return Setup(m, batches(x, k, 128), supcon, torch.optim.Adam(m.parameters(), lr=3e-3),
                 neighbour_score(lambda mod, z: mod.encoder(z), test, kt), steps=200)


SOUND = [
    Sound("c-044", "deep sets", s051, "arXiv:1703.06114"),
    Sound("c-038", "SimCLR", s052, "arXiv:2002.05709"),
    Sound("c-009", "CLIP with learned temperature", s053, "arXiv:2103.00020"),
    Sound("c-008", "triplet metric learning", s054, "arXiv:1503.03832"),
    Sound("c-120", "ArcFace", s055, "arXiv:1801.07698"),
    Sound("c-093", "BYOL with slow target", s056, "arXiv:2006.07733"),
    Sound("c-049", "SimSiam", s057, "arXiv:2011.10566"),
    Sound("c-052", "Barlow Twins", s058, "arXiv:2103.03230"),
    Sound("c-138", "prototypical network", s059, "arXiv:1703.05175"),
    Sound("c-080", "supervised contrastive", s060, "arXiv:2004.11362"),
]
