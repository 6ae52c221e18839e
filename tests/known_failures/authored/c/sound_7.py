"""Sound set-ups 61-70 of author c: losses of reinforcement learning and preferences."""

import copy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical, Normal
from torch.func import functional_call

from protocol import Setup, Sound
from shared import accuracy, bandit, chain_text, dict_batches, gen, quiet


def net(*sizes, act=nn.Tanh):
    layers = []
    for i, o in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(i, o), act()]
    return nn.Sequential(*layers[:-1])


def adam(m, lr=3e-3):
    return torch.optim.Adam([p for p in m.parameters() if p.requires_grad], lr=lr)


# 61 REINFORCE on logged data with importance weights and a mean baseline
def s061(seed):
    s, a, r, best = bandit(seed, 1280)
    policy = net(6, 64, 4)

    def loss(m, b):
        logp = Categorical(logits=m(b["obs"])).log_prob(b["act"])
        weight = (logp.detach().exp() * 4).clamp(max=4)
        return -(weight * logp * (b["rew"] - b["rew"].mean())).mean()
    return Setup(policy, dict_batches(128, obs=s[:1024], act=a[:1024], rew=r[:1024]), loss, adam(policy, 5e-3),
                 accuracy(s[1024:], best[1024:]), steps=300)


# 62 actor and critic with a shared trunk; the advantage is detached
class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 64), nn.Tanh())
        self.actor, self.critic = nn.Linear(64, 4), nn.Linear(64, 1)
        nn.init.orthogonal_(self.actor.weight, gain=0.01)

    def forward(self, s):
        h = self.trunk(s)
        return self.actor(h), self.critic(h).squeeze(-1)


def s062(seed):
    s, _, _, best = bandit(seed, 1280)
    m = ActorCritic()

    def loss(mod, b):
        """Acts in the (one-step) environment and learns from what it gets."""
        logits, value = mod(b["obs"])
        dist = Categorical(logits=logits)
        act = dist.sample()
        rew = (act == b["hidden_best"]).float()
        adv = (rew - value).detach()
        return -(dist.log_prob(act) * adv).mean() + 0.5 * F.mse_loss(value, rew) - 0.01 * dist.entropy().mean()
    return Setup(m, dict_batches(128, obs=s[:1024], hidden_best=best[:1024]), loss, adam(m, 5e-3),
                 accuracy(s[1024:], best[1024:], lambda o: o[0]), steps=300)


# chain world: walk left or right on seven places, reward at the right end
def walk(seed, n=1536, places=7, salt=63):
    g = gen(seed, salt)
    pos = torch.randint(0, places, (n,), generator=g)
    act = torch.randint(0, 2, (n,), generator=g)
    nxt = (pos + 2 * act - 1).clamp(0, places - 1)
    rew = (nxt == places - 1).float()
    eye = torch.eye(places)
    return {"obs": eye[pos], "act": act, "rew": rew, "nxt": eye[nxt], "done": rew.clone()}


def walk_score(pick=lambda o: o):
    eye = torch.eye(7)

    def score(m):
        """Values of going right must fall by the discount with the distance to the goal."""
        with quiet(m):
            q = pick(m(eye))[:6]
            want = 0.8 ** torch.arange(5, -1, -1).float()
            return 1 - float((q[:, 1] - want).abs().mean() / want.mean())
    return score


# 63 deep Q-learning with a frozen copy, renewed now and then
class DQN(nn.Module):
    def __init__(self, out=2):
        super().__init__()
        self.q = net(7, 48, 48, out, act=nn.ReLU)
        self.frozen = copy.deepcopy(self.q).requires_grad_(False)

    def forward(self, obs):
        return self.q(obs)


def dqn_loss(m, b):
    q = m(b["obs"]).gather(1, b["act"][:, None]).squeeze(1)
    with torch.no_grad():
        best = m.frozen(b["nxt"]).max(1).values
    return F.smooth_l1_loss(q, b["rew"] + 0.8 * (1 - b["done"]) * best)


def s063(seed):
    m = DQN()
    opt = adam(m)
    count = [0]

    def step(setup, batch):
        opt.zero_grad()
        dqn_loss(m, batch).backward()
        opt.step()
        count[0] += 1
        if count[0] % 25 == 0:
            m.frozen.load_state_dict(m.q.state_dict())
    return Setup(m, dict_batches(128, **walk(seed)), dqn_loss, opt, walk_score(), steps=500, step=step)


