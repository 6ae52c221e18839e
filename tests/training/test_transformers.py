"""Against the real Trainer of Hugging Face, on a CPU."""

import sys
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, SequentialSampler

from tests.later import later
from tests.training.probe_cases import (
    assert_same_state,
    broken,
    data,
    moody,
    network,
    plain_run,
    probes,
    state,
    table,
    vandal,
    weight_norm,
)
from theodolite.core import ConfigError
from theodolite.instruments import HalfSquareLoss, extreme_eigenvalues
from theodolite.training.probes.callbacks import transformers_callback
from theodolite.training.probes.probe import Probe, ProbeWarning
from theodolite.training.probes.schedules import AtLosses, AtSteps, Every

transformers = later("transformers", "pip install 'theodolite[transformers]'")
later("accelerate", "pip install 'theodolite[transformers]'")


class Wrapped(nn.Module):
    """A module with the manners of the library: labels in, a loss out."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, labels=None):
        outputs = self.inner(x)
        if labels is None:
            return outputs
        loss = HalfSquareLoss()(outputs, labels)
        return transformers.utils.ModelOutput(loss=loss, logits=outputs)


class Pairs(Dataset):
    def __init__(self):
        self.x, self.y = data()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "labels": self.y[index]}


@cache
def in_order():
    class InOrder(transformers.Trainer):
        def _get_train_sampler(self, *args):
            return SequentialSampler(self.train_dataset)

    return InOrder


def trainer_of(inner, tmp_path, *callbacks, batch_size=12, steps=6, **settings):
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, report_to=[], max_steps=steps,
        per_device_train_batch_size=batch_size, save_strategy="no", disable_tqdm=True,
        learning_rate=0.1, max_grad_norm=0.0, lr_scheduler_type="constant",
        logging_strategy="no", seed=7, **settings,
    )  # fmt: skip
    wrapped = Wrapped(inner)
    # As an object, since older releases ignore the momentum of optim_args.
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1, momentum=0.9)
    return in_order()(
        wrapped, arguments, train_dataset=Pairs(), callbacks=[*callbacks],
        optimizers=(optimizer, None),
    )  # fmt: skip


def fit(inner, tmp_path, *callbacks, **settings):
    trainer = trainer_of(inner, tmp_path, *callbacks, **settings)
    trainer.train()
    return trainer


def all_pairs():
    x, y = data()
    return {"x": x, "labels": y}


def gradient(at):
    value = at.criterion(at.model, at.data)
    grads = torch.autograd.grad(value, list(at.model.parameters()))
    return torch.sqrt(sum(g.square().sum() for g in grads))


def by_pair(at):
    x, y = at.data
    value = at.criterion(at.model(x), y)
    grads = torch.autograd.grad(value, list(at.model.parameters()))
    return torch.sqrt(sum(g.square().sum() for g in grads))


def chosen(measure):
    return [
        Probe("weights", weight_norm, Every(2)),
        Probe("gradient", measure, AtSteps([0, 3, 6])),
        Probe("low", weight_norm, AtLosses((1.16, 1.12, 0.9))),
    ]


def test_the_same_rows_as_the_plain_loop(tmp_path):
    plain = plain_run(chosen(by_pair))
    callback = transformers_callback(chosen(gradient), batch=all_pairs, max_share=1)
    fit(network(), tmp_path, callback)
    assert isinstance(callback, transformers.TrainerCallback)
    assert not callback.watcher.retired
    watched, expected = table(callback.rows(), "theodolite/"), table(plain.probe_rows)
    assert {key[1] for key in expected} == {"weights", "gradient", "low"}
    assert watched.keys() == expected.keys()
    for key, numbers in expected.items():
        assert watched[key] == pytest.approx(numbers, rel=1e-12)


def test_a_pair_and_a_module_give_the_same_loss(tmp_path):
    probe = [Probe("gradient", by_pair, Every(3))]
    callback = transformers_callback(
        probe, batch=data(), criterion=HalfSquareLoss(), max_share=1
    )
    fit(network(), tmp_path, callback)
    plain = plain_run(probe)
    watched, expected = table(callback.rows(), "theodolite/"), table(plain.probe_rows)
    assert watched.keys() == expected.keys()
    for key, numbers in expected.items():
        assert watched[key] == pytest.approx(numbers, rel=1e-12)


def disturb(at):
    """Disturb all that a probe can reach."""
    return vandal(
        type(at)(step=0, loss=0.0, problem=replace(at.problem, batches=data()))
    )


def test_training_is_the_same_bit_for_bit(tmp_path):
    ends = []
    for probe in (None, Probe("vandal", disturb, Every(2))):
        callbacks = (
            [transformers_callback([probe], batch=all_pairs(), max_share=1)]
            if probe
            else []
        )
        trainer = fit(moody(), tmp_path, *callbacks, batch_size=4)
        ends.append((state(trainer.model), torch.rand(3)))
    assert len(callbacks[0].rows()) == 4
    assert_same_state(ends[0][0], ends[1][0])
    assert torch.equal(ends[0][1], ends[1][1])


def test_numbers_go_to_the_history(tmp_path):
    callback = transformers_callback(probes()[:1], max_share=1)
    trainer = fit(network(), tmp_path, callback)
    rows = callback.rows()
    history = [e for e in trainer.state.log_history if "theodolite/weights" in e]
    assert [e["step"] for e in history] == rows.column("step") == [0, 2, 4, 6]
    assert [e["theodolite/weights"] for e in history] == rows.column("value")


def test_numbers_go_to_all_that_the_trainer_reports_to(tmp_path):
    heard = []

    class Listener(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            if "theodolite/weights" in logs:
                heard.append((state.global_step, logs["theodolite/weights"]))

    trainer = trainer_of(network(), tmp_path, Listener())
    callback = transformers_callback(probes()[:1], max_share=1, log=trainer.log)
    trainer.add_callback(callback)
    trainer.train()
    rows = callback.rows()
    assert heard == list(zip(rows.column("step"), rows.column("value"), strict=True))
    assert [step for step, _ in heard] == [0, 2, 4, 6]


def test_what_fails_is_reported_once_and_training_goes_on(tmp_path):
    def log(numbers):
        raise OSError("disk full")

    callback = transformers_callback(
        [Probe("broken", broken), *chosen(gradient)], batch=lambda: 1 / 0, log=log,
        max_share=1,
    )  # fmt: skip
    with pytest.warns(ProbeWarning) as caught:
        trainer = fit(network(), tmp_path, callback)
    ours = [str(w.message) for w in caught if w.category is ProbeWarning]
    for says in ("batch failed", "loss failed", "'broken'", "'gradient'", "disk full"):
        assert sum(says in message for message in ours) == 1, says
    assert len(ours) == 5
    assert len(callback.rows().where(quantity="theodolite/weights")) == 4
    assert_same_state(state(trainer.model), state(fit(network(), tmp_path).model))


def test_an_instrument_on_a_model_of_the_library(tmp_path):
    config = transformers.GPT2Config(
        vocab_size=7, n_positions=5, n_embd=8, n_layer=1, n_head=2, n_inner=8,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config)
    tokens = torch.randint(0, 7, (6, 5))
    lines = [{"input_ids": row, "labels": row} for row in tokens]

    def sharpness(at):
        at.model.eval()  # dropout off; the callback puts the mode back
        return extreme_eigenvalues(
            at.model, at.data, loss=at.criterion, norm_mode="eval", ends="largest",
            max_matvecs=30, tol=1e-2, method="products",
        )  # fmt: skip

    callback = transformers_callback(
        [Probe("sharp", sharpness, AtSteps([0, 2]))],
        batch={"input_ids": tokens, "labels": tokens},
        max_share=1,
    )
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, report_to=[], max_steps=2,
        save_strategy="no", disable_tqdm=True, logging_strategy="no",
    )  # fmt: skip
    transformers.Trainer(
        model, arguments, train_dataset=lines, callbacks=[callback]
    ).train()
    assert not callback.watcher.retired
    assert model.training
    rows = callback.rows().where(quantity="theodolite/sharp/eigenvalues")
    assert rows.column("step") == [0, 2]
    assert (rows.values() > 0).all()


def test_without_transformers_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ConfigError, match=r"pip install 'theodolite\[transformers\]'"):
        transformers_callback(probes())
