"""Networks and batches of every kind are measured as they are, and sound ones pass."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.survey import others
from theodolite.survey import make_subject, survey

IDS = torch.randint(3, 40, (8, 12), generator=torch.Generator().manual_seed(0))
X = torch.randn(24, 16, generator=torch.Generator().manual_seed(1))
SMALL = {"vocab_size": 40, "d_model": 16}
LAYERS = {"num_attention_heads": 2, "num_hidden_layers": 2, "intermediate_size": 32}
HIDDEN = {"hidden_size": 16, "vocab_size": 40, "max_position_embeddings": 16}


def adam(model, rate=1e-3):
    return torch.optim.AdamW(model.parameters(), lr=rate)


def surveyed(model, batches, loss=None, **given):
    given = {"measures": ["checks", "map", "signal", "curvature"], **given}
    return survey(
        model, batches, loss=loss, optimizer=adam(model), progress=False, **given
    )


def alarms(result):
    return {f.rule for f in result.findings if f.severity in ("sick", "warning")}


def status(result):
    return {outcome.measure: outcome.status for outcome in result.measured}


def transformer(kind):
    transformers = others.transformers()
    torch.manual_seed(0)
    if kind == "t5":
        config = transformers.T5Config(
            **SMALL,
            d_kv=8,
            d_ff=32,
            num_layers=2,
            num_heads=2,
            decoder_start_token_id=0,
        )
        return transformers.T5ForConditionalGeneration(config).train()
    if kind == "bert":
        config = transformers.BertConfig(**LAYERS, **HIDDEN)
        return transformers.BertForSequenceClassification(config).train()
    config = transformers.LlamaConfig(**LAYERS, **HIDDEN)
    return transformers.LlamaForCausalLM(config).train()


def test_an_encoder_decoder_gets_its_labels():
    model, labels = transformer("t5").eval(), IDS[:, :7].contiguous()
    given = [{"input_ids": IDS, "labels": labels}] * 2
    subject = make_subject(model, given)
    assert subject.loss(model, subject.batches[0]) == model(**given[0]).loss
    assert set(subject.batches[0][0]) == {"input_ids", "decoder_input_ids"}
    result = surveyed(model.train(), given)
    assert set(status(result).values()) == {"done"}
    assert not alarms(result)


def test_an_encoder_decoder_runs_without_data():
    assert "token ids" in make_subject(transformer("t5"), batch_size=2).inputs


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_transformers_with_the_usual_optimizer_are_sound(kind):
    labels = IDS[:, 0] % 2 if kind == "bert" else IDS
    result = surveyed(transformer(kind), [{"input_ids": IDS, "labels": labels}] * 4)
    assert set(status(result).values()) == {"done"}
    assert not alarms(result)


def test_a_step_gets_keyword_batches_as_they_were_given():
    model, keys = transformer("llama"), []
    optimizer = adam(model)

    def step(batch):
        keys.append(set(batch))
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()

    batches = [{"input_ids": IDS, "labels": IDS}] * 4
    assert not alarms(surveyed(model, batches, step=step, measures=["checks"]))

    def fails(batch):
        assert set(batch) == {"input_ids"}

    result = surveyed(model, batches, step=fails, measures=["checks"])
    assert "training-fails" in alarms(result)


class Coder(nn.Module):
    """A variational autoencoder, which draws in train and in eval mode."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(16, 8), nn.Linear(4, 16)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, logs = self.encode(x).tanh().chunk(2, 1)
        code = mean + torch.randn_like(mean) * (0.5 * logs).exp()
        return self.decode(code), mean, logs


def bound(outputs, targets):
    made, mean, logs = outputs
    prior = 0.5 * (mean.square() + logs.exp() - 1 - logs).sum(1).mean()
    return (made - targets).square().sum(1).mean() + prior


def test_a_forward_that_draws_gets_fixed_noise():
    torch.manual_seed(0)
    model, values = Coder(), []
    for _ in range(2):
        result = surveyed(model, (X, X), bound)
        assert status(result)["curvature"] == "done"
        values.append(result.number("largest_eigenvalue")["value"])
    assert values[0] == values[1]
    # In float64 the noise would be other noise, and the error as large as the number.
    assert result.number("largest_eigenvalue")["error"] < 0.02 * values[0]


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(16, 8), nn.Linear(8, 2)

    def forward(self, nodes: Tensor, weights: Tensor) -> Tensor:
        return weights @ self.two((weights @ self.one(nodes)).relu())


def of_graph(model, batch):
    scores = model(batch["nodes"], batch["weights"])
    return functional.cross_entropy(scores[batch["known"]], batch["labels"])


def test_a_graph_is_measured_whole():
    torch.manual_seed(0)
    links = (torch.rand(24, 24) < 0.2).float() + torch.eye(24)
    known = torch.arange(24) % 3 > 0
    batch = {
        "nodes": X,
        "weights": links / links.sum(1, keepdim=True),
        "known": known,
        "labels": (X[known, 0] > 0).long(),
    }
    result = surveyed(Graph(), [batch], of_graph)
    assert set(status(result).values()) == {"done"}
    assert [block.name for block in result.blocks] == ["one", "two"]
    assert not alarms(result)


def test_a_list_of_tensors_is_several_batches_if_the_loss_takes_one():
    model = nn.Linear(16, 16)

    def loss(model, batch):
        return functional.mse_loss(model(batch), batch.roll(1, 1))

    for n, batches in ((1, X), (1, [X]), (2, list(X.chunk(2))), (4, list(X.chunk(4)))):
        assert len(make_subject(model, batches, loss).batches) == n
        assert not alarms(surveyed(model, batches, loss, measures=["checks"]))


