"""Set-ups b-001 ... b-010: gradient reach; modes and settings."""

import sys
from functools import partial
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import torch
import torch.nn as nn
import torch.nn.functional as F
from shared import accuracy, boxes, discs, dots, gen, iou, of_model, patterns, quiet, r2, split

from protocol import Fault, Setup


# ---------------------------------------------------------------- b-001
class Restorer(nn.Module):
    """Image-to-image net, residual in image space."""

    def __init__(self, nf=16):
        super().__init__()
        self.head = nn.Conv2d(1, nf, 3, padding=1)
        self.body = nn.Sequential(nn.Conv2d(nf, nf, 3, padding=1), nn.ReLU(), nn.Conv2d(nf, nf, 3, padding=1))
        self.tail = nn.Conv2d(nf, 1, 3, padding=1)

    def forward(self, x):
        f = F.relu(self.head(x))
        return self.tail(F.relu(f + self.body(f)))


def restoration(seed, cut):
    torch.manual_seed(seed)
    clean, _ = patterns(seed, n=448, noise=0.0)
    noisy = clean + 0.6 * torch.randn(clean.shape, generator=gen(seed, 9))
    batches, (hx, hy) = split(noisy, clean)
    net = Restorer()
    vgg = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.Tanh(), nn.Conv2d(12, 12, 3, padding=1))
    for p in vgg.parameters():
        p.requires_grad_(False)

    def criterion(out, target):
        smooth = (out[..., 1:] - out[..., :-1]).abs().mean()
        seen = out.detach() if cut else out
        content = F.mse_loss(vgg(seen), vgg(target)) + F.mse_loss(seen, target)
        return content + 1e-3 * smooth

    return Setup(net, batches, criterion, torch.optim.Adam(net.parameters(), lr=2e-3), r2(hx, hy), steps=150)


# ---------------------------------------------------------------- b-002
class LandmarkNet(nn.Module):
    """Heat map, its peak position, plus a small learnt correction."""

    def __init__(self, size, hard):
        super().__init__()
        self.hard = hard
        self.heat = nn.Sequential(
            nn.Conv2d(1, 12, 5, padding=2), nn.ReLU(), nn.Conv2d(12, 12, 3, padding=1), nn.ReLU(), nn.Conv2d(12, 1, 1)
        )
        self.correction = nn.Parameter(torch.zeros(2))
        axis = torch.linspace(-1, 1, size)
        yy, xx = torch.meshgrid(axis, axis, indexing="ij")
        self.register_buffer("coords", torch.stack([xx.flatten(), yy.flatten()], 1))

    def forward(self, img):
        h = self.heat(img).flatten(1)
        if self.hard:
            xy = self.coords[h.argmax(1)]
        else:
            xy = torch.softmax(h, 1) @ self.coords
        return xy + self.correction


def landmarks(seed, hard):
    torch.manual_seed(seed)
    x, c = dots(seed, noise=0.35)
    batches, (hx, hc) = split(x, c)
    net = LandmarkNet(16, hard)
    return Setup(net, batches, nn.SmoothL1Loss(), torch.optim.Adam(net.parameters(), 3e-3), r2(hx, hc), steps=200)


# ---------------------------------------------------------------- b-003
def small_resnet(width=12, out=10):
    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.c1, self.b1 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)
            self.c2, self.b2 = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c)

        def forward(self, x):
            return F.relu(x + self.b2(self.c2(F.relu(self.b1(self.c1(x))))))

    net = nn.Sequential()
    net.stem = nn.Sequential(nn.Conv2d(1, width, 5, stride=2, padding=2), nn.BatchNorm2d(width), nn.ReLU())
    net.layer1, net.layer2 = Block(width), Block(width)
    net.pool = nn.Sequential(nn.AdaptiveMaxPool2d(2), nn.Flatten())
    net.fc = nn.Linear(4 * width, out)
    return net


