"""Faults 11-20 of author c."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch
import torch.nn.functional as F
from torch import nn

from protocol import Fault, Setup
from shared import (accuracy, bandit, batches, chain_text, dict_batches, gen, quiet, r2,
                    sine_windows, two_views, waves)


# ---------------------------------------------------------------- c-054
class Policy(nn.Module):
    def __init__(self, dim=6, actions=4):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, 64), nn.Tanh(), nn.Linear(64, actions))

    def forward(self, s):
        return self.body(s)


def clipped_surrogate(model, batch):
    dist = torch.distributions.Categorical(logits=model(batch["obs"]))
    ratio = (dist.log_prob(batch["act"]) - batch["logp_old"]).exp()
    adv = batch["adv"]
    s1 = ratio * adv
    s2 = ratio.clamp(0.2, 4.0) * adv
    return -torch.min(s1, s2).mean() - 1e-3 * dist.entropy().mean()


def f11(column):
    def make(seed):
        s, a, r, best = bandit(seed, 1280)
        adv = (r - r[:1024].mean()) / r[:1024].std()
        if column:
            adv = adv.reshape(-1, 1)
        logp = torch.full((1280,), -torch.log(torch.tensor(4.0)).item())
        model = Policy()
        data = dict_batches(128, obs=s[:1024], act=a[:1024], adv=adv[:1024], logp_old=logp[:1024])
        return Setup(model, data, clipped_surrogate, torch.optim.Adam(model.parameters(), lr=5e-3),
                     accuracy(s[1024:], best[1024:]), steps=300)
    return make


# ---------------------------------------------------------------- c-110
class TwoTower(nn.Module):
    def __init__(self, dim=16, out=8):
        super().__init__()
        self.left = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, out))
        self.right = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, out))

    def forward(self, a, b):
        return F.normalize(self.left(a), dim=-1), F.normalize(self.right(b), dim=-1)


def f12(sign):
    def make(seed):
        a, b = two_views(seed, 640)

        def nce(out, index):
            """The nearest right tower of each left tower should be its partner."""
            scores = sign * torch.cdist(*out) / 0.1
            return F.cross_entropy(scores, torch.arange(len(index)))

        def score(m):
            with quiet(m):
                d = torch.cdist(*m(a[512:], b[512:]))
                return float((d.argmin(1) == torch.arange(128)).float().mean())
        model = TwoTower()
        return Setup(model, batches((a[:512], b[:512]), torch.arange(512), 128), nce,
                     torch.optim.Adam(model.parameters(), lr=3e-3), score, steps=300)
    return make


# ---------------------------------------------------------------- c-018
class CausalLM(nn.Module):
    def __init__(self, vocab=20, dim=32, length=16):
        super().__init__()
        self.wte = nn.Embedding(vocab, dim)
        self.wpe = nn.Embedding(length, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, 0.0, batch_first=True, norm_first=True)
        self.h = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)

    def forward(self, input_ids, labels=None):
        t = input_ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        x = self.wte(input_ids) + self.wpe(torch.arange(t))
        logits = self.lm_head(self.ln_f(self.h(x, mask=mask)))
        loss = None
        if labels is not None:      # tokens < n predict n
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return {"loss": loss, "logits": logits}


def f13(shift):
    def make(seed):
        text = chain_text(seed, 640, 14)
        train, test = text[:512], text[512:]
        if shift:
            labels = torch.cat([train[:, 1:], torch.full((512, 1), -100)], 1)
        else:
            labels = train.clone()
        model = CausalLM()
        return Setup(model, dict_batches(32, input_ids=train, labels=labels),
                     lambda m, b: m(**b)["loss"], torch.optim.AdamW(model.parameters(), lr=3e-3),
                     accuracy(test[:, :-1], test[:, 1:], lambda o: o["logits"]), steps=200)
    return make


# ---------------------------------------------------------------- c-039
EOS = 0


def sentences(seed, n, length=14, salt=30):
    """Words 2..11; word 1 is the full stop, after which the text ends (EOS, then padding)."""
    g = gen(seed, salt)
    ids = torch.randint(2, 12, (n, length), generator=g)
    stop = torch.randint(4, length - 2, (n,), generator=g)
    place = torch.arange(length)[None]
    ids[place == stop[:, None]] = 1
    ids[place > stop[:, None]] = EOS
    return ids, stop


def f14(pad_is_eos):
    def make(seed):
        ids, stop = sentences(seed, 640)
        labels = ids.clone()
        place = torch.arange(ids.shape[1])[None]
        if pad_is_eos:
            labels[labels == EOS] = -100
        else:
            labels[place > stop[:, None] + 1] = -100
        model = CausalLM(12, 32, 16)

        def score(m):
            """Ends after the full stop, and goes on before it: balanced accuracy."""
            with quiet(m):
                said = m(ids[512:])["logits"].argmax(-1) == EOS
                at = stop[512:, None]
                ends = said[place.expand(128, -1) == at].float().mean()
                goes = (~said[place.expand(128, -1) < at]).float().mean()
                return float((ends + goes) / 2)
        return Setup(model, dict_batches(32, input_ids=ids[:512], labels=labels[:512]),
                     lambda m, b: m(**b)["loss"], torch.optim.AdamW(model.parameters(), lr=3e-3),
                     score, steps=150)
    return make


# ---------------------------------------------------------------- c-116
class Forecaster(nn.Module):
    def __init__(self, last):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.decoder = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), *last)

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.decoder(h[:, -1])


def f15(relu):
    def make(seed):
        x, y = sine_windows(seed, 768)
        model = Forecaster([nn.ReLU()] if relu else [])
        return Setup(model, batches(x[:576], y[:576], 64), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=5e-3), r2(x[576:], y[576:]), steps=250)
    return make


# ---------------------------------------------------------------- c-108
class Sine(nn.Module):
    def __init__(self, i, o, w0, first=False):
        super().__init__()
        self.lin, self.w0 = nn.Linear(i, o), w0
        bound = 1 / i if first else (6 / i) ** 0.5 / w0
        nn.init.uniform_(self.lin.weight, -bound, bound)

    def forward(self, x):
        return torch.sin(self.w0 * self.lin(x))


def siren(inp=1, width=48):
    return nn.Sequential(Sine(inp, width, 30, True), Sine(width, width, 30),
                         nn.Linear(width, 1))


def f16(samples):
    def make(seed):
        g = gen(seed, 16)
        t = torch.sort(torch.rand(512, 1, generator=g) * 2 - 1, dim=0).values
        y = torch.sin(9 * t) + 0.5 * torch.sin(23 * t + 1)
        inp = (t + 1) * 500 if samples else t          # milliseconds of a one second clip
        order = torch.randperm(512, generator=g)
        tr, te = order[:384], order[384:]
        model = siren()
        return Setup(model, batches(inp[tr], y[tr], 128), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=1e-3), r2(inp[te], y[te]), steps=400)
    return make


# ---------------------------------------------------------------- c-095
class Seq2Seq(nn.Module):
    def __init__(self, vocab=10, dim=32):
        super().__init__()
        self.bos = vocab
        self.emb = nn.Embedding(vocab + 1, dim)
        self.enc = nn.GRU(dim, dim, batch_first=True)
        self.dec = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, src, dec_in):
        _, h = self.enc(self.emb(src))
        y, _ = self.dec(self.emb(dec_in), h)
        return self.out(y)

    def greedy(self, src, n):
        tok = torch.full((len(src), 1), self.bos)
        for _ in range(n):
            nxt = self(src, tok)[:, -1].argmax(-1, keepdim=True)
            tok = torch.cat([tok, nxt], 1)
        return tok[:, 1:]


def f17(unshifted):
    def make(seed):
        src = torch.randint(0, 10, (1152, 3), generator=gen(seed, 17))
        tgt = src.flip(1)
        bos = torch.full((len(src), 1), 10)
        dec_in = tgt if unshifted else torch.cat([bos, tgt[:, :-1]], 1)
        model = Seq2Seq()

        def score(m):
            with quiet(m):
                return float((m.greedy(src[1024:], 3) == tgt[1024:]).float().mean())
        return Setup(model, batches((src[:1024], dec_in[:1024]), tgt[:1024], 64),
                     lambda o, t: F.cross_entropy(o.flatten(0, 1), t.flatten()),
                     torch.optim.Adam(model.parameters(), lr=1e-2), score, steps=300)
    return make


# ---------------------------------------------------------------- c-100
class PriceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 32, batch_first=True)
        self.fc = nn.Linear(32, 1)

    def forward(self, x):
        return self.fc(self.rnn(x)[0][:, -1])


def f18(raw):
    def make(seed):
        x, y = sine_windows(seed, 768)
        price = 30000 + 4000 * x
        inp = price if raw else (price - 30000) / 4000
        model = PriceNet()
        return Setup(model, batches(inp[:576], y[:576], 64), nn.MSELoss(),
                     torch.optim.Adam(model.parameters(), lr=5e-3), r2(inp[576:], y[576:]), steps=250)
    return make


# ---------------------------------------------------------------- c-092
def f19(filled):
    def make(seed):
        x, y = waves(seed, 832)
        hole = torch.rand(x.shape, generator=gen(seed, 19)) < 0.01
        x = x.masked_fill(hole, float("nan"))
        if filled:
            x = torch.nan_to_num(x, nan=0.0)
        model = nn.Sequential(nn.Conv1d(3, 24, 5, padding=2), nn.ReLU(), nn.Conv1d(24, 24, 5),
                              nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(24, 4))
        return Setup(model, batches(x[:640], y[:640], 64), nn.CrossEntropyLoss(),
                     torch.optim.Adam(model.parameters(), lr=5e-3), accuracy(x[640:], y[640:]),
                     steps=200)
    return make


# ---------------------------------------------------------------- c-123
def f20(copied):
    def make(seed):
        s, a, r, best = bandit(seed, 1280)
        memory, state = [], torch.zeros(6)
        for i in range(1024):               # the environment reuses one buffer
            state.copy_(s[i])
            memory.append((state.clone() if copied else state, a[i], r[i]))
        obs, act, rew = (torch.stack(c) for c in zip(*memory))
        q = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                          nn.Linear(64, 4))

        def td(model, batch):
            chosen = model(batch["obs"]).gather(1, batch["act"][:, None]).squeeze(1)
            return F.smooth_l1_loss(chosen, batch["rew"])
        return Setup(q, dict_batches(64, obs=obs, act=act, rew=rew), td,
                     torch.optim.Adam(q.parameters(), lr=3e-3), accuracy(s[1024:], best[1024:]),
                     steps=400)
    return make


FAULTS = [
    Fault("c-054", "targets and outputs", f11(True), f11(False),
          "The advantages have shape (N,1) and the ratios (N,), so their product broadcasts to "
          "(N,N): each action is weighted by the mean advantage, which is about zero.",
          ("shape mismatch in the surrogate loss broadcasts", "advantage must be squeezed to (N,)"),
          ("the policy gradient is nearly zero", "loss is near zero from the start"),
          "https://github.com/RITCHIEHuang/DeepRL_Algorithms/issues/13"),
    Fault("c-110", "targets and outputs", f12(1.0), f12(-1.0),
          "The contrastive cross-entropy takes distances as logits where similarities are wanted: "
          "the sign is wrong, so partners are pushed apart instead of pulled together.",
          ("loss of wrong sign", "logits must be minus the distance",
           "positives get the lowest score"),
          ("the embeddings do not match partners", "retrieval is below chance")),
    Fault("c-018", "targets and outputs", f13(True), f13(False),
          "The labels are already shifted by one in the data and the model shifts them again, so "
          "position t learns token t+2 instead of the next token.",
          ("labels shifted twice", "labels misaligned by one with the inputs"),
          ("the model predicts the wrong token although the loss falls",),
          "https://github.com/huggingface/transformers/pull/44642"),
    Fault("c-039", "targets and outputs", f14(True), f14(False),
          "Padding uses the end-of-text id and all labels equal to it are set to -100, so the "
          "end token never counts in the loss and the model never learns to stop.",
          ("pad token equals eos token and is masked from the labels",
           "class 0 never occurs among the counted labels", "ignore_index removes the EOS labels"),
          ("many labels are ignored (-100)",),
          "https://github.com/mlabonne/llm-course/issues/33"),
    Fault("c-116", "targets and outputs", f15(True), f15(False),
          "The forecaster ends in a ReLU, but half of the targets are negative and cannot be "
          "reached.",
          ("last activation cannot produce the targets", "ReLU on a regression output"),
          ("predictions are zero for many samples", "dead output unit")),
    Fault("c-108", "inputs", f16(True), f16(False),
          "The coordinates go in as milliseconds 0..1000 instead of [-1, 1]; with sin(30 W x) the "
          "first layer oscillates thousands of times and the signal cannot be interpolated.",
          ("inputs not normalised to [-1, 1]", "input scale far too large for a sine network"),
          ("the first layer's pre-activations are huge", "training fit without generalisation"),
          "https://github.com/vsitzmann/siren/issues/19"),
    Fault("c-095", "inputs", f17(True), f17(False),
          "The decoder input is the target itself, not shifted right behind a start token, so the "
          "decoder copies its input: the target leaks and generation fails.",
          ("teacher forcing without shift", "target leaked into the input",
           "decoder input equals the labels"),
          ("training loss falls to zero at once", "the encoder is not used"),
          "https://github.com/lucidrains/reformer-pytorch/issues/125"),
    Fault("c-100", "inputs", f18(True), f18(False),
          "Raw prices around 30000 go into the GRU; the gates saturate and the movement on top of "
          "the offset is lost. Standardise the inputs.",
          ("inputs unscaled / large offset", "gates saturated by the input scale"),
          ("hidden states are constant", "gradients of the recurrent layer vanish")),
    Fault("c-092", "inputs", f19(False), f19(True),
          "One percent of the input values are NaN; the first batch turns loss and weights to NaN.",
          ("missing values (NaN) in the inputs",), ("the loss is NaN", "weights become NaN")),
    Fault("c-123", "inputs", f20(False), f20(True),
          "The replay memory stores the same buffer again and again, so all states of a batch are "
          "identical (the last one) and only the rewards differ.",
          ("all samples in the batch are identical", "inputs do not vary",
           "missing copy when storing observations"),
          ("the network predicts the same for all inputs",),
          "https://github.com/Itomigna2/Muesli-lunarlander/issues/1"),
]
