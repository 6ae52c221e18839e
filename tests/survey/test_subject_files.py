"""Networks, weights and data from files, of which few are to be trusted."""

import errno
import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from theodolite.core import TheodoliteError
from theodolite.survey import subject_of


def test_a_file_is_run_when_trusted_alone(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(
        "from torch import nn\nfrom beside import WIDTH\n"
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        "def make(n=2): return nn.Linear(WIDTH, n)\n"
        "def loss(model, batch): return model(batch[0]).square().mean()\n"
    )
    (tmp_path / "beside.py").write_text("WIDTH = 7\n")
    with pytest.raises(TheodoliteError, match="pass --trust, or trust=True"):
        subject_of(f"{path}:make")
    assert not (tmp_path / "ran").exists()
    subject = subject_of(f"{path}:make(3)", loss=f"{path}:loss", trust=True)
    assert subject.model.in_features == 7
    assert subject.loss.__name__ == "loss"


class Bomb:
    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


def test_weights_come_from_a_state_dict_and_run_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(5)
    trained = nn.LSTM(4, 5).state_dict()
    torch.save(trained, "plain.pt")
    loaded = subject_of("torch.nn:LSTM(4, 5)", weights="plain.pt").model.state_dict()
    assert all(torch.equal(loaded[name], one) for name, one in trained.items())
    torch.save({"weights": Bomb()}, "bomb.pt")
    Path("bomb.pickle").write_bytes(pickle.dumps(Bomb()))
    torch.save(nn.Linear(2, 2).state_dict(), "other.pt")
    torch.save([1, 2], "list.pt")
    Path("text.pt").write_text("no weights")
    torch.save(nn.LSTM(4, 5), "whole.pt")
    Path("empty.pt").touch()
    code = "it is no state dict, and code in it is not run"
    wrong = {"bomb.pt": code, "bomb.pickle": "", "whole.pt": code, "text.pt": code,
             "list.pt": "", "other.pt": "Missing key", "empty.pt": "EOFError",
             "no.pt": "No such"}  # fmt: skip
    for name, words in wrong.items():
        said = f"{name} cannot be loaded .*{words}"
        with pytest.raises(TheodoliteError, match=said) as caught:
            subject_of("torch.nn:LSTM(4, 5)", weights=name)
        assert "\n" not in str(caught.value)
    assert not Path("exploded").exists()


def test_data_come_by_name_from_files_and_folders(tmp_path):
    linear = "torch.nn:Linear(784, 10)"
    named = subject_of(linear, data="mnist5k", batch_size=8, n_batches=2)
    assert named.inputs == "mnist5k, 5,000 samples, flattened, cross-entropy"
    assert named.labels_known
    assert [x.shape for x, _ in named.batches] == [(8, 784)] * 2
    arrays = {
        "inputs": np.random.default_rng(0).normal(size=(9, 6)),
        "labels": [0, 1, 2] * 3,
    }
    np.savez(tmp_path / "rows.npz", **arrays)
    rows = subject_of(
        "torch.nn:Linear(6, 3)", data=str(tmp_path / "rows.npz"), batch_size=4
    )
    assert [len(x) for x, _ in rows.batches] == [4, 4, 1]
    drawn = rows.batches[0][0][0]
    place = np.abs(arrays["inputs"] - drawn.numpy()).sum(1).argmin()
    assert int(rows.batches[0][1][0]) == arrays["labels"][place]
    folder = tmp_path / "images"
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
        Image.new("RGB", (10, 12), (40, 50, len(name))).save(folder / name / "one.png")
        Image.new("RGB", (9, 9), (200, 10, 80)).save(folder / name / "two.png")
    (tmp_path / "net.py").write_text(
        "from torch import nn\ndef make(): return nn.Sequential("
        "nn.Conv2d(3, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())"
    )
    made = f"{tmp_path / 'net.py'}:make"
    images = subject_of(made, data=str(folder), batch_size=4, trust=True)
    assert images.batches[0][0].shape == (4, 3, 32, 32)
    assert "images of" in images.inputs


ROWS = np.linspace(-1, 1, 18).reshape(3, 6)


def labelled(labels):
    return {"inputs": ROWS, "labels": np.asarray(labels)}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"other": ROWS}, "no real numbers named 'inputs'"),
        (labelled([0, 1]), "3 inputs and 2"),
        ({"inputs": np.zeros((3, 5))}, "does not take the data"),
        ({"inputs": np.array([object()])}, "cannot be read"),
        *[({"inputs": ROWS.astype(kind)}, "real numbers were wanted")
          for kind in ("U9", complex, [("a", float)])],
        ({"inputs": np.array(1.0)}, "real numbers were wanted"),
        ({"inputs": ROWS[:0]}, "real numbers were wanted"),
        ({"inputs": np.zeros((3, 6), "u8") - 1}, "torch cannot hold"),
        *[(labelled(np.zeros(3, kind)), "labels of type")
          for kind in ("U1", "S1", complex, "M8[D]", "m8[s]", "V4", [("a", int)])],
        (labelled(1), "labels of type int64"),
        (labelled(np.zeros((3, 0))), "labels of type float64"),
        (labelled(np.zeros(3, "u8") - 1), "torch cannot hold"),
        (labelled([0, -1, 1]), "labels go down to -1"),
        (labelled([0, 3, 1]), "labels run up to 3"),
        (labelled([0.0, 1.0, 2.0]), "suggest no loss"),
    ],
)  # fmt: skip
def test_wrong_data_are_one_sentence(arrays, words, tmp_path):
    path = tmp_path / "wrong.npz"
    np.savez(path, **arrays)
    with pytest.raises(TheodoliteError, match=words) as caught:
        subject_of("torch.nn:Linear(6, 3)", data=str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "byte", "words"),
    [(8, 1, "is encrypted"), (10, 99, "compression method is not supported")],
)
def test_an_archive_that_cannot_be_unpacked_is_one_sentence(
    place, byte, words, tmp_path
):
    path = tmp_path / "rows.npz"
    np.savez(path, **labelled([0, 1, 2]))
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\x01\x02") + place] = byte
    path.write_bytes(content)
    with pytest.raises(TheodoliteError, match=words):
        subject_of("torch.nn:Linear(6, 3)", data=str(path))


