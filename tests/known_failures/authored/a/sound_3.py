"""Sound set-ups a-128 to a-139: autoencoders, generative models, densities."""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn, optim  # noqa: E402

import shared as d  # noqa: E402
from protocol import Setup, Sound  # noqa: E402


def of_model(f):
    f.of_model = True
    return f


def digits(seed, n=700, size=8, kinds=6):
    """Binary-looking 8x8 pictures from a few templates with flipped pixels, in 0..1."""
    g = d.gen(seed)
    base = (torch.rand(kinds, size * size, generator=g) > 0.5).float()
    y = torch.randint(kinds, (n,), generator=g)
    x = base[y]
    flip = torch.rand(x.shape, generator=g) < 0.08
    return torch.where(flip, 1 - x, x), base[y], y


def m128(seed):
    """Plain autoencoder, sigmoid output, BCE on 0..1 pixels."""
    x, clean, _ = digits(seed)
    train, xt, _ = d.split(x, x)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 6), nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())
    return Setup(net, train, nn.BCELoss(), optim.Adam(net.parameters(), lr=1e-2), d.r2(xt, clean[-200:]), steps=250)


class ConvAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 3, 2, 1))
        self.dec = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(4, 8, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1))

    def forward(self, x):
        return self.dec(self.enc(x))


def m129(seed):
    x, _ = d.stripes(seed, noise=0.05)
    x = (x - 0.5) * 4
    train, xt, yt = d.split(x, x)
    net = ConvAE()
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=1e-2), d.r2(xt, yt), steps=250)


class VAE(nn.Module):
    def __init__(self, n=64, z=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n, 48), nn.ReLU())
        self.mu, self.logvar = nn.Linear(48, z), nn.Linear(48, z)
        self.dec = nn.Sequential(nn.Linear(z, 48), nn.ReLU(), nn.Linear(48, n))

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.dec(z), mu, logvar


def m130(seed):
    """VAE: reconstruction summed over pixels plus KL, averaged over the batch."""
    x, clean, _ = digits(seed)
    train, xt, _ = d.split(x, x)

    def elbo(out, target):
        logits, mu, logvar = out
        rec = F.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(1)
        kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(1)
        return (rec + kl).mean()
    net = VAE()
    return Setup(net, train, elbo, optim.Adam(net.parameters(), lr=3e-3),
                 d.r2(xt, clean[-200:], pick=lambda o: torch.sigmoid(o[0])), steps=400)


class SparseAE(nn.Module):
    """Overcomplete code with an L1 penalty; weights tied."""

    def __init__(self, n=16, code=32):
        super().__init__()
        self.w = nn.Parameter(torch.randn(code, n) * 0.2)
        self.b, self.c = nn.Parameter(torch.zeros(code)), nn.Parameter(torch.zeros(n))

    def code(self, x):
        return F.relu(F.linear(x - self.c, self.w, self.b))

    def forward(self, x):
        return F.linear(self.code(x), self.w.t(), self.c)


def m131(seed):
    g = d.gen(seed)
    atoms = F.normalize(torch.randn(8, 16, generator=g), dim=1)
    on = (torch.rand(900, 8, generator=g) < 0.25).float() * (0.5 + torch.rand(900, 8, generator=g))
    x = on @ atoms * 2
    batches = [x[i:i + 50] for i in range(0, 700, 50)]
    net = SparseAE()

    @of_model
    def loss(model, batch):
        return F.mse_loss(model(batch), batch) + 1e-3 * model.code(batch).mean()
    return Setup(net, batches, loss, optim.Adam(net.parameters(), lr=1e-2), d.r2(x[700:], x[700:]), steps=250)


class VQ(nn.Module):
    """Nearest code with straight-through gradient; codes follow the commitment loss."""

    def __init__(self, n=64, k=12, dim=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(n, 48), nn.ReLU(), nn.Linear(48, dim))
        self.codes = nn.Parameter(torch.randn(k, dim) * 0.5)
        self.dec = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, n))

    def forward(self, x):
        e = self.enc(x)
        q = self.codes[torch.cdist(e, self.codes).argmin(1)]
        return {"logits": self.dec(e + (q - e).detach()), "e": e, "q": q}


