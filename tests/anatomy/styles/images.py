"""Networks of images, as other people write them."""

import torch
from torch import nn
from torch.nn import functional as F


class Basic(nn.Module):
    """The block of torchvision's ResNet-18, with in-place activations."""

    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(inplanes, planes, 1, stride, bias=False),
                nn.BatchNorm2d(planes),
            )

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    """The grouped block of ResNeXt."""

    def __init__(self, width=4, groups=2):
        super().__init__()
        self.conv1 = nn.Conv2d(width, 2 * width, 1)
        self.bn1 = nn.BatchNorm2d(2 * width)
        self.conv2 = nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=groups)
        self.bn2 = nn.BatchNorm2d(2 * width)
        self.conv3 = nn.Conv2d(2 * width, width, 1)
        self.bn3 = nn.BatchNorm2d(width)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = F.relu(self.bn2(self.conv2(out)))
        return F.relu(self.bn3(self.conv3(out)) + x)


class TorchvisionLike(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(2)
        self.layer1 = nn.Sequential(Basic(4, 4), Bottleneck(4))
        self.layer2 = nn.Sequential(Basic(4, 6, 2))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class PreActBlock(nn.Module):
    """Full pre-activation; a projection starts behind the first activation."""

    def __init__(self, inner, outer, stride=1):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride))

    def forward(self, x):
        out = F.relu(self.bn1(x))
        shortcut = self.shortcut(out) if hasattr(self, "shortcut") else x
        out = self.conv1(out)
        out = self.conv2(F.relu(self.bn2(out)))
        out += shortcut
        return out


class PreActNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, 1, 1, bias=False)
        self.layers = nn.Sequential(PreActBlock(4, 4), PreActBlock(4, 6, 2))
        self.bn = nn.BatchNorm2d(6)
        self.linear = nn.Linear(6, 3)

    def forward(self, x):
        out = F.relu(self.bn(self.layers(self.conv1(x))))
        out = F.avg_pool2d(out, out.shape[-1])
        return self.linear(out.view(out.size(0), -1))


class OptionA(nn.Module):
    """The ResNets of CIFAR: skips are subsampled and padded with zeros."""

    def __init__(self):
        super().__init__()
        self.conv0 = nn.Conv2d(3, 4, 3, 1, 1)
        self.conv1 = nn.Conv2d(4, 8, 3, 2, 1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(8)
        self.conv3 = nn.Conv2d(8, 12, 3, 2, 1)
        self.conv4 = nn.Conv2d(12, 12, 3, 1, 1)

    def forward(self, x):
        x = F.relu(self.conv0(x))
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        out += F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2))
        x = F.relu(out)
        # As PyramidNet does it: pooled, with a concatenation of zeros.
        short = F.avg_pool2d(x, 2)
        zeros = torch.zeros(len(x), 4, *short.shape[2:])
        short = torch.cat((short, zeros), 1)
        return F.relu(torch.add(self.conv4(F.relu(self.conv3(x))), short)).mean((2, 3))


class SqueezeExcite(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.bn = nn.BatchNorm2d(width)
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(width, 2), nn.ReLU(), nn.Linear(2, width), nn.Sigmoid()
        )

    def forward(self, x):
        out = self.bn(self.conv(x))
        b, c, _, _ = out.shape
        y = self.fc(self.avg_pool(out).view(b, c)).view(b, c, 1, 1)
        return F.relu(out * y.expand_as(out) + x)


class DenseNet(nn.Module):
    def __init__(self, width=3, growth=2, depth=3):
        super().__init__()
        self.norms = nn.ModuleList(
            nn.BatchNorm2d(width + growth * i) for i in range(depth)
        )
        self.convs = nn.ModuleList(
            nn.Conv2d(width + growth * i, growth, 3, padding=1) for i in range(depth)
        )

    def forward(self, x):
        for norm, conv in zip(self.norms, self.convs, strict=True):
            x = torch.cat([x, conv(F.relu(norm(x)))], 1)
        return x.mean((2, 3))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, padding=1)
        self.deep = nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        first = F.relu(self.down(x))
        deep = F.relu(self.deep(F.max_pool2d(first, 2)))
        return self.out(torch.cat((first, self.up(deep)), dim=1))


