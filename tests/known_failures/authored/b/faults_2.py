"""Set-ups b-011 ... b-020: targets and outputs; inputs."""

import sys
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import torch
import torch.nn as nn
import torch.nn.functional as F
from shared import (accuracy, blobs, boxes, discs, dots, gen, grid, iou, noise_schedule, of_model, patterns, quiet, r2, split)  # fmt: skip

from protocol import Fault, Setup


def pair(f, bad, good):
    return {"broken": partial(f, **bad), "repaired": partial(f, **good)}


# ---------------------------------------------------------------- b-011
class ActivityNet(nn.Module):
    """1-D convolutions over sensor windows, 24 classes."""

    def __init__(self, last, classes=24):
        super().__init__()
        self.last = last
        self.conv1, self.conv2 = nn.Conv1d(3, 16, 5, padding=2), nn.Conv1d(16, 32, 5, padding=2)
        self.fc = nn.Linear(32 * 8, classes)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.conv1(x)), 2)
        x = F.max_pool1d(F.relu(self.conv2(x)), 2)
        out = self.fc(x.flatten(1))
        return F.softmax(out, dim=1) if self.last else out


def activity(seed, last):
    torch.manual_seed(seed)
    g = gen(seed)
    y = torch.randint(24, (1400,), generator=g)
    proto = torch.randn(24, 3, 32, generator=g)
    x = proto[y] + 0.7 * torch.randn(1400, 3, 32, generator=g)
    batches, (hx, hy) = split(x, y)
    net = ActivityNet(last)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    return Setup(net, batches, nn.CrossEntropyLoss(), opt, accuracy(hx, hy), steps=200)


# ---------------------------------------------------------------- b-012
def ages(seed, squeeze):
    torch.manual_seed(seed)
    x, c = dots(seed)
    age = 3 * c[:, 0] + torch.sin(3 * c[:, 1])
    batches, (hx, hy) = split(x, age)

    class AgeNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.trunk = nn.Sequential(nn.Conv2d(1, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU())
            self.reg = nn.Sequential(nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 1))

        def forward(self, x):
            out = self.reg(self.trunk(x))
            return out.squeeze(1) if squeeze else out

    net = AgeNet()
    return Setup(net, batches, nn.MSELoss(), torch.optim.Adam(net.parameters(), 3e-3), r2(hx, hy), steps=200)


# ---------------------------------------------------------------- b-013
class VAE(nn.Module):
    def __init__(self, d=256, z=8):
        super().__init__()
        self.enc = nn.Sequential(nn.Flatten(), nn.Linear(d, 64), nn.ReLU())
        self.mu, self.logvar = nn.Linear(64, z), nn.Linear(64, z)
        self.dec = nn.Sequential(nn.Linear(z, 64), nn.ReLU(), nn.Linear(64, d))

    def forward(self, x):
        h = self.enc(x)
        mu, lv = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv) if self.training else mu
        return self.dec(z).view_as(x), mu, lv


def vae(seed, recon):
    torch.manual_seed(seed)
    x, _ = dots(seed, n=640, noise=0.02)
    batches, (hx, _) = split(2 * x, 2 * x)
    net = VAE()

    def loss(out, target):
        rec, mu, lv = out
        kl = -0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp()) / len(mu)
        if recon == "mean":
            return F.mse_loss(rec, target) + kl
        return F.mse_loss(rec, target, reduction="sum") / len(mu) + kl

    return Setup(net, batches, loss, torch.optim.Adam(net.parameters(), 3e-3), r2(hx, hx, lambda o: o[0]), steps=300)


# ---------------------------------------------------------------- b-014
class BoxHead(nn.Module):
    """Class-agnostic regression of box offsets from image features."""

    def __init__(self, act):
        super().__init__()
        self.act = act
        self.convs = nn.ModuleList([nn.Conv2d(1, 12, 3, 2, 1), nn.Conv2d(12, 24, 3, 2, 1)])
        self.fc1, self.fc2 = nn.Linear(384, 48), nn.Linear(48, 4)

    def forward(self, x):
        for c in self.convs:
            x = F.relu(c(x))
        x = self.fc2(F.relu(self.fc1(x.flatten(1))))
        return self.act(x)


def box_offsets(seed, act):
    torch.manual_seed(seed)
    x, b = boxes(seed)
    anchor = torch.tensor([0.0, 0.0, 0.4, 0.4])
    t = (b - anchor) / 0.2
    batches, (hx, ht) = split(x, t)
    net = BoxHead(act)
    return Setup(net, batches, nn.SmoothL1Loss(), torch.optim.Adam(net.parameters(), 3e-3), r2(hx, ht), steps=200)


