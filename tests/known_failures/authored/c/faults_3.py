"""Faults 21-30 of author c."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch
import torch.nn.functional as F
from torch import nn

from protocol import Fault, Setup
from shared import (accuracy, adding, batches, dict_batches, gen, keyword_tokens, lag_text, quiet,
                    r2, recall_tokens, sine_windows, table, two_views, waves)


# ---------------------------------------------------------------- c-074
class FirstWord(nn.Module):
    """Every position has to name the first word of its sentence."""

    def __init__(self, batch_first, vocab=8, dim=32, length=10):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(length, dim)
        layer = nn.TransformerEncoderLayer(d_model=dim, nhead=2, dim_feedforward=64, dropout=0.0,
                                           batch_first=batch_first)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.fc = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1]))
        return self.fc(self.encoder(x)[:, -1])


def f21(batch_first):
    def make(seed):
        x, y = recall_tokens(seed, 1280)
        model = FirstWord(batch_first)
        return Setup(model, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(),
                     torch.optim.Adam(model.parameters(), lr=2e-3), accuracy(x[1024:], y[1024:]),
                     steps=250)
    return make


# ---------------------------------------------------------------- c-131
class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.heads = heads

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5 + mask).softmax(-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class MiniGPT(nn.Module):
    def __init__(self, hide, vocab=5, dim=32, length=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, dim), nn.Embedding(length, dim)
        self.blocks = nn.ModuleList([Block(dim, 4) for _ in range(2)])
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, vocab))
        future = torch.triu(torch.ones(length, length), 1)
        self.register_buffer("mask", future * hide)

    def forward(self, ids):
        t = ids.shape[1]
        x = self.wte(ids) + self.wpe(torch.arange(t))
        for b in self.blocks:
            x = b(x, self.mask[:t, :t])
        return self.head(x)


def f22(hide):
    def make(seed):
        text = lag_text(seed, 640, 13)
        x, y = text[:512, :-1], text[:512, 1:]
        test = text[512:]
        model = MiniGPT(hide)

        def score(m):
            """Continue prefixes of several lengths; nothing of the future is given."""
            with quiet(m):
                hits = [(m(test[:, :n])[:, -1].argmax(-1) == test[:, n]).float().mean()
                        for n in (4, 6, 8, 10)]
                return float(torch.stack(hits).mean())
        return Setup(model, batches(x, y, 64),
                     lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()),
                     torch.optim.AdamW(model.parameters(), lr=3e-3), score, steps=300)
    return make


# ---------------------------------------------------------------- c-042
class SensorLSTM(nn.Module):
    def __init__(self, right):
        super().__init__()
        self.lstm = nn.LSTM(3, 32)
        self.fc = nn.Linear(32, 4)
        self.right = right

    def forward(self, x):                       # (batch, time, channel)
        b, t, c = x.shape
        seq = x.transpose(0, 1) if self.right else x.reshape(t, b, c)
        out, _ = self.lstm(seq)
        return self.fc(out[-1])


def f23(right):
    def make(seed):
        x, y = waves(seed, 832)
        x = x.transpose(1, 2).contiguous()
        model = SensorLSTM(right)
        return Setup(model, batches(x[:640], y[:640], 64), nn.CrossEntropyLoss(),
                     torch.optim.Adam(model.parameters(), lr=1e-2), accuracy(x[640:], y[640:]),
                     steps=200)
    return make


# ---------------------------------------------------------------- c-063
class AttentionPool(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        self.value = nn.Linear(2, 16)
        self.out = nn.Linear(16, 1)
        self.axis = axis

    def forward(self, x):
        weights = F.softmax(self.score(x), dim=self.axis)       # scores: (batch, time, 1)
        return self.out((weights * self.value(x)).sum(1)).squeeze(-1)


def f24(axis):
    def make(seed):
        x, y = adding(seed, 1280)
        model = AttentionPool(axis)
        return Setup(model, batches(x[:1024], y[:1024], 64), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=1e-2), r2(x[1024:], y[1024:]), steps=400)
    return make


# ---------------------------------------------------------------- c-071
class CellLoop(nn.Module):
    def __init__(self, carry, vocab=8, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.head = nn.Linear(dim, vocab)
        self.carry = carry

    def forward(self, ids):
        h0 = torch.zeros(ids.shape[0], 32)
        h = h0
        for t in range(ids.shape[1]):
            h = self.cell(self.emb(ids[:, t]), h if self.carry else h0)
        return self.head(h)


def f25(carry):
    def make(seed):
        x, y = recall_tokens(seed, 1280, length=6)
        model = CellLoop(carry)
        return Setup(model, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(),
                     torch.optim.Adam(model.parameters(), lr=1e-2), accuracy(x[1024:], y[1024:]),
                     steps=200)
    return make


# ---------------------------------------------------------------- c-106
class Bertish(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(60, 32)
        self.position = nn.Parameter(0.02 * torch.randn(1, 13, 32))
        self.cls = nn.Parameter(0.02 * torch.randn(1, 1, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classifier = nn.Linear(32, 4)

    def forward(self, input_ids, labels=None):
        x = self.embeddings(input_ids)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.position
        logits = self.classifier(self.encoder(x)[:, 0])
        out = {"logits": logits}
        if labels is not None:
            out["loss"] = F.cross_entropy(logits, labels)
        return out


def f26(rate):
    def make(seed):
        x, y = keyword_tokens(seed, 1280)
        model = Bertish()
        return Setup(model, dict_batches(64, input_ids=x[:1024], labels=y[:1024]),
                     lambda m, b: m(**b)["loss"], torch.optim.AdamW(model.parameters(), lr=rate),
                     accuracy(x[1024:], y[1024:], lambda o: o["logits"]), steps=250)
    return make


# ---------------------------------------------------------------- c-115
class LitForecast(nn.Module):
    """Lightning-like: training_step and configure_optimizers live in the module."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64),
                                 nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch):
        x, y = batch
        return F.mse_loss(self(x), y)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=3e-3)
        return opt, torch.optim.lr_scheduler.StepLR(opt, step_size=5, gamma=0.1)


