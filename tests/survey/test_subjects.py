"""Inputs, labels and losses for models that nobody here wrote, named in a line."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.survey import others
from theodolite.core import TheodoliteError
from theodolite.instruments import HalfSquareLoss
from theodolite.networks.specs import parse_spec
from theodolite.survey import make_subject, optimizer_of, subject_of, survey
from theodolite.survey.subject.first_layer import candidates


def loss_of(subject, place=0):
    """Return the loss of a batch, by the subject's own parts."""
    batch = subject.batches[place]
    with torch.no_grad():
        if isinstance(subject.loss, nn.Module):
            return float(subject.loss(subject.model(batch[0]), batch[1]))
        return float(subject.loss(subject.model, batch))


FLAT = nn.Sequential(nn.Flatten(), nn.Linear(12, 4))
FOUND = {
    FLAT: ("Gaussian 12 (Linear '1')", "cross-entropy"),
    others.Several(): ("Gaussian 5 (Linear 'body')", "cross-entropy of 'logits'"),
    others.Lenet(): ("Gaussian 1×28×28 (Conv2d 'conv')", "log-likelihood"),
    others.Distribution(): (
        "Gaussian 4 (Linear 'layer')",
        "log-likelihood of probabilities",
    ),
    others.Tokens(): (
        "token ids below 20, 8 (Embedding 'tokens')",
        "cross-entropy at every place",
    ),
    others.OwnLoss(): ("Gaussian 4 (Linear 'layer')", "the model's own value"),
    others.ByHand(): ("Gaussian 4 (Linear 'first')", "cross-entropy"),
    nn.Linear(3, 1): ("Gaussian 3 (Linear '')", "mean squared error"),
    nn.Conv1d(2, 3, 3): ("Gaussian 2×64 (Conv1d '')", "mean squared error"),
    nn.Conv2d(3, 5, 3): (
        "Gaussian 3×32×32 (Conv2d '')",
        "cross-entropy at every pixel",
    ),
    nn.Conv3d(1, 2, 3): ("Gaussian 1×16×16×16 (Conv3d '')", "mean squared error"),
    nn.LSTM(4, 5, batch_first=True): (
        "Gaussian 16×4 (LSTM '')",
        "mean squared error of output 0",
    ),
    nn.ConvTranspose2d(2, 1, 2): (
        "Gaussian 2×16×16 (ConvTranspose2d '')",
        "mean squared error",
    ),
    nn.Linear(3, 2).double(): ("Gaussian 3 (Linear '')", "cross-entropy"),
}


@pytest.mark.parametrize("model", FOUND, ids=lambda model: type(model).__name__)
def test_what_is_not_given_is_found_from_the_model(model):
    model.train()
    before = others.state(model)
    subject = make_subject(model, batch_size=6, n_batches=2, seed=3)
    kind, loss = FOUND[model]
    assert subject.inputs == f"made up: {kind}, random labels, {loss}"
    assert not subject.labels_known
    assert subject.model is model
    assert len(subject.batches) == 2
    assert np.isfinite([loss_of(subject, 0), loss_of(subject, 1)]).all()
    assert loss_of(subject, 0) != loss_of(subject, 1)
    again = make_subject(model, batch_size=6, n_batches=2, seed=3)
    assert loss_of(again) == loss_of(subject)
    assert loss_of(make_subject(model, batch_size=6, n_batches=2, seed=4)) != loss_of(
        subject
    )
    assert others.same(before, others.state(model))