def warm_up(model, seed, logits=lambda o: o, steps=50):
    """Stands for the download of weights: trained on eight other patterns."""
    x, y = patterns(seed + 40, classes=8, n=512)
    opt = torch.optim.Adam(model.parameters(), 5e-3)
    for i in range(steps):
        j = 32 * (i % 16)
        opt.zero_grad()
        F.cross_entropy(logits(model(x[j : j + 32])), y[j : j + 32]).backward()
        opt.step()
    opt.zero_grad()
    return model


def new_head(seed, late):
    torch.manual_seed(seed)
    x, y = patterns(seed, classes=5)
    batches, (hx, hy) = split(x, y)
    model = warm_up(small_resnet(out=8), seed)
    for p in model.parameters():
        p.requires_grad = False
    model.fc.requires_grad_(True)
    if not late:
        model.fc = nn.Linear(48, 5)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
    if late:
        model.fc = nn.Linear(48, 5)
    return Setup(model, batches, nn.CrossEntropyLoss(), optimizer, accuracy(hx, hy), steps=150)


# ---------------------------------------------------------------- b-004
class ContextNet(nn.Module):
    """Stack of dilated convolutions before a thin classifier."""

    def __init__(self, classes, container, width=6):
        super().__init__()
        layers = []
        for i, d in enumerate([1, 2, 4, 1]):
            layers.append(nn.Conv2d(1 if i == 0 else width, width, 3, padding=d, dilation=d))
        self.context = container(layers)
        self.reduce = nn.Linear(width, classes)

    def forward(self, x):
        for conv in self.context:
            x = torch.tanh(conv(x))
        return self.reduce(x.mean((2, 3)))


def context(seed, container):
    torch.manual_seed(seed)
    x, y = patterns(seed, classes=4, n=640)
    batches, (hx, hy) = split(x, y)
    net = ContextNet(4, container)
    return Setup(net, batches, nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), 1e-2), accuracy(hx, hy), 200)


# ---------------------------------------------------------------- b-005
class Tagger(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(384, 32)
        )
        self.classifier = nn.Sequential(nn.ReLU(), nn.Linear(32, classes))
        self.head_scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return {"logits": self.head_scale * self.classifier(self.backbone(x))}


def by_name(seed, key):
    torch.manual_seed(seed)
    x, y = patterns(seed, classes=5)
    batches, (hx, hy) = split(x, y)
    net = Tagger(8)
    warm_up(net, seed, lambda o: o["logits"])
    net.classifier[1] = nn.Linear(32, 5)
    net.head_scale.data.fill_(1.0)
    for name, p in net.named_parameters():
        if key not in name and "head" not in name:
            p.requires_grad = False
    opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-2)
    loss = lambda out, t: F.cross_entropy(out["logits"], t)  # noqa: E731
    return Setup(net, batches, loss, opt, accuracy(hx, hy, lambda o: o["logits"]), steps=200)


# ---------------------------------------------------------------- b-006
def deep_bn(depth, classes, width=10):
    layers, c = [], 1
    for i in range(depth):
        layers += [nn.Conv2d(c, width, 3, 2 if i in (2, 6) else 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
        c = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


def after_validation(seed, restore):
    torch.manual_seed(seed)
    x, y = patterns(seed, classes=4, n=512)
    batches, (hx, hy) = split(x, y)
    model = deep_bn(12, 4)
    model.eval()  # first validation round of the script
    with torch.no_grad():
        model(hx)
    if restore:
        model.train()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    return Setup(model, batches, nn.CrossEntropyLoss(), opt, accuracy(hx, hy), steps=130)


# ---------------------------------------------------------------- b-007
class SepConv(nn.Sequential):
    def __init__(self, i, o, s, mom):
        super().__init__(
            nn.Conv2d(i, i, 3, s, 1, groups=i, bias=False), nn.BatchNorm2d(i, momentum=mom), nn.ReLU6(),
            nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o, momentum=mom), nn.ReLU6(),
        )  # fmt: skip


def mobile(seed, mom):
    torch.manual_seed(seed)
    x, y = patterns(seed, classes=5, ch=3)
    batches, (hx, hy) = split(0.5 + 0.2 * x, y)
    net = nn.Sequential(
        nn.Conv2d(3, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12, momentum=mom), nn.ReLU6(),
        SepConv(12, 24, 2, mom), SepConv(24, 24, 1, mom), SepConv(24, 32, 2, mom),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5),
    )  # fmt: skip
    return Setup(net, batches, nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), 3e-3), accuracy(hx, hy), 150)