def m132(seed):
    x, clean, _ = digits(seed, kinds=4)
    train, xt, _ = d.split(x, x)

    def loss(o, target):
        return (F.binary_cross_entropy_with_logits(o["logits"], target) + F.mse_loss(o["q"], o["e"].detach())
                + 0.25 * F.mse_loss(o["e"], o["q"].detach()))
    net = VQ()
    return Setup(net, train, loss, optim.Adam(net.parameters(), lr=5e-3),
                 d.r2(xt, clean[-200:], pick=lambda o: torch.sigmoid(o["logits"])), steps=400)


def moon(g, n):
    t = math.pi * torch.rand(n, generator=g)
    return torch.stack([t.cos(), t.sin() - 0.5], 1) + 0.05 * torch.randn(n, 2, generator=g)


class GANPair(nn.Module):
    def __init__(self):
        super().__init__()
        self.G = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))
        self.D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, z):
        return self.G(z)


def energy(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


def m133(seed):
    """Both players of a small GAN, one optimizer with two groups, own step. Score: minus the energy distance."""
    g = d.gen(seed)
    batches = [moon(g, 128) for _ in range(8)]
    test, z = moon(g, 400), torch.randn(400, 2, generator=g)
    net = GANPair()
    opt = optim.Adam([{"params": net.G.parameters()}, {"params": net.D.parameters()}], lr=2e-3, betas=(0.5, 0.99))

    @of_model
    def gen_loss(model, real):
        return F.softplus(-model.D(model(torch.randn(len(real), 2)))).mean()

    def step(setup, real):
        model = setup.model
        fake = model(torch.randn(len(real), 2)).detach()
        setup.optimizer.zero_grad()
        (F.softplus(-model.D(real)) + F.softplus(model.D(fake))).mean().backward()
        setup.optimizer.step()                                # G has no gradient here
        setup.optimizer.zero_grad()
        setup.loss(model, real).backward()
        model.D.zero_grad()                                   # and here D is left alone
        setup.optimizer.step()
    return Setup(net, batches, gen_loss, opt, lambda m: -energy(d.out_of(m, z), test), steps=400, step=step)


def m134(seed):
    """Discriminator alone against a fixed poor generator."""
    g = d.gen(seed)
    x = torch.cat([moon(g, 500), torch.randn(500, 2, generator=g)])
    y = torch.cat([torch.ones(500, 1), torch.zeros(500, 1)])
    order = torch.randperm(1000, generator=g)
    train, xt, yt = d.split(x[order] * 4, y[order])
    net = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(2, 48)), nn.LeakyReLU(0.2),
                        nn.utils.parametrizations.spectral_norm(nn.Linear(48, 48)), nn.LeakyReLU(0.2), nn.Linear(48, 1))
    return Setup(net, train, nn.BCEWithLogitsLoss(), optim.Adam(net.parameters(), lr=5e-3), d.bacc(xt, yt), steps=300)


class MDN(nn.Module):
    def __init__(self, k=3):
        super().__init__()
        self.h = nn.Sequential(nn.Linear(1, 32), nn.Tanh())
        self.pi, self.mu, self.s = nn.Linear(32, k), nn.Linear(32, k), nn.Linear(32, k)

    def forward(self, x):
        h = self.h(x)
        return self.pi(h), self.mu(h), self.s(h).clamp(-4, 3)


def mdn_nll(out, y):
    pi, mu, s = out
    logp = F.log_softmax(pi, 1) - s - 0.5 * ((y - mu) / s.exp()) ** 2 - 0.919
    return -torch.logsumexp(logp, 1).mean()


def m135(seed):
    """Two-valued inverse problem; scored by held-out likelihood."""
    g = d.gen(seed)
    y = torch.rand(1000, 1, generator=g) * 4 - 2
    x = y ** 2 - 2 + 0.1 * torch.randn(1000, 1, generator=g)
    train, xt, yt = d.split(x, y)
    net = MDN()
    return Setup(net, train, mdn_nll, optim.Adam(net.parameters(), lr=1e-2),
                 lambda m: -mdn_nll(d.out_of(m, xt), yt).item(), steps=400)


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.f = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 2))
        nn.init.zeros_(self.f[2].weight)
        nn.init.zeros_(self.f[2].bias)

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.f(a).chunk(2, 1)
        b = b * torch.tanh(s).exp() + t
        return torch.cat([b, a] if self.flip else [a, b], 1), torch.tanh(s).squeeze(1)