class OwnLoss(nn.Module):
    """Takes any arguments, and returns its loss."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, *inputs):
        return self.layer(inputs[0]).square().mean()


@pytest.mark.parametrize("batches", [None, torch.ones(8, 6)])
def test_batches_that_are_tensors_are_not_joined(batches):
    subject = make_subject(OwnLoss(), batches)
    assert len(subject.batches) == (4 if batches is None else 1)
    assert subject.loss(subject.model, subject.batches[0]).ndim == 0
    result = survey(subject, tries=False, progress=False)
    assert "does-not-run" not in {finding.rule for finding in result.findings}


def test_a_declared_size_is_believed():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model.default_cfg = {"input_size": (3, 20, 24)}
    assert make_subject(model, n_batches=1).batches[0][0].shape == (32, 3, 20, 24)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (others.Named(), r"2 inputs \(image, text\), which cannot be made up"),
        (nn.ReLU(), "no layer of ReLU says which inputs it wants"),
        (nn.LazyLinear(3), "has no shape before a first batch"),
        (nn.Linear(3, 2, device="meta"), "meta device"),
        (nn.Sequential(nn.Linear(3, 2), nn.Linear(5, 1)), "takes none of .* --shape"),
    ],
)
def test_what_cannot_be_found_is_asked_for_in_a_sentence(model, words):
    with pytest.raises(TheodoliteError, match=words) as caught:
        make_subject(model)
    assert "\n" not in str(caught.value)


def test_batches_by_name_and_several_losses_are_taken_as_they_are():
    model = others.Named()
    batch = {"image": torch.randn(4, 6), "text": torch.randint(9, (4, 3))}

    def both(model, batch):
        scores = model(**batch)
        return scores.logsumexp(1).mean() + 0.1 * scores.square().mean()

    subject = make_subject(model, batch, both)
    assert subject.inputs == "as given, loss as given"
    assert subject.loss is both
    # Without a loss, labels are made up for what the model puts out.
    subject = make_subject(model, batch)
    assert subject.inputs == "inputs as given; labels made up, cross-entropy"
    assert subject.batches[0][0] is batch
    assert not subject.labels_known


def test_targets_choose_the_loss():
    model = nn.Linear(3, 4)
    x = torch.randn(5, 3)
    labels, numbers = torch.randint(4, (5,)), torch.randn(5, 4)
    assert isinstance(make_subject(model, (x, labels)).loss, nn.CrossEntropyLoss)
    assert isinstance(make_subject(model, [(x, numbers)] * 2).loss, nn.MSELoss)
    # A square loss of classes wants rows of 0 and 1.
    squared = make_subject(model, (x, labels), "half-square")
    assert isinstance(squared.loss, HalfSquareLoss)
    assert torch.equal(squared.batches[0][1].argmax(1), labels)
    assert squared.labels_known
    with pytest.raises(TheodoliteError, match="labels run up to 4 and the model has 4"):
        make_subject(model, (x, torch.tensor([0, 1, 2, 3, 4])))
    with pytest.raises(TheodoliteError, match="suggest no loss"):
        make_subject(model, (x, torch.randn(5, 3)))
    with pytest.raises(TheodoliteError, match="did you mean 'mse'"):
        make_subject(model, (x, labels), "mes")


def test_square_losses_want_a_number_an_output():
    for model in (others.Tokens(), nn.Conv2d(3, 5, 3), others.Several()):
        subject = make_subject(model, loss="half-square", batch_size=4, n_batches=1)
        assert np.isfinite(loss_of(subject))
        outputs = subject.model(subject.batches[0][0])
        scores = outputs["logits"] if isinstance(outputs, dict) else outputs
        targets = subject.batches[0][1]
        assert targets.shape == scores.shape
        axis = 2 if isinstance(model, others.Tokens) else 1
        assert torch.equal(targets.sum(axis), torch.ones_like(targets.sum(axis)))
    x, digits = torch.randn(6, 3), torch.arange(6)
    with pytest.raises(TheodoliteError, match="bce of one output wants 0 and 1"):
        make_subject(nn.Linear(3, 1), (x, digits), "bce")
    with pytest.raises(TheodoliteError, match="do not go with outputs"):
        make_subject(nn.Linear(3, 4), (x, torch.zeros(6, 3, dtype=torch.int64)), "mse")


@pytest.mark.parametrize("seed", [-1, 2**70, 0.5, True])
def test_a_seed_that_cannot_be_drawn_from_is_one_sentence(seed):
    with pytest.raises(TheodoliteError, match="seed is"):
        subject_of("torch.nn:Linear(4, 3)", seed=seed)
    with pytest.raises(TheodoliteError, match="seed is"):
        make_subject(nn.Linear(2, 2), seed=seed)


def test_specs_name_callables_with_plain_arguments():
    spec = parse_spec("package.module:Outer.make(3, 'a', depth=(1, 2), x=None)")
    assert (spec.kind, spec.place, spec.name) == (
        "module",
        "package.module",
        "Outer.make",
    )
    assert (spec.args, spec.kwargs) == ((3, "a"), {"depth": (1, 2), "x": None})
    assert subject_of("torch.nn:Linear(4, 3)").model.out_features == 3


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("resnet18", "'resnet18' is not understood: pass package.module"),
        ("", "is not understood"),
        ("torch.nn:Linaer(1, 2)", "did you mean 'Linear'"),
        ("torch.nn:Linear", "could not be called .* missing 2 required"),
        ("torch.nn:Linear({[1]: 2})", "are no plain values"),
        ("torch.nn:Linear(2, x)", "are no plain values"),
        ("torch.nn:Linear(2, __import__('os'))", "are no plain values"),
        ("torch.nn:Linear(2, 3", "no closing one"),
        ("torch.nn:functional", "cannot be called"),
        ("torch:ones(3)", "returned a Tensor"),
        ("no_such_package.at_all:Net", "cannot be imported"),
        ("nothing.py:Net", "cannot be read"),
        ("nothing.py", "nothing.py:callable"),
        ("torch nn:Linear", "names no module"),
    ],
)
def test_a_wrong_spec_is_one_sentence(spec, words):
    with pytest.raises(TheodoliteError, match=words) as caught:
        subject_of(spec, trust=True)
    assert "\n" not in str(caught.value)


def test_optimizers_are_written_in_a_line():
    model = nn.Linear(2, 1)
    model.bias.requires_grad_(False)
    optimizer = optimizer_of("SGD:lr=0.1,momentum=0.9,nesterov=True", model)
    assert optimizer.defaults["nesterov"]
    assert [len(group["params"]) for group in optimizer.param_groups] == [1]
    wrong = {
        "sgd:0.1": "NAME=VALUE",
        "sgd:lr={[]: 1}": "NAME=VALUE",
        "sgd:lr=1)+f(": "NAME=VALUE",
        "adam:betas=()": "does not take",
        "sgd:rate=1": "does not take",
        "sdg": "did you mean 'sgd'",
        "adam:lr=-1": "does not take",
    }
    for text, words in wrong.items():
        with pytest.raises(TheodoliteError, match=words):
            optimizer_of(text, model)


@pytest.mark.parametrize("kind", others.CONFIGS)
def test_models_of_transformers_have_their_own_inputs_and_loss(kind):
    model = others.transformer(kind)
    subject = make_subject(model, batch_size=2, n_batches=1)
    assert subject.inputs.startswith("made up: ")
    assert subject.inputs.endswith("the model's own loss")
    assert np.isfinite(loss_of(subject))
    subject.model.eval()
    inputs, labels = subject.batches[0]
    assert list(inputs) == [subject.model.main_input_name]
    # The same batch by keyword arguments, as a loader of theirs would give it.
    given = make_subject(subject.model, {**inputs, "labels": labels})
    assert given.inputs == "as given, the model's own loss"
    assert loss_of(given) == loss_of(subject)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("torch.nn:Linear", "could not be made .*missing 2 required"),
        ("torch.nn:CrossEntropyLoss(weight=[1, 2])", "could not be made"),
        ("torch.nn.functional:mse_loss(3)", "has arguments and names no class"),
        ("mse(3)", "is not understood"),
        ("", "is not understood"),
    ],
)
def test_a_wrong_loss_is_one_sentence(loss, words):
    with pytest.raises(TheodoliteError, match=words) as caught:
        subject_of("torch.nn:Linear(4, 3)", loss=loss)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (nn.Linear(10, 1), "10 16×10"),
        (nn.Linear(48, 1), "48 16×48 3×4×4 4×4"),
        (nn.Linear(3, 1), "3 16×3"),
        (nn.Conv1d(1, 2, 80, 4), "1×256 1×1024 1×4096 1×16000"),
        (nn.Conv2d(3, 4, 5), "3×32×32 3×28×28 3×64×64 3×224×224 3×96×96 3×128×128 "
                             "3×16×16 3×256×256 3×8×8 3×299×299"),
        (nn.Conv2d(3, 4, 7, 2), "3×64×64 3×224×224 3×96×96 3×128×128 3×32×32 "
                                "3×256×256 3×299×299 3×384×384 3×512×512"),
        (nn.Conv3d(1, 2, (1, 1, 17)), "1×32×32×32 1×64×64×64"),
        (nn.LSTM(5, 2), "16×5"),
        (nn.GRUCell(5, 2), "5"),
        (nn.MultiheadAttention(6, 2), "16×6 6"),
        (nn.LayerNorm((3, 7)), "7 16×7"),
        (nn.BatchNorm1d(9), "9 16×9"),
        (nn.ConvTranspose3d(4, 2, 3), "4×16×16×16 4×32×32×32 4×8×8×8"),
        (nn.Bilinear(2, 3, 4), ""),
        # Four layers are enough, and nothing is tried twice.
        (nn.Sequential(*(nn.Linear(n, 1) for n in (5, 5, 6, 7, 8))),
         "5 16×5 6 16×6 7 16×7"),
    ],
    ids=str,
)  # fmt: skip
def test_first_layers_say_which_inputs_to_try(layer, wanted):
    names = [str(one).removeprefix("Gaussian ") for one in candidates(layer)]
    assert names == wanted.split()
