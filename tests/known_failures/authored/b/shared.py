"""Data makers and scores used by the files of this folder."""

import math

import torch
import torch.nn.functional as F


def gen(seed, k=0):
    return torch.Generator().manual_seed(1000 * seed + 17 + k)


def grid(size):
    r = torch.linspace(-1, 1, size)
    return torch.meshgrid(r, r, indexing="ij")


def patterns(seed, n=640, size=16, classes=4, ch=1, noise=0.3):
    """Stripes of different direction, checker, disc, ring, corner, saddle: one class each."""
    g = gen(seed)
    yy, xx = grid(size)
    y = torch.randint(classes, (n,), generator=g)
    ph = torch.rand(n, generator=g)[:, None, None] * 6.28
    dx, dy = (torch.rand(2, n, generator=g)[..., None, None] - 0.5) * 0.8
    r = ((xx - dx) ** 2 + (yy - dy) ** 2).sqrt()
    f = 9.0
    bank = [
        torch.sin(f * xx + ph), torch.sin(f * yy + ph), torch.sin(f * (xx + yy) / 1.4 + ph),
        torch.sin(f * (xx - yy) / 1.4 + ph), torch.sin(f * xx + ph) * torch.sin(f * yy + ph),
        2 * (r < 0.5).float() - 1, 2 * ((r - 0.5).abs() < 0.15).float() - 1,
        torch.tanh(4 * (xx - dx) * (yy - dy)),
    ]  # fmt: skip
    x = torch.stack([b.expand(n, size, size) for b in bank[:classes]], 1)
    x = x[torch.arange(n), y][:, None].repeat(1, ch, 1, 1)
    if ch == 3:
        x = x * (0.6 + 0.4 * torch.rand(n, 3, 1, 1, generator=g))
    return x + noise * torch.randn(x.shape, generator=g), y


def discs(seed, n=320, size=16, noise=0.3, ch=1):
    """Image with a bright disc on a shaded, noisy ground; mask of the disc."""
    g = gen(seed, 1)
    yy, xx = grid(size)
    c = (torch.rand(n, 2, generator=g) - 0.5) * 1.2
    rad = 0.25 + 0.3 * torch.rand(n, generator=g)
    m = (((xx - c[:, :1, None]) ** 2 + (yy - c[:, 1:, None]) ** 2).sqrt() < rad[:, None, None]).float()
    shade = 0.5 * torch.randn(n, 1, 1, generator=g) * xx
    x = (m * 1.2 + shade)[:, None].repeat(1, ch, 1, 1)
    return x + noise * torch.randn(x.shape, generator=g), m[:, None]


def dots(seed, n=512, size=16, noise=0.1):
    """One bright spot; its (x, y) in [-1, 1]."""
    g = gen(seed, 2)
    yy, xx = grid(size)
    c = (torch.rand(n, 2, generator=g) - 0.5) * 1.6
    x = torch.exp(-((xx - c[:, :1, None]) ** 2 + (yy - c[:, 1:, None]) ** 2) / 0.05)[:, None]
    return x + noise * torch.randn(x.shape, generator=g), c


def boxes(seed, n=512, size=16):
    """A filled rectangle; (cx, cy, w, h) each in about [-1, 1] or [0, 1]."""
    g = gen(seed, 3)
    yy, xx = grid(size)
    c = (torch.rand(n, 2, generator=g) - 0.5) * 1.0
    s = 0.2 + 0.4 * torch.rand(n, 2, generator=g)
    m = ((xx - c[:, :1, None]).abs() < s[:, :1, None]) & ((yy - c[:, 1:, None]).abs() < s[:, 1:, None])
    return m.float()[:, None] + 0.1 * torch.randn(n, 1, size, size, generator=g), torch.cat([c, s], 1)


def blobs(seed, n=640, dim=16, classes=5, spread=1.0, sep=2.0):
    g = gen(seed, 4)
    mu = sep * torch.randn(classes, dim, generator=g)
    y = torch.randint(classes, (n,), generator=g)
    return mu[y] + spread * torch.randn(n, dim, generator=g), y


def moons(seed, n=800, noise=0.1):
    g = gen(seed, 5)
    t = torch.rand(n, generator=g) * math.pi
    y = torch.randint(2, (n,), generator=g)
    a = torch.stack([torch.cos(t), torch.sin(t)], 1)
    b = torch.stack([1 - torch.cos(t), 0.5 - torch.sin(t)], 1)
    return torch.where(y[:, None] == 0, a, b) + noise * torch.randn(n, 2, generator=g), y


def split(*tensors, batch=32, held=128):
    """Training batches (tuples) and the held-out part."""
    cut = tensors[0].shape[0] - held
    parts = [tuple(t[i : i + batch] for t in tensors) for i in range(0, cut - batch + 1, batch)]
    return parts, tuple(t[cut:] for t in tensors)


class quiet:
    """Evaluation mode without gradients; afterwards every module is as it was."""

    def __init__(self, model):
        self.model, self.old = model, [(m, m.training) for m in model.modules()]

    def __enter__(self):
        self.model.eval()
        self.ng = torch.no_grad()
        self.ng.__enter__()

    def __exit__(self, *a):
        self.ng.__exit__(*a)
        for m, t in self.old:
            m.training = t


def accuracy(x, y, pick=lambda o: o):
    def score(model):
        with quiet(model):
            return (pick(model(x)).argmax(1) == y).float().mean().item()

    return score


def r2(x, y, pick=lambda o: o):
    """1 - mse/variance: 0 is as good as the mean."""

    def score(model):
        with quiet(model):
            p = pick(model(*x) if isinstance(x, tuple) else model(x))
            v = 1 - ((p.reshape(y.shape) - y) ** 2).mean() / ((y - y.mean(0)) ** 2).mean()
            return max(v.item(), -99.0) if math.isfinite(v.item()) else -99.0

    return score


def iou(x, m, pick=lambda o: o > 0):
    def score(model):
        with quiet(model):
            p = pick(model(x)).reshape(m.shape).float()
            return ((p * m).sum() / (p + m - p * m).sum().clamp(min=1)).item()

    return score


def of_model(f):
    """Mark a loss as a function of (model, batch)."""
    f.of_model = True
    return f


def retrieval(x, y, pick=lambda o: o):
    """Nearest-neighbour label agreement within the held-out part."""

    def score(model):
        with quiet(model):
            e = pick(model(x))
            if not torch.isfinite(e).all():
                return 0.0
            d = torch.cdist(e, e) + torch.eye(len(e)) * 1e9
            if d[d < 1e8].max() < 1e-6:
                return (y == y.mode().values).float().mean().item()
            return (y[d.argmin(1)] == y).float().mean().item()

    return score


def dice_loss(logits, mask):
    p = torch.sigmoid(logits).flatten(1)
    t = mask.flatten(1)
    return (1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)).mean()


def noise_schedule(T=50):
    return torch.cumprod(1 - torch.linspace(1e-3, 0.2, T), 0)


def cross(o, t):
    return F.cross_entropy(o, t)


def register(listing, sound_class):
    """Decorator ``@sound(name, family, source)`` that fills a list of Sound."""

    def sound(name, family, source="own"):
        def deco(f):
            def make(seed):
                torch.manual_seed(seed)
                return f(seed)

            listing.append(sound_class(name, family, make, source))
            return f

        return deco

    return sound


def images(seed, classes=4, batch=32, held=128, **kw):
    """Batches of pattern images and the accuracy on held-out ones."""
    x, y = patterns(seed, classes=classes, **kw)
    batches, (hx, hy) = split(x, y, batch=batch, held=held)
    return batches, hx, hy
