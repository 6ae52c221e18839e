"""Sound set-ups 21-30 of author c: recurrent networks."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from protocol import Setup, Sound
from shared import (accuracy, adding, batches, chain_text, dict_batches, gen, keyword_tokens, quiet, r2,
                    recall_tokens, sine_windows, waves)


def ce_tokens(out, target):
    return F.cross_entropy(out.reshape(-1, out.shape[-1]), target.reshape(-1))


# 21
class SentimentLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(60, 24)
        self.lstm = nn.LSTM(24, 32, num_layers=2, dropout=0.1, batch_first=True)
        self.fc = nn.Linear(32, 4)

    def forward(self, text):
        _, (hidden, _) = self.lstm(self.embedding(text))
        return self.fc(hidden[-1])


def s021(seed):
    x, y = keyword_tokens(seed, 1280, length=8)
    m = SentimentLSTM()
    return Setup(m, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(), torch.optim.Adam(m.parameters(), 5e-3),
                 accuracy(x[1024:], y[1024:]), steps=250)


# 22 direct forecast of several steps by a GRU, RMSprop
class GRUForecast(nn.Module):
    def __init__(self, ahead=3):
        super().__init__()
        self.rnn = nn.GRU(1, 32, batch_first=True)
        self.lin = nn.Linear(32, ahead)

    def forward(self, x):
        return self.lin(self.rnn(x)[0][:, -1])


def s022(seed):
    x, y = sine_windows(seed, 768, ahead=3)
    m = GRUForecast()
    return Setup(m, batches(x[:576], y[:576], 64), nn.MSELoss(), torch.optim.RMSprop(m.parameters(), 3e-3),
                 r2(x[576:], y[576:]), steps=300)


# 23 tagger: does the same word occur later or earlier? needs both directions
def tag_data(seed, n):
    g = gen(seed, 23)
    x = torch.randint(0, 6, (n, 9), generator=g)
    left = torch.cat([torch.full((n, 1), -1), x[:, :-1]], 1)
    right = torch.cat([x[:, 1:], torch.full((n, 1), -1)], 1)
    return x, ((left > x).long() + 2 * (right > x).long())


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(6, 16)
        self.rnn = nn.LSTM(16, 24, bidirectional=True, batch_first=True)
        self.tag = nn.Linear(48, 4)

    def forward(self, x):
        return self.tag(self.rnn(self.emb(x))[0])


def s023(seed):
    x, y = tag_data(seed, 640)
    m = Tagger()
    return Setup(m, batches(x[:512], y[:512], 64), ce_tokens, torch.optim.Adam(m.parameters(), 1e-2),
                 accuracy(x[512:], y[512:]), steps=200)


# 24 LSTM language model, forget bias one, SGD with large rate and clipping
class CharLM(nn.Module):
    def __init__(self, vocab=20, dim=32):
        super().__init__()
        self.drop, self.enc = nn.Dropout(0.1), nn.Embedding(vocab, dim)
        self.rnn, self.dec = nn.LSTM(dim, dim, batch_first=True), nn.Linear(dim, vocab)
        self.dec.weight = self.enc.weight
        nn.init.uniform_(self.enc.weight, -0.1, 0.1)
        with torch.no_grad():
            self.rnn.bias_ih_l0[dim:2 * dim].fill_(1.0)

    def forward(self, ids):
        return self.dec(self.drop(self.rnn(self.drop(self.enc(ids)))[0]))


def s024(seed):
    t = chain_text(seed, 640, 13)
    x, y = t[:, :-1], t[:, 1:]
    m = CharLM()
    opt = torch.optim.SGD(m.parameters(), lr=4.0)

    def step(setup, batch):
        opt.zero_grad()
        ce_tokens(m(batch[0]), batch[1]).backward()
        nn.utils.clip_grad_norm_(m.parameters(), 0.25)
        opt.step()
    return Setup(m, batches(x[:512], y[:512], 64), ce_tokens, opt, accuracy(x[512:], y[512:]), steps=500, step=step)


# 25 plain tanh RNN with orthogonal recurrence
def s025(seed):
    x, y = recall_tokens(seed, 1280, length=6)

    class Elman(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.rnn, self.out = nn.Embedding(8, 16), nn.RNN(16, 48, batch_first=True), nn.Linear(48, 8)
            nn.init.orthogonal_(self.rnn.weight_hh_l0)

        def forward(self, ids):
            return self.out(self.rnn(self.emb(ids))[1][0])
    m = Elman()
    return Setup(m, batches(x[:1024], y[:1024], 64), nn.CrossEntropyLoss(), torch.optim.Adam(m.parameters(), 3e-3),
                 accuracy(x[1024:], y[1024:]), steps=250)


# 26 variable lengths, packed
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(9, 16, padding_idx=8)
        self.gru = nn.GRU(16, 32, batch_first=True)
        self.fc = nn.Linear(32, 8)

    def forward(self, ids, lengths):
        p = pack_padded_sequence(self.emb(ids), lengths, batch_first=True, enforce_sorted=False)
        return self.fc(self.gru(p)[1][0])


def s026(seed):
    g = gen(seed, 26)
    n = 1280
    x = torch.randint(0, 8, (n, 8), generator=g)
    lengths = torch.randint(3, 9, (n,), generator=g)
    x[torch.arange(8)[None] >= lengths[:, None]] = 8
    y = x[torch.arange(n), lengths - 2].clone()          # the word before the last one
    m = Packed()
    return Setup(m, batches((x[:1024], lengths[:1024]), y[:1024], 64), nn.CrossEntropyLoss(),
                 torch.optim.Adam(m.parameters(), 1e-2), accuracy((x[1024:], lengths[1024:]), y[1024:]), steps=200)


# 27 additive attention decoder
class Bahdanau(nn.Module):
    def __init__(self, vocab=8, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab + 1, dim)
        self.enc = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * dim, dim)
        self.wk, self.wq, self.v = nn.Linear(2 * dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1, bias=False)
        self.cell, self.out = nn.GRUCell(3 * dim, dim), nn.Linear(3 * dim, vocab)

    def forward(self, src, dec):
        mem, last = self.enc(self.emb(src))
        h = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        keys, outs = self.wk(mem), []
        for t in range(dec.shape[1]):
            score = self.v(torch.tanh(keys + self.wq(h)[:, None])).softmax(1)
            ctx = (score * mem).sum(1)
            h = self.cell(torch.cat([self.emb(dec[:, t]), ctx], -1), h)
            outs.append(self.out(torch.cat([h, ctx], -1)))
        return torch.stack(outs, 1)


def s027(seed):
    src = torch.randint(0, 8, (896, 5), generator=gen(seed, 27))
    tgt = src.flip(1)
    dec = torch.cat([torch.full((896, 1), 8), tgt[:, :-1]], 1)
    m = Bahdanau()
    return Setup(m, batches((src[:768], dec[:768]), tgt[:768], 64), ce_tokens, torch.optim.Adam(m.parameters(), 1e-2),
                 accuracy((src[768:], dec[768:]), tgt[768:]), steps=200)


# 28 stateful language model: the state goes on between chunks, gradients do not
class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.gru, self.out = nn.Embedding(20, 24), nn.GRU(24, 48, batch_first=True), nn.Linear(48, 20)
        self.state = None

    def forward(self, ids):
        start = self.state if self.training else None
        if start is not None and start.shape[1] != len(ids):
            start = None
        h, state = self.gru(self.emb(ids), start)
        if self.training:
            self.state = state.detach()
        return self.out(h)


def s028(seed):
    stream = chain_text(seed, 64, 81)
    test = chain_text(seed, 128, 13, salt=3)
    data = [(stream[:, i:i + 8], stream[:, i + 1:i + 9]) for i in range(0, 72, 8)]
    m = Stateful()
    return Setup(m, data, ce_tokens, torch.optim.Adam(m.parameters(), 5e-3), accuracy(test[:, :-1], test[:, 1:]),
                 steps=200)


# 29 hand-written minimal gated unit, adding problem
class MGU(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.f, self.h = nn.Linear(2 + dim, dim), nn.Linear(2 + dim, dim)
        nn.init.constant_(self.f.bias, -1.0)
        self.out, self.dim = nn.Linear(dim, 1), dim

    def forward(self, x):
        s = x.new_zeros(len(x), self.dim)
        for t in range(x.shape[1]):
            f = torch.sigmoid(self.f(torch.cat([x[:, t], s], 1)))
            s = (1 - f) * s + f * torch.tanh(self.h(torch.cat([x[:, t], f * s], 1)))
        return self.out(s).squeeze(1)


def s029(seed):
    x, y = adding(seed, 1280, 8)
    m = MGU()
    return Setup(m, batches(x[:1024], y[:1024], 64), nn.MSELoss(), torch.optim.Adam(m.parameters(), 1e-2),
                 r2(x[1024:], y[1024:]), steps=400)


# 30 sequence autoencoder: one vector, decoded without teacher
class SeqAE(nn.Module):
    def __init__(self, code=6, hidden=32, length=16):
        super().__init__()
        self.enc, self.squeeze = nn.GRU(1, hidden, batch_first=True), nn.Linear(hidden, code)
        self.frm, self.dec = nn.Linear(code, hidden), nn.GRU(code, hidden, batch_first=True)
        self.out, self.length = nn.Linear(hidden, 1), length

    def forward(self, x):
        z = self.squeeze(self.enc(x)[1][0])
        h0 = torch.tanh(self.frm(z))[None]
        return self.out(self.dec(z[:, None].expand(-1, self.length, -1), h0)[0])


def s030(seed):
    x, _ = sine_windows(seed, 768, length=16, noise=0.0)
    m = SeqAE()
    data = [{"series": x[i:i + 64]} for i in range(0, 576, 64)]
    return Setup(m, data, lambda mod, b: F.mse_loss(mod(b["series"]), b["series"]),
                 torch.optim.Adam(m.parameters(), 1e-2), r2(x[576:], x[576:]), steps=350)


SOUND = [
    Sound("c-118", "stacked LSTM classifier", s021),
    Sound("c-101", "GRU forecaster, RMSprop", s022),
    Sound("c-006", "bidirectional LSTM tagger", s023, "arXiv:1508.01991"),
    Sound("c-084", "LSTM language model, tied, SGD with clipping", s024, "pytorch/examples word_language_model"),
    Sound("c-139", "tanh RNN, orthogonal init", s025, "arXiv:1511.06464"),
    Sound("c-004", "packed GRU", s026),
    Sound("c-140", "GRU encoder-decoder with additive attention", s027, "arXiv:1409.0473"),
    Sound("c-104", "stateful GRU, truncated back-propagation", s028),
    Sound("c-089", "minimal gated unit", s029, "arXiv:1603.09420"),
    Sound("c-031", "GRU sequence autoencoder", s030),
]
