"""The watch inside the real Lightning and transformers, on a CPU."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.later import later
from tests.survey.test_watching import data, network
from theodolite.core import ConfigError
from theodolite.survey import lightning_watch, transformers_watch

lightning = later("lightning.pytorch", "pip install 'theodolite[lightning]'")
transformers = later("transformers", "pip install 'theodolite[transformers]'")

# The libraries' own, on small data and under a newer torch.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*smaller than the logging interval"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*pin_memory:UserWarning"),
]


def fit(callback, tmp_path):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner, self.loss = network(), nn.CrossEntropyLoss()

        def forward(self, x):
            return self.inner(x)

        def training_step(self, batch, batch_idx):
            x, y = batch
            return self.loss(self(x), y)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    torch.manual_seed(7)
    module = Module()
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=4, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, num_sanity_val_steps=0,
        callbacks=[callback] if callback else [], default_root_dir=tmp_path,
        logger=False,
    )  # fmt: skip
    trainer.fit(module, DataLoader(TensorDataset(*data()), batch_size=20))
    return module


def test_lightning(tmp_path):
    callback = lightning_watch(every=2)
    watched, plain = fit(callback, tmp_path), fit(None, tmp_path)
    for one, other in zip(watched.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one, other)
    course = callback.course()
    assert course.failures == {}
    assert course.title == "Module"
    assert not course.alerts
    rows = callback.rows()
    assert list(rows) == list(course.rows())
    assert rows.where(quantity="loss").column("step") == [0, 2, 4]
    assert set(rows.where(quantity="rate_in_use").values()) == {0.1}
    assert len(rows.where(quantity="branch_gain", step=2)) == 2
    model = network()
    model[2].eval()  # without dropout
    loss = float(nn.functional.cross_entropy(model(data()[0]), data()[1]).detach())
    assert rows.value(quantity="loss", step=0) == pytest.approx(loss, rel=1e-12)


@pytest.fixture(scope="module")
def gpt():
    def make():
        torch.manual_seed(0)
        settings = transformers.GPT2Config(
            vocab_size=11, n_positions=8, n_embd=8, n_layer=2, n_head=2,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(settings)

    return make


def train(model, callback, tmp_path):
    torch.manual_seed(2)
    tokens = torch.randint(0, 11, (8, 6))
    lines = [{"input_ids": line, "labels": line} for line in tokens]
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, report_to=[], max_steps=2,
        save_strategy="no", disable_tqdm=True, logging_strategy="no",
        per_device_train_batch_size=4, seed=1,
    )  # fmt: skip
    callbacks = [callback] if callback else []
    transformers.Trainer(
        model, arguments, train_dataset=lines, callbacks=callbacks
    ).train()
    return model


def test_transformers(gpt, tmp_path):
    callback = transformers_watch(every=1)
    assert not callback.rows()
    watched = train(gpt(), callback, tmp_path)
    plain = train(gpt(), None, tmp_path)
    for one, other in zip(watched.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one, other)
    assert not watched._forward_pre_hooks
    course = callback.course()
    assert course.failures == {}
    assert (course.title, course.steps) == ("GPT2LMHeadModel", 2)
    rows = callback.rows()
    assert rows.where(quantity="training_loss").column("step") == [0, 1]
    assert rows.where(quantity="loss").column("step") == [0, 1, 2]
    assert len(rows.where(quantity="branch_gain", step=0)) == 4
    assert (rows.where(quantity="largest_eigenvalue").values() > 0).all()


@pytest.mark.parametrize("make", [lightning_watch, transformers_watch])
def test_misuse_is_refused_before_the_training(make):
    with pytest.raises(ConfigError, match="every is 0"):
        make(every=0)
