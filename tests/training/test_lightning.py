"""Against the real Lightning, on a CPU."""

import csv
import sys
from functools import cache

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tests.later import later
from tests.training.probe_cases import (
    assert_same_state,
    broken,
    data,
    network,
    plain_run,
    probes,
    state,
    table,
    weight_norm,
)
from theodolite.core import ConfigError
from theodolite.instruments import HalfSquareLoss
from theodolite.training.probes.callbacks import lightning_callback
from theodolite.training.probes.probe import Probe, ProbeWarning

lightning = later("lightning.pytorch", "pip install 'theodolite[lightning]'")

# Lightning's own, on small data and under a newer torch.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*smaller than the logging interval"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning"),
]


@cache
def module_kind():
    class Module(lightning.LightningModule):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.criterion = inner, HalfSquareLoss()

        def forward(self, x):
            return self.inner(x)

        def training_step(self, batch, batch_idx):
            x, y = batch
            return self.criterion(self(x), y)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)

    return Module


def fit(inner, callback, tmp_path, *, batch_size=12, epochs=6, **settings):
    module = module_kind()(inner)
    torch.manual_seed(7)
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=epochs, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, num_sanity_val_steps=0,
        callbacks=[callback] if callback else [], default_root_dir=tmp_path,
        **{"logger": False, **settings},
    )  # fmt: skip
    trainer.fit(module, DataLoader(TensorDataset(*data()), batch_size=batch_size))
    return module


def test_the_same_rows_as_the_plain_loop(tmp_path):
    chosen = probes((1.16, 1.12, 0.9))
    plain = plain_run(chosen)
    callback = lightning_callback(chosen, max_share=1)
    module = fit(network(), callback, tmp_path)
    assert isinstance(callback, lightning.Callback)
    assert not callback.watcher.retired
    watched = table(callback.rows(), "theodolite/")
    expected = table(plain.probe_rows)
    assert {key[1] for key in expected} >= {"weights", "gradient/all", "low"}
    assert watched.keys() == expected.keys()
    for key, (value, loss) in expected.items():
        assert watched[key][0] == pytest.approx(value, rel=1e-12)
        if key[0] < 6:  # after the last update Lightning computes no loss
            assert watched[key][1] == pytest.approx(loss, rel=1e-12)
    assert module.inner[0].weight.dtype == torch.float64


def test_the_loss_of_accumulated_batches_is_their_mean(tmp_path):
    callback = lightning_callback([Probe("w", weight_norm)], max_share=1)
    fit(
        network(), callback, tmp_path, batch_size=4, epochs=2,
        accumulate_grad_batches=3,
    )  # fmt: skip
    plain = plain_run([Probe("w", weight_norm)], steps=2)
    rows = callback.rows()
    assert rows.column("step") == [0, 1, 2]
    assert rows.values() == pytest.approx(plain.probe_rows.values(), rel=1e-12)
    assert rows.values("loss")[:2] == pytest.approx(plain.loss[:2], rel=1e-12)


def test_numbers_go_to_the_loggers(tmp_path):
    from lightning.pytorch.loggers import CSVLogger

    callback = lightning_callback(probes(), max_share=1)
    fit(network(), callback, tmp_path, logger=CSVLogger(tmp_path, name="", version="v"))
    with (tmp_path / "v/metrics.csv").open() as file:
        lines = list(csv.DictReader(file))
    logged = {
        int(line["step"]): float(line["theodolite/weights"])
        for line in lines
        if line["theodolite/weights"]
    }
    rows = callback.rows().where(quantity="theodolite/weights")
    assert logged == dict(zip(rows.column("step"), rows.values(), strict=True))
    assert set(logged) == {0, 2, 4, 6}
    assert "theodolite/gradient/all" in lines[0]


def failing_logger():
    class FailingLogger(lightning.loggers.logger.DummyLogger):
        def log_metrics(self, *args, **kwargs):
            raise OSError("disk full")

    return FailingLogger()


def test_what_fails_is_reported_once_and_training_goes_on(tmp_path):
    chosen = [Probe("broken", broken), *probes()]
    callback = lightning_callback(chosen, max_share=1)
    with pytest.warns(ProbeWarning) as caught:
        module = fit(network(), callback, tmp_path, logger=failing_logger())
    ours = [str(w.message) for w in caught if w.category is ProbeWarning]
    assert len(ours) == 2
    assert "'broken' raised ZeroDivision" in ours[0]
    assert "Loggers failed with OSError: disk full" in ours[1]
    assert len(callback.rows().where(quantity="theodolite/weights")) == 4
    assert_same_state(state(module), state(fit(network(), None, tmp_path)))


def test_a_batch_of_ones_own(tmp_path):
    x, y = data(samples=3)
    seen, mine = [], nn.MSELoss()
    probe = Probe("n", lambda at: seen.append(at.criterion) or len(at.data[0]))
    callback = lightning_callback([probe], batch=(x, y), criterion=mine, max_share=1)
    fit(network(), callback, tmp_path, epochs=1)
    assert callback.rows().values().tolist() == [3, 3]
    assert seen == [mine, mine]


def test_without_lightning_one_sentence(monkeypatch):
    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"pip install 'theodolite\[lightning\]'"):
        lightning_callback(probes())


def test_the_other_name_of_lightning(tmp_path):
    other = pytest.importorskip("pytorch_lightning")
    callback = lightning_callback([Probe("w", weight_norm)], max_share=1)
    assert isinstance(callback, other.Callback)
    assert isinstance(callback, lightning.Callback)
    assert isinstance(module_kind()(nn.Linear(1, 1)), lightning.LightningModule)
