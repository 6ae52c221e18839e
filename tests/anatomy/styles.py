"""Networks as other people write them, one style each."""

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


class PreNormTransformer(nn.Module):
    """Pre-LN with learned positions and a causal mask."""

    def __init__(self, width=8, blocks=2):
        super().__init__()
        self.tokens = nn.Embedding(11, width)
        self.positions = nn.Parameter(torch.randn(5, width))
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "ln1": nn.LayerNorm(width),
                    "attn": nn.MultiheadAttention(width, 2, batch_first=True),
                    "ln2": nn.LayerNorm(width),
                    "mlp": nn.Sequential(
                        nn.Linear(width, 2 * width),
                        nn.GELU(),
                        nn.Linear(2 * width, width),
                        nn.Dropout(0.1),
                    ),
                }
            )
            for _ in range(blocks)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 11)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        mask = torch.full((5, 5), float("-inf")).triu(1)
        for block in self.blocks:
            z = block["ln1"](x)
            x = x + block["attn"](z, z, z, attn_mask=mask)[0]
            x = x + block["mlp"](block["ln2"](x))
        return self.head(self.norm(x))


class PostNormTransformer(nn.Module):
    """Torch's own encoder and decoder layers."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2
        )
        self.decoder = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)

    def forward(self, source, target):
        return self.decoder(target, self.encoder(source))


class Highway(nn.Module):
    def __init__(self, width=5, depth=2):
        super().__init__()
        self.h = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.t = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for h, t in zip(self.h, self.t, strict=True):
            gate = torch.sigmoid(t(x))
            x = gate * torch.relu(h(x)) + (1 - gate) * x
        return x


class HighwayInOneTerm(Highway):
    """The same with one product, as x + t (h − x)."""

    def forward(self, x):
        for h, t in zip(self.h, self.t, strict=True):
            x = x + torch.sigmoid(t(x)) * (torch.relu(h(x)) - x)
        return x


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


class Mixer(nn.Module):
    def __init__(self, tokens=4, width=6):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.token_mix = nn.Sequential(
            nn.Linear(tokens, 8), nn.GELU(), nn.Linear(8, tokens)
        )
        self.channel_mix = nn.Sequential(
            nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width)
        )
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = x + self.token_mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channel_mix(self.norm2(x))
        return self.head(x.mean(1))


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


class RevNet(nn.Module):
    """Additive coupling of two halves."""

    def __init__(self, width=6, depth=2):
        super().__init__()
        half = width // 2
        self.f = nn.ModuleList(
            nn.Sequential(nn.Linear(half, half), nn.ReLU()) for _ in range(depth)
        )
        self.g = nn.ModuleList(
            nn.Sequential(nn.Linear(half, half), nn.ReLU()) for _ in range(depth)
        )

    def forward(self, x):
        x1, x2 = torch.chunk(x, 2, dim=1)
        for f, g in zip(self.f, self.g, strict=True):
            x1 = x1 + f(x2)
            x2 = x2 + g(x1)
        return torch.cat([x1, x2], dim=1)


class ParallelBlock(nn.Module):
    """Attention and MLP side by side on one norm, as in GPT-J."""

    def __init__(self, width=8):
        super().__init__()
        self.ln = nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc_in, self.fc_out = nn.Linear(width, 16), nn.Linear(16, width)

    def forward(self, x):
        h = self.ln(x)
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        scores = (q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5
        attended = self.proj(scores.softmax(-1) @ v)
        mlp = self.fc_out(F.gelu(self.fc_in(h)))
        return attended + mlp + x


class ResNetOfResNets(nn.Module):
    """A long skip over blocks that end in sums themselves."""

    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Linear(width, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            for _ in range(2)
        )

    def forward(self, x):
        outer = x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return F.relu(x + outer)


class Scaled(nn.Module):
    """Branches behind factors of every make: ReZero, numbers, alpha, addcmul."""

    def __init__(self, width=4):
        super().__init__()
        self.rezero = nn.Parameter(torch.tensor(0.1))
        self.gamma = nn.Parameter(torch.full((width,), 0.1))
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(5))

    def forward(self, x):
        x = x + self.rezero * F.relu(self.layers[0](x))
        x = x + 0.17 * F.relu(self.layers[1](x))
        x = torch.add(x, F.relu(self.layers[2](x)), alpha=0.5)
        x = torch.addcmul(x, self.gamma, F.relu(self.layers[3](x)))
        return x - F.relu(self.layers[4](x)) / 2


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


class ThreeBranches(nn.Module):
    """x + a + b + c, each from the same x."""

    def __init__(self, width=4):
        super().__init__()
        self.a, self.b, self.c = (
            nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(3)
        )

    def forward(self, x):
        return sum([x, self.a(x), self.b(x), self.c(x)])


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


class OnlyFunctions(nn.Module):
    """Raw parameters, functional operators, in-place sums; no submodule at all."""

    def __init__(self, width=4):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(width, width))
        self.w2 = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        h = x @ self.w1
        h += F.layer_norm(F.leaky_relu(h), h.shape[-1:]) @ self.w2
        h = torch.addmm(h, F.elu(h), self.w2)
        return F.layer_norm(h, h.shape[-1:])


class RecurrentByHand(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.w = nn.Linear(3, width)
        self.u = nn.Linear(width, width)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        h = torch.zeros(len(x), 4)
        for t in range(x.shape[1]):
            h = torch.tanh(self.w(x[:, t]) + self.u(h))
        return self.head(h)


class RecurrentLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x):
        out, _ = self.lstm(x)
        h = torch.zeros(len(x), 4)
        for t in range(out.shape[1]):
            h = self.cell(out[:, t], h)
        return h


class Gated(nn.Module):
    """SwiGLU and a rotary embedding, with an RMS norm from elementary operators."""

    def __init__(self, width=4):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.q = nn.Linear(width, width)
        self.gate, self.up, self.down = (
            nn.Linear(width, 8), nn.Linear(width, 8), nn.Linear(8, width)
        )  # fmt: skip
        self.register_buffer("cos", torch.rand(5, width))
        self.register_buffer("sin", torch.rand(5, width))

    def forward(self, x):
        h = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
        q = self.q(h)
        first, second = q[..., :2], q[..., 2:]
        q = q * self.cos + torch.cat((-second, first), dim=-1) * self.sin
        return x + self.down(F.silu(self.gate(q)) * self.up(q))


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


class StochasticDepth(nn.Module):
    """Branches that noise switches off, one number a sample."""

    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        branch = F.dropout(F.relu(self.norm(self.layer(x))), 0.2, self.training)
        keep = x.new_empty(len(x), 1).bernoulli_(0.8).div_(0.8)
        return x + branch * keep


class Sources(nn.Module):
    """Sums that are no residual: biases, positions, two inputs, a context, masks."""

    def __init__(self, width=4):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))
        self.left, self.right = nn.Linear(width, width), nn.Linear(width, width)
        self.context = nn.Linear(width, width)
        self.words, self.places = nn.Embedding(9, width), nn.Embedding(9, width)

    def forward(self, tokens, other, mask):
        positions = torch.cumsum(tokens.ne(1).long(), 1)
        x = self.words(tokens) + self.places(positions) + self.bias
        x = torch.relu(self.left(x)) + torch.relu(self.right(other))
        x = x * mask[..., None]
        return x + self.context(x.mean(1, keepdim=True))