# ---------------------------------------------------------------- b-015
class EpsNet(nn.Module):
    """MLP denoiser of 2-D points with a time embedding."""

    def __init__(self, h=64, T=50):
        super().__init__()
        self.T = T
        self.t = nn.Embedding(T, h)
        self.inp, self.mid, self.out = nn.Linear(2, h), nn.Linear(h, h), nn.Linear(h, 2)

    def forward(self, x, t):
        h = F.silu(self.inp(x) + self.t(t))
        return self.out(F.silu(h + F.silu(self.mid(h))))


def diffusion(seed, which):
    torch.manual_seed(seed)
    g = gen(seed)
    ab = noise_schedule()
    ang = torch.rand(1664, generator=g) * 6.2832
    x0 = torch.stack([2 * torch.cos(ang), 2 * torch.sin(ang)], 1)
    t = torch.randint(50, (1664,), generator=g)
    eps = torch.randn(1664, 2, generator=g)
    xt = ab[t].sqrt()[:, None] * x0 + (1 - ab[t]).sqrt()[:, None] * eps
    batches, (hx, ht, he) = split(xt, t, eps, batch=64)
    batches = [{"x_noisy": a, "t": b, "noise": c} for a, b, c in batches]
    net = EpsNet()

    def p_losses(model, batch):
        pred = model(batch["x_noisy"], batch["t"])
        return F.mse_loss(pred, batch[which])

    return Setup(net, batches, of_model(p_losses), torch.optim.Adam(net.parameters(), 3e-3), r2((hx, ht), he), steps=300)


# ---------------------------------------------------------------- b-016
class ColourSeg(nn.Module):
    """Takes images as the camera delivers them (N, H, W, 3)."""

    def __init__(self, order):
        super().__init__()
        self.order = order
        self.net = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 1)
        )

    def forward(self, img):
        n, h, w, c = img.shape
        x = img.view(n, c, h, w) if self.order == "view" else img.permute(0, 3, 1, 2)
        return self.net(x)


def camera(seed, order):
    torch.manual_seed(seed)
    x, m = discs(seed, n=416, ch=3)
    batches, (hx, hm) = split(x.permute(0, 2, 3, 1).contiguous(), m, held=96)
    net = ColourSeg(order)
    return Setup(net, batches, nn.BCEWithLogitsLoss(), torch.optim.Adam(net.parameters(), 4e-3), iou(hx, hm), steps=150)


# ---------------------------------------------------------------- b-017
def raw_pixels(seed, scale):
    torch.manual_seed(seed)
    x, y = patterns(seed, classes=4, ch=3)
    img = ((x * 40) + 128).clamp(0, 255).round()
    batches, (hx, hy) = split(img / scale, y)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 4),
    )  # fmt: skip
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return Setup(net, batches, nn.CrossEntropyLoss(), opt, accuracy(hx, hy), steps=200)


# ---------------------------------------------------------------- b-018
def faces(seed, mean, std):
    torch.manual_seed(seed)
    x, c = dots(seed, noise=0.05)
    img = (x.repeat(1, 3, 1, 1) * 0.6 + 0.2).clamp(0, 1)  # as ToTensor gives it
    batches, (hx, hc) = split((img - mean) / std, c)
    net = nn.Sequential(
        nn.Conv2d(3, 12, 3, 2, 1), nn.ReLU(), nn.Conv2d(12, 24, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(384, 2)
    )
    opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)
    return Setup(net, batches, nn.MSELoss(), opt, r2(hx, hc), steps=200)


# ---------------------------------------------------------------- b-019
class HandNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stage = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU(), nn.Flatten(),
            nn.Linear(384, 64), nn.ReLU(),
        )  # fmt: skip
        self.side = nn.Linear(64, 5)

    def forward(self, images):
        return self.side(self.stage(images))


def hands(seed, times):
    torch.manual_seed(seed)
    x, y = patterns(seed, classes=5, ch=3)
    img = (0.5 + 0.25 * x).clamp(0, 1)
    for _ in range(times - 1):
        img = img / 255.0
    batches, (hx, hy) = split(img, y)
    net = HandNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    return Setup(net, batches, nn.CrossEntropyLoss(), opt, accuracy(hx, hy), steps=200)


# ---------------------------------------------------------------- b-020
def depth_input(seed, fill):
    torch.manual_seed(seed)
    x, m = discs(seed, n=416)
    hole = torch.rand(x.shape, generator=gen(seed, 8)) < 0.02  # sensor found no return
    x = x.masked_fill(hole, float("nan"))
    if fill:
        x = torch.nan_to_num(x, nan=0.0)
    batches, (hx, hm) = split(x, m, held=96)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1),
        nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 1, 1),
    )  # fmt: skip
    return Setup(net, batches, nn.BCEWithLogitsLoss(), torch.optim.Adam(net.parameters(), 5e-3), iou(hx, hm), steps=100)