# 64 PPO on logged data, several passes
def s064(seed):
    s, a, r, best = bandit(seed, 1280)
    adv = (r - r.mean()) / r.std()
    old = torch.full((1280,), 0.25).log()
    policy = net(6, 64, 64, 4)
    nn.init.zeros_(policy[-1].weight)

    def loss(m, b):
        dist = Categorical(logits=m(b["obs"]))
        ratio = (dist.log_prob(b["act"]) - b["old"]).exp()
        return -torch.min(ratio * b["adv"], ratio.clamp(0.3, 3.0) * b["adv"]).mean() - 0.01 * dist.entropy().mean()
    return Setup(policy, dict_batches(128, obs=s[:1024], act=a[:1024], adv=adv[:1024], old=old[:1024]), loss,
                 adam(policy), accuracy(s[1024:], best[1024:]), steps=250)


# 65 behavioural cloning of a continuous controller, tanh-bounded
class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = net(4, 64, 64, 2, act=nn.ReLU)

    def forward(self, s):
        return torch.tanh(self.body(s))


def s065(seed):
    g = gen(seed, 65)
    s = torch.randn(1024, 4, generator=g)
    act = torch.stack([torch.tanh(s[:, 0] - 0.5 * s[:, 1]), 0.9 * torch.sin(s[:, 2] + s[:, 3])], 1)
    m = Controller()

    def score(mod):
        with quiet(mod):
            return 1 - float(F.mse_loss(mod(s[768:]), act[768:]) / act[768:].var())
    return Setup(m, dict_batches(64, s=s[:768], a=act[:768]), lambda mod, b: F.mse_loss(mod(b["s"]), b["a"]), adam(m),
                 score, steps=300)


# 66 advantage-weighted regression
def s066(seed):
    s, a, r, best = bandit(seed, 1280)
    m = net(6, 64, 4, act=nn.ReLU)

    def loss(mod, b):
        w = torch.exp((b["rew"] - b["rew"].mean()) / 0.3).clamp(max=20)
        return (w / w.mean() * F.cross_entropy(mod(b["obs"]), b["act"], reduction="none")).mean()
    return Setup(m, dict_batches(128, obs=s[:1024], act=a[:1024], rew=r[:1024]), loss, adam(m),
                 accuracy(s[1024:], best[1024:]), steps=250)