class AdditiveUNet(UNet):
    """A decoder that adds what the encoder had, as LinkNet does."""

    def __init__(self):
        super().__init__()
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        first = F.relu(self.down(x))
        deep = F.relu(self.deep(F.max_pool2d(first, 2)))
        return self.out(self.up(deep) + first)


class ChannelsFirst(nn.Module):
    """Layer norm over channels from elementary operators, as ConvNeXt has it."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + 1e-6)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.norm = nn.LayerNorm(width)
        self.pwconv1 = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(1e-2 * torch.ones(width))

    def forward(self, x):
        shortcut = x
        x = self.dwconv(x).permute(0, 2, 3, 1)
        x = self.pwconv2(self.act(self.pwconv1(self.norm(x))))
        x = (self.gamma * x).permute(0, 3, 1, 2)
        return shortcut + x


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 2, 2), ChannelsFirst(4))
        self.stage0 = ConvNeXtBlock(4)
        self.downsample = nn.Sequential(ChannelsFirst(4), nn.Conv2d(4, 6, 2, 2))
        self.stage1 = ConvNeXtBlock(6)
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        x = self.downsample(self.stage0(self.stem(x)))
        return self.head(self.norm(self.stage1(x).mean([-2, -1])))


class InceptionResNet(nn.Module):
    """Parallel ways joined by concatenation in a scaled branch."""

    def __init__(self, width=4):
        super().__init__()
        self.branch0 = nn.Conv2d(width, 2, 1)
        self.branch1 = nn.Sequential(
            nn.Conv2d(width, 2, 1), nn.ReLU(), nn.Conv2d(2, 2, 3, padding=1)
        )
        self.up = nn.Conv2d(4, width, 1)

    def forward(self, x):
        mixed = torch.cat([F.relu(self.branch0(x)), F.relu(self.branch1(x))], 1)
        return F.relu(x + self.up(mixed) * 0.17)


class RepVGG(nn.Module):
    """A normed identity beside two convolutions, then two convolutions alone."""

    def __init__(self, width=4):
        super().__init__()
        self.dense = nn.Conv2d(width, width, 3, padding=1)
        self.dense_bn = nn.BatchNorm2d(width)
        self.one = nn.Conv2d(width, width, 1)
        self.one_bn = nn.BatchNorm2d(width)
        self.identity_bn = nn.BatchNorm2d(width)
        self.last3, self.last1 = nn.Conv2d(4, 6, 3, 2, 1), nn.Conv2d(4, 6, 1, 2)

    def forward(self, x):
        parts = self.dense_bn(self.dense(x)) + self.one_bn(self.one(x))
        x = F.relu(parts + self.identity_bn(x))
        return F.relu(self.last3(x) + self.last1(x))


class LongSkip(nn.Module):
    """Super-resolution: blocks without norm, one skip over all."""

    def __init__(self, width=4):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1),
                nn.ReLU(True),
                nn.Conv2d(width, width, 3, padding=1),
            )
            for _ in range(2)
        )
        self.last = nn.Conv2d(width, width, 3, padding=1)
        self.tail = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        features = self.head(x)
        res = features
        for block in self.body:
            res = block(res).mul(0.1) + res
        res = self.last(res)
        res += features
        return x - self.tail(res)


class Vgg(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU6(), nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3), nn.InstanceNorm2d(4), nn.PReLU(), nn.GroupNorm(2, 4),
            nn.Hardswish(), nn.Flatten(), nn.Linear(100, 4), nn.Softplus(),
        )  # fmt: skip

    def forward(self, x):
        x = self.features(x)
        return torch.where(x > 1, 2 * x, x).clamp(min=0.1).abs()
