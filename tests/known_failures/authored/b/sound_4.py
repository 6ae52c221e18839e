"""Sound set-ups b-095 ... b-109: generative models."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from shared import accuracy, discs, dots, gen, grid, images, moons, noise_schedule, of_model, patterns, quiet, r2, register, split
from torch.nn.utils.parametrizations import spectral_norm

from protocol import Setup, Sound

SOUND = []
sound = register(SOUND, Sound)


def mlp(*sizes, act=nn.ReLU):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), act()]
    return nn.Sequential(*layers[:-1])


def same(x, held=128, batch=32):
    b, (h, _) = split(x, x, held=held, batch=batch)
    return b, h


def ring(seed, n=1664, r=2.0):
    a = torch.rand(n, generator=gen(seed)) * 6.2832
    return torch.stack([r * torch.cos(a), r * torch.sin(a)], 1) + 0.05 * torch.randn(n, 2, generator=gen(seed, 1))


def mmd(a, b):
    k = lambda u, v: torch.exp(-torch.cdist(u, v) ** 2).mean()  # noqa: E731
    return (k(a, a) + k(b, b) - 2 * k(a, b)).item()


@sound("b-095", "convolutional autoencoder, sigmoid output on [0, 1] images", "own")
def _(seed):
    x, _ = dots(seed, noise=0.0)
    b, h = same(x.clamp(0, 1))
    net = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 8), nn.Linear(8, 256), nn.ReLU(),
                        nn.Unflatten(1, (16, 4, 4)), nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1), nn.Sigmoid())  # fmt: skip
    return Setup(net, b, nn.BCELoss(), torch.optim.Adam(net.parameters(), 5e-3), r2(h, h), 250)


@sound("b-096", "denoising autoencoder with tied weights", "Vincent et al. 2008")
def _(seed):
    x, _ = patterns(seed, noise=0.0)
    noisy = x + 0.4 * torch.randn(x.shape, generator=gen(seed, 3))
    b, (hx, hy) = split(noisy.flatten(1), x.flatten(1))

    class Tied(nn.Module):
        def __init__(self, d=256, k=48):
            super().__init__()
            self.w, self.b, self.c = nn.Parameter(torch.randn(k, d) / 16), nn.Parameter(torch.zeros(k)), nn.Parameter(torch.zeros(d))

        def forward(self, x):
            return F.linear(torch.relu(F.linear(x, self.w, self.b)), self.w.T, self.c)

    net = Tied()
    return Setup(net, b, nn.MSELoss(), torch.optim.Adam(net.parameters(), 3e-3), r2(hx, hy), 200)


class Gauss(nn.Module):
    def __init__(self, enc, dec, h, z):
        super().__init__()
        self.enc, self.dec, self.mu, self.lv = enc, dec, nn.Linear(h, z), nn.Linear(h, z)

    def forward(self, x):
        h = self.enc(x)
        mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * (0.5 * lv).exp() if self.training else mu
        return self.dec(z).view_as(x), mu, lv


def elbo(out, x, beta=1.0):
    rec, mu, lv = out
    return ((rec - x) ** 2).sum() / len(x) * 2 + beta * -0.5 * (1 + lv - mu**2 - lv.exp()).sum() / len(x)


@sound("b-097", "VAE, summed reconstruction and KL", "Kingma & Welling 2014")
def _(seed):
    x, _ = dots(seed, n=640, noise=0.02)
    b, h = same(x * 2)
    net = Gauss(nn.Sequential(nn.Flatten(), mlp(256, 64, 64), nn.ReLU()), mlp(6, 64, 256), 64, 6)
    return Setup(net, b, elbo, torch.optim.Adam(net.parameters(), 3e-3), r2(h, h, lambda o: o[0]), 300)


@sound("b-098", "convolutional beta-VAE with KL warm-up in the step", "Higgins et al. 2017")
def _(seed):
    x, _ = discs(seed, n=416, noise=0.05)
    b, h = same(x, held=96)
    enc = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 4, 2, 1), nn.ReLU(), nn.Flatten())
    dec = nn.Sequential(nn.Linear(8, 256), nn.ReLU(), nn.Unflatten(1, (16, 4, 4)), nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1))
    net = Gauss(enc, dec, 256, 8)
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    seen = [0]

    def step(s, batch):
        seen[0] += 1
        opt.zero_grad()
        elbo(net(batch[0]), batch[1], beta=min(1.0, seen[0] / 150) * 0.5).backward()
        opt.step()

    return Setup(net, b, elbo, opt, r2(h, h, lambda o: o[0]), 250, step)


@sound("b-099", "VQ-VAE: nearest code, straight-through gradient, commitment loss", "van den Oord et al. 2017")
def _(seed):
    x, _ = patterns(seed, noise=0.05)
    b, h = same(x)

    class VQ(nn.Module):
        def __init__(self, k=32, d=8):
            super().__init__()
            self.enc = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, d, 4, 2, 1))
            self.codes = nn.Parameter(0.3 * torch.randn(k, d))
            self.dec = nn.Sequential(nn.ConvTranspose2d(d, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1))

        def forward(self, x):
            z = self.enc(x).permute(0, 2, 3, 1)
            i = torch.cdist(z.reshape(-1, z.shape[-1]), self.codes).argmin(1)
            q = self.codes[i].view_as(z)
            aux = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z)
            return self.dec((z + (q - z).detach()).permute(0, 3, 1, 2)), aux

    net = VQ()
    return Setup(net, b, lambda o, t: F.mse_loss(o[0], t) + o[1], torch.optim.Adam(net.parameters(), 4e-3), r2(h, h, lambda o: o[0]), 250)


class GAN(nn.Module):
    def __init__(self, G, D):
        super().__init__()
        self.G, self.D = G, D

    def forward(self, z):
        return self.G(z)


@sound("b-100", "GAN on points, non-saturating loss, two optimizers", "Goodfellow et al. 2014")
def _(seed):
    real = torch.tensor([2.0, -1.0]) + 0.5 * torch.randn(1664, 2, generator=gen(seed)) @ torch.tensor([[1.0, 0.5], [0.0, 1.0]])
    b, (hr, hz) = split(real, torch.randn(1664, 8, generator=gen(seed, 1)), batch=64)
    net = GAN(mlp(8, 32, 32, 2), mlp(2, 32, 32, 1, act=lambda: nn.LeakyReLU(0.2)))
    og, od = torch.optim.Adam(net.G.parameters(), 1e-3, betas=(0.5, 0.9)), torch.optim.Adam(net.D.parameters(), 1e-3, betas=(0.5, 0.9))

    def step(s, batch):
        x, z = batch
        od.zero_grad()
        (F.softplus(-net.D(x)).mean() + F.softplus(net.D(net.G(z).detach())).mean()).backward()
        od.step()
        og.zero_grad()
        F.softplus(-net.D(net.G(z))).mean().backward()
        og.step()

    @of_model
    def gloss(model, batch):
        return F.softplus(-model.D(model.G(batch[1]))).mean()

    def score(model):
        with quiet(model):
            return -mmd(model(hz), hr)

    return Setup(net, b, gloss, og, score, 1000, step)


@sound("b-101", "discriminator with spectral norm, hinge loss, LeakyReLU", "Miyato et al. 2018")
def _(seed):
    real, _ = patterns(seed, n=320)
    fake, _ = patterns(seed + 3, n=320)
    fake = F.avg_pool2d(fake, 3, 1, 1)
    g = torch.randperm(640, generator=gen(seed))
    x, y = torch.cat([real, fake])[g], torch.cat([torch.ones(320), -torch.ones(320)])[g]
    b, (hx, hy) = split(x, y)
    sn = spectral_norm
    net = nn.Sequential(sn(nn.Conv2d(1, 16, 4, 2, 1)), nn.LeakyReLU(0.1), sn(nn.Conv2d(16, 32, 4, 2, 1)), nn.LeakyReLU(0.1), nn.Flatten(), sn(nn.Linear(512, 1)), nn.Flatten(0))

    def score(model):
        with quiet(model):
            return ((model(hx) * hy) > 0).float().mean().item()

    return Setup(net, b, lambda o, t: F.relu(1 - o * t).mean(), torch.optim.Adam(net.parameters(), 2e-3, betas=(0.0, 0.9)), score, 150)


@sound("b-102", "Wasserstein critic with gradient penalty", "Gulrajani et al. 2017")
def _(seed):
    a, c = ring(seed), 0.7 * torch.randn(1664, 2, generator=gen(seed, 2))
    b, (ha, hc) = split(a, c, batch=64)
    net = mlp(2, 48, 48, 1, act=lambda: nn.LeakyReLU(0.2))

    @of_model
    def wgan_gp(model, batch):
        r, f = batch
        e = torch.rand(len(r), 1)
        m = (e * r + (1 - e) * f).requires_grad_(True)
        g = torch.autograd.grad(model(m).sum(), m, create_graph=True)[0]
        return model(f).mean() - model(r).mean() + 10 * ((g.norm(dim=1) - 1) ** 2).mean()

    def score(model):
        with quiet(model):
            return (model(ha).mean() - model(hc).mean()).item()

    return Setup(net, b, wgan_gp, torch.optim.Adam(net.parameters(), 2e-3, betas=(0.0, 0.9)), score, 250)


@sound("b-103", "pix2pix-like generator: reconstruction plus a fixed critic's hinge term", "Isola et al. 2017")
def _(seed):
    _, m = discs(seed, n=352)
    yy, xx = grid(16)
    photo = (2 * m - 1) * torch.cos(3 * xx) + 0.3 * yy
    b, (hm, hp) = split(m, photo, held=96)
    critic = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 4, 2, 1)).requires_grad_(False)
    net = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.LeakyReLU(0.2),
                        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1))  # fmt: skip
    loss = lambda o, t: 10 * F.l1_loss(o, t) - 0.1 * critic(o).mean()  # noqa: E731
    return Setup(net, b, loss, torch.optim.Adam(net.parameters(), 2e-3, betas=(0.5, 0.999)), r2(hm, hp), 200)


@sound("b-104", "RealNVP: coupling layers with zero-initialised last layer", "Dinh et al. 2017")
def _(seed):
    x, _ = moons(seed, n=1400, noise=0.08)
    b, h = same(x, batch=64)

    class Coupling(nn.Module):
        def __init__(self, flip):
            super().__init__()
            self.flip, self.f = flip, mlp(1, 32, 32, 2, act=nn.Tanh)
            nn.init.zeros_(self.f[-1].weight)
            nn.init.zeros_(self.f[-1].bias)

        def forward(self, x):
            a, c = (x[:, 1:], x[:, :1]) if self.flip else (x[:, :1], x[:, 1:])
            s, t = self.f(a).chunk(2, 1)
            s = torch.tanh(s)
            c = c * s.exp() + t
            return torch.cat([c, a] if self.flip else [a, c], 1), s.sum(1)

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([Coupling(i % 2) for i in range(6)])

        def forward(self, x):
            ld = 0
            for p in self.parts:
                x, s = p(x)
                ld = ld + s
            return -0.5 * (x**2).sum(1) - math.log(2 * math.pi) + ld

    net = Flow()

    def score(model):
        with quiet(model):
            return model(h).mean().item()

    return Setup(net, b, lambda lp, _: -lp.mean(), torch.optim.Adam(net.parameters(), 4e-3), score, 250)


def noised(seed, x0, k=0):
    ab = noise_schedule()
    g = gen(seed, 20 + k)
    t = torch.randint(50, (len(x0),), generator=g)
    eps = torch.randn(x0.shape, generator=g)
    a = ab[t].view(-1, *[1] * (x0.dim() - 1))
    return a.sqrt() * x0 + (1 - a).sqrt() * eps, t, eps


@sound("b-105", "DDPM on points, sinusoidal time embedding", "Ho et al. 2020")
def _(seed):
    xt, t, eps = noised(seed, ring(seed, 2048))
    b, (hx, ht, he) = split(xt, t, eps, batch=64)

    class Eps(nn.Module):
        def __init__(self, d=64):
            super().__init__()
            self.register_buffer("f", torch.exp(-math.log(100.0) * torch.arange(16) / 16))
            self.t, self.i, self.m, self.o = mlp(32, d, d, act=nn.SiLU), nn.Linear(2, d), nn.Linear(d, d), nn.Linear(d, 2)

        def forward(self, x, t):
            a = t[:, None] * self.f
            h = self.i(x) + self.t(torch.cat([a.sin(), a.cos()], 1))
            return self.o(F.silu(h + self.m(F.silu(h))))

    net = Eps()
    return Setup(net, [((p, q), r) for p, q, r in b], nn.MSELoss(), torch.optim.AdamW(net.parameters(), 3e-3), r2((hx, ht), he), 300)


class TimeRes(nn.Module):
    def __init__(self, c, d):
        super().__init__()
        self.n1, self.c1, self.t = nn.GroupNorm(4, c), nn.Conv2d(c, c, 3, padding=1), nn.Linear(d, 2 * c)
        self.n2, self.c2 = nn.GroupNorm(4, c, affine=False), nn.Conv2d(c, c, 3, padding=1)
        nn.init.zeros_(self.c2.weight)
        nn.init.zeros_(self.c2.bias)

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x)))
        s, b = self.t(t)[..., None, None].chunk(2, 1)
        return x + self.c2(F.silu(self.n2(h) * (1 + s) + b))


class EpsUNet(nn.Module):
    """Zero-initialised residual ends and output convolution."""

    def __init__(self, c=16, d=32, classes=0):
        super().__init__()
        self.t, self.y = nn.Embedding(50, d), nn.Embedding(classes + 1, d)
        self.inp, self.r1, self.down, self.r2 = nn.Conv2d(1, c, 3, padding=1), TimeRes(c, d), nn.Conv2d(c, c, 3, 2, 1), TimeRes(c, d)
        self.up, self.out = nn.Conv2d(2 * c, c, 3, padding=1), nn.Conv2d(c, 1, 3, padding=1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t, y=None):
        e = F.silu(self.t(t) + (self.y(y) if y is not None else 0))
        a = self.r1(self.inp(x), e)
        h = F.interpolate(self.r2(self.down(a), e), scale_factor=2.0)
        return self.out(F.silu(self.up(torch.cat([a, h], 1))))


@sound("b-106", "image DDPM U-Net, zero-initialised ends", "Dhariwal & Nichol 2021")
def _(seed):
    x0, _ = patterns(seed, n=352, noise=0.0)
    xt, t, eps = noised(seed, x0)
    b, (hx, ht, he) = split(xt, t, eps, held=96)
    net = EpsUNet()
    del net.y
    return Setup(net, [((p, q), r) for p, q, r in b], nn.MSELoss(), torch.optim.Adam(net.parameters(), 3e-3), r2((hx, ht), he), 90)


@sound("b-107", "class-conditional diffusion with label dropout (null class)", "Ho & Salimans 2022")
def _(seed):
    x0, y = patterns(seed, n=352, noise=0.0)
    xt, t, eps = noised(seed, x0)
    y = torch.where(torch.rand(len(y), generator=gen(seed, 8)) < 0.1, torch.tensor(4), y)
    b, (hx, ht, hy, he) = split(xt, t, y, eps, held=96)
    net = EpsUNet(classes=4)
    return Setup(net, [((p, q, w), r) for p, q, w, r in b], nn.MSELoss(), torch.optim.Adam(net.parameters(), 3e-3), r2((hx, ht, hy), he), 90)


@sound("b-108", "flow matching: straight paths, velocity target", "Lipman et al. 2023")
def _(seed):
    x1 = ring(seed, 2048)
    g = gen(seed, 6)
    x0, t = torch.randn(2048, 2, generator=g), torch.rand(2048, 1, generator=g)
    b, (hx, hv) = split(torch.cat([(1 - t) * x0 + t * x1, t], 1), x1 - x0, batch=64)
    net = mlp(3, 64, 64, 2, act=nn.SiLU)
    return Setup(net, b, nn.MSELoss(), torch.optim.Adam(net.parameters(), 4e-3), r2(hx, hv), 300)


@sound("b-109", "denoising score matching over several noise levels, weighted by sigma", "Song & Ermon 2019")
def _(seed):
    x0 = ring(seed, 2048)
    g = gen(seed, 6)
    sig = 0.1 * 10 ** torch.rand(2048, 1, generator=g)
    z = torch.randn(2048, 2, generator=g)
    b, (hx, hz) = split(torch.cat([x0 + sig * z, sig.log()], 1), z, batch=64)

    class Score(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = mlp(3, 64, 64, 2, act=nn.SiLU)

        def forward(self, x):
            return self.f(x) / x[:, 2:].exp()

    net = Score()

    @of_model
    def dsm(model, batch):
        s = batch[0][:, 2:].exp()
        return ((s * model(batch[0]) + batch[1]) ** 2).sum(1).mean()

    return Setup(net, b, dsm, torch.optim.Adam(net.parameters(), 3e-3), r2(hx, hz, lambda o: -o * hx[:, 2:].exp()), 300)