def test_a_list_of_two_tensors_is_inputs_and_targets_also_where_they_do_not_fit():
    def loss(model, batch):
        return functional.mse_loss(model(batch[0]), batch[1])

    batches = [X, X[:, :3]]
    assert len(make_subject(nn.Linear(16, 16), batches, loss).batches) == 1


class Small(nn.Module):
    """A block whose branch is scaled by a small number, a gate or zero."""

    def __init__(self, kind: str):
        super().__init__()
        self.norm, self.kind = nn.LayerNorm(16), kind
        self.branch = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        if kind == "layer scale":
            self.scale = nn.Parameter(torch.full((16,), 1e-5))
        else:
            self.scale = nn.Linear(16, 16)
            nn.init.constant_(self.scale.bias, -4.0 if kind == "gate" else 0.0)
            if kind == "zero":  # as blocks of diffusion transformers start
                nn.init.zeros_(self.scale.weight)

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "layer scale":
            return x + self.scale * self.branch(self.norm(x))
        factor = self.scale(x)
        factor = factor.sigmoid() if self.kind == "gate" else factor
        return x + factor * self.branch(self.norm(x))


@pytest.mark.parametrize("kind", ["layer scale", "gate", "zero"])
def test_branches_that_start_small_are_sound(kind):
    torch.manual_seed(0)
    model = nn.Sequential(*(Small(kind) for _ in range(4)), nn.Linear(16, 3))
    labels = X[:, :3].argmax(1)
    measures = ["checks", "map", "signal", "units", "norms"]
    result = surveyed(model, (X, labels), nn.CrossEntropyLoss(), measures=measures)
    assert not alarms(result)


class Forecaster(nn.Module):
    """A forecaster that reads its own last output, or what really came next."""

    def __init__(self):
        super().__init__()
        self.encoder, self.cell = nn.GRU(1, 8, batch_first=True), nn.GRUCell(1, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, past: Tensor, future: Tensor | None = None) -> Tensor:
        state, last, said = self.encoder(past[..., None])[1][0], past[:, -1:], []
        for step in range(4):
            state = self.cell(last, state)
            last = self.head(state)
            said.append(last)
            last = last if future is None else future[:, step : step + 1]
        return torch.cat(said, 1)


def test_a_decoder_may_be_given_what_came_next():
    torch.manual_seed(0)
    series = torch.sin(torch.linspace(0, 6, 16) + torch.arange(32.0)[:, None])
    batch = ((series[:, :12], series[:, 12:]), series[:, 12:])
    result = surveyed(Forecaster(), [batch], nn.MSELoss(), measures=["checks"])
    assert not alarms(result)


class Factors(nn.Module):
    """Users and items as vectors, whose product is weighted."""

    def __init__(self):
        super().__init__()
        self.users, self.items = (nn.Embedding(60, 8, sparse=True) for _ in range(2))
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.3)
        self.mix = nn.Linear(8, 1, bias=False)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        return self.mix(self.users(user) * self.items(item))[:, 0]


def ratings(n: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    user, item = torch.randint(60, (2, n), generator=generator)
    tastes = torch.randn(2, 60, 2, generator=generator)
    return user, item, ((tastes[0, user] * tastes[1, item]).sum(1) > 0).float()


def test_plain_updates_of_a_few_weights_are_not_all_of_the_training():
    """The step has an optimiser for the tables as well, which is not given."""
    torch.manual_seed(0)
    model, loss = Factors(), nn.BCEWithLogitsLoss()
    tables = torch.optim.SparseAdam([model.users.weight, model.items.weight], lr=0.02)
    rest = torch.optim.Adam(model.mix.parameters(), lr=1e-3)
    user, item, clicked = ratings(320)
    batches = [((user[i], item[i]), clicked[i]) for i in torch.arange(320).chunk(5)]

    def step(batch):
        tables.zero_grad()
        rest.zero_grad()
        loss(model(*batch[0]), batch[1]).backward()
        tables.step()
        rest.step()

    result = survey(
        model, batches, loss=loss, optimizer=rest, step=step, measures=["checks"],
        progress=False,
    )  # fmt: skip
    assert not alarms(result)


class Joined(nn.Module):
    """A network of the vectors of a user and an item."""

    def __init__(self):
        super().__init__()
        self.users, self.items = nn.Embedding(60, 8), nn.Embedding(60, 8)
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        return self.body(torch.cat([self.users(user), self.items(item)], 1))[:, 0]


def test_users_and_items_are_not_near_each_other():
    """The answer to a new pair follows from the vectors of both, learned from many."""
    torch.manual_seed(0)
    model = Joined()
    user, item, clicked = ratings(640)
    batches = [((user[i], item[i]), clicked[i]) for i in torch.arange(640).chunk(10)]
    given = {"optimizer": adam(model, 0.01), "measures": ["checks"]}
    result = survey(
        model, batches, loss=nn.BCEWithLogitsLoss(), progress=False, **given
    )
    assert not alarms(result)


def test_frozen_norms_without_running_statistics_are_sound():
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3)
    )
    model[1].requires_grad_(False)
    given = {"measures": ["signal", "norms"]}
    result = surveyed(model, (X, X[:, :3].argmax(1)), nn.CrossEntropyLoss(), **given)
    assert not alarms(result)