# ---------------------------------------------------------------- b-008
class TinyUNet(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.d1 = nn.Sequential(nn.Conv2d(1, c, 3, padding=1), nn.ReLU())
        self.d2 = nn.Sequential(nn.Conv2d(c, 2 * c, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * c, c, 2, 2)
        self.out = nn.Sequential(nn.Conv2d(2 * c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, 1, 1))

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        return self.out(torch.cat([a, self.up(b)], 1))


def sgd_settings(seed, momentum, weight_decay):
    torch.manual_seed(seed)
    x, m = discs(seed)
    batches, (hx, hm) = split(x, m, held=96)
    net = TinyUNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=momentum, weight_decay=weight_decay)
    return Setup(net, batches, nn.BCEWithLogitsLoss(), opt, iou(hx, hm), steps=180)


# ---------------------------------------------------------------- b-009
class MobileHead(nn.Module):
    def __init__(self, drop, classes=6):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU6(),
            nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU6(),
        )  # fmt: skip
        self.dropout = nn.Dropout(drop)
        self.classifier = nn.Linear(32, classes)

    def forward(self, pixel_values):
        x = self.features(pixel_values).mean((2, 3))
        return self.classifier(self.dropout(x))


def drop_head(seed, drop):
    torch.manual_seed(seed)
    x, y = patterns(seed, classes=6, n=768)
    batches, (hx, hy) = split(x, y)
    net = MobileHead(drop)
    return Setup(net, batches, nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), 5e-3), accuracy(hx, hy), 220)