def f27(per_batch):
    def make(seed):
        x, y = sine_windows(seed, 768)
        model = LitForecast()
        opt, sched = model.configure_optimizers()
        data = batches(x[:576], y[:576], 16)
        count = [0]

        def step(setup, batch):
            opt.zero_grad()
            model.training_step(batch).backward()
            opt.step()
            count[0] += 1
            if per_batch or count[0] % len(data) == 0:
                sched.step()
        return Setup(model, data, nn.MSELoss(), opt, r2(x[576:], y[576:]), steps=300, step=step)
    return make


# ---------------------------------------------------------------- c-135
def f28(clear):
    def make(seed):
        x, y = waves(seed, 832)
        x = x.transpose(1, 2).contiguous()

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.GRU(3, 32, batch_first=True)
                self.out = nn.Linear(32, 4)

            def forward(self, z):
                return self.out(self.rnn(z)[0].amax(1))
        model = Net()
        loss = nn.CrossEntropyLoss()
        opt = torch.optim.SGD(model.parameters(), lr=0.5)

        def step(setup, batch):
            if clear:
                opt.zero_grad()
            loss(model(batch[0]), batch[1]).backward()
            opt.step()
        return Setup(model, batches(x[:640], y[:640], 64), loss, opt, accuracy(x[640:], y[640:]),
                     steps=400, step=step)
    return make