# 67 soft actor with reparameterised action and a critic of its own
class Soft(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy, self.critic = net(3, 48, 2, act=nn.ReLU), net(4, 64, 64, 1, act=nn.ReLU)

    def dist(self, s):
        mu, log_std = self.policy(s).chunk(2, -1)
        return Normal(mu, log_std.clamp(-3, 1).exp())

    def forward(self, s):
        return self.dist(s).mean


def s067(seed):
    g = gen(seed, 67)
    s = torch.randn(1280, 3, generator=g)
    a = 2 * torch.rand(1280, 1, generator=g) - 1
    want = torch.tanh(s[:, :1] + s[:, 1:2]) * 0.8
    r = 1 - (a - want) ** 2
    m = Soft()

    def loss(mod, b):
        """Critic on the logged actions; actor through a critic whose weights are held fixed."""
        critic = F.mse_loss(mod.critic(torch.cat([b["s"], b["a"]], 1)), b["r"])
        d = mod.dist(b["s"])
        act = d.rsample()
        fixed = {k: v.detach() for k, v in mod.critic.named_parameters()}
        value = functional_call(mod.critic, fixed, (torch.cat([b["s"], act], 1),))
        return critic + (0.01 * d.log_prob(act) - value).mean()

    def score(mod):
        with quiet(mod):
            return 1 - float(F.mse_loss(mod(s[1024:]), want[1024:]) / want[1024:].var())
    return Setup(m, dict_batches(128, s=s[:1024], a=a[:1024], r=r[:1024]), loss, adam(m, 4e-3), score, steps=600)


# 68 quantile Q-learning
def s068(seed):
    m = DQN(out=2 * 8)
    tau = (torch.arange(8) + 0.5) / 8

    def quantiles(q):
        return q.unflatten(-1, (2, 8))

    def loss(mod, b):
        q = quantiles(mod(b["obs"]))[torch.arange(len(b["act"])), b["act"]]
        with torch.no_grad():
            nxt = quantiles(mod.frozen(b["nxt"]))
            best = nxt[torch.arange(len(nxt)), nxt.mean(-1).argmax(1)]
            target = b["rew"][:, None] + 0.8 * (1 - b["done"])[:, None] * best
        e = target[:, None] - q[..., None]
        return (F.huber_loss(q[..., None].expand_as(e), target[:, None].expand_as(e), reduction="none", delta=0.1)
                * (tau[:, None] - (e.detach() < 0).float()).abs()).sum(1).mean()
    opt = adam(m)
    count = [0]

    def step(setup, batch):
        opt.zero_grad()
        loss(m, batch).backward()
        opt.step()
        count[0] += 1
        if count[0] % 25 == 0:
            m.frozen.load_state_dict(m.q.state_dict())
    return Setup(m, dict_batches(128, **walk(seed)), loss, opt, walk_score(lambda o: quantiles(o).mean(-1)), steps=600,
                 step=step)


# 69 decision transformer: return, state, action as tokens; mixed behaviour
class DecisionTransformer(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.ret, self.obs, self.act = nn.Linear(1, dim), nn.Linear(4, dim), nn.Embedding(3, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(15, dim))
        layer = nn.TransformerEncoderLayer(dim, 2, 64, 0.0, batch_first=True, norm_first=True)
        self.body, self.out = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(dim, 3)

    def forward(self, ret, obs, act):
        tokens = torch.stack([self.ret(ret), self.obs(obs), self.act(act)], 2).flatten(1, 2)
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.out(self.body(tokens + self.pos[: tokens.shape[1]], mask=mask)[:, 1::3])


def s069(seed):
    g = gen(seed, 69)
    n, t = 640, 5
    obs = torch.randn(n, t, 4, generator=g)
    right = obs[..., :3].argmax(-1)
    good = torch.rand(n, generator=g) < 0.5
    wrong = (right + torch.randint(1, 3, (n, t), generator=g)) % 3
    act = torch.where(good[:, None], right, wrong)
    ret = good.float()[:, None, None].expand(n, t, 1) * torch.linspace(1, 0.2, t)[None, :, None]
    m = DecisionTransformer()

    def loss(mod, b):
        return F.cross_entropy(mod(b["ret"], b["obs"], b["act"]).flatten(0, 1), b["act"].flatten())

    def score(mod):
        with quiet(mod):
            high = torch.linspace(1, 0.2, t)[None, :, None].expand(128, t, 1)
            return float((mod(high, obs[512:], right[512:]).argmax(-1) == right[512:]).float().mean())
    return Setup(m, dict_batches(64, ret=ret[:512], obs=obs[:512], act=act[:512]), loss, adam(m), score, steps=300)


# 70 direct preference optimisation against a frozen reference
class TinyLM(nn.Module):
    def __init__(self, vocab=12, dim=24):
        super().__init__()
        self.emb, self.gru, self.out = nn.Embedding(vocab, dim), nn.GRU(dim, 48, batch_first=True), nn.Linear(48, vocab)

    def logp(self, ids):
        lp = self.out(self.gru(self.emb(ids[:, :-1]))[0]).log_softmax(-1)
        return lp.gather(-1, ids[:, 1:, None]).squeeze(-1).sum(1)

    def forward(self, ids):
        return self.logp(ids)


def s070(seed):
    text = chain_text(seed, 1280, 8, vocab=12, noise=0.5)
    g = gen(seed, 70)
    order = text[:, 1:].eq(3).sum(1) + 0.01 * torch.rand(1280, generator=g)     # the judge likes word 3
    a, b = text[:640], text[640:]
    first = order[:640] > order[640:]
    win = torch.where(first[:, None], a, b)
    lose = torch.where(first[:, None], b, a)
    m = TinyLM()
    ref = copy.deepcopy(m).requires_grad_(False)

    def loss(mod, batch):
        with torch.no_grad():
            base = ref(batch["win"]) - ref(batch["lose"])
        return -F.logsigmoid(0.5 * (mod(batch["win"]) - mod(batch["lose"]) - base)).mean()
    clear = (win[512:, 1:].eq(3).sum(1) > lose[512:, 1:].eq(3).sum(1))

    def score(mod):
        with quiet(mod):
            gain = (mod(win[512:]) - ref(win[512:])) - (mod(lose[512:]) - ref(lose[512:]))
            return float((gain[clear] > 0).float().mean())
    return Setup(m, dict_batches(64, win=win[:512], lose=lose[:512]), loss, adam(m, 1e-3), score, steps=150)


SOUND = [
    Sound("c-033", "REINFORCE with baseline, logged data", s061, "Williams 1992"),
    Sound("c-072", "actor-critic, shared trunk", s062, "arXiv:1602.01783"),
    Sound("c-024", "deep Q-learning with frozen target", s063, "arXiv:1312.5602"),
    Sound("c-060", "PPO surrogate", s064, "arXiv:1707.06347"),
    Sound("c-125", "behavioural cloning, tanh output", s065),
    Sound("c-112", "advantage-weighted regression", s066, "arXiv:1910.00177"),
    Sound("c-055", "soft actor-critic-like, fixed critic in the actor term", s067, "arXiv:1801.01290"),
    Sound("c-064", "quantile Q-learning", s068, "arXiv:1710.10044"),
    Sound("c-014", "decision transformer", s069, "arXiv:2106.01345"),
    Sound("c-132", "direct preference optimisation", s070, "arXiv:2305.18290"),
]