FAULTS = [
    Fault("b-011", "targets and outputs", **pair(activity, {"last": True}, {"last": False}),
          cause="The model applies softmax and CrossEntropyLoss applies it again: the loss sees values between 0 and 1, so gradients are tiny.",
          accepted=("Softmax before cross-entropy.", "CrossEntropyLoss expects logits, not probabilities."),
          related=("Gradients are small.", "The learning rate is too low.", "The loss stays near log(classes)."),
          source="https://github.com/jindongwang/Deep-learning-activity-recognition/issues/10"),
    Fault("b-012", "targets and outputs", **pair(ages, {"squeeze": False}, {"squeeze": True}),
          cause="Predictions (N, 1) against targets (N,) broadcast to (N, N) in the loss, so the network learns the mean of the batch.",
          accepted=("Shapes of output and target do not match and broadcast.", "MSELoss compares every prediction with every target."),
          related=("The output is the same for all inputs.", "The network predicts the mean."),
          source="https://discuss.pytorch.org/t/output-of-the-model-depends-on-the-shape-of-the-weights-tensor/148155"),
    Fault("b-013", "targets and outputs", **pair(vae, {"recon": "mean"}, {"recon": "sum"}),
          cause="The reconstruction loss is averaged over all pixels while the KL term is summed over the latents, so the KL dominates and the posterior collapses.",
          accepted=("KL term far too strong against the reconstruction term.", "Posterior collapse: the decoder ignores the latent code.",
                    "The two loss terms are on different scales (mean against sum)."),
          related=("The output does not depend on the input.", "logvar/mu gradients push to zero."),
          source="https://github.com/zdebruine/MMVAE/pull/19"),
    Fault("b-014", "targets and outputs", **pair(box_offsets, {"act": torch.relu}, {"act": nn.Identity()}),
          cause="A ReLU after the regression layer makes the outputs non-negative while half of the box offsets are negative.",
          accepted=("The last activation cannot reach the targets.", "ReLU on the output of a regression."),
          related=("Dead units in the last layer.", "Many outputs are exactly zero."),
          source="https://github.com/tsinghua-rll/VoxelNet-tensorflow/issues/10"),
    Fault("b-015", "targets and outputs", **pair(diffusion, {"which": "x_noisy"}, {"which": "noise"}),
          cause="The predicted noise is compared with the noisy input instead of with the noise, so the network learns the identity.",
          accepted=("The loss target is the model's own input.", "Wrong target in the loss: x_noisy instead of noise.", "The target is leaked: it equals the input."),
          related=("The loss falls to almost zero at once.",),
          source="https://github.com/irom-princeton/dppo/issues/14"),
    Fault("b-016", "inputs", **pair(camera, {"order": "view"}, {"order": "permute"}),
          cause="The channels-last image is brought to channels-first with view instead of permute, which scrambles pixels and channels.",
          accepted=("view/reshape used where permute was meant.", "Wrong axis order of the image: colours and positions are mixed."),
          related=("The image channels look alike.", "The input has the wrong layout."),
          source="https://github.com/Selen-Suyue/DensePolicy2D/issues/3"),
    Fault("b-017", "inputs", **pair(raw_pixels, {"scale": 1.0}, {"scale": 255.0}),
          cause="Pixels enter as 0-255 without scaling, so activations and gradients are hundreds of times too large for this learning rate.",
          accepted=("Inputs are not normalised.", "Input values are far too large."),
          related=("The learning rate is too high.", "Gradients explode or ReLUs die.", "The loss is huge at the start."),
          source="https://github.com/chainer/chainercv/issues/358"),
    Fault("b-018", "inputs", **pair(faces, {"mean": 127.5, "std": 128.0}, {"mean": 0.5, "std": 0.25}),
          cause="Images that are already in [0, 1] are normalised with mean 127.5 and std 128, so every pixel is about -0.99 and varies by a few thousandths.",
          accepted=("The inputs have a large offset against a tiny variation: nearly constant.", "Wrong normalisation constants (0-255 against 0-1)."),
          related=("The inputs are not zero-mean.", "The output hardly depends on the input.", "Learning rate too low."),
          source="https://github.com/choyingw/SynergyNet/issues/19"),
    Fault("b-019", "inputs", **pair(hands, {"times": 2}, {"times": 1}),
          cause="The images are divided by 255 twice, so the inputs lie in [0, 0.004] and the signal is tiny.",
          accepted=("Inputs are scaled far too small.", "Normalised twice."),
          related=("Gradients vanish in the first layers.", "Learning rate too low.", "Outputs hardly depend on the input."),
          source="https://github.com/facebookresearch/InterHand2.6M/issues/110"),
    Fault("b-020", "inputs", **pair(depth_input, {"fill": False}, {"fill": True}),
          cause="Some pixels of the inputs are NaN (missing sensor values), which makes outputs, loss and then all weights NaN.",
          accepted=("NaN in the inputs.",),
          related=("The loss is NaN.", "Weights are NaN."),
          source="https://github.com/apple/ml-hypersim/issues/63"),
]  # fmt: skip