# ---------------------------------------------------------------- c-062
def f29(limit):
    def make(seed):
        x, y = table(seed, 1024)
        model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                              nn.Linear(64, 1))
        opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(setup, batch):
            opt.zero_grad()
            F.mse_loss(model(batch[0]).squeeze(-1), batch[1]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
            opt.step()
        return Setup(model, batches(x[:768], y[:768], 64),
                     lambda o, t: F.mse_loss(o.squeeze(-1), t), opt, r2(x[768:], y[768:]),
                     steps=400, step=step)
    return make


# ---------------------------------------------------------------- c-047
def f30(whole):
    def make(seed):
        a, b = two_views(seed, 640)
        model = nn.ModuleDict({
            "query": nn.Sequential(nn.Linear(16, 48), nn.GELU(), nn.Linear(48, 8)),
            "key": nn.Sequential(nn.Linear(16, 48), nn.GELU(), nn.Linear(48, 8))})
        opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
        warm = 300
        ramp = (lambda s: min(1.0, s // warm)) if whole else (lambda s: min(1.0, s / warm))
        sched = torch.optim.lr_scheduler.LambdaLR(opt, ramp)

        def nce(m, batch):
            za, zb = F.normalize(m["query"](batch["a"]), dim=1), F.normalize(m["key"](batch["b"]), dim=1)
            return F.cross_entropy(za @ zb.T / 0.1, torch.arange(len(za)))

        def step(setup, batch):
            opt.zero_grad()
            nce(model, batch).backward()
            opt.step()
            sched.step()

        def score(m):
            with quiet(m):
                s = F.normalize(m["query"](a[512:]), dim=1) @ F.normalize(m["key"](b[512:]), dim=1).T
                return float((s.argmax(1) == torch.arange(128)).float().mean())
        return Setup(model, dict_batches(128, a=a[:512], b=b[:512]), nce, opt, score, steps=300,
                     step=step)
    return make


FAULTS = [
    Fault("c-074", "wiring", f21(False), f21(True),
          "TransformerEncoderLayer has batch_first=False but gets (batch, time, feature): it "
          "attends over the samples of the batch and never mixes the words of a sentence.",
          ("attention over the wrong axis (the batch)", "batch_first missing",
           "samples of a batch leak into each other"),
          ("the output does not depend on the first word",),
          "https://github.com/Exorust/TorchLeet/issues/5"),
    Fault("c-131", "wiring", f22(1.0), f22(float("-1e9")),
          "The causal mask adds 1 to the scores of future positions instead of minus infinity, so "
          "nothing is masked: each position sees the token it has to predict.",
          ("causal mask does not mask", "future tokens leak into the prediction"),
          ("training loss too good, generation fails",),
          "https://github.com/karpathy/nanoGPT/issues/331"),
    Fault("c-042", "wiring", f23(False), f23(True),
          "reshape(t, b, c) is used where transpose(0, 1) was meant, so each LSTM sequence is "
          "stitched together from the time steps of different samples.",
          ("view/reshape instead of transpose", "samples of the batch are mixed up"),
          ("outputs do not belong to their labels",),
          "https://discuss.pytorch.org/t/lstm-change-batch-first-true-loss-does-not-decrease/62364"),
    Fault("c-063", "wiring", f24(-1), f24(1),
          "The attention softmax runs over the last axis, which has one element, so every weight "
          "is 1 and the scoring network gets no gradient: the pooling is a plain sum.",
          ("softmax over a single unit", "attention weights are constant",
           "softmax over the wrong axis (should be time)"),
          ("the score network is not trained",),
          "https://github.com/DEEP-PolyU/KEQA_WSDM19/issues/2"),
    Fault("c-071", "wiring", f25(False), f25(True),
          "The loop passes the initial state to the cell at every step, so the recurrent state is "
          "never carried and the output depends on the last token only.",
          ("recurrent state not carried", "hidden state reset at each step"),
          ("recurrent weights are multiplied by zeros and get no gradient",
           "output does not depend on early tokens"),
          "https://github.com/OpenNMT/OpenNMT-py/issues/1164"),
    Fault("c-106", "learning rate and optimizer", f26(0.1), f26(2e-3),
          "The learning rate 0.1 is far too high for AdamW on a transformer: weights blow up and "
          "all inputs get the same output.",
          ("learning rate far too high",), ("the model predicts one class", "loss jumps or stays"),
          "https://github.com/huggingface/transformers/issues/735"),
    Fault("c-115", "learning rate and optimizer", f27(True), f27(False),
          "The StepLR meant for epochs is stepped after each batch, so the rate falls tenfold "
          "every five updates and is practically zero after thirty.",
          ("scheduler stepped per batch", "learning rate decays to zero at once"),
          ("parameters stop changing early",), "https://github.com/leftthomas/SRGAN/issues/94"),
    Fault("c-135", "learning rate and optimizer", f28(False), f28(True),
          "Gradients are never cleared (no zero_grad), so each step uses the sum of all gradients "
          "so far and the training runs away.",
          ("missing zero_grad", "gradients accumulate over steps"),
          ("gradient norm grows", "training unstable"),
          "https://preproom.ai/learn/model-training-pytorch.html"),
    Fault("c-062", "learning rate and optimizer", f29(1e-5), f29(1.0),
          "The gradient norm is clipped to 1e-5, so every SGD update is about a hundred thousand "
          "times too small and nothing moves.",
          ("clipping threshold far too small", "updates far too small"),
          ("the learning rate seems too low", "parameters hardly change")),
    Fault("c-047", "learning rate and optimizer", f30(True), f30(False),
          "The warm-up factor uses floor division, step // warmup, which is 0 until the warm-up "
          "is over: the learning rate is exactly zero for the whole run.",
          ("learning rate is zero", "warm-up schedule wrong (integer division)"),
          ("parameters do not change",), "https://github.com/karpathy/nanoGPT/pull/578"),
]