class Flow(nn.Module):
    """Affine couplings that begin as the identity; returns log density."""

    def __init__(self, n=6):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(n))

    def forward(self, x):
        logdet = 0
        for layer in self.layers:
            x, s = layer(x)
            logdet = logdet + s
        return logdet - 0.5 * (x ** 2).sum(1) - math.log(2 * math.pi)


def m136(seed):
    g = d.gen(seed)
    data = moon(g, 1000) * 1.5
    batches = [data[i:i + 64] for i in range(0, 768, 64)]
    net = Flow()

    @of_model
    def loss(model, x):
        return -model(x).mean()
    return Setup(net, batches, loss, optim.Adam(net.parameters(), lr=5e-3),
                 lambda m: d.out_of(m, data[800:]).mean().item(), steps=300)


class Denoiser(nn.Module):
    """Noise predictor of a small diffusion model; last layer begins at zero."""

    def __init__(self):
        super().__init__()
        self.t = nn.Sequential(nn.Linear(16, 48), nn.SiLU(), nn.Linear(48, 48))
        self.a, self.b, self.out = nn.Linear(2, 48), nn.Linear(48, 48), nn.Linear(48, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        f = t[:, None] * torch.exp(torch.linspace(0, 4, 8))
        h = F.silu(self.a(x) + self.t(torch.cat([f.sin(), f.cos()], 1)))
        return self.out(h + F.silu(self.b(h)))


def m137(seed):
    g = d.gen(seed)
    x = moon(g, 1200) * 1.5
    t = torch.rand(1200, generator=g)
    noise = torch.randn(1200, 2, generator=g)
    a = torch.cos(t * 1.5)[:, None]
    noisy = a * x + (1 - a ** 2).sqrt() * noise
    train = [((noisy[i:i + 64], t[i:i + 64]), noise[i:i + 64]) for i in range(0, 960, 64)]
    net = Denoiser()
    return Setup(net, train, nn.MSELoss(), optim.AdamW(net.parameters(), lr=3e-3),
                 d.r2((noisy[960:], t[960:]), noise[960:]), steps=400)


class Gaussian(nn.Module):
    """Mean and log variance, as for uncertainty."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 2))

    def forward(self, x):
        m, lv = self.f(x).unbind(1)
        return m, F.softplus(lv) + 1e-3


def m138(seed):
    x, y = d.friedman(seed)
    train, xt, yt = d.split(x, y)
    net = Gaussian()
    nll = nn.GaussianNLLLoss()
    return Setup(net, train, lambda o, y: nll(o[0], y, o[1]), optim.Adam(net.parameters(), lr=5e-3),
                 d.r2(xt, yt, pick=lambda o: o[0]), steps=300)


def m139(seed):
    """Energy-like score: denoising score matching in two dimensions."""
    g = d.gen(seed)
    x = moon(g, 1000)
    e = torch.randn(1000, 2, generator=g)
    train, xt, yt = d.split(x + 0.3 * e, -e)
    net = nn.Sequential(nn.Linear(2, 64), nn.Softplus(), nn.Linear(64, 64), nn.Softplus(), nn.Linear(64, 2))
    return Setup(net, train, nn.MSELoss(), optim.Adam(net.parameters(), lr=3e-3), d.r2(xt, yt), steps=400)


def seeded(make):
    def built(seed):
        torch.manual_seed(seed)
        return make(seed)
    return built


FAMILIES = ["autoencoder", "convolutional autoencoder", "VAE", "sparse tied autoencoder", "VQ with straight-through", "GAN",
            "discriminator with spectral norm", "mixture density", "normalising flow", "diffusion noise predictor",
            "Gaussian likelihood regression", "score matching"]
SOUND = [Sound(f"a-{128 + i}", family, seeded(globals()[f"m{128 + i}"])) for i, family in enumerate(FAMILIES)]