def test_an_archive_of_other_things_is_one_sentence(tmp_path):
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        archive.writestr("inputs.npy", "no array")
    with pytest.raises(TheodoliteError, match="no real numbers named 'inputs'"):
        subject_of("torch.nn:Linear(6, 3)", data=str(tmp_path / "rows.npz"))


@pytest.mark.parametrize("loss", ["mse", "l1", "half-square", "bce"])
@pytest.mark.parametrize("least", [-1, -100])
def test_classes_below_zero_fit_no_loss_of_numbers(loss, least, tmp_path):
    np.savez(tmp_path / "rows.npz", **labelled([0, least, 1]))
    with pytest.raises(TheodoliteError, match=f"labels go down to {least}"):
        subject_of("torch.nn:Linear(6, 3)", data=f"{tmp_path}/rows.npz", loss=loss)
    with pytest.raises(TheodoliteError, match="bce of one output wants 0 and 1"):
        subject_of("torch.nn:Linear(6, 1)", data=f"{tmp_path}/rows.npz", loss="bce")


@pytest.mark.parametrize("inputs", [">f8", ">f4", "<f2", "longdouble", ">i4", ">u2"])
@pytest.mark.parametrize("labels", [">i8", ">u2", "?", "u8"])
def test_numbers_of_any_type_and_byte_order_are_read(inputs, labels, tmp_path):
    rows, classes = np.arange(18).reshape(3, 6), np.array([0, 1, 1])
    arrays = {"inputs": rows.astype(inputs), "labels": classes.astype(labels)}
    np.savez(tmp_path / "rows.npz", **arrays)
    whole = np.dtype(inputs).kind != "f"
    spec = "torch.nn:Embedding(18, 3)" if whole else "torch.nn:Linear(6, 3)"
    loss = (lambda model, batch: model(batch[0]).sum()) if whole else None
    subject = subject_of(spec, data=str(tmp_path / "rows.npz"), loss=loss)
    x, y = subject.batches[0]
    order = x[:, 0].argsort()
    assert x[order].tolist() == rows.tolist()
    assert y[order].tolist() == [0, 1, 1]


def test_data_without_labels_are_read_in_batches(tmp_path):
    np.savez(tmp_path / "rows.npz", inputs=np.tile(ROWS, (3, 1)))
    subject = subject_of(
        "torch.nn:Linear(6, 3)", data=str(tmp_path / "rows.npz"), batch_size=4
    )
    assert [tuple(x.shape) for x, _ in subject.batches] == [(4, 6), (4, 6), (1, 6)]
    assert not subject.labels_known
    assert "labels made up" in subject.inputs


def test_data_that_may_not_be_read_are_not_called_another_kind(tmp_path, monkeypatch):
    path = tmp_path / "locked.npz"
    np.savez(path, inputs=np.zeros((3, 6)))
    path.chmod(0)
    if os.access(path, os.R_OK):  # by whoever may read everything
        monkeypatch.setattr(io, "open", refusing(path))
        monkeypatch.setattr("builtins.open", refusing(path))
    with pytest.raises(TheodoliteError, match=r"cannot be read \(.*ermission denied"):
        subject_of("torch.nn:Linear(6, 3)", data=str(path))


def refusing(path, opened=open):
    """Return what opens files, but for one that it may not."""

    def attempt(file, *given, **named):
        if file == path:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(file, *given, **named)

    return attempt