# ---------------------------------------------------------------- b-010
def swapped_betas(seed, betas):
    torch.manual_seed(seed)
    x, b = boxes(seed)
    batches, (hx, hb) = split(x, b)
    net = nn.Sequential(
        nn.Conv2d(1, 12, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(12, 24, 3, 2, 1), nn.LeakyReLU(0.1),
        nn.Flatten(), nn.Linear(384, 32), nn.LeakyReLU(0.1), nn.Linear(32, 4),
    )  # fmt: skip
    opt = torch.optim.Adam(net.parameters(), lr=2e-2, betas=betas)
    return Setup(net, batches, nn.SmoothL1Loss(), opt, r2(hx, hb), steps=120)


def pair(f, bad, good):
    return {"broken": partial(f, **bad), "repaired": partial(f, **good)}


FAULTS = [
    Fault("b-001", "gradient reach", **pair(restoration, {"cut": True}, {"cut": False}),
          cause="The network output is detached before the content terms of the loss, so only the tiny smoothness term sends gradient to the network.",
          accepted=("The main loss terms are computed on a detached copy of the output and cannot train the network.",
                    "Gradients of the content/MSE loss do not reach the network; only the total-variation term does."),
          related=("Gradients are very small.", "The learning rate is too low.", "The loss hardly falls."),
          source="https://github.com/wangle53/CSA-CDGAN/issues/5"),
    Fault("b-002", "gradient reach", **pair(landmarks, {"hard": True}, {"hard": False}),
          cause="The heat map is turned into a position with argmax, which has no gradient, so the heat-map convolutions are never trained.",
          accepted=("The parameters of `heat` get no gradient (None) because argmax/indexing is not differentiable.",
                    "Only the correction vector is trained; use a soft-argmax."),
          related=("Some parameters get no gradient.", "The output is almost the same for all inputs."),
          source="https://github.com/wonbeomjang/mobile-hair-segmentation-pytorch/issues/3"),
    Fault("b-003", "gradient reach", **pair(new_head, {"late": True}, {"late": False}),
          cause="The optimizer was built before the head was replaced: it holds the parameters of the old head, so the new head is never updated.",
          accepted=("The trainable parameters of the model are not in the optimizer.",
                    "The optimizer updates parameters that are not part of the model.", "fc is not trained."),
          related=("The backbone is frozen.", "The loss does not change."),
          source="https://github.com/microsoft/nni/issues/4521"),
    Fault("b-004", "gradient reach", **pair(context, {"container": list}, {"container": nn.ModuleList}),
          cause="The convolutions are kept in a plain Python list, so they are not registered and the optimizer never trains them.",
          accepted=("Layers are missing from model.parameters(); use nn.ModuleList.", "Only the last linear layer is trained."),
          related=("The network has very few parameters.", "The model underfits."),
          source="https://www.engineermaxxing.com/micro/lessons/pytorch-internals.html"),
    Fault("b-005", "gradient reach", **pair(by_name, {"key": "head"}, {"key": "classifier"}),
          cause="The loop that should leave the head trainable matches the wrong name: backbone and classifier are all frozen and only one scale factor is trained.",
          accepted=("Nearly all parameters have requires_grad=False; only head_scale is trained.", "The classifier is frozen by mistake."),
          related=("The backbone is frozen.", "The loss hardly changes."),
          source="https://github.com/quangvnai/grit/issues/20"),
    Fault("b-006", "modes and settings", **pair(after_validation, {"restore": False}, {"restore": True}),
          cause="The model is left in evaluation mode while it trains, so batch norm uses its untouched initial statistics and normalises nothing.",
          accepted=("model.train() is missing before training.", "BatchNorm layers run with running statistics during training."),
          related=("Signals or gradients vanish through the depth.", "Activations are not normalised."),
          source="https://github.com/wkentaro/pytorch-fcn/issues/57"),
    Fault("b-007", "modes and settings", **pair(mobile, {"mom": 0.0003}, {"mom": 0.1}),
          cause="The batch-norm momentum of 0.0003 (a TensorFlow-style 0.9997) makes the running statistics follow so slowly that evaluation uses nearly the initial ones.",
          accepted=("BatchNorm momentum is far too small; running mean/var are not those of the data at evaluation time.",
                    "Outputs in train and eval mode differ because running statistics lag."),
          related=("Batch norm statistics are wrong.", "Train and evaluation results differ."),
          source="https://github.com/lukemelas/EfficientNet-PyTorch/issues/3"),
    Fault("b-008", "modes and settings", **pair(sgd_settings, {"momentum": 5e-4, "weight_decay": 0.9}, {"momentum": 0.9, "weight_decay": 5e-4}),
          cause="Momentum and weight decay are swapped: a weight decay of 0.9 pulls all weights to zero.",
          accepted=("The weight decay is far too strong.",),
          related=("The weights shrink.", "The output becomes constant.", "Momentum is very small."),
          source="own"),
    Fault("b-009", "modes and settings", **pair(drop_head, {"drop": 0.999}, {"drop": 0.001}),
          cause="The dropout probability is 0.999 where a keep probability was meant: almost all features are dropped during training.",
          accepted=("Dropout rate far too high.", "Dropout p is the probability of dropping, not of keeping."),
          related=("The training signal is very noisy.", "Gradients are mostly zero."),
          source="https://github.com/huggingface/transformers/issues/22767"),
    Fault("b-010", "modes and settings", **pair(swapped_betas, {"betas": (0.999, 0.9)}, {"betas": (0.9, 0.999)}),
          cause="The two betas of Adam are swapped: beta1 = 0.999 averages gradients over a thousand steps and beta2 = 0.9 is too short.",
          accepted=("Adam beta1 too large.", "Wrong Adam betas; momentum far too strong."),
          related=("Training oscillates.", "The learning rate is too high."),
          source="own"),
]  # fmt: skip
